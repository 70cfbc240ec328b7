"""Digests of cached responses in Redis: an entry without the digest of its key and content is refused.

So whatever Redis replies (the reply to another command, a changed value, an entry that another program wrote by
mistake) is never returned for another key.

The digest has no secret: hosts that share a Redis do not necessarily share a key ring (by default each host has a
folder of its own), and would refuse each other's entries. Programs that may write to this Redis are therefore trusted.
"""

from __future__ import annotations

import hashlib

_SIZE = 32


def with_digest(name: bytes, content: bytes) -> bytes:
    """Return the content with its digest. name: of the entry in Redis."""
    return _digest(name, content) + content


def without_digest(name: bytes, data: bytes) -> bytes | None:
    """Return the content, or None if the data is not an entry of this name."""
    digest, content = data[:_SIZE], data[_SIZE:]
    return content if digest == _digest(name, content) else None


def _digest(name: bytes, content: bytes) -> bytes:
    return hashlib.sha256(b"rowcall cached response %d:%b" % (len(name), name) + content).digest()
