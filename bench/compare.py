"""Compares the responses of two services, apart from accepted differences of peers.

Accepted differences (listed in README.md):
- a number as a string of the same value (pg: bigint and numeric), or as the nearest double (numeric as float);
- a date or time stamp in another ISO form: `Z` for `+00:00`, a date as midnight UTC, a fraction of zeros,
  a missing offset as UTC.
"""

import json
import re
from datetime import UTC, datetime
from typing import Any

STAMP = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")


def canonical(value: Any) -> Any:
    """Return the value without accepted differences."""
    if isinstance(value, dict):
        return {key: canonical(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [canonical(inner) for inner in value]
    if isinstance(value, bool) or value is None:
        return value
    return canonical_scalar(str(value))


def canonical_scalar(text: str) -> Any:
    try:
        if STAMP.fullmatch(text):
            stamp = datetime.fromisoformat(text)
            return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
        return float(text)
    except ValueError:
        return text


def difference(expected: bytes, response: bytes) -> str | None:
    """Return the place where two JSON documents differ, as a path with both values, or None."""
    try:
        documents = json.loads(expected), json.loads(response)
    except ValueError as error:
        return f"not JSON: {error}"
    return first_difference(canonical(documents[0]), canonical(documents[1]), "$")


def first_difference(expected: Any, response: Any, place: str) -> str | None:
    if isinstance(expected, dict) and isinstance(response, dict):
        if expected.keys() != response.keys():
            return f"{place}: keys {', '.join(expected)} against {', '.join(response)}"
        pairs = [(f"{place}.{key}", expected[key], response[key]) for key in expected]
    elif isinstance(expected, list) and isinstance(response, list) and len(expected) == len(response):
        pairs = [(f"{place}[{index}]", *pair) for index, pair in enumerate(zip(expected, response, strict=True))]
    else:
        # By type too: in Python true equals 1.
        same = type(expected) is type(response) and expected == response
        return None if same else f"{place}: {expected!r} against {response!r}"
    differences = (first_difference(left, right, inner) for inner, left, right in pairs)
    return next((text for text in differences if text), None)


def key_difference(expected: bytes, response: bytes) -> str | None:
    """Compare the keys of responses whose values differ. Return a description of the difference, or None."""
    if not expected and not response:
        return None
    rows, others = json.loads(expected), json.loads(response)
    if [set(row) for row in rows] == [set(row) for row in others]:
        return None
    return f"{rows} against {others}"
