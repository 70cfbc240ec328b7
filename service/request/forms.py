"""Form bodies, which browsers send without a script, as keys and texts like those of a query string."""

from __future__ import annotations

import codecs
import logging
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from rowcall.core.errors.problems import Problem
from rowcall.ext.binding import json_object
from rowcall.ext.binding.query_string import QueryError, has_non_ascii, parse_form
from rowcall.service.request_context.header_values import read_header

URLENCODED = b"application/x-www-form-urlencoded"
MULTIPART = b"multipart/form-data"

_JSON_BEGINS = b'{["'

CHARSETS = frozenset({b"utf-8", b"utf8"})
ENCODINGS = frozenset({b"7bit", b"8bit", b"binary"})
"""Transfer encodings that leave a part unchanged. Others are no longer used in forms (RFC 7578, 4.7)."""

MOST_FIELDS = 10_000
"""Enough for arrays, but not so many that parsing takes seconds."""
LONGEST_BOUNDARY = 70
"""Characters (RFC 2046, 5.1.1)."""
LONGEST_HEADERS = 16_384
"""Bytes of the headers of one part."""
SLICE = 32_768
"""Bytes that are parsed at a time: an error in a form is found before the next ones are parsed."""

Pairs = list[tuple[str, str]]


def form_pairs(scope: Any, body: bytes) -> Pairs | None:
    """Return keys and texts of a form, in order; None if the body is no form and must be read as JSON.

    A body whose type is that of a form is read as JSON if it begins like JSON (binding-20), because many clients send
    JSON with such a type by mistake, and a body of the type `application/x-www-form-urlencoded` also if it has no `=`,
    because clients write no such forms.

    Raises `Problem`: 400 for a form that is invalid, contains a file or has too many fields; 415 for another charset
    than UTF-8, or a transfer encoding such as base64.
    """
    kind, options = parse_options_header(read_header(scope.headers, "content-type"))
    if kind not in (URLENCODED, MULTIPART) or _begins_like_json(body):
        return None
    if kind == MULTIPART:
        return _Fields.of(options.get(b"boundary"), body)
    if b"=" not in body:
        return None
    if body.count(b"&") >= MOST_FIELDS:
        raise too_many_fields()
    if not _is_utf8(options) and has_non_ascii(body):
        raise _charset_problem(options)
    try:
        return parse_form(body)
    except UnicodeDecodeError:
        raise Problem(400, "the form is not valid UTF-8") from None
    except QueryError as error:
        raise Problem(400, f"the form: {error}") from None


def _begins_like_json(body: bytes) -> bool:
    """Whether a body begins like JSON, behind a byte order mark and white space, or is empty. No multipart form begins
    so, and no urlencoded one of a browser."""
    return body.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in _JSON_BEGINS


def _is_utf8(options: dict[bytes, bytes]) -> bool:
    """Whether the parameters of a content type name no other charset than UTF-8. With another charset, all characters
    beyond ASCII would be misread.
    """
    return options.get(b"charset", b"utf-8").lower() in CHARSETS


def _charset_problem(options: dict[bytes, bytes]) -> Problem:
    message = options[b"charset"][:40].decode(errors="replace")
    return Problem(415, f"the form is in {message}; forms are read as UTF-8 (RFC 7578, 5.1.2)")


def too_many_fields() -> Problem:
    """Return the problem of a form with more than `MOST_FIELDS` fields (400)."""
    return Problem(400, f"the form has more than {MOST_FIELDS} fields")


def members_of(body: bytes) -> list[tuple[str, bytes]]:
    """Return key and unparsed value (UTF-8) of each member of a JSON object, in order; empty for an empty body. Raises
    `Problem` 400 if the body is anything else than a JSON object, has a key twice or too many keys.

    For large bodies: their values as Python objects would be ten times as large.
    """
    try:
        return json_object.members(body.removeprefix(codecs.BOM_UTF8))
    except json_object.JsonError as error:
        raise Problem(400, str(error)) from None


