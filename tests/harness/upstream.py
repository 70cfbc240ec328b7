"""An HTTP server that endpoints call, with real sockets and any behaviour, correct or faulty.

`upstream.on("/path", behaviour)` sets the reply to a request; a behaviour is bytes to send unchanged, or a function of
the `Seen` request and its socket. `upstream.seen` contains all requests.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Seen:
    """A received request."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    peer: int
    """Client port of the connection."""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def header(self, name: str) -> str | None:
        values = self.all(name)
        return values[0] if values else None

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


Behaviour = bytes | Callable[[Seen, socket.socket], bytes | None]


def answer(
    body: bytes | str | Any = b"",
    status: int = 200,
    headers: Iterable[tuple[str, str]] = (),
    content_type: str | None = "application/json",
) -> bytes:
    """Return a whole response. A body that is neither bytes nor text is sent as JSON."""
    content = body.encode() if isinstance(body, str) else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Reason", f"Content-Length: {len(content)}"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def echo(request: Seen, _connection: socket.socket) -> bytes:
    """Return the request as JSON."""
    content = {
        "method": request.method,
        "target": request.target,
        "headers": {name.lower(): value for name, value in request.headers},
        "body": request.body.decode("latin-1"),
    }
    return answer(content)


class Upstream:
    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._behaviours: dict[str, Behaviour] = {"/echo": echo}
        self.seen: list[Seen] = []
        self.released = threading.Event()
        """Set when the server ends: behaviours that wait use it."""
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.accepted = 0
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def on(self, path: str, behaviour: Behaviour) -> None:
        """Set a behaviour. path: without its query; `*` for all other paths."""
        self._behaviours[path] = behaviour

    def to(self, path: str) -> list[Seen]:
        return [request for request in list(self.seen) if request.path == path]

    @property
    def open_connections(self) -> int:
        with self._lock:
            return len(self._connections)

    def close(self) -> None:
        self.released.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        try:
            connection = plain if self._tls is None else self._tls.wrap_socket(plain, server_side=True)
        except OSError:
            plain.close()
            return
        with self._lock:
            self._connections.add(connection)
        try:
            with connection, contextlib.suppress(OSError), connection.makefile("rb") as stream:
                while (request := self._read(stream, connection)) is not None:
                    behaviour = self._behaviours.get(request.path) or self._behaviours.get("*") or answer({}, 404)
                    self.seen.append(request)
                    sent = behaviour if isinstance(behaviour, bytes) else behaviour(request, connection)
                    if sent is None:
                        return
                    connection.sendall(sent)
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _read(self, stream: Any, connection: socket.socket) -> Seen | None:
        if stream.peek(1)[:1] == b"\x16":
            return None  # TLS is not supported here.
        line = stream.readline().decode("latin-1").strip()
        if line.count(" ") != 2:
            return None
        method, target, _ = line.split(" ", 2)
        headers = []
        while text := stream.readline().decode("latin-1").rstrip("\r\n"):
            name, _, value = text.partition(":")
            headers.append((name, value.strip()))
        fields = {name.lower(): value for name, value in headers}
        if fields.get("expect") == "100-continue":
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        if fields.get("transfer-encoding", "").lower() == "chunked":
            body = self._chunks(stream)
        else:
            body = stream.read(int(fields.get("content-length", "0")))
        return Seen(method, target, tuple(headers), body, connection.getpeername()[1])

    def _chunks(self, stream: Any) -> bytes:
        pieces = []
        while size := int(stream.readline().split(b";")[0], 16):
            pieces.append(stream.read(size))
            stream.readline()
        while stream.readline().strip():
            pass
        return b"".join(pieces)
