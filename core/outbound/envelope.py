"""An answer of another service as bytes that can be kept: status, headers and body (spec 2.1 rule 6)."""

from __future__ import annotations

from typing import NamedTuple

import orjson

Headers = list[tuple[str, str]]

_UNSHARED = frozenset({"no-store", "private"})


class Kept(NamedTuple):
    status: int
    content_type: str | None
    headers: Headers
    """Without the content type; names in lower case."""
    body: bytes


def sealed(kept: Kept) -> bytes:
    head = orjson.dumps([kept.status, kept.content_type, kept.headers])
    return len(head).to_bytes(4, "big") + head + kept.body


def opened(data: bytes) -> Kept:
    end = 4 + int.from_bytes(data[:4], "big")
    status, content_type, headers = orjson.loads(data[4:end])
    return Kept(status, content_type, [(name, value) for name, value in headers], data[end:])


def is_for_all(headers: Headers) -> bool:
    """Not for one client alone: it sets no cookie, and does not say that it is private (RFC 9111, 3)."""
    for name, value in headers:
        lowered = name.lower()
        if lowered == "set-cookie":
            return False
        if lowered == "cache-control" and _UNSHARED & {word.strip().lower() for word in value.split(",")}:
            return False
    return True
