"""How long the key of an answer is, and the hash that may stand for it."""

from __future__ import annotations

import hashlib


def characters(key: bytes) -> int:
    """How long a key is, for the limits of the configuration."""
    return len(key.decode(errors="replace"))


def hashed(key: bytes) -> bytes:
    """SHA-256 as 64 upper-case hex digits (caching-13)."""
    return hashlib.sha256(key).hexdigest().upper().encode()
