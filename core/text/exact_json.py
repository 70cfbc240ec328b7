"""JSON that is taken apart and put together again with its numbers as they were written: `1.50` stays that, and so does
`12345678901234567890.1`, which no float can hold.
"""

from __future__ import annotations

import json
import re
from typing import Any, Never

import orjson

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONGEST = 18
"""Characters of a whole number that fits 64 bits for certain."""


def parse(text: bytes) -> Any:
    """Numbers that Python or orjson would change are an `orjson.Fragment`. Raises ValueError."""
    if _SURROGATE.search(text):
        # Python would take half of a pair for a character.
        orjson.loads(text)
    try:
        return json.loads(text.decode(), parse_float=orjson.Fragment, parse_int=_whole, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no JSON")


def _whole(text: str) -> int | orjson.Fragment:
    return int(text) if len(text) <= _LONGEST and text != "-0" else orjson.Fragment(text)
