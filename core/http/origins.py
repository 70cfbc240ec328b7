"""Origins as browsers serialize them (RFC 6454, 6.1)."""

from __future__ import annotations

import re

_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[^/?#@:\s\\*]+)(:\d{1,5})?")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def serialized_origin(text: str) -> str:
    """Return an origin as browsers serialize it: lower case, without default port and trailing slash.

    Raises ValueError for a text that is neither an origin nor `null`.
    """
    origin = text.lower().removesuffix("/")
    if origin == "null":
        return origin
    if not _ORIGIN.fullmatch(origin):
        raise ValueError(f"{text!r} is no origin such as https://shop.example:8443")
    return origin.removesuffix(_DEFAULT_PORTS.get(origin.partition(":")[0], "/"))
