from collections.abc import Callable
from typing import Any

from rowcall.ext.driver.request_context import RequestContext

def encode_key(prefix: bytes, mask: int, arguments: list[bytes | None], key_mask: int) -> bytes: ...

class Lease:
    cache: Any
    name: bytes
    number: int
    began: float
    tags: tuple[str, ...]
    def __init__(self, cache: Any, name: bytes, number: int, began: float) -> None: ...

class CacheLookup:
    def __init__(
        self,
        prefix: bytes,
        key_mask: int,
        table: Any,
        seconds: float,
        longest: int,
        unshared: dict[bytes, float],
        cache: Any,
        lease: Callable[[Any, bytes, int, float], Any],
        ending: Callable[[RequestContext, Exception | None], None],
        compute: tuple[Callable[[RequestContext], Any], ...],
        on_hit: Callable[[RequestContext], Any] | None,
        report: Callable[[RequestContext, str], None] | None,
        otherwise: Callable[[RequestContext], Any],
    ) -> None: ...
    def __call__(self, context: RequestContext) -> Any: ...

class CacheWriter:
    def __init__(
        self,
        keep: Callable[..., int],
        waiting: dict[bytes, Any],
        completed: Callable[[Any, tuple[Any, ...], int], None],
        ending: Callable[[RequestContext, Exception | None], None],
        seconds: float,
        largest: int,
        needs_row: bool,
        most: int,
        otherwise: Callable[[RequestContext], Any],
    ) -> None: ...
    def __call__(self, context: RequestContext) -> Any: ...
