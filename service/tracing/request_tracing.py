"""Tracing steps of endpoints, and the settings by which the database sees the trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from rowcall.core.catalogue.catalog import Volatility
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.operations.tracing import TracingOptions
from rowcall.service.database.preamble import Preamble
from rowcall.service.log.request_log import logging_protocol_of
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.trace import TracedProtocol, trace_of
from rowcall.service.shared_state.host_state import HostState
from rowcall.service.tracing.decision import UnsampledTrace, is_sampled

if TYPE_CHECKING:
    from rowcall.service.tracing.span_entry import SpanEntry
    from rowcall.service.tracing.spans import OutgoingSpan, Tracing


def trace_requests(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the tracing step of an endpoint, which has to run before every step that may refuse the request; None:
    tracing is off."""
    return _trace_step(endpoint, endpoint.name, endpoint.method, endpoint.path, services)


def trace_streams(endpoint: Endpoint, path: str, services: Services) -> Step | None:
    """Return the tracing step of the event stream of an endpoint; None: tracing is off. path: of the stream.

    Its span ends when the stream has begun: a span of many hours would only be exported at its end.
    """
    return _trace_step(endpoint, f"GET {path}", "GET", path, services)


def trace_path(method: str, path: str, services: Services) -> Step | None:
    """Return the tracing step of requests to PostgREST's interface, which have no endpoint; None: tracing is off. path:
    the template of the path, such as `/{relation}`."""
    return _step(f"{method} {path}", {"http.request.method": method, "http.route": path}, services)


def _trace_step(endpoint: Endpoint, name: str, method: str, path: str, services: Services) -> Step | None:
    routine = f"{endpoint.routine.schema}.{endpoint.routine.name}"
    attributes = {"http.request.method": method, "http.route": path, "code.function.name": routine}
    return _step(name, attributes, services, redacted=endpoint.redacted)


def _step(name: str, fixed_attributes: dict[str, str], services: Services, *, redacted: bool = False) -> Step | None:
    options = services.options.tracing
    if options is None:
        return None
    # The SDK of OpenTelemetry is imported only if it is used.
    from opentelemetry.trace import SpanKind

    from rowcall.service.tracing.spans import RequestTrace, SpanProtocol

    trusting = replace(options, trusts=True)
    if services.job_runs:
        # The trace is that of the request which enqueued the job, whose sampling decision holds.
        options = trusting
    kind = SpanKind.CONSUMER if services.job_runs else SpanKind.SERVER
    tracing = _tracing(options, services.host)

    def trace(context: RequestContext) -> None:
        scope = context.scope
        continues = getattr(scope, "continues_trace", False)
        if is_sampled(scope.headers.get("traceparent"), trusting if continues else options):
            trace_sampled(context)
            return
        unsampled = UnsampledTrace(context)
        protocol = context.protocol
        if (log_protocol := logging_protocol_of(protocol)) is not None:
            log_protocol.trace = unsampled.trace_id
        context.protocol = TracedProtocol(protocol, unsampled)

    def trace_sampled(context: RequestContext) -> None:
        scope = context.scope
        attributes = {**fixed_attributes, "url.scheme": scope.scheme, "http.request.method": scope.method}
        if not redacted:
            attributes["url.path"] = scope.path
        request_trace = RequestTrace(tracing, context, name, attributes, kind)
        protocol = context.protocol
        if (log_protocol := logging_protocol_of(protocol)) is not None:
            log_protocol.trace = request_trace.trace_id
        context.protocol = SpanProtocol(protocol, request_trace)
        context.at_end(request_trace.end)

    return trace


def trace_name(_endpoint: Endpoint, services: Services) -> Preamble | None:
    """Return the preamble that sets application_name to the `traceparent` of a sampled request for the time of the
    call; None: this is off. Requests that are not sampled keep their application_name.

    The trace is a parameter, so that the statement stays the same and prepared.
    """
    options = services.options.tracing
    if options is None or not options.names:
        return None

    def setting(context: RequestContext) -> tuple[bytes, ...]:
        trace = trace_of(context.protocol)
        return () if trace is None or not trace.sampled else (b"application_name", trace.traceparent.encode())

    return Preamble(settings=(setting,))


def published_trace(endpoint: Endpoint, services: Services) -> Preamble | None:
    """Return the preamble that sets the trace of a sampled request, which `rowcall.publish` and `rowcall.enqueue` store
    with messages and jobs of the routine; for other requests, it sets nothing. None: tracing is off, or the routine
    cannot use these functions (webhooks and jobs are off, or it is not volatile)."""
    options = services.options
    can_store = options.deliveries is not None or options.jobs is not None
    if options.tracing is None or not can_store or endpoint.routine.volatility is not Volatility.VOLATILE:
        return None

    def setting(context: RequestContext) -> tuple[bytes, ...]:
        trace = trace_of(context.protocol)
        return () if trace is None or not trace.sampled else (b"rowcall.traceparent", trace.traceparent.encode())

    return Preamble(settings=(setting,))


def outgoing_spans(options: TracingOptions | None, host: HostState) -> Callable[[str, str, str], OutgoingSpan] | None:
    """Return the function that begins the span of an outgoing request that belongs to no current request, such as the
    delivery of a webhook; None: tracing is off. Its arguments: `traceparent` of the trace to continue, method, host."""
    return (
        None
        if options is None
        else lambda trace, method, host_name: _tracing(options, host).begin_outgoing_request(trace, method, host_name)
    )


def recent_spans(trace: str | None, options: TracingOptions | None, host: HostState) -> tuple[SpanEntry, ...]:
    """Return the stored spans of a trace; with None, the root spans of the latest requests. Empty if tracing is off, or
    no spans are stored. Raises `ValueError` for an id that is no hexadecimal number."""
    recent = None if options is None else _tracing(options, host).recent
    if recent is None:
        return ()
    return recent.roots() if trace is None else recent.of(trace)


def _tracing(options: TracingOptions, host: HostState) -> Tracing:
    from rowcall.service.tracing.spans import Tracing

    return host.get_or_create("tracing", lambda: Tracing(options))


def query_tag(endpoint: Endpoint, services: Services) -> str:
    """Return the comment in front of the statement of an endpoint; empty if tags are off. It is the same for all
    requests, so that the statement stays prepared.
    """
    if not services.options.query_tags:
        return ""
    name = "".join(letter for letter in endpoint.name if letter.isprintable())
    return f"/* {name.replace('*/', '* /').replace('/*', '/ *')} */ "
