"""HTTP/1.1 as bytes, for malformed requests and for responses that are read slowly."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RawResponse:
    status: int
    headers: dict[str, str]
    """Names in lower case; the last value of a repeated name."""
    body: bytes
    rest: bytes = field(default=b"", repr=False)
    """Bytes after the response on the same connection."""


def read_response(connection: socket.socket, *, bodiless: bool = False) -> RawResponse | None:
    """Read a response; None if the connection closes without one. bodiless: the response is to a HEAD."""
    reader = _Reader(connection)
    head = reader.until(b"\r\n\r\n")
    if head is None:
        return None
    status, headers = parse_head(head)
    if bodiless or status in (204, 304) or status < 200:
        return RawResponse(status, headers, b"", bytes(reader.buffer))
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = _read_chunks(reader)
    elif "content-length" in headers:
        body = reader.exactly(int(headers["content-length"]))
    else:
        body = reader.to_end()
    return RawResponse(status, headers, body, bytes(reader.buffer))


def parse_head(head: bytes) -> tuple[int, dict[str, str]]:
    lines = head.decode("latin-1").split("\r\n")
    status = int(lines[0].split(" ")[1])
    pairs = (line.partition(":") for line in lines[1:] if line)
    return status, {name.strip().lower(): value.strip() for name, _, value in pairs}


class _Reader:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.buffer = bytearray()

    def until(self, mark: bytes) -> bytes | None:
        while (end := self.buffer.find(mark)) < 0:
            if not self._more():
                return None
        data = bytes(self.buffer[:end])
        del self.buffer[: end + len(mark)]
        return data

    def exactly(self, size: int) -> bytes:
        while len(self.buffer) < size:
            if not self._more():
                raise EOFError(f"the body ended after {len(self.buffer)} of {size} bytes")
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data

    def to_end(self) -> bytes:
        while self._more():
            pass
        data = bytes(self.buffer)
        self.buffer.clear()
        return data

    def _more(self) -> bool:
        try:
            data = self._connection.recv(65536)
        except ConnectionResetError:
            return False
        self.buffer += data
        return bool(data)


def _read_chunks(reader: _Reader) -> bytes:
    body = bytearray()
    while True:
        line = reader.until(b"\r\n")
        if line is None:
            raise EOFError(f"the body ended in mid-chunk after {len(body)} bytes")
        size = int(line, 16)
        body += reader.exactly(size)
        reader.exactly(2)
        if size == 0:
            return bytes(body)