# The library logs every invalid form, so clients that send them could fill the log.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)


class _Fields:
    """Collects the fields that `python_multipart` parses."""

    def __init__(self) -> None:
        self.pairs: Pairs = []
        self._header = b""
        self._value = b""
        self._disposition: dict[bytes, bytes] = {}
        self._type: dict[bytes, bytes] = {}
        self._encoding = b"binary"
        self._data: list[bytes] = []
        self._headers = 0
        self._finished = False

    @classmethod
    def of(cls, boundary: bytes | None, body: bytes) -> Pairs:
        """Return keys and texts of a multipart form; empty for an empty body. boundary: None: the content type names
        none.

        Raises `Problem`: 400 for a boundary that is missing or too long, and for a form that is invalid, contains a
        file or has too many fields; 415 for another charset than UTF-8, or a transfer encoding such as base64.
        """
        if not boundary:
            raise Problem(400, "the header Content-Type names no boundary of the form")
        if len(boundary) > LONGEST_BOUNDARY:
            raise Problem(400, f"the boundary of the form is longer than {LONGEST_BOUNDARY} characters")
        fields = cls()
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": fields._begin,
                "on_header_begin": fields._begin_header,
                "on_header_field": fields._add_header,
                "on_header_value": fields._add_value,
                "on_header_end": fields._end_header,
                "on_headers_finished": fields._check,
                "on_part_data": fields._add_data,
                "on_part_end": fields._end,
                "on_end": fields._finish,
            },
        )
        try:
            for start in range(0, len(body), SLICE):
                parser.write(body[start : start + SLICE])
            parser.finalize()
        except FormParserError as error:
            raise Problem(400, f"the form is broken: {error}") from None
        if body and not fields._finished:
            raise Problem(400, "the form is broken: it ends in the middle")
        return fields.pairs

    def _begin(self) -> None:
        if len(self.pairs) >= MOST_FIELDS:
            raise too_many_fields()
        self._disposition, self._type, self._encoding = {}, {}, b"binary"
        self._data = []
        self._headers = 0

    def _begin_header(self) -> None:
        self._header = b""
        self._value = b""

    def _add_header(self, data: bytes, start: int, end: int) -> None:
        self._count(end - start)
        self._header += data[start:end]

    def _add_value(self, data: bytes, start: int, end: int) -> None:
        self._count(end - start)
        self._value += data[start:end]

    def _count(self, size: int) -> None:
        self._headers += size
        if self._headers > LONGEST_HEADERS:
            raise Problem(400, f"the headers of a part of the form are larger than {LONGEST_HEADERS} bytes")

    def _end_header(self) -> None:
        match self._header.lower():
            case b"content-disposition":
                _, self._disposition = parse_options_header(self._value)
            case b"content-type":
                _, self._type = parse_options_header(self._value)
            case b"content-transfer-encoding":
                self._encoding = self._value.strip().lower()

    def _check(self) -> None:
        if b"name" not in self._disposition:
            raise Problem(400, "the form is broken: a part has no name")
        if b"filename" in self._disposition:
            name = self._disposition[b"name"][:100].decode(errors="replace")
            raise Problem(400, f"the field {name!r} of the form is a file, and this endpoint takes none")
        if self._encoding not in ENCODINGS:
            raise Problem(415, "a part of the form has a Content-Transfer-Encoding; send it as it is")

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        self._data.append(data[start:end])

    def _end(self) -> None:
        value = b"".join(self._data)
        if not value.isascii() and not _is_utf8(self._type):
            raise _charset_problem(self._type)
        self.pairs.append((_text(self._disposition[b"name"]), _text(value)))

    def _finish(self) -> None:
        self._finished = True


def _text(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise Problem(400, "the form is not valid UTF-8") from None
    if "\0" in text:
        raise Problem(400, "the form holds a NUL character")
    return text
