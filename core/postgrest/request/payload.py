"""Bodies of writes and calls as JSON that PostgreSQL reads, and the keys of its objects.

Source: PostgREST's documentation, Tables and Views; Functions as RPC.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

import orjson

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.request.csv_table import parse_csv
from rowcall.core.postgrest.request.query_string import parameters
from rowcall.core.text import exact_json

JSON = "application/json"
CSV = "text/csv"
FORM = "application/x-www-form-urlencoded"
_RAW = {"text/plain": "text", "text/xml": "xml", "application/octet-stream": "bytea"}


class PayloadKind(Enum):
    """The form of a body."""

    JSON = "json"
    CSV = "csv"
    FORM = "form"
    RAW = "raw"


class Payload(NamedTuple):
    r"""A body.

    text: the JSON as it arrived, or as made from CSV or a form; of a raw body its text, or `\x…` for bytes. Without
    `columns`, a JSON body that is neither object nor array is `[]`, and an empty one of a call is `{}`. keys: names of
    columns or arguments, without repetition: those of `columns` for a JSON body if the request has this parameter, else
    those of the objects, of the CSV header row (if rows follow) or of the form, in their order there. is_array: the
    JSON is an array, or with `columns` no object. rows: number of its elements; 1 for a JSON body if the request has
    `columns`, as the JSON is not parsed then. fields: names and values of a form, with repetitions. raw_type: type of
    PostgreSQL for a raw body. texts: values of a JSON object of a call in the order of `keys`, as `json_to_record`
    would pass them to the input functions of their types; None if one of them may not be passed as a text. arrays: of
    an insert: an array literal for each of `keys`, with the values of all objects, in place of `text`; None: the JSON
    is passed.
    """

    kind: PayloadKind
    text: str
    keys: tuple[str, ...] = ()
    is_array: bool = False
    rows: int = 1
    fields: tuple[tuple[str, str], ...] = ()
    raw_type: str = ""
    texts: tuple[str | None, ...] | None = None
    arrays: tuple[str, ...] | None = None


def media_type_of(content_type: str | None) -> str:
    """Return the media type without parameters, in lower case; JSON without the header."""
    return JSON if content_type == JSON else (content_type or JSON).partition(";")[0].strip().lower()


def parse_payload(
    body: bytes, content_type: str | None, columns: Sequence[str] | None, *, function: bool = False
) -> Payload:
    """Parse a body of JSON, CSV or a form; for a call, also one of text/plain, text/xml or application/octet-stream.

    columns: value of the parameter `columns`, which only JSON bodies use; None: the request has none. function: the
    body is for a call; an empty JSON body is `{}` then. Raises `ApiError` for an invalid body or another media type
    (`PGRST102`), and for bytes that PostgreSQL refuses as a text (`22021`).
    """
    media_type = media_type_of(content_type)
    if media_type == JSON:
        return _json(body, columns, function)
    if media_type == CSV:
        return _csv(_text(body))
    if media_type == FORM:
        return _form(_text(body))
    if function and media_type in _RAW:
        raw_type = _RAW[media_type]
        text = "\\x" + body.hex() if raw_type == "bytea" else _unread_text(body)
        return Payload(PayloadKind.RAW, text, raw_type=raw_type)
    raise errors.invalid_body(f"Content-Type not acceptable: {media_type}")


def _json(body: bytes, columns: Sequence[str] | None, function: bool) -> Payload:
    """Return the payload of a JSON body. With `columns`, the JSON is not checked here. Without, an empty body of a call
    is `{}`, and a value that is neither object nor array is an empty array. Raises `ApiError`."""
    if columns is not None:
        text = _unread_text(body)
        return Payload(PayloadKind.JSON, text, tuple(dict.fromkeys(columns)), text.lstrip(" \t\r\n")[:1] != "{")
    if function and not body:
        body = b"{}"
    value = _parse_json(body)
    text = body.decode()
    if isinstance(value, dict):
        return Payload(PayloadKind.JSON, text, tuple(value), texts=_texts(text, value.values()) if function else None)
    if not isinstance(value, list):
        return Payload(PayloadKind.JSON, "[]", is_array=True, rows=0)
    return Payload(PayloadKind.JSON, text, _common_keys(value), is_array=True, rows=len(value))


def _parse_json(body: bytes) -> object:
    """Return the value of a JSON text. Raises `ApiError` if it is invalid."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if "infinity" in error.msg:  # orjson refuses numbers beyond double precision, such as 1e400
            with suppress(ValueError):
                return exact_json.parse_with_number_texts(body)
        raise errors.invalid_body("Empty or invalid json") from None


def _texts(text: str, values: Iterable[object]) -> tuple[str | None, ...] | None:
    """Return the values of an object as texts; None if it contains a NUL, the number `-0`, or a value that is no
    string, integer, boolean or null. text: the JSON."""
    if "\\u0000" in text:
        return None
    result: list[str | None] = []
    for value in values:
        if value is None or type(value) is str:
            result.append(value)
        elif type(value) is int and (value or "-0" not in text):  # the sign of -0 is lost
            result.append(str(value))
        elif type(value) is bool:
            result.append("true" if value else "false")
        else:
            return None
    return tuple(result)


def _common_keys(elements: list[object]) -> tuple[str, ...]:
    """Return the keys that all elements have. Raises `ApiError` if they differ, or an element is no object."""
    if not elements:
        return ()
    first = elements[0]
    if not isinstance(first, dict):
        raise errors.invalid_body("All object keys must match")
    keys = first.keys()
    for element in elements:
        if not isinstance(element, dict) or element.keys() != keys:
            raise errors.invalid_body("All object keys must match")
    return tuple(first)


def _unread_text(body: bytes) -> str:
    """Return the text of a body that only PostgreSQL reads. Raises its error (`22021`) if it is not UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise errors.invalid_utf8(body[error.start :]) from None


def _text(body: bytes) -> str:
    """Return the text of a body. Raises `ApiError` if it is not UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise errors.invalid_body("Empty or invalid json") from None


def _csv(text: str) -> Payload:
    """Return the payload of CSV with a header row, whose names are not used without other rows. `NULL` is null, and
    values behind the last name are ignored. Raises `ApiError` for an invalid text, and for a row with too few
    values."""
    names, rows = parse_csv(text)
    objects: list[dict[str, str | None]] = []
    for row in rows:
        if len(row) < len(names):
            raise errors.invalid_body("All lines must have same number of fields")
        objects.append({name: None if value == "NULL" else value for name, value in zip(names, row, strict=False)})
    document = orjson.dumps(objects).decode()
    keys = tuple(dict.fromkeys(names)) if objects else ()
    return Payload(PayloadKind.CSV, document, keys, is_array=True, rows=len(objects))


def _form(text: str) -> Payload:
    """Return the payload of a form, split at `&` and `;`. If a name is repeated, the JSON has its last value."""
    fields = tuple((name, value or "") for name, value in parameters(text))
    values = dict(fields)
    return Payload(PayloadKind.FORM, orjson.dumps(values).decode(), tuple(values), fields=fields)
