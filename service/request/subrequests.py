"""Internal subrequests: calls of this service's own endpoints without a socket, for `/path` as the URL of an HTTP type
or of a proxy, for tool calls, and for the requests of a batch.

The endpoint runs with a scope and a protocol of this module. Its caller is identified by the headers of the subrequest
alone: those for HTTP types and proxies have no identity of the outer caller, those of `headers_for_caller` have it.
`Subrequests.serve` decides whether rate limits count the calls, and whether they reach endpoints that are `internal`,
which can only be reached in this way (outbound-16).
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple

from rowcall.core.errors.problems import Problem
from rowcall.core.http.forwarded_headers import FORWARDED
from rowcall.core.http.router import MalformedPathError, Match, Router, decode_path
from rowcall.service.database.transactions.joint_transaction import JointTransaction
from rowcall.service.http_client.errors import OutboundError
from rowcall.service.http_client.messages import Headers, HttpResponse
from rowcall.service.request_context.deadline import end_by
from rowcall.service.request_context.head_protocol import HeadProtocol
from rowcall.service.request_context.header_values import cookie_header
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.trace import NAMES, trace_of

DEEPEST = 8
"""Deepest nesting of subrequests, beyond which they are considered an endless recursion."""
HELD = 262_144
"""Bytes of a response that are buffered for its reader."""
_PIPE = "/dev/fd/"
_SLASH, _ENCODED = "\ufdd0", "%EF%B7%90"
"""Represents an encoded slash, which is part of a value, while the path is split into segments: a noncharacter, which
no text contains.
"""
_ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)

_OF_MESSAGE = frozenset(
    (
        *("accept", "accept-charset", "accept-encoding", "accept-profile", "connection", "expect", "host"),
        *("idempotency-key", "prefer", "range", "te", "trailer", "transfer-encoding", "upgrade"),
    )
)
"""Headers of a request that describe it and its response, not its client; so do those that begin with `content-` or
`if-`.
"""

Start = Callable[[RequestContext, tuple[Step, ...]], None]
InterfaceSteps = Callable[[str, str], tuple[Step, ...] | None]


class _SubrequestHeaders:
    """Headers with the interface of granian's scope: names in lower case."""

    def __init__(self, headers: Headers) -> None:
        self._pairs = [(name.lower(), value) for name, value in headers]

    def get(self, name: str, default: str | None = None) -> str | None:
        return next((value for key, value in self._pairs if key == name), default)

    def get_all(self, name: str) -> list[str]:
        return [value for key, value in self._pairs if key == name]

    def items(self) -> Headers:
        return list(self._pairs)

    def keys(self) -> list[str]:
        return [key for key, _ in self._pairs]

    def values(self) -> list[str]:
        return [value for _, value in self._pairs]

    def __contains__(self, name: str) -> bool:
        return any(key == name for key, _ in self._pairs)

    def __getitem__(self, name: str) -> str:
        response = self.get(name)
        if response is None:
            raise KeyError(name)
        return response


class SubrequestScope:
    """The scope of an internal subrequest, with the interface of the scopes of the HTTP server (RSGI)."""

    proto = "http"
    http_version = "1.1"
    server = "localhost"

    def __init__(
        self,
        method: str,
        path: str,
        query: str,
        headers: Headers,
        depth: int,
        client: str = "",
        scheme: str = "http",
        calls: Subrequests | None = None,
        transaction: JointTransaction | None = None,
    ) -> None:
        """path: encoded. headers: `host` in lower case; without it, the host is `localhost`. depth: 1 for a subrequest
        of a request of a client, 2 for one of that subrequest, and so on. client: its address; empty: unknown."""
        self.transaction = transaction
        """The transaction of all requests of a batch."""
        self.calls = calls
        """The subrequests of the schema snapshot with which the request context runs."""
        self.method = method
        self.path = self.raw_path = path
        self.query_string = query
        host = next((value for name, value in headers if name == "host"), None)
        self.headers = _SubrequestHeaders([("host", "localhost"), *headers] if host is None else headers)
        self.authority = host or "localhost"
        self.depth = depth
        self.renews_sessions = True
        """The response renews a session cookie that is due."""
        self.continues_trace = False
        """The header `traceparent` is that of the service itself, whose sampling decision holds."""
        self.client = client
        self.scheme = scheme


