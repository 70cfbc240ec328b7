from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from rowcall.ext.driver.request import Request

class Future(Protocol):
    def add_done_callback(self, callback: Callable[[Any], None]) -> None: ...
    def cancel(self) -> bool: ...
    def result(self) -> bytes: ...

class Exchange:
    scope: Any
    protocol: Any
    values: Mapping[str, str]
    body: bytes | None
    mask: int
    has_null: bool
    arguments: list[bytes | None]
    request: Request | None
    answered: bool
    comment_headers: Any
    user: Any
    ticket: Any
    endings: list[Callable[[Exchange, Exception | None], None]] | None
    deadline: float
    task: Any

    def __init__(self, scope: Any, protocol: Any) -> None: ...
    def follow(self, steps: tuple[Callable[[Exchange], Waiting], ...]) -> None: ...
    def skip(self, count: int) -> None: ...
    def at_end(self, ending: Callable[[Exchange, Exception | None], None]) -> None: ...

class Arrival:
    @property
    def began(self) -> float: ...
    @property
    def received(self) -> int: ...
    @property
    def unseen(self) -> int: ...
    late: bool

    def __init__(
        self,
        exchange: Exchange,
        future: Future,
        reading: set[Any],
        scopes: set[Any],
        refusal: Callable[[Arrival, BaseException, Exchange], Exception],
        unseen: int,
    ) -> None: ...
    def cancel(self) -> None: ...
    def done(self) -> bool: ...

Waiting = Awaitable[None] | Request | Arrival | None

class Runner:
    def __init__(
        self,
        wait: Callable[[Exchange, Awaitable[None]], None],
        on_failure: Callable[[Exchange, Exception], None],
    ) -> None: ...
    @property
    def active(self) -> set[Exchange]: ...
    @property
    def running(self) -> int: ...
    def start(self, exchange: Exchange, steps: tuple[Callable[[Exchange], Waiting], ...]) -> None: ...
    def advance(self, exchange: Exchange) -> None: ...
    def fail(self, exchange: Exchange, error: Exception) -> None: ...
