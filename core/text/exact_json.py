"""Parse JSON so that its numbers are written unchanged again, such as `1.50` and `12345678901234567890.1`.

No float represents the latter exactly.
"""

from __future__ import annotations

import json
import re
from typing import Any, Never

import orjson

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONGEST = 18
"""Number of digits up to which an integer certainly fits into 64 bits."""
_AROUND = 50
"""Levels of nesting that callers may put around a parsed value: orjson writes 254 of them."""
_DEEPEST = 200
"""Levels of nesting that are certainly not too many."""


def parse(text: bytes) -> Any:
    """Parse JSON. Fractions, exponents, integers of more than 18 characters and `-0`, which Python or orjson would
    change, become an `orjson.Fragment`. Of a repeated key, the last value counts.

    text: UTF-8. Raises ValueError if it is not valid JSON, or is nested too deeply for orjson to write it again.
    """
    if _SURROGATE.search(text):
        # Python would accept half of a surrogate pair as a character.
        orjson.loads(text)
    try:
        value = json.loads(text.decode(), parse_float=orjson.Fragment, parse_int=_whole, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if text.count(b"[") + text.count(b"{") > _DEEPEST and not _is_writable(value):
        raise ValueError("it is nested too deeply")
    return value


def _is_writable(value: Any) -> bool:
    """Return whether orjson writes the value with `_AROUND` levels around it."""
    for _ in range(_AROUND):
        value = [value]
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")


def _whole(text: str) -> int | orjson.Fragment:
    return int(text) if len(text) <= _LONGEST and text != "-0" else orjson.Fragment(text)
