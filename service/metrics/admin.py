"""The admin listener in the supervisor, separate from the public listeners, so that it responds when these are busy.

It has a thread for each of a few simultaneous requests, because it is used only a few times a minute.
"""

from __future__ import annotations

import hmac
import json
import logging
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import SplitResult, parse_qsl, urlsplit

from rowcall.core.errors.problems import CONTENT_TYPE, Problem
from rowcall.core.http.forwarded_headers import is_address
from rowcall.service.options.server.metrics import AdminOptions
from rowcall.service.sockets.listeners import Address, remove_stale
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_AT_ONCE = 16
"""Most simultaneous requests."""
_LARGEST_BODY = 16_777_216
"""Bytes. Only operators get a body read."""
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"none", "same-origin"})
_SECONDS = 10.0
"""Seconds in which a client must send the head of its request, and in which it must read the response."""


@dataclass(frozen=True, slots=True)
class AdminRequest:
    """The parts of a request that pages use."""

    accept: str
    query: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AdminResponse:
    """The response of a page."""

    content_type: str
    body: bytes


Page = Callable[[AdminRequest], AdminResponse]
"""A page: returns its response. Called in a thread. Raises `Problem`."""
Pages = Mapping[tuple[str, str], Page]
"""Pages by method and path."""


@dataclass(frozen=True, slots=True)
class MountRequest:
    """A request below the path of a mount. headers: by name in lower case; several values of a name are joined.
    address: of the client; empty for a Unix socket. body: reads the body, once; raises `Problem`: 413 if it is too
    large, 411 for Transfer-Encoding, 400 for an invalid Content-Length. connected: returns whether the client is still
    connected, for streams that may be silent for long."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    address: str = ""
    body: Callable[[], bytes] = bytes
    connected: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class MountResponse:
    """The response of a mount. body: an iterator is sent as it yields, without a length, until it ends."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes | Iterator[bytes]


Mount = Callable[[MountRequest], MountResponse]
"""Serves all paths below a prefix, and authenticates its callers. Called in a thread. Raises `Problem`."""


