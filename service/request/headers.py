"""The headers of a request as one JSON object for its routine: in a parameter, or in a setting (binding-22 to
binding-24).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from rowcall.core.auth.parameter_injection import headers_parameter, with_injected
from rowcall.core.endpoint.endpoint import Endpoint, HeadersMode
from rowcall.core.http.forwarded_headers import Forwarding, headers_for_routines
from rowcall.service.database.preamble import Preamble
from rowcall.service.request_context.arguments import set_argument
from rowcall.service.request_context.request_context import RequestContext, Step

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services


_USUAL_NAMES = {
    name.lower(): name for name in ("baggage", "Content-MD5", "DNT", "Sec-GPC", "TE", "traceparent", "tracestate")
}
"""Name in lower case → well-known name of a header whose words do not begin with one upper-case letter each."""


def fill_headers(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step of mode Parameter, which sets the parameter for headers. A value that the request supplies for it
    is replaced, unless the options say that it counts (`from_client`). None: the endpoint has no such parameter.
    """
    index = headers_parameter(endpoint)
    if index is None:
        return None
    bit = 1 << index
    headers = _reader(services.options.headers.added, services.options.forwarding)

    from_client = services.options.headers.from_client

    def fill(context: RequestContext) -> None:
        supplied = context.mask & bit
        if supplied and from_client:
            return
        set_argument(context, index, headers(context))
        if supplied:
            context.has_null = None in context.arguments

    return fill


def with_headers_filled(endpoint: Endpoint, services: Services) -> Endpoint:
    """Return the endpoint as it is used for binding: a default of the comment for the parameter for headers is ignored,
    because `fill_headers` sets it later (binding-23). A value that the request supplies for it is ignored too, unless
    the options say that it counts (`from_client`)."""
    index = headers_parameter(endpoint)
    if index is None:
        return endpoint
    if not services.options.headers.from_client:
        return with_injected(endpoint, {index})
    parameters = list(endpoint.parameters)
    parameters[index] = replace(parameters[index], has_default=True, defaulted=False)
    return replace(endpoint, parameters=tuple(parameters))


def headers_context(endpoint: Endpoint, services: Services) -> Preamble | None:
    """Return the preamble of mode Context: a setting during the call. None: the endpoint has another mode."""
    if endpoint.options.request_headers is not HeadersMode.CONTEXT:
        return None
    key = services.options.headers.key.encode()
    headers = _reader(services.options.headers.added, services.options.forwarding)
    return Preamble(settings=(lambda context: (key, headers(context)),))


def _reader(added: tuple[tuple[str, str], ...], forwarding: Forwarding) -> Callable[[RequestContext], bytes]:
    """Return the function that returns the headers of a request as JSON, with forwarded headers applied if trusted
    proxies are configured. added: names and values that replace headers of the client.
    """
    replaced = {name.lower() for name, _ in added}

    def read(context: RequestContext) -> bytes:
        sent = ((name, value) for name, value in context.scope.headers.items() if name not in replaced)
        return headers_json(sent, added)

    def read_behind_proxies(context: RequestContext) -> bytes:
        scope = context.scope
        headers = headers_for_routines(forwarding, scope.headers.items(), scope.client, scope.scheme)
        return headers_json(((name, value) for name, value in headers if name not in replaced), added)

    return read_behind_proxies if forwarding.enabled else read


def headers_json(items: Iterable[tuple[str, str]], added: Iterable[tuple[str, str]] = ()) -> bytes:
    """Return `{"Host":"x","Accept":"a,b"}`: canonical names, several values joined by a comma; the names of `added`
    unchanged. items, added: names, in lower case, and values; those of `added` replace headers of the same spelling.
    """
    headers: dict[str, str] = {}
    for name, value in items:
        canonical = _USUAL_NAMES.get(name) or "-".join(part.capitalize() for part in name.split("-"))
        headers[canonical] = f"{headers[canonical]},{value}" if canonical in headers else value
    return orjson.dumps(headers | dict(added))
