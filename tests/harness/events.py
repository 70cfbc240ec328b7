"""A client of an event stream over a plain socket: received messages, and waiting for more."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from types import TracebackType

from tests.harness.service import Service

WITHIN = 20.0


class EventStream:
    """`with EventStream(service, path) as stream`: connected and subscribed."""

    def __init__(
        self,
        service: Service,
        path: str,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        receive_buffer: int | None = None,
        connection: socket.socket | None = None,
    ) -> None:
        """connection: to use instead of a new one over TCP."""
        self.socket = connection or service.connect(receive_buffer)
        lines = [
            f"{method} {path} HTTP/1.1",
            "host: test",
            *(f"{name}: {value}" for name, value in (headers or {}).items()),
        ]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self._raw = bytearray()
        self.ended = False
        """The body is complete."""
        self.cut = False
        """The connection ended before the end of the body."""
        self.body = bytearray()
        head = self._read_until(lambda: b"\r\n\r\n" in self._raw)
        assert head, "no answer"
        text, _, self._raw = self._raw.partition(b"\r\n\r\n")
        status, *fields = text.decode().split("\r\n")
        self.status = int(status.split()[1])
        self.headers = {name.lower(): value for name, _, value in (field.partition(": ") for field in fields)}
        self._take_chunks()
        if self.status == 200:
            self.wait(lambda: self.body.startswith(b": connected\n\n"), "the stream says that it is connected")

    def __enter__(self) -> EventStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    @property
    def text(self) -> str:
        """The text after `: connected`, as far as it has been read."""
        return self.body.removeprefix(b": connected\n\n").decode()

    @property
    def messages(self) -> list[str]:
        """The messages that `onmessage` of an EventSource would receive."""
        messages = []
        for block in self.text.split("\n\n")[:-1]:
            lines = block.split("\n")
            data = [line[6:] for line in lines if line.startswith("data: ")]
            if data and not any(line.startswith("event: ") for line in lines):
                messages.append("\n".join(data))
        return messages

    @property
    def last_id(self) -> str:
        ids = [line[4:] for line in self.text.split("\n") if line.startswith("id: ")]
        return ids[-1] if ids else ""

    def wait(self, condition: Callable[[], object], what: str, seconds: float = WITHIN) -> None:
        assert self._read_until(condition, seconds), f"waited in vain: {what}; got {self.body[-2000:]!r}"

    def wait_for(self, *messages: str, seconds: float = WITHIN) -> None:
        """Wait until these are all messages."""
        self.wait(lambda: len(self.messages) >= len(messages), f"{messages}", seconds)
        assert self.messages == list(messages), f"{self.messages} instead of {messages}"

    def wait_for_message(self, text: str, seconds: float = WITHIN) -> None:
        """Wait until this is one of the messages."""
        self.wait(lambda: text in self.messages, text, seconds)

    def wait_for_count(self, count: int, seconds: float = WITHIN) -> None:
        """Wait until there are this many messages, or more."""
        self.wait(lambda: len(self.messages) >= count, f"{count} messages", seconds)

    def wait_for_end(self, seconds: float = WITHIN) -> None:
        self.wait(lambda: self.ended or self.cut, "the stream ends", seconds)

    def _read_until(self, condition: Callable[[], object], seconds: float = WITHIN) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0 or self.ended or self.cut:
                return False
            self.socket.settimeout(seconds_left)
            try:
                data = self.socket.recv(1 << 20)
            except TimeoutError:
                return bool(condition())
            except ConnectionResetError:
                data = b""
            self.cut = not data
            self._raw += data
            if hasattr(self, "status"):
                self._take_chunks()
        return True

    def _take_chunks(self) -> None:
        """Parse complete chunks. Each byte is copied once, so that a fast reader keeps up with megabytes."""
        while self.status == 200 and (end := self._raw.find(b"\r\n")) >= 0:
            length, start = int(self._raw[:end], 16), end + 2
            if len(self._raw) < start + length + 2:
                return
            self.body += memoryview(self._raw)[start : start + length]
            del self._raw[: start + length + 2]
            if length == 0:
                self.ended = True
                self.cut = False
                return
