"""The requests of a batch: read from its body, with references to earlier responses, which are replaced by their
values.

`$1.body.id` is a member of the first response, `$2.status` and `$1.headers.location` are its other parts. In a path, a
reference may be a part of the text. In a body or a header, it is the whole text; its value keeps its JSON type in a
body, and becomes a text in a header. In both, a text that begins with `$$` is no reference and loses its first `$`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson

from rowcall.core.text import exact_json, json_text

METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "QUERY"))
OWN_HEADERS = frozenset(
    (
        *("authorization", "cookie", "connection", "content-length", "expect", "host", "te", "trailer"),
        *("transfer-encoding", "upgrade", "forwarded", "origin", "referer"),
        *("x-real-ip", "client-cert", "client-cert-chain"),
    )
)
"""Headers that requests of a batch cannot set, because those of the batch itself or of its connection apply. The same
applies to those that begin with one of `OWN_PREFIXES`."""

OWN_PREFIXES = ("x-forwarded-", "x-original-", "sec-")
"""Reported by a proxy or a browser."""

KEY = "idempotency-key"

_STEP = r"(?:\.[A-Za-z_][\w-]*|\.\d+|\[\d+\])"
_REFERENCE = re.compile(rf"\$([1-9]\d{{0,4}})\.(body|status|headers)({_STEP}*)")
_STEPS = re.compile(r"\.?\[?([\w-]+)\]?")
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class BatchError(ValueError):
    """The batch cannot be read. item: number of the wrong request, from 1; None: the whole batch is wrong."""

    def __init__(self, message: str, item: int | None = None) -> None:
        super().__init__(message if item is None else f"request {item}: {message}")
        self.item = item


class MissingResultError(ValueError):
    """A reference names something that the earlier response does not have, or a value that cannot be used in the place
    of the reference."""


@dataclass(frozen=True, slots=True)
class Result:
    """A response, as references see it. headers: by name in lower case. body: parsed JSON, a text, or None."""

    status: int
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """One request of a batch. number: from 1. body: JSON value. has_body: whether there is a body, which may be
    null."""

    number: int
    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: Any = None
    has_body: bool = False

    def target(self, results: Sequence[Result]) -> str:
        """Return path and query string with the values of references. Raises `MissingResultError`.

        A reference at the beginning of the path stands for a path with its query string, such as that of `Location`;
        any other value, such as an absolute URL, is an error. The values of other references are percent-encoded.
        """
        begin, rest = "", self.path
        first = _REFERENCE.match(self.path)
        if first is not None:
            begin, rest = _as_text(_value(first, results)), self.path[first.end() :]
            if not begin.startswith("/") or not _is_plain(begin):
                raise MissingResultError(f"{first[0]} is no path of this service")
        return begin + _REFERENCE.sub(lambda match: quote(_as_text(_value(match, results)), safe=""), rest)

    def filled_headers(self, results: Sequence[Result]) -> list[tuple[str, str]]:
        """Return the headers with the values of references. Raises `MissingResultError`."""
        filled = [(name, _as_text(_fill_references(value, results))) for name, value in self.headers]
        for name, value in filled:
            if not value.isprintable():
                raise MissingResultError(f"the value for the header {name} has characters that a header cannot have")
        return filled

    def filled_body(self, results: Sequence[Result]) -> bytes | None:
        """Return the body: a text as it is if its content type is not JSON, otherwise as JSON; None without one.

        Raises `MissingResultError`.
        """
        if not self.has_body:
            return None
        body = _fill_references(self.body, results)
        content_type = next((value for name, value in self.headers if name == "content-type"), "application/json")
        if isinstance(body, str) and not json_text.is_json(content_type):
            return body.encode(errors="surrogatepass")
        return _json(body)


def read_batch(body: bytes, most: int, refused: Set[str] = frozenset()) -> tuple[BatchRequest, ...]:
    """Parse a batch of at most `most` requests. Raises `BatchError`. refused: headers that the requests cannot set
    besides `OWN_HEADERS`, in lower case.
    """
    try:
        items = exact_json.parse(body)
    except ValueError as error:
        raise BatchError(f"the body is not valid JSON: {error}") from None
    if not isinstance(items, list) or not items:
        raise BatchError("the body has to be an array of requests")
    if len(items) > most:
        raise BatchError(f"there are {len(items)} requests, of which at most {most} are allowed")
    return tuple(_request(number, item, OWN_HEADERS | refused) for number, item in enumerate(items, 1))


def _request(number: int, item: Any, refused: Set[str]) -> BatchRequest:
    """Return the request in an item of the array. Raises `BatchError`. refused: headers that it cannot set."""
    if not isinstance(item, dict):
        raise BatchError("it has to be an object with method and path", number)
    unknown = sorted(item.keys() - {"method", "path", "headers", "body"})
    if unknown:
        raise BatchError(f"unknown member {unknown[0][:60]!r}; there are method, path, headers and body", number)
    method, path, headers = item.get("method", "GET"), item.get("path"), item.get("headers") or {}
    if not isinstance(method, str) or method.upper() not in METHODS:
        raise BatchError(f"method has to be one of {', '.join(sorted(METHODS))}", number)
    if not isinstance(path, str) or not (path.startswith("/") or _REFERENCE.match(path)) or not _is_plain(path):
        raise BatchError("path has to be a text that begins with / and has no blanks or control characters", number)
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise BatchError("headers has to be an object of texts", number)
    for name, value in headers.items():
        if name.lower() in refused or name.lower().startswith(OWN_PREFIXES):
            raise BatchError(f"the header {name[:60]} cannot be set for one request", number)
        if not _NAME.fullmatch(name) or not value.isprintable():
            raise BatchError(f"{name[:60]!r} is no header that can be sent", number)
    request = BatchRequest(
        number, method.upper(), path, tuple((name.lower(), value) for name, value in headers.items()),
        item.get("body"), "body" in item,
    )  # fmt: skip
    in_path = (int(match[1]) for match in _REFERENCE.finditer(path))
    for later in (*in_path, *_numbers([*headers.values(), request.body])):
        if later >= number:
            raise BatchError(f"${later} is not the result of an earlier request", number)
    return request


def _is_plain(path: str) -> bool:
    return path.isascii() and path.isprintable() and " " not in path


def _numbers(value: Any) -> list[int]:
    """Return the numbers of the requests to which references in a JSON value refer. A reference is always a whole
    text."""
    if isinstance(value, str):
        match = _REFERENCE.fullmatch(value)
        return [] if match is None else [int(match[1])]
    if isinstance(value, dict):
        return [number for item in value.values() for number in _numbers(item)]
    if isinstance(value, list):
        return [number for item in value for number in _numbers(item)]
    return []


def _fill_references(value: Any, results: Sequence[Result]) -> Any:
    """Return the JSON value with results in place of its references. `$$` at the beginning of a text stands for `$`.
    Raises `MissingResultError` for a reference to something that a response lacks."""
    if isinstance(value, str):
        if value.startswith("$$"):
            return value[1:]
        match = _REFERENCE.fullmatch(value)
        return value if match is None else _value(match, results)
    if isinstance(value, dict):
        return {key: _fill_references(item, results) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill_references(item, results) for item in value]
    return value


def _value(match: re.Match[str], results: Sequence[Result]) -> Any:
    result = results[int(match[1]) - 1]
    value: Any = {"body": result.body, "status": result.status, "headers": result.headers}[match[2]]
    for step in _STEPS.findall(match[3]):
        if isinstance(value, Mapping):
            member = value.get(step.lower() if value is result.headers else step, _MISSING)
        elif isinstance(value, list) and step.isdigit() and len(step) < 10 and int(step) < len(value):
            member = value[int(step)]
        else:
            member = _MISSING
        if member is _MISSING:
            raise MissingResultError(f"the response {match[1]} has no {match[0].partition('.')[2]}")
        value = member
    return value


_MISSING: Any = object()


def _as_text(value: Any) -> str:
    """Return a JSON value as a part of a path or header, empty for null. Raises as `_json` does."""
    if value is None:
        return ""
    return value if isinstance(value, str) else _json(value).decode()


def _json(value: Any) -> bytes:
    """Return a value as JSON. Raises `MissingResultError` if a result makes it too deep."""
    try:
        return orjson.dumps(value)
    except TypeError:
        raise MissingResultError("a result is nested too deeply") from None
