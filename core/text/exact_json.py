"""Parse JSON so that its numbers are written unchanged again, such as `1.50` and `12345678901234567890.1`.

No float represents the latter exactly.
"""

from __future__ import annotations

import json
import re
from typing import Any, Never

import orjson

from rowcall.core.text import json_text

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONGEST = 18
"""Number of digits up to which an integer certainly fits into 64 bits."""
_MOST_WRITTEN = 254
"""Levels of arrays and objects that orjson writes; it reads 1,024."""
MOST_LEVELS = 240
"""Levels of a value that can be written again, also within a few others."""
_TOO_DEEP = "it is nested too deeply"


def parse(text: bytes) -> Any:
    """Parse JSON. Fractions, exponents, integers of more than 18 characters and `-0`, which Python or orjson would
    change, become an `orjson.Fragment`. Of a repeated key, the last value counts.

    text: UTF-8. Raises ValueError if it is not valid JSON, or has more than `MOST_LEVELS` levels.
    """
    if _SURROGATE.search(text):
        # Python would accept half of a surrogate pair as a character.
        reason = json_text.fault(text)
        if reason is not None:
            raise ValueError(reason)
    try:
        value = json.loads(text.decode(), parse_float=orjson.Fragment, parse_int=_whole, parse_constant=_refuse)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if text.count(b"[") + text.count(b"{") > MOST_LEVELS:
        _require_writable(value)
    return value


def _require_writable(value: Any) -> None:
    for _ in range(_MOST_WRITTEN - MOST_LEVELS):
        value = [value]
    try:
        orjson.dumps(value)
    except TypeError:
        raise ValueError(_TOO_DEEP) from None


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")


def _whole(text: str) -> int | orjson.Fragment:
    return int(text) if len(text) <= _LONGEST and text != "-0" else orjson.Fragment(text)