class AdminListener:
    """The admin listener: an HTTP server with threads of its own. It listens from construction until `close`."""

    def __init__(self, options: AdminOptions, pages: Pages, mounts: Mapping[str, Mount] = MappingProxyType({})) -> None:
        """mounts: by the first segment of their paths. Raises `StartupError` if it cannot listen."""
        self._address = options.address
        try:
            self._server = _Server(options, pages, mounts)
        except OSError as error:
            url = options.address.url(options.address.port)
            raise StartupError(f"Admin:Url: cannot listen on {url}: {error.strerror or error}") from None
        self.url = options.address.url(0 if options.address.unix else self._server.server_port)
        self._thread = threading.Thread(target=self._server.serve_forever, name="admin", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, delete the path of a Unix socket, and close the socket."""
        self._server.shutdown()
        if self._address.unix:
            # While the socket is open: behind that, the path may be that of a successor.
            with suppress(OSError):
                os.unlink(self._address.host)
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """The HTTP server of the listener, with a thread for each request."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, options: AdminOptions, pages: Pages, mounts: Mapping[str, Mount]) -> None:
        self.options = options
        self.pages = pages
        self.mounts = mounts
        self._room = threading.BoundedSemaphore(_AT_ONCE)
        address = options.address
        if address.unix:
            self.address_family = socket.AF_UNIX
        elif ":" in address.host:
            self.address_family = socket.AF_INET6
        super().__init__(_bindable(address), _Handler)

    def server_bind(self) -> None:
        """Bind the socket, without the name lookup of the base class."""
        if self.options.address.unix:
            remove_stale(self.options.address.host)
            previous_mask = os.umask(0o177)
            try:
                self.socket.bind(self.options.address.host)
            finally:
                os.umask(previous_mask)
            return
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_port = self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for the request. If there are `_AT_ONCE`, close the connection without a response. Raises
        `RuntimeError` if the system has no further thread; the caller then closes the connection.
        """
        if not self._room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except Exception:
            # There is no thread that would release it.
            self._room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Do nothing: other errors are logged by the handler, and a disconnected client is not worth a message."""


def _bindable(address: Address) -> Any:
    if address.unix:
        return address.host
    return ("127.0.0.1" if address.host == "localhost" else address.host, address.port)


class _Handler(BaseHTTPRequestHandler):
    """Responds to one connection: checks the caller, then answers with a page or by a mount."""

    protocol_version = "HTTP/1.1"
    timeout = _SECONDS
    # Head and body leave in one segment: in its own, a body waits 40 ms for the acknowledgement of the head.
    wbufsize = -1

    def version_string(self) -> str:
        return "rowcall"

    def address_string(self) -> str:
        return ""

    def log_message(self, *_args: Any) -> None:
        """Do nothing: the request log contains requests of the public listeners only."""

    def handle_expect_100(self) -> bool:
        """Send the response 100 at once, because the client waits for it with the body."""
        result = super().handle_expect_100()
        self.wfile.flush()
        return result

    def handle_one_request(self) -> None:
        """Handle a request whose head arrives within `_SECONDS`. The timeout of the socket begins anew with each byte,
        so that a slow client could occupy its place for ever."""
        self._too_late = False
        self._timer = threading.Timer(_SECONDS, self._end_connection)
        self._timer.daemon = True
        self._timer.start()
        try:
            super().handle_one_request()
        finally:
            self._timer.cancel()

    def _end_connection(self) -> None:
        """End the connection, so that the thread that waits for the client continues."""
        self._too_late = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        """Close the files of the connection, also if the client is gone before everything was sent."""
        with suppress(OSError):
            super().finish()
        self.rfile.close()

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self.close_connection = True
        self._answer()

    do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_POST

    def _answer(self) -> None:
        """Respond with a page, with the response of a mount, or with a problem document."""
        self._timer.cancel()
        if self._too_late:
            # The base class takes the end of the connection for that of the head, which is incomplete.
            self.close_connection = True
            return
        # A body is not read, except by a mount that asks for it: on the same connection it would be the next request.
        if "content-length" in self.headers or "transfer-encoding" in self.headers:
            self.close_connection = True
        try:
            target = self._target()
            mount = cast(_Server, self.server).mounts.get(target.path.split("/")[1])
            response = self._page(target) if mount is None else self._mount_response(mount, target)
        except Problem as problem:
            self._refuse(problem)
        except Exception:
            log.exception("%s on the admin listener failed", self.command)
            self._refuse(Problem(500, "an unexpected error; the log of the service has the reason"))
        else:
            self._send(response.status, [*response.headers], response.body)

    def _target(self) -> SplitResult:
        """Return the parts of the target. Raises `Problem` 400 if it has no path (RFC 9112, 3.2)."""
        with suppress(ValueError):  # brackets without an IPv6 address
            target = urlsplit(self.path)
            if target.path.startswith("/"):
                return target
        raise Problem(400, "the target of the request has no path that begins with a slash")

    def _mount_response(self, mount: Mount, target: SplitResult) -> MountResponse:
        """Return the response of a mount. target: of the request. Raises `Problem` 403 for a host or origin that is not
        allowed, and the errors of the mount.
        """
        self._check_host(cast(_Server, self.server).options)
        if self.command not in _SAFE:
            self._check_origin()
        headers: dict[str, str] = {}
        for name, value in self.headers.items():
            headers[name.lower()] = f"{headers[name.lower()]}, {value}" if name.lower() in headers else value
        method = "GET" if self.command == "HEAD" else self.command
        address = self.client_address[0] if isinstance(self.client_address, tuple) else ""
        query = dict(parse_qsl(target.query))
        return mount(MountRequest(method, target.path, query, headers, address, self._read_body, self._is_connected))

    def _read_body(self) -> bytes:
        """Return the body of a request to a mount; empty without Content-Length. Raises `Problem`: 411 for
        Transfer-Encoding, 400 for an invalid Content-Length, 413 for a body that is too large.
        """
        if "transfer-encoding" in self.headers:
            raise Problem(411, "the admin listener requires Content-Length with a body")
        length = self.headers.get("content-length", "0")
        if not (length.isascii() and length.isdecimal() and len(length) <= 10):
            raise Problem(400, "Content-Length is no number")
        if int(length) > _LARGEST_BODY:
            raise Problem(413, f"the body has more than {_LARGEST_BODY} bytes")
        return self.rfile.read(int(length))

    def _is_connected(self) -> bool:
        """Return at once whether the client is still connected."""
        readable = select.poll()
        try:
            readable.register(self.connection, select.POLLIN)
            # Only a socket with data or with the end of the connection is read: others would wait for their timeout.
            return not readable.poll(0) or self.connection.recv(1, socket.MSG_PEEK) != b""
        except (OSError, ValueError):  # ValueError: the handler has closed the socket.
            return False

    def _page(self, target: SplitResult) -> MountResponse:
        """Return the response of the page. target: of the request. Raises `Problem`: 401 or 403 for a caller without
        access, 404 and 405 for a path or method that no page has, and the errors of the page.
        """
        server = cast(_Server, self.server)
        self._check(server.options)
        if self.command not in _SAFE:
            self._check_origin()
        method = "GET" if self.command == "HEAD" else self.command
        page = server.pages.get((method, target.path))
        if page is None:
            allowed = {method for method, path in server.pages if path == target.path}
            if allowed:
                allow = ", ".join(sorted(allowed | {"HEAD"} if "GET" in allowed else allowed))
                raise Problem(405, f"{target.path[:200]} answers {allow}", headers=(("allow", allow),))
            known_paths = ", ".join(sorted(path for _, path in server.pages))
            raise Problem(404, f"the admin listener has {known_paths}, and nothing at {target.path[:200]}")
        response = page(AdminRequest(self.headers.get("accept", ""), dict(parse_qsl(target.query))))
        return MountResponse(200, (("content-type", response.content_type),), response.body)

    def _check(self, options: AdminOptions) -> None:
        """Raise `Problem` 401 without the token, or 403 for a host name if no token is configured."""
        if not options.access.anonymous:
            scheme, _, token = self.headers.get("authorization", "").partition(" ")
            matches = hmac.compare_digest(token.strip().encode(), (options.token or "").encode())
            if not matches or scheme.lower() != "bearer":  # RFC 9110, 11.1
                header = ("www-authenticate", 'Bearer realm="rowcall admin"')
                raise Problem(401, "the admin listener requires Authorization: Bearer …", headers=(header,))
        else:
            self._check_host(options)

    def _check_host(self, options: AdminOptions) -> None:
        """Raise `Problem` 403 if no token is configured and the header Host is neither an address nor `localhost`.
        Requests over a Unix socket are not checked."""
        local = options.access.anonymous and not options.address.unix
        if local and not is_address(self.headers.get("host", "")):
            # Pages in an operator's browser can reach this address by a name of their own (DNS rebinding).
            raise Problem(403, "the admin listener accepts only addresses and localhost as the host")

    def _check_origin(self) -> None:
        """Raise `Problem` 403 for a page of another origin (Fetch Metadata; Origin, RFC 6454)."""
        origin = self.headers.get("origin")
        site = self.headers.get("sec-fetch-site", "none")
        host = self.headers.get("host", "").lower()
        own_origins = (f"http://{host}", f"https://{host}")  # https: a proxy may terminate TLS
        if site not in _OWN_SITES or (origin is not None and origin.lower() not in own_origins):
            raise Problem(403, "pages of other origins cannot use the admin listener")

    def _refuse(self, problem: Problem) -> None:
        """Respond with a problem document."""
        headers = [("content-type", CONTENT_TYPE), *problem.headers]
        self._send(problem.status, headers, json.dumps(problem.members(with_type=True)).encode())

    def _send(self, status: int, headers: list[tuple[str, str]], body: bytes | Iterator[bytes]) -> None:
        """Send the response and its headers; an iterator is sent as it yields."""
        self.send_response(status)
        if isinstance(body, bytes):
            headers.append(("content-length", str(len(body))))
        else:
            # Without a length, the end of the connection is the end of the body (RFC 9112, 6.3).
            self.close_connection = True
        for name, value in (*headers, ("cache-control", "no-store")):
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("connection", "close")
        self.end_headers()
        if self.command == "HEAD":
            return
        if isinstance(body, bytes):
            self.wfile.write(body)  # the base class flushes it with the head
            return
        self.wfile.flush()
        for part in body:
            self.wfile.write(part)
            self.wfile.flush()
