"""Which endpoints are traced, and what the database is told of it."""

from __future__ import annotations

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.database.preamble import Preamble
from rowcall.service.log.request_log import logged
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.head_protocol import HeadProtocol
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.trace import PassingProtocol, trace_of
from rowcall.service.tracing.decision import Unsampled, is_sampled


def trace_requests(endpoint: Endpoint, services: Services) -> Step | None:
    """In front of everything that may refuse. None where nothing is traced."""
    return _traced(endpoint, endpoint.name, endpoint.method, endpoint.path, services)


def trace_streams(endpoint: Endpoint, path: str, services: Services) -> Step | None:
    """The same for whoever asks for the events of the endpoint. Its span ends when the stream has begun: nobody would
    be shown one that lasts for hours before it is over."""
    return _traced(endpoint, f"GET {path}", "GET", path, services)


def _traced(endpoint: Endpoint, name: str, method: str, path: str, services: Services) -> Step | None:
    options = services.options.tracing
    if options is None:
        return None
    # OpenTelemetry's SDK is only for those who use it.
    from rowcall.service.tracing.spans import RequestTrace, SpanProtocol, Tracing

    tracing = services.host.once("tracing", lambda: Tracing(options))
    routine = f"{endpoint.routine.schema}.{endpoint.routine.name}"
    fixed = {"http.request.method": method, "http.route": path, "code.function.name": routine}
    secret = endpoint.discreet

    def trace(context: RequestContext) -> None:
        if is_sampled(context.scope.headers.get("traceparent"), options):
            trace_it(context)
            return
        unsampled = Unsampled(context)
        protocol = context.protocol
        if (told := logged(protocol)) is not None:
            told.trace = unsampled.trace_id
        if type(protocol) is HeadProtocol:
            protocol.inner = PassingProtocol(protocol.inner, unsampled)
        else:
            context.protocol = PassingProtocol(protocol, unsampled)

    def trace_it(context: RequestContext) -> None:
        scope = context.scope
        attributes = {**fixed, "url.scheme": scope.scheme, "http.request.method": scope.method}
        if not secret:
            attributes["url.path"] = scope.path
        found = RequestTrace(tracing, context, name, attributes)
        protocol = context.protocol
        if (told := logged(protocol)) is not None:
            told.trace = found.trace_id
        if type(protocol) is HeadProtocol:
            protocol.inner = SpanProtocol(protocol.inner, found)
        else:
            context.protocol = SpanProtocol(protocol, found)
        context.at_end(found.end)

    return trace


def trace_name(_endpoint: Endpoint, services: Services) -> Preamble | None:
    """The trace as application_name for the time of the call, where that is asked for: a value, so that the statement
    stays the same and prepared."""
    options = services.options.tracing
    if options is None or not options.names:
        return None

    def setting(context: RequestContext) -> tuple[bytes, ...]:
        trace = trace_of(context.protocol)
        return () if trace is None or not trace.sampled else (b"application_name", trace.traceparent.encode())

    return Preamble(settings=(setting,))


def query_tag(endpoint: Endpoint, services: Services) -> str:
    """In front of the statement of an endpoint: the same for all its requests, so that it stays prepared."""
    if not services.options.query_tags:
        return ""
    name = "".join(letter for letter in endpoint.name if letter.isprintable())
    return f"/* {name.replace('*/', '* /').replace('/*', '/ *')} */ "
