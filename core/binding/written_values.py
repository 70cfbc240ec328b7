"""Values of parameters as they are written in a comment: texts as they are, other values as JSON."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import orjson

from rowcall.core.binding.invalid_values import InvalidValueError, invalid_value
from rowcall.core.binding.json_values import Reader
from rowcall.core.endpoint.endpoint import EndpointParameter, ValueKind
from rowcall.core.text import exact_json, json_text

BARE = (
    *(ValueKind.SMALLINT, ValueKind.INTEGER, ValueKind.BIGINT, ValueKind.NUMERIC),
    *(ValueKind.FLOAT, ValueKind.BOOLEAN, ValueKind.JSON),
)
"""Kinds that JSON writes without quotes."""
_EMPTY_IS_VALUE = (ValueKind.TEXT, ValueKind.JSON, ValueKind.OTHER)
_MOMENTS = (ValueKind.TIMESTAMPTZ, ValueKind.TIMESTAMP, ValueKind.DATE, ValueKind.TIME, ValueKind.TIMETZ)
_WORDS = {
    ValueKind.BOOLEAN: frozenset(("t", "f", "y", "n", "yes", "no", "on", "off", "1", "0")),
    **dict.fromkeys(_MOMENTS, frozenset(("now", "today", "tomorrow", "yesterday", "epoch", "allballs"))),
}
"""Words of PostgreSQL, in lower case, that may be a default although requests may not send them."""
_ARRAY_LITERAL = re.compile(r"\s*(?:(?:\[[-+0-9: ]+\])+\s*=\s*)?\{")


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


def default_text(parameter: EndpointParameter, timestamps_utc: bool) -> str | None:
    """Return the text that PostgreSQL receives for the default that a comment declares, which is read like a value of a
    request; None: NULL.

    For an array parameter, the default is an array literal of PostgreSQL, which is unchanged, a JSON array, or its only
    element. timestamps_utc: timestamps without a zone are in UTC. Raises `InvalidValueError` for a default that is no
    value of the type.
    """
    text = parameter.default
    if text is None:
        return None
    reader = Reader.of(parameter.api_name, parameter, timestamps_utc)
    if not parameter.array:
        return _element_text(reader, text)
    if _ARRAY_LITERAL.match(text):
        return text
    if text[:1] == "[":
        return reader.read(_checked_json(reader, text))
    return reader.array_literal([_element_text(reader, text)])


def _element_text(reader: Reader, text: str) -> str | None:
    """Return the text that PostgreSQL receives for the default of a parameter that is no array, or for one element of
    an array; None: NULL. Raises `InvalidValueError`."""
    if not text and reader.kind not in _EMPTY_IS_VALUE:
        return None
    if text.lower() in _WORDS.get(reader.kind, ()):
        return text
    if reader.kind is ValueKind.COMPOSITE and text[:1] == "{":
        return reader.read_element(_checked_json(reader, text))
    return reader.convert_text(text)


def _checked_json(reader: Reader, text: str) -> bytes:
    """Return the bytes of a JSON text. Raises `InvalidValueError` if it is none."""
    raw = text.strip().encode()
    try:
        json_text.check(raw)
    except json_text.JsonTextError as error:
        raise invalid_value(str(error), reader.type_text) from None
    return raw


def without_invalid_defaults(
    parameters: tuple[EndpointParameter, ...], timestamps_utc: bool
) -> tuple[tuple[EndpointParameter, ...], list[tuple[EndpointParameter, InvalidValueError]]]:
    """Return the parameters without the defaults of the comment that are no values of their types, and the parameters
    with such a default and what is wrong with it. timestamps_utc: as in `default_text`."""
    if all(parameter.default is None for parameter in parameters):
        return parameters, []
    valid: list[EndpointParameter] = []
    invalid: list[tuple[EndpointParameter, InvalidValueError]] = []
    for parameter in parameters:
        try:
            default_text(parameter, timestamps_utc)
            valid.append(parameter)
        except InvalidValueError as error:
            valid.append(replace(parameter, defaulted=False, default=None))
            invalid.append((parameter, error))
    return tuple(valid), invalid
