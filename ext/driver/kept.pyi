from collections.abc import Callable
from typing import Any

from rowcall.ext.driver.exchange import Exchange

def encode_key(prefix: bytes, mask: int, arguments: list[bytes | None], wanted: int) -> bytes: ...

class Lease:
    answers: Any
    name: bytes
    number: int
    began: float
    tags: tuple[str, ...]
    def __init__(self, answers: Any, name: bytes, number: int, began: float) -> None: ...

class Lookup:
    def __init__(
        self,
        prefix: bytes,
        wanted: int,
        table: Any,
        seconds: float,
        longest: int,
        unshared: dict[bytes, float],
        answers: Any,
        ticket: Callable[[Any, bytes, int, float], Any],
        ending: Callable[[Exchange, Exception | None], None],
        needless: int,
        on_hit: Callable[[Exchange], Any] | None,
        tell: Callable[[Exchange, str], None] | None,
        otherwise: Callable[[Exchange], Any],
    ) -> None: ...
    def __call__(self, exchange: Exchange) -> Any: ...

class Keeping:
    def __init__(
        self,
        keep: Callable[..., int],
        waiting: dict[bytes, Any],
        landed: Callable[[Any, tuple[Any, ...], int], None],
        ending: Callable[[Exchange, Exception | None], None],
        seconds: float,
        largest: int,
        needs_row: bool,
        most: int,
        otherwise: Callable[[Exchange], Any],
    ) -> None: ...
    def __call__(self, exchange: Exchange) -> Any: ...
