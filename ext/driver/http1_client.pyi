from collections.abc import Callable
from typing import Any, Protocol

from rowcall.ext.driver.request_context import PendingWork, RequestContext

IDLE: int
WAITING: int
BODY: int
CLOSED: int

class ReceivedBody:
    _chunks: list[bytes]
    _ended: bool
    _error: Exception | None
    _source: Any
    _waiter: Any
    on_end: Callable[[Any], None] | None
    status: int
    headers: list[tuple[str, str]]
    trailers: list[tuple[str, str]]
    length: int | None
    buffered: int
    paused: bool
    address: Any

    def __init__(self, source: Any) -> None: ...
    @property
    def complete(self) -> bool: ...
    @property
    def ended(self) -> bool: ...
    @property
    def has_more(self) -> bool: ...
    def add(self, data: bytes) -> None: ...
    def end(self, error: Exception | None = None) -> None: ...
    def take(self) -> bytes: ...

class _Receiver(Protocol):
    def on_response(self, answer: Any) -> None: ...
    def on_failure(self, error: Exception) -> None: ...

class BasicHttp1Connection:
    _transport: Any
    _parser: Any
    _state: int
    _answer: Any
    _receiver: _Receiver | None
    _left: int
    _head_bytes: int
    _without_body: bool
    _sent: bool
    _keeps: bool
    _on_free: Callable[[Any], None]
    used: int
    idle_since: float

    def __init__(self, on_free: Callable[[Any], None], time: Callable[[], float]) -> None: ...
    @property
    def usable(self) -> bool: ...
    def data_received(self, data: bytes) -> None: ...
    def _begin(self, answer: ReceivedBody, receiver: _Receiver, without_body: bool) -> None: ...
    def _hold_back(self, answer: ReceivedBody) -> None: ...
    def _complete(self) -> None: ...
    def _release(self) -> None: ...

def is_final_with_body(status: int) -> bool:
    """Return whether a response with this status is final and may have a body."""

class PendingHttpResponse(PendingWork):
    sent_at: float
    _answer: Any
    _arriving: Any

    def __init__(
        self, context: RequestContext, unwatched: dict[Any, None], finish: Callable[[RequestContext, Any, float], None]
    ) -> None: ...
    def on_response(self, answer: Any) -> None: ...
    def _finish(self, answer: Any) -> None: ...
