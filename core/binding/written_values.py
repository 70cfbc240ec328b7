"""Values of parameters as they are written in a comment: texts as they are, other values as JSON."""

from __future__ import annotations

from typing import Any

import orjson

from rowcall.core.endpoint.endpoint import EndpointParameter, ValueKind
from rowcall.core.text import exact_json

BARE = (
    *(ValueKind.SMALLINT, ValueKind.INTEGER, ValueKind.BIGINT, ValueKind.NUMERIC),
    *(ValueKind.FLOAT, ValueKind.BOOLEAN, ValueKind.JSON),
)
"""Kinds that JSON writes without quotes."""


def read_value(parameter: EndpointParameter, text: str) -> Any:
    """Return a value that is written in a comment, as `exact_json` parses it; for an array parameter, a JSON array is
    expected. If the parameter is no array, and its kind is none of `BARE` (numbers, boolean and JSON), the text is
    returned unchanged.

    Raises `ValueError` if the text is not JSON, or has another JSON type than the parameter. Every number is accepted
    for every numeric kind, such as `1.5` for an integer, and the elements of an array are not checked.
    """
    if not parameter.array and parameter.kind not in BARE:
        return text
    body = exact_json.parse(text.encode())
    if parameter.array:
        fits = isinstance(body, list)
    elif parameter.kind is ValueKind.BOOLEAN:
        fits = isinstance(body, bool)
    else:
        # Each fragment is a number.
        is_number = isinstance(body, int | orjson.Fragment) and not isinstance(body, bool)
        fits = parameter.kind is ValueKind.JSON or is_number
    if not fits:
        raise ValueError(text)
    return body
