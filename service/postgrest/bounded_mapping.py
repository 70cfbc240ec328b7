"""Mappings of limited number and size, for what is made from requests: plans and statements.

Any caller can send requests of which each is new. A limit in bytes bounds the memory that these take.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

MOST_BYTES = 32 << 20
"""Size limit of all values of a mapping."""
PARTS = 64
"""A value that is larger than the limit divided by this number is not stored, as it would displace many others."""


class BoundedMapping(Generic[Key, Value]):
    """Values by key. Beyond the limits, the oldest ones are dropped.

    get: returns the value of a key; None: there is none.
    """

    __slots__ = ("_most", "_most_bytes", "_size", "_sizes", "_values", "get")

    def __init__(self, most: int, most_bytes: int = MOST_BYTES) -> None:
        """most: maximum number of values. most_bytes: of all values."""
        self._most = most
        self._most_bytes = most_bytes
        self._values: dict[Key, Value] = {}
        self._sizes: dict[Key, int] = {}
        self._size = 0
        self.get = self._values.get

    def __len__(self) -> int:
        return len(self._values)

    def store(self, key: Key, value: Value, size: int) -> None:
        """Store a value under a new key, unless it is too large (`PARTS`). size: in bytes, about."""
        if size > self._most_bytes // PARTS:
            return
        while self._values and (len(self._values) >= self._most or self._size + size > self._most_bytes):
            oldest = next(iter(self._values))
            del self._values[oldest]
            self._size -= self._sizes.pop(oldest)
        self._values[key] = value
        self._sizes[key] = size
        self._size += size