def _with_trace(headers: Headers, outer: RequestContext) -> Headers:
    """Return the headers of a subrequest with the trace of the outer request. If the outer request is traced, its span
    replaces a trace in the headers. Otherwise, the trace that the client of the outer request has sent is added, unless
    the headers have a trace already."""
    sent = [(name, value) for name in NAMES if (value := outer.scope.headers.get(name)) is not None]
    trace = trace_of(outer.protocol)
    if trace is not None:
        own = [("traceparent", trace.traceparent), *(item for item in sent if item[0] != "traceparent")]
        return [*((name, value) for name, value in headers if name.lower() not in NAMES), *own]
    named = {name.lower() for name, _ in headers}
    return headers if named.intersection(NAMES) else [*headers, *sent]


def headers_for_caller(outer: RequestContext, own: Headers) -> Headers:
    """Return the headers of a subrequest for the client of the outer request: all headers of the outer request, such as
    credentials, tenant, trace and forwarding headers, except those that describe its message (`content-*`, `if-*`,
    `accept`, `host`, `prefer` and others of `_OF_MESSAGE`); then `own`, the headers of the subrequest itself, which
    replace them. Raises `Problem` 400 for cookies that cannot be read."""
    names = {name.lower() for name, _ in own} | _OF_MESSAGE
    sent = outer.scope.headers
    cookies = "" if "cookie" in names else cookie_header(sent)
    names.add("cookie")
    passed_on = [
        (name, value)
        for name, value in sent.items()
        if (lowered := name.lower()) not in names and not lowered.startswith(("content-", "if-"))
    ]
    if cookies:
        passed_on.append(("cookie", cookies))
    return [*passed_on, *own]


class _Sender(NamedTuple):
    """Who sends a subrequest. address: of the client; empty: unknown. host: which the client has addressed."""

    address: str
    scheme: str
    host: str


def _client_of(outer: RequestContext) -> _Sender:
    """Return the client of the outer request as the sender of its subrequests."""
    scope = outer.scope
    host = scope.headers.get("host") or scope.authority or "localhost"
    return _Sender(str(scope.client), str(scope.scheme), str(host))


