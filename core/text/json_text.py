"""Split a JSON body into the texts of its values: the twin of `ext.binding.json_object`.

`1.50`, `12345678901234567890` and `1e400` must reach PostgreSQL as they are written, so values are never parsed into
Python numbers. orjson validates the text once; after that, the end of a value is found by quotes and brackets only. All
functions take linear time.
"""

from __future__ import annotations

import codecs
import re
from typing import cast

import orjson

_SPACE = re.compile(rb"[ \t\n\r]*")
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_SCALAR = re.compile(rb"[^ \t\n\r,\]}]+")
_QUOTE_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]|[^ \t\n\r,:"\[\]{}]+', re.DOTALL)
_OPENING = frozenset({b"[", b"{"})
_CLOSING = frozenset({b"]", b"}"})
# An unclosed string matches too: a new attempt at each of its quotes would be quadratic.
_STRING_OR_NUMBER = re.compile(rb'"(?:[^"\\]|\\.)*"?|-?[0-9][-+.0-9eE]*', re.DOTALL)
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


MOST_MEMBERS = 2048
"""Maximum number of members of an object. No routine or table has so many names."""


class JsonTextError(ValueError):
    """The text is invalid; the message says why."""


def is_json(content_type: str) -> bool:
    """Return whether the content type says that a body is one JSON value: `application/json`, `text/json` and `…+json`
    (RFC 6839, 3.1) do, types of several values such as `application/x-ndjson` do not."""
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type.endswith(("/json", "+json"))


def body_members(body: bytes) -> list[tuple[str, bytes]]:
    """Return the `members` of a body. A byte order mark at its beginning is ignored (RFC 8259, 8.1). Raises
    `JsonTextError` as `members` does."""
    return members(body.removeprefix(codecs.BOM_UTF8))


def members(body: bytes) -> list[tuple[str, bytes]]:
    """Return key and value of each member of the object in `body`; values are as written.

    An empty body is an empty object (binding-19). Raises `JsonTextError` if the body is not one JSON object in UTF-8,
    and for a repeated key. It is also raised for more than `MOST_MEMBERS` keys.
    """
    if not body.strip(b" \t\n\r"):
        return []
    _validate(body, "the body")
    if body[_skip_space(body, 0)] != ord("{"):
        raise JsonTextError("the body is not a JSON object")
    return object_members(body)


def check(text: bytes) -> None:
    """Raise `JsonTextError` if the text is not one JSON value in UTF-8."""
    _validate(text, "the value")


def object_members(body: bytes) -> list[tuple[str, bytes]]:
    """Return key and value of each member of an object; values are as written. body: a valid JSON object, which is not
    checked here. Raises `JsonTextError` for a repeated key, or more than `MOST_MEMBERS` keys."""
    result: dict[str, bytes] = {}
    position = _skip_space(body, _skip_space(body, 0) + 1)
    while body[position] != ord("}"):
        end = _value_end(body, position)
        key = cast(str, orjson.loads(body[position:end]))
        if key in result:
            raise JsonTextError(f"the key {key[:100]!r} is there twice")
        if len(result) >= MOST_MEMBERS:
            raise JsonTextError(f"an object has more than {MOST_MEMBERS} keys")
        position = _skip_space(body, _skip_space(body, end) + 1)
        end = _value_end(body, position)
        result[key] = body[position:end]
        position = _next_item(body, end)
    return list(result.items())


def elements(array: bytes) -> list[bytes]:
    """Return the elements of an array as they are written. array: a valid JSON array, such as a value from
    `members`."""
    result = []
    depth = 0
    start = 0
    # One pass over the tokens: a request may contain a million elements.
    for token in _TOKEN.finditer(array):
        if token[0] in _OPENING:
            depth += 1
            start = token.start() if depth == 2 else start
        elif token[0] in _CLOSING:
            depth -= 1
            if depth == 1:
                result.append(array[start : token.end()])
        elif depth == 1:
            result.append(token[0])
    return result


def unescape(string: bytes) -> str:
    """Return the content of a JSON string. string: valid, with its quotes, such as a value from `members` or
    `elements`. Raises `JsonTextError` if it contains a NUL."""
    text = cast(str, orjson.loads(string))
    if "\0" in text:
        raise JsonTextError("holds a NUL character (\\u0000)")
    return text


def fault(text: bytes) -> str | None:
    """Return why the text is not one JSON value in UTF-8; None: it is."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if not error.msg.startswith("number is infinity"):
            return f"{error.msg} at byte {error.pos}"
    else:
        return None
    # 1e400 is valid JSON and a valid numeric, but not a double. Validate the rest with smaller numbers in its place.
    try:
        orjson.loads(_STRING_OR_NUMBER.sub(_shrink, text))
    except orjson.JSONDecodeError as error:
        return error.msg
    return None


def _validate(body: bytes, subject: str) -> None:
    reason = fault(body)
    if reason is not None:
        raise JsonTextError(f"{subject} is not valid JSON: {reason}")


def _shrink(token: re.Match[bytes]) -> bytes:
    return b"0" if _NUMBER.fullmatch(token[0]) else token[0]


def _value_end(text: bytes, position: int) -> int:
    first = text[position : position + 1]
    if first == b'"':
        return _match_end(_STRING, text, position)
    if first not in b"[{":
        return _match_end(_SCALAR, text, position)
    depth = 0
    for token in _QUOTE_OR_BRACKET.finditer(text, position):
        depth += (token[0] in _OPENING) - (token[0] in _CLOSING)
        if depth == 0:
            return token.end()
    raise AssertionError("validated JSON closes its brackets")


def _next_item(text: bytes, end: int) -> int:
    position = _skip_space(text, end)
    return _skip_space(text, position + 1) if text[position] == ord(",") else position


def _skip_space(text: bytes, position: int) -> int:
    return _match_end(_SPACE, text, position)


def _match_end(pattern: re.Pattern[bytes], text: bytes, position: int) -> int:
    match = pattern.match(text, position)
    assert match is not None, "validated JSON"  # noqa: S101
    return match.end()
