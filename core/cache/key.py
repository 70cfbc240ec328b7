"""The length of a cache key, and the hash that may replace it."""

from __future__ import annotations

import hashlib


def characters(key: bytes) -> int:
    """Return the length of a key in characters, for the limits of the configuration."""
    return len(key.decode(errors="replace"))


def hash_key(key: bytes) -> bytes:
    """Return the SHA-256 digest of a key as 64 upper-case hexadecimal digits (caching-13)."""
    return hashlib.sha256(key).hexdigest().upper().encode()
