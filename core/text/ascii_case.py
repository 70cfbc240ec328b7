"""Letters without regard to case, where a proxy in front compares too: A to Z and nothing else.

Unicode has letters whose small form is ASCII: by its rules a path with the Kelvin sign is one with a `k`, and whoever
writes it so gets past the rules of a proxy that knows better.
"""

from __future__ import annotations

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def ascii_lower(text: str) -> str:
    return text.lower() if text.isascii() else text.translate(_LOWER)
