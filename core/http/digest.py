"""`Content-Digest` (RFC 9530): the hash of a body that its sender announces."""

from __future__ import annotations

import base64
import binascii
import re

_MEMBER = re.compile(r"\s*(?P<name>[a-z*][a-z0-9_\-.*]*)\s*=\s*:(?P<value>[A-Za-z0-9+/=]*):\s*")

ALGORITHMS = {"sha-256": "sha256", "sha-512": "sha512"}
"""Algorithms that are still secure, with their names in hashlib. The best one is the last."""


def announced_digest(header: str) -> tuple[str, bytes] | None:
    """Return the best hash that a `Content-Digest` announces, as its name in hashlib and its bytes; None: the header
    has no known algorithm and is ignored.

    If the header has a member twice, the last one counts. Raises `ValueError` if the header is malformed.
    """
    result: dict[str, bytes] = {}
    for member in header.split(","):
        match = _MEMBER.fullmatch(member)
        if match is None:
            raise ValueError(f"{member.strip()[:80]!r} is no digest such as sha-256=:…:")
        try:
            result[match["name"]] = base64.b64decode(match["value"], validate=True)
        except binascii.Error:
            raise ValueError(f"{match['name']}: its value is no base64") from None
    names = [name for name in ALGORITHMS if name in result]
    return (ALGORITHMS[names[-1]], result[names[-1]]) if names else None
