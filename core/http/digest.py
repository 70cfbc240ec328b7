"""`Content-Digest` (RFC 9530): what the bytes of a body hash to, as whoever sent them says."""

from __future__ import annotations

import base64
import binascii
import re

_MEMBER = re.compile(r"\s*(?P<name>[a-z*][a-z0-9_\-.*]*)\s*=\s*:(?P<value>[A-Za-z0-9+/=]*):\s*")

ALGORITHMS = {"sha-256": "sha256", "sha-512": "sha512"}
"""Those that still say something, with their names in hashlib, the best last."""


def announced_digest(header: str) -> tuple[str, bytes] | None:
    """Name of the hash and its value; None when the header has none that is known, which is to be ignored.

    Raises `ValueError` for what is no such header.
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
    known = [name for name in ALGORITHMS if name in result]
    return (ALGORITHMS[known[-1]], result[known[-1]]) if known else None
