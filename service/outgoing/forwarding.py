"""Construction of the request that a proxy sends, from the received one (proxies-4 to proxies-8)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.capabilities import Forwarding
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.http.deadlines import time_left
from rowcall.core.outgoing.address import Address, has_dot_segment, read_address
from rowcall.core.outgoing.credentials import OwnCredentials
from rowcall.core.outgoing.forwarding import (
    BODY_METHODS,
    PLAIN_TEXT,
    AutomaticValue,
    Headers,
    body_with,
    encoded_path,
    forwarded_headers,
    mended_path,
    query_with,
    request_headers,
    variable_name,
)
from rowcall.core.outgoing.options import ProxyOptions
from rowcall.service.http_client.messages import IDEMPOTENT, HttpResponse, OutgoingRequest, ResponseWaiter
from rowcall.service.outgoing.automatic import automatic_parameters, automatic_values, context_headers, context_names
from rowcall.service.outgoing.bodies import (
    SMALL,
    UpstreamTimeout,
    announced_length,
    body_chunks,
    may_have_body,
    read_whole_body,
    whole_body,
)
from rowcall.service.outgoing.hedging import hedge_request
from rowcall.service.request_context.client_address import client_reader
from rowcall.service.request_context.client_liveness import WATCH_AFTER_SECONDS
from rowcall.service.request_context.head_protocol import is_head
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.request_context.trace import trace_of

if TYPE_CHECKING:
    from rowcall.service.http_client.client import Client, RequestWithoutTask
    from rowcall.service.pipeline.services import Services, SubrequestSender

log = logging.getLogger("rowcall")

Body = bytes | AsyncIterator[bytes] | None
"""A complete body, the chunks of one, or none."""

_KNOWN_CLIENTS = 4096
"""Number of clients for which headers are cached."""

NO_HOST = "Proxy host is not configured. Name one in the annotation, or set Service:ProxyOptions:Host."


class ForwardRequest:
    """Forwards the requests of one endpoint to the target of its proxy. forwarding: method and URL of the annotation.

    keeps_body: attribute; the body is read completely before it is sent, because this service needs it too.
    """

    def __init__(self, endpoint: Endpoint, forwarding: Forwarding, services: Services) -> None:
        options = services.options.outbound.proxy
        self._options = options
        self._endpoint = endpoint
        self._client = services.client
        self._inside = services.send_subrequest
        self._method = forwarding.method
        self._host = forwarding.url or options.host
        self._base: Address | None = None
        self._last: tuple[str, str, Address] | None = None
        self._limit = services.options.http.limits.body_size
        self._automatic = automatic_parameters(endpoint, services)
        raw = endpoint.raw_body
        self._raw_body = next((item for item in self._automatic if raw is endpoint.parameters[item.index]), None)
        self._context = context_headers(endpoint, services)
        keys = services.options.auth.api_keys
        self._secret = "cookie" if keys is None else keys.header
        self._excluded = frozenset(map(variable_name, options.exclude_headers | context_names(services)))
        # A body that the routine or the binding needs as well is read completely.
        self.keeps_body = bool(self._automatic) or not endpoint.passes_through
        if endpoint.options.upload is not None and options.forward_uploads:
            self.keeps_body = False
        self._leaves_body = uploads_here(endpoint, options)
        self._hedge = endpoint.options.hedge if (forwarding.method or endpoint.method) in IDEMPOTENT else None
        self._own = None if options.forward_credentials else service_credentials(endpoint, services)
        outside = self._host is not None and not self._host.startswith("/")
        self._client_headers = client_headers(services) if options.forwarded_headers and outside else None
        self._timeouts = services.options.deadlines.headers
        self._traced = services.options.tracing is not None
        self.may_begin = self._may_begin()
        """Whether its requests may be sent by `begin`."""

    def _may_begin(self) -> bool:
        """Return whether requests may be sent by `begin`: they go to another server, without hedging and added
        parameters, and their time limit is not shorter than `WATCH_AFTER_SECONDS`."""
        other = self._host is not None and not self._host.startswith("/")
        return other and self._hedge is None and not self._automatic and self._options.timeout >= WATCH_AFTER_SECONDS

    def begin(self, context: RequestContext, in_flight_request: RequestWithoutTask) -> bool:
        """Send the request, if that needs no waiting and no task. Return False if nothing was sent, and `send` has to
        be called: also for HEAD, for a traced request, and if the body of the request has not been read yet. Only
        allowed if `may_begin`. in_flight_request: receives the request and the callbacks of its response.

        Raises:
            RefusedError, BadUrlError, Problem: it cannot be sent.
        """
        host, client, scope = self._host, self._client, context.scope
        method = self._method or scope.method
        protocol = context.protocol
        if host is None or client is None or method == "HEAD" or is_head(context):
            return False
        if (self._traced and trace_of(protocol) is not None) or hasattr(protocol, "room"):
            return False
        body = None
        if method in BODY_METHODS:
            if context.body is None and not self._leaves_body and may_have_body(scope):
                return False
            body = context.body or None
        headers = self._headers(context, with_body=body is not None)
        address = self._address(host, scope, scope.query_string)
        in_flight_request.request = OutgoingRequest(method, address, headers, body)
        return client.begin(in_flight_request)

    async def continue_request(self, begun: RequestWithoutTask, arriving: ResponseWaiter, began: float) -> HttpResponse:
        """Continue a request that `begin` has sent, and return the response as `send` does.

        begun: the request in flight. arriving: waits for its response. began: when it was sent, in the time of the
        event loop. Raises what `send` raises.
        """
        client = self._client
        if client is None:
            raise Problem(500, NO_HOST)
        try:
            async with asyncio.timeout_at(began + self._options.timeout):
                return await client.continue_request(begun, arriving)
        except TimeoutError:
            client.record_timeout(begun.request.address)
            raise

    async def send(self, context: RequestContext) -> HttpResponse:
        """Send the request and return the response, once its header section has arrived.

        Raises:
            TimeoutError: the time limit has passed.
            OutboundError, RefusedError, BadUrlError, Problem: there is no response.
        """
        host, client, send_subrequest = self._host, self._client, self._inside
        if host is None or client is None or send_subrequest is None:
            raise Problem(500, NO_HOST)
        method = self._method or context.scope.method
        try:
            return await self._send(context, host, method, client, send_subrequest)
        except TimeoutError:
            if not host.startswith("/"):
                client.record_timeout(read_address(host))
            raise

    async def _send(
        self, context: RequestContext, host: str, method: str, client: Client, send_subrequest: SubrequestSender
    ) -> HttpResponse:
        """Send the request, as `send` does. host: URL of the target; a path: an endpoint of this service."""
        async with UpstreamTimeout(self._options.timeout) as upstream:
            query, body, length = await self._query_and_body(context, method, upstream)
            headers = self._headers(context, with_body=body is not None)
            streamed = body is not None and not isinstance(body, bytes)
            ask: Callable[[], Awaitable[HttpResponse]]
            if host.startswith("/"):
                content = body if isinstance(body, bytes) else None
                ask = partial(send_subrequest, method, host, _anonymous(headers, self._secret), content, context)
            else:
                address = self._address(host, context.scope, query)
                expects = (context.scope.headers.get("expect") or "").lower() == "100-continue"
                request = OutgoingRequest(method, address, headers, body, length, expects_continue=expects and streamed)
                ask = partial(client.send, request, named=True, trace=trace_of(context.protocol))
            # A streamed body exists only once, so its request cannot be hedged.
            return await (
                ask() if self._hedge is None or streamed else hedge_request(ask, self._hedge, HttpResponse.close)
            )

    def _address(self, host: str, scope: Any, query: str) -> Address:
        """Return the address of a request. host: URL of the target. query: query string without `?`. The latest address
        is cached, as most requests have the same. Raises `BadUrlError` for an invalid address, and `Problem` 400 for a
        path that leads out of the target.
        """
        path, last = scope.path, self._last
        if hasattr(scope, "raw_path"):
            return self._address_of(host, checked_path(scope), query)
        if last is not None and last[0] == path and last[1] == query:
            return last[2]
        result = self._address_of(host, checked_path(scope), query)
        self._last = path, query, result
        return result

    def _address_of(self, host: str, path: str, query: str) -> Address:
        """Return the address below the target. path: as sent, percent-encoded. Raises `BadUrlError`."""
        base = self._base
        if base is None:
            base = self._base = read_address(host.rstrip("/") + "/")
        target = base.target[:-1] + path
        return Address(base.origin, f"{target}?{query}" if query else target, base.userinfo)

    async def _query_and_body(
        self, context: RequestContext, method: str, upstream: UpstreamTimeout
    ) -> tuple[str, Body, int | None]:
        """Return query string, body, and the length in bytes of a body in chunks (None: unknown, or a complete body),
        with automatic values added to the query string or to a JSON body. method: of the request to send.
        upstream: as for `_body`.
        """
        query: str = context.scope.query_string
        values: list[AutomaticValue] = automatic_values(self._automatic, context) if self._automatic else []
        carries = method in BODY_METHODS
        if self._raw_body is not None:
            replaced = next((value for item, value in values if item is self._raw_body), None)
            values = [pair for pair in values if pair[0] is not self._raw_body]
            if replaced is not None and carries:
                return self._query(query, values), replaced.encode(), None
        body, length = await self._body(context, upstream) if carries else (None, None)
        if values and carries and self._endpoint.transport is Transport.BODY and _is_json(context):
            return query, body_with(body if isinstance(body, bytes) else b"", values), None
        return self._query(query, values), body, length

    def _query(self, query: str, values: list[AutomaticValue]) -> str:
        """Return the query string with automatic values added. Values that are too long are left out and logged."""
        query, too_long = query_with(query, values, self._options.max_query_value)
        for name in too_long:
            longest = self._options.max_query_value
            log.warning("%s: %s is not forwarded: it is longer than %d characters", self._endpoint.name, name, longest)
        return query

    async def _body(self, context: RequestContext, upstream: UpstreamTimeout) -> tuple[Body, int | None]:
        """Return the body of the client's request: as bytes, or as an iterator over its chunks with their total length
        in bytes, if that is known. None: there is no body, or uploads store it here. upstream: its time limit is paused
        while the client is waited for. Raises `Problem` as `bodies.body_chunks` does.
        """
        if context.body is not None:
            return context.body or None, None
        if self._leaves_body:
            return None, None
        scope = context.scope
        if not may_have_body(scope):
            return None, None
        length = announced_length(scope, self._limit)
        internal = self._host is not None and self._host.startswith("/")
        if self.keeps_body or internal:
            with upstream.pause():
                return await whole_body(context, self._limit) or None, None
        if length is not None and length <= SMALL:
            return await read_whole_body(context, length, self._limit, upstream) or None, None
        return body_chunks(context, length, self._limit, upstream), length

    def _headers(self, context: RequestContext, *, with_body: bool) -> Headers:
        """Return the headers of the request to send. with_body: it has a body, so they contain a content type."""
        scope = context.scope
        headers: Headers = []
        if self._options.forward_headers:
            headers = request_headers(scope.headers.items(), self._excluded, with_body=with_body)
            if self._own is not None:
                headers = self._own.remove_from(headers)
            if self._client_headers is not None:
                headers += self._client_headers(scope)
            if self._timeouts:
                headers = _with_time_left(headers, self._timeouts, context)
        if self._context is not None:
            headers += self._context(context)
        if with_body:
            headers.append(("content-type", scope.headers.get("content-type") or PLAIN_TEXT))
        return headers


def uploads_here(endpoint: Endpoint, options: ProxyOptions) -> bool:
    """Whether the files of a request are stored here, for the routine behind the proxy (proxies-15)."""
    return endpoint.options.upload is not None and not endpoint.passes_through and not options.forward_uploads


def service_credentials(endpoint: Endpoint, services: Services) -> OwnCredentials | None:
    """Return the credentials that callers of the endpoint may send to this service; None: it accepts none."""
    auth, antiforgery = services.options.auth, services.options.antiforgery
    headers = set() if auth.api_keys is None else {auth.api_keys.header}
    cookies = [scheme.cookie for scheme in auth.schemes.cookies]
    if antiforgery is not None:
        headers.add(antiforgery.header.lower())
        cookies.append(antiforgery.cookie)
    schemes = set()
    if auth.schemes.bearers or auth.schemes.jwts:
        schemes.add("bearer")
    if endpoint.access.basic is not None:
        schemes.add("basic")
    if not (headers or cookies or schemes or auth.external is not None):
        return None
    return OwnCredentials(frozenset(headers), frozenset(schemes), tuple(cookies))


def client_headers(services: Services) -> Callable[[Any], Headers]:
    """Return the function that makes the headers about the client of a request (`Forwarded` and the like) from its
    scope; excluded headers are left out."""
    options = services.options
    excluded = options.outbound.proxy.exclude_headers
    read = client_reader(options.forwarding)
    cache: dict[tuple[str, str, str], Headers] = {}

    def headers(scope: Any) -> Headers:
        client = read(scope)
        host = client.host or scope.authority or scope.headers.get("host") or ""
        written = forwarded_headers(client.address, client.scheme, host)
        return [field for field in written if field[0] not in excluded]

    def cached_headers(scope: Any) -> Headers:
        # A connection sends many requests, and its port makes its address the same text each time.
        key = (scope.client, scope.scheme, scope.authority or scope.headers.get("host") or "")
        fields = cache.get(key)
        if fields is None:
            if len(cache) >= _KNOWN_CLIENTS:
                cache.clear()
            fields = cache[key] = headers(scope)
        return fields

    return headers if options.forwarding.enabled else cached_headers


def checked_path(scope: Any) -> str:
    """Return the path of the request as it was sent, percent-encoded (`raw_path_of`). Raises `Problem` 400 for a path
    that leads out of the target of the proxy."""
    path = raw_path_of(scope)
    if has_dot_segment(path):
        raise Problem(400, "a segment of the path is '.' or '..'")
    return path


def raw_path_of(scope: Any) -> str:
    """Return the path of the request as it was sent, percent-encoded. granian passes the whole path decoded."""
    raw: str | None = getattr(scope, "raw_path", None)
    return encoded_path(scope.path) if raw is None else mended_path(raw)


def _with_time_left(headers: Headers, names: tuple[str, ...], context: RequestContext) -> Headers:
    """Return the headers in which the time limits of the client are reduced to the time that is left until the deadline
    of the request; unchanged if there is no deadline. names: of the headers with time limits, in lower case."""
    if not context.deadline:
        return headers
    seconds = context.deadline - asyncio.get_running_loop().time()
    return [(name, time_left(name, value, seconds) if name in names else value) for name, value in headers]


def _is_json(context: RequestContext) -> bool:
    return "json" in (context.scope.headers.get("content-type") or "").lower()


def _anonymous(headers: Headers, secret: str) -> Headers:
    """Return the headers without the identity of the caller: endpoints of this service are called as an anonymous
    caller (proxies-12).

    headers: names in lower case. secret: a header with credentials, besides the usual ones. Credentials of HTTP Basic
    stay.
    """
    return [
        (name, value)
        for name, value in headers
        if name not in ("cookie", secret) and (name != "authorization" or value.lower().startswith("basic "))
    ]
