"""Parser for the files of a multipart body, one after the other while it arrives.

A chunk of the body is read only on demand, so a slow handler slows down the client and no data accumulates.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncIterator
from urllib.parse import unquote_to_bytes

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from rowcall.core.errors.problems import Problem
from rowcall.service.uploads.incoming_files import File

MOST_PARTS = 1024
"""Maximum number of parts of one body. No legitimate form has more."""

MOST_PREAMBLE = 65_536
"""Maximum number of bytes before the first boundary. Old mailers have a sentence there."""

_EXTENDED_NAME = re.compile(rb"filename\*\s*=\s*([\w-]*)'[^']*'([^\s;]+)", re.IGNORECASE)


class Form:
    """A form. `async for file in form.files(pieces)`: each file has to be read before the next one; otherwise it is
    skipped. Raises `Problem` 400 for an unusable boundary.
    """

    def __init__(self, boundary: bytes) -> None:
        self._events: deque[_Part | bytes | None] = deque()
        """Start of a part, data of it, or its end (None)."""
        self._part: _Part | None = None
        self._header = b""
        self._value = b""
        self._parts = 0
        self._preamble = _Preamble(boundary)
        self._finished = False
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_header_begin": self._begin_header,
                    "on_header_field": self._add_header,
                    "on_header_value": self._add_value,
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._begin_data,
                    "on_part_data": self._add_data,
                    "on_part_end": self._end,
                    "on_end": self._finish,
                },
            )
        except FormParserError as error:
            raise form_problem(str(error)) from None

    async def files(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[File]:
        """Yield the files in the order of the body, without other fields. Raises `Problem` 400 for an invalid form."""
        self._pieces = pieces
        while (part := await self._next_file()) is not None:
            file = File(part.file_name or "", part.content_type, self._data())
            yield file
            await file.drain()

    async def _next_file(self) -> _Part | None:
        """Return the next part that is a file. None: the form has ended, and the rest of the body is read. Raises
        `Problem` 400 for an invalid form.
        """
        while await self._fill():
            event = self._events.popleft()
            if isinstance(event, _Part) and event.file_name:
                return event
        # What follows the form is read too; otherwise the connection could not be reused.
        async for _ in self._pieces:
            pass
        return None

    async def _data(self) -> AsyncIterator[bytes]:
        """Yield the data of the part that has begun last. Raises `Problem` 400 for an invalid form."""
        while await self._fill():
            event = self._events.popleft()
            if event is None:
                return
            if isinstance(event, bytes):
                yield event

    async def _fill(self) -> bool:
        """Read the body until there is an event. Return False at the end of the form, or if the body is empty. Raises
        `Problem` 400 for an invalid form.
        """
        while not self._events:
            chunk = await anext(self._pieces, None)
            if chunk is None:
                if self._finished or self._preamble.nothing_came:
                    return False
                raise form_problem("it ends in the middle" if self._preamble.is_over else "its boundary is not in it")
            try:
                self._parser.write(chunk if self._preamble.is_over else self._preamble.skip_preamble(chunk))
            except FormParserError as error:
                raise form_problem(str(error)) from None
        return True

    # --- callbacks of the parser -------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise Problem(400, f"the form has more than {MOST_PARTS} parts", headers=(("connection", "close"),))
        self._part = _Part()

    def _begin_header(self) -> None:
        self._header = b""
        self._value = b""

    def _add_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _add_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        if self._part is not None:
            self._part.add(self._header.lower(), self._value)

    def _begin_data(self) -> None:
        if self._part is not None and self._part.file_name:
            self._events.append(self._part)

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        # Data of other fields is discarded.
        if self._part is not None and self._part.file_name and end > start:
            self._events.append(data if start == 0 and end == len(data) else data[start:end])

    def _end(self) -> None:
        if self._part is not None and self._part.file_name:
            self._events.append(None)

    def _finish(self) -> None:
        self._finished = True


class _Preamble:
    """Skips text before the first boundary, which has no meaning (RFC 2046 5.1.1)."""

    def __init__(self, boundary: bytes) -> None:
        self._delimiter = b"\n--" + boundary
        # At the very beginning, the boundary needs no line break before it.
        self._held = b"\n"
        self._before = -1
        """Bytes of the body before those that are held."""
        self.is_over = False

    @property
    def nothing_came(self) -> bool:
        """Whether the body is empty so far."""
        return not self.is_over and self._before + len(self._held) == 0

    def skip_preamble(self, piece: bytes) -> bytes:
        """Return what follows from the first boundary on; empty bytes before it. piece: next chunk of the body. Raises
        `Problem` 400 if more than `MOST_PREAMBLE` bytes precede the boundary.
        """
        held = self._held + piece
        boundary = held.find(self._delimiter)
        self.is_over = boundary >= 0
        skipped = boundary + 1 if self.is_over else max(0, len(held) + 1 - len(self._delimiter))
        self._before += skipped
        if self._before > MOST_PREAMBLE:
            raise form_problem(f"its boundary is not among the first {MOST_PREAMBLE} bytes")
        self._held = b"" if self.is_over else held[skipped:]
        return held[skipped:] if self.is_over else b""


class _Part:
    """File name and content type from the headers of a part."""

    def __init__(self) -> None:
        self.file_name: str | None = None
        """None or empty (browsers send this for a field without a chosen file): the part is no file."""
        self.content_type = ""

    def add(self, name: bytes, value: bytes) -> None:
        """Take a header of the part. name: in lower case."""
        if name == b"content-type":
            self.content_type = _text(value.strip())
        elif name == b"content-disposition":
            kind, options = parse_options_header(value.decode("latin-1"))
            if kind == b"form-data":
                self.file_name = _file_name(value, options)


def _file_name(header: bytes, options: dict[bytes, bytes]) -> str | None:
    """Return the file name without NUL characters; None: there is none. RFC 7578 4.2 forbids `filename*`, but clients
    send it; the plain one takes precedence. header: value of `Content-Disposition`. options: its parameters, as the
    library reads them.
    """
    plain = options.get(b"filename")
    if plain is not None:
        return _text(plain)
    extended = _EXTENDED_NAME.search(header)
    if extended is None:
        return None
    charset = "latin-1" if extended[1].lower() == b"iso-8859-1" else "utf-8"
    return _text(unquote_to_bytes(extended[2]), charset)


def _text(data: bytes, charset: str = "utf-8") -> str:
    """Return the text of bytes in a character set. Invalid bytes become U+FFFD; NUL characters are left out."""
    return data.decode(charset, errors="replace").replace("\0", "")


def form_problem(why: str) -> Problem:
    """Return the problem of an invalid form (400), behind which the connection is closed."""
    return Problem(400, f"the form is broken: {why}", headers=(("connection", "close"),))
