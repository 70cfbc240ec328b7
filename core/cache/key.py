"""The key of an answer: whose answer it is, and for which values. Two different requests never have the same one.

Each part says what it is and where it ends, so that no text a client sends can look like the border of two parts:
absent, NULL and an empty text are three keys, and so are `ab`, `c` and `a`, `bc` (reference 05, 1.3).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def encode_key(prefix: bytes, mask: int, arguments: Sequence[bytes | None], wanted: int) -> bytes:
    """mask: parameters that are present; `arguments` has the text of each. wanted: those that belong to the key."""
    parts = [prefix, b"%x:" % (mask & wanted)]
    if mask & ~wanted:
        arguments = _chosen(mask, arguments, wanted)
    parts += [b"-" if text is None else b"%d:%b" % (len(text), text) for text in arguments]
    return b"".join(parts)


def _chosen(mask: int, arguments: Sequence[bytes | None], wanted: int) -> list[bytes | None]:
    places = (index for index in range(mask.bit_length()) if mask >> index & 1)
    return [text for index, text in zip(places, arguments, strict=True) if wanted >> index & 1]


def characters(key: bytes) -> int:
    """How long a key is, for the limits of the configuration."""
    return len(key.decode(errors="replace"))


def hashed(key: bytes) -> bytes:
    """SHA-256 as 64 upper-case hex digits (reference 05, 1.3)."""
    return hashlib.sha256(key).hexdigest().upper().encode()