class AbsentClient:
    """Stands for the client of a request that the service makes for itself, and that nothing cancels."""

    def client_disconnect(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()


class CapturedResponse:
    """Has the interface of the HTTP server's protocol, and converts the response into an `HttpResponse`."""

    reads_files = True
    """`response_file` opens its path: streamed bodies come through a pipe."""

    def __init__(self, outer: Any, body: bytes = b"") -> None:
        """outer: reports the disconnect of the client, such as the protocol of the request that makes the subrequest.
        body: of the subrequest, which the endpoint reads from this object.
        """
        self._body = body
        self._loop = asyncio.get_running_loop()
        self._pipe: _PipeReader | None = None
        self.outer = outer
        self.begun: asyncio.Future[HttpResponse] = self._loop.create_future()
        """The response, once its status and headers are known."""
        self._abandoned: asyncio.Future[None] = self._loop.create_future()
        self.endpoint = self.path = ""

    async def __call__(self) -> bytes:
        return self._body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._body:
            yield self._body
        yield b""

    async def client_disconnect(self) -> None:
        """Wait until the client has disconnected, or nothing waits for the response any more (`abandon`)."""
        gone = asyncio.ensure_future(self.outer.client_disconnect())
        try:
            await asyncio.wait((gone, self._abandoned), return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()

    def abandon(self) -> None:
        """End the subrequest as if its client had disconnected, because what waits for the response was cancelled."""
        if not self._abandoned.done():
            self._abandoned.set_result(None)

    def begin_response(self, status: int, headers: Headers, source: Any = None) -> HttpResponse:
        """Begin the response: complete `begun` with it, and return it for its body. source: as for `HttpResponse`."""
        answer = HttpResponse(source)
        answer.status = status
        answer.headers = list(headers)
        if not self.begun.done():
            self.begun.set_result(answer)
        return answer

    def response_empty(self, status: int, headers: Headers) -> None:
        self.begin_response(status, headers).end()

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        answer = self.begin_response(status, headers)
        if body:
            answer.add(bytes(body))
        answer.length = len(body)
        answer.end()

    def response_str(self, status: int, headers: Headers, body: str) -> None:
        self.response_bytes(status, headers, body.encode())

    def response_file(self, status: int, headers: Headers, file: str) -> None:
        self._pipe = _PipeReader(file)
        self._pipe.feed(self.begin_response(status, headers, self._pipe))

    def response_file_range(self, status: int, headers: Headers, file: str, start: int, end: int) -> None:
        self._pipe = _PipeReader(file, start, end - start)
        self._pipe.feed(self.begin_response(status, headers, self._pipe))

    def cut_off(self) -> None:
        """End a response that is being streamed and remains incomplete: its reader gets an `OutboundError`."""
        if self._pipe is not None:
            self._pipe.cut_off()


class _PipeReader:
    """Reads a streamed response from its pipe, or a file, only as fast as the consumer takes it."""

    def __init__(self, path: str, start: int = 0, length: int | None = None) -> None:
        """start: offset of the first byte in the file. length: number of bytes; None: until the end. Raises `OSError`
        if the path cannot be opened.
        """
        self._loop = asyncio.get_running_loop()
        self._number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._is_pipe = path.startswith(_PIPE)
        self._left = length
        self._answer: HttpResponse | None = None
        self._unwanted = False
        if start:
            os.lseek(self._number, start, os.SEEK_SET)

    def feed(self, answer: HttpResponse) -> None:
        """Begin to read into this response."""
        self._answer = answer
        self.resume_reading()

    def resume_reading(self) -> None:
        """Begin to read from the file or pipe, or continue after a pause. The response calls this when its consumer has
        read the buffered data. Does nothing after the end.
        """
        if self._number < 0:
            return
        if self._is_pipe:
            self._loop.add_reader(self._number, self._read)
        else:
            self._loop.call_soon(self._read)

    def abort(self) -> None:
        """Drop the remaining data. It is still read from the pipe, so that the writer neither waits nor fails."""
        self._unwanted = True
        if self._answer is not None:
            self._answer.end(OutboundError("the response is no longer read"))
        self.resume_reading()

    def cut_off(self) -> None:
        """Stop reading, and end the response with an error, unless its end has been read."""
        if self._number >= 0:
            self._end(OutboundError("the response was cut off"))

    def _read(self) -> None:
        """Pass one part to the response, and pause if more than `HELD` bytes are buffered."""
        if self._number < 0:
            return
        size = 65_536 if self._left is None else min(65_536, self._left)
        try:
            data = os.read(self._number, size) if size else b""
        except BlockingIOError:
            return
        except OSError as error:
            self._end(OutboundError(os.strerror(error.errno or 0)))
            return
        if not data:
            self._end(None)
            return
        if self._left is not None:
            self._left -= len(data)
        if self._unwanted or self._answer is None:
            self.resume_reading() if not self._is_pipe else None
            return
        self._answer.add(data)
        if self._answer.buffered > HELD:
            self._answer.paused = True
            if self._is_pipe:
                self._loop.remove_reader(self._number)
        elif not self._is_pipe:
            self.resume_reading()

    def _end(self, error: Exception | None) -> None:
        number, self._number = self._number, -1
        if self._is_pipe:
            self._loop.remove_reader(number)
        os.close(number)
        if self._answer is not None:
            self._answer.end(error)


def _mark_slashes(raw_path: str) -> str:
    """Return the path with a mark in place of each encoded slash; unchanged if it contains the mark already."""
    contains_mark = _SLASH in raw_path or _ENCODED in raw_path.upper()
    return raw_path if contains_mark else _ENCODED_SLASH.sub(_ENCODED, raw_path)


def _with_slashes(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the values of the path with slashes in place of the marks."""
    return {name: text.replace(_SLASH, "/") for name, text in values.items()}


def _is_named(route: str, written: str | None, path: str) -> bool:
    """Return whether the comment itself names this route: values of the client stand only where the route has
    placeholders, and no value spans several segments.

    route: path template of the endpoint. written: path and query in the comment, with placeholders in braces for values
    of the client; None: the path has no such values. path: the path of the subrequest, encoded.
    """
    if written is None:
        return True
    segments = written.partition("#")[0].partition("?")[0].split("/")
    result = zip(segments, route.split("/"), strict=False)
    return path.count("/") + 1 == len(segments) and all(
        placeholder.startswith("{") or "{" not in segment for segment, placeholder in result
    )


class Subrequests:
    """The internal subrequests of the endpoints of one schema snapshot."""

    def __init__(
        self, start: Start, fail: Callable[[RequestContext, Exception], None], is_secure: Callable[[Any], bool]
    ) -> None:
        """start: begins to run the steps of a request. fail: responds to a failed request. is_secure: whether a client,
        identified by the scope of its request, uses https.
        """
        self._start = start
        self._fail = fail
        self._is_secure = is_secure
        self._router = Router()
        self._steps: Any = {}
        self._interface: InterfaceSteps | None = None

    def serve(self, router: Router, steps: Any, interface: InterfaceSteps | None = None) -> None:
        """Set what subrequests can call. router: the endpoints, which may include internal ones. steps: the steps of
        each route, by the id of the route. interface: returns the steps of PostgREST's interface for a method and a
        path."""
        self._router = router
        self._steps = steps
        self._interface = interface

    async def call(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: bytes | None,
        outer: RequestContext,
        *,
        written: str | None = None,
    ) -> HttpResponse:
        """Call an endpoint with the scheme of the outer request, and return the response once it begins. The client
        address is unknown, and forwarding headers are removed, as they would come from no proxy. The caller is
        anonymous unless `headers` contain credentials. Raises `OutboundError` for an endless recursion.

        target: encoded path and query. outer: the request that makes this call. written: as for `SubrequestSender`.
        """
        own = [(name, value) for name, value in headers if name.lower() not in FORWARDED]
        sender = _Sender("", "https" if self._is_secure(outer.scope) else "http", "localhost")
        return await self._call(method, target, own, body, outer, sender, written=written)

    async def call_for_caller(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: bytes | None,
        outer: RequestContext,
        *,
        written: str | None = None,
        transaction: JointTransaction | None = None,
        renews_sessions: bool = True,
    ) -> HttpResponse:
        """Call an endpoint for the client of the outer request, with its address, scheme and host, and return the
        response once it begins. Raises `OutboundError` for an endless recursion.

        headers: with the credentials of the client (`headers_for_caller`); forwarding headers are not removed.
        transaction: in which it runs, if its steps were compiled for that. renews_sessions: the response renews a
        session cookie that is due. The others are as for `call`.
        """
        return await self._call(
            method,
            target,
            headers,
            body,
            outer,
            _client_of(outer),
            written=written,
            transaction=transaction,
            renews_sessions=renews_sessions,
        )

    async def call_interface(
        self, method: str, target: str, headers: Headers, body: bytes | None, outer: RequestContext
    ) -> HttpResponse:
        """Call PostgREST's interface as `call_for_caller` calls an endpoint. It takes precedence over an endpoint at
        the same path. If it does not serve the target, the endpoint there is called, also an `internal` one."""
        return await self._call(
            method, target, headers, body, outer, _client_of(outer), written=None, interface=self._interface
        )

    async def _call(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: bytes | None,
        outer: RequestContext,
        sender: _Sender,
        *,
        written: str | None,
        transaction: JointTransaction | None = None,
        interface: InterfaceSteps | None = None,
        renews_sessions: bool = True,
    ) -> HttpResponse:
        """Call the endpoint, or the interface if it serves the target, and return the response once it begins. If this
        is cancelled before, the subrequest ends as if its client had disconnected. Raises `OutboundError` for an
        endless recursion.

        interface: None: only endpoints are called. The others are as for `call` and `call_for_caller`.
        """
        capture = self._begin(
            method, target, headers, body, outer, sender, written, transaction, interface, renews_sessions
        )
        try:
            return await capture.begun
        except asyncio.CancelledError:
            capture.abandon()
            raise

    def _begin(
        self,
        method: str,
        target: str,
        headers: Headers,
        body: bytes | None,
        outer: RequestContext,
        sender: _Sender,
        written: str | None,
        transaction: JointTransaction | None,
        interface: InterfaceSteps | None,
        renews_sessions: bool,
    ) -> CapturedResponse:
        """Begin a subrequest, and return what receives its response. Parameters and errors as for `_call`."""
        depth = getattr(outer.scope, "depth", 0) + 1
        if depth > DEEPEST:
            raise OutboundError(f"endpoints of this service call each other more than {DEEPEST} times deep")
        raw_path, _, query = target.partition("#")[0].partition("?")
        capture = CapturedResponse(outer.protocol, body or b"")
        own = [("host", sender.host), *((name, value) for name, value in headers if name.lower() != "host")]
        own = _with_trace(own, outer)
        if body and not any(name.lower() == "content-length" for name, _ in own):
            own.append(("content-length", str(len(body))))
        context = RequestContext(
            SubrequestScope(method, raw_path, query, own, depth, sender.address, sender.scheme, self, transaction),
            capture,
        )
        context.scope.renews_sessions = renews_sessions
        context.scope.continues_trace = trace_of(outer.protocol) is not None
        try:
            if interface is not None and (steps := interface(method, raw_path)) is not None:
                self._start(context, steps)
                return capture
            context.scope.path = decode_path(raw_path)
            # An encoded slash belongs to its segment; decoded, it would separate two segments for the router.
            marked = _mark_slashes(raw_path)
            match = self._find(method, decode_path(marked))
        except MalformedPathError as error:
            self._fail(context, error)
            return capture
        if match is None or (
            match.route.primary.options.internal and not _is_named(match.route.path, written, raw_path)
        ):
            self._fail(context, Problem(404, f"there is no endpoint {method} {raw_path[:200]}"))
            return capture
        context.values = match.values if marked == raw_path else _with_slashes(match.values)
        if outer.deadline:
            end_by(context, outer.deadline)
        if method == "HEAD":
            context.protocol = HeadProtocol(capture)
        self._start(context, self._steps[id(match.route)])
        return capture

    def _find(self, method: str, path: str) -> Match | None:
        """Return the route of a decoded path (for HEAD also that of GET); None without one, and for a path other than
        `/` that ends with a slash."""
        if len(path) > 1 and path.endswith("/"):
            return None
        result = self._router.find(method, path)
        return self._router.find("GET", path) if result is None and method == "HEAD" else result


async def call_further(
    method: str,
    target: str,
    headers: Headers,
    body: bytes | None,
    outer: RequestContext,
    /,
    *,
    written: str | None = None,
) -> HttpResponse:
    """Do what `Subrequests.call` does, for a step of a subrequest that makes a further one.

    The step finds `Subrequests` in the scope of its request. If the step referred to `Subrequests`, which refers to all
    steps, a former schema snapshot would stay in memory for ever: the garbage collector ignores objects that live as
    long as a snapshot.
    """
    calls: Subrequests = outer.scope.calls
    return await calls.call(method, target, headers, body, outer, written=written)
