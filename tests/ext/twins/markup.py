"""Render a whole result as an HTML table, or as the rows of a worksheet (formats-1 to formats-9)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from math import isfinite

NUMBER, BOOLEAN, DATE, TEXT = "number", "boolean", "date", "text"
KINDS = {
    **dict.fromkeys((20, 21, 23, 700, 701, 790, 1700), NUMBER),
    16: BOOLEAN,
    **dict.fromkeys((1082, 1114, 1184), DATE),
}
CELL_UNITS = 32767
EXACT_DIGITS = 15

_ENTITIES = {b"&": b"&amp;", b"<": b"&lt;", b">": b"&gt;", b'"': b"&quot;"}
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_SPECIAL = re.compile(rb'[&<>"]|[\x00-\x08\x0b-\x1f]|_(?=x[0-9A-Fa-f]{4}_)|\xef\xbf[\xbe\xbf]')
_DAY = rb"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
_TIME = rb"(?: (?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.(?P<part>[0-9]*))?)?"
_MOMENT = re.compile(_DAY + _TIME + rb"(?P<rest>[^ ]*)", re.DOTALL)
_EPOCH = datetime(1899, 12, 30)
_END = 2_958_466.0
"""The year after 9999."""

Rows = Sequence[Sequence[bytes | None]]


def html_table(titles: Sequence[bytes], oids: Sequence[int], rows: Rows, header: bytes, footer: bytes) -> bytes:
    head = b"".join(b"<th>" + html_escape(title) + b"</th>" for title in titles)
    body = b"".join(
        b"<tr>"
        + b"".join(b"<td>" + _html_cell(oid, value) + b"</td>" for oid, value in zip(oids, row, strict=True))
        + b"</tr>"
        for row in rows
    )
    return header + b"<table><tr>" + head + b"</tr>" + body + b"</table>" + footer


def html_escape(text: bytes) -> bytes:
    return re.sub(rb'[&<>"]', lambda match: _ENTITIES[match[0]], text)


def _html_cell(oid: int, value: bytes | None) -> bytes:
    if value is None:
        return b""
    if KINDS.get(oid) == BOOLEAN:
        return b"TRUE" if value.startswith(b"t") else b"FALSE"
    return html_escape(value)


def sheet_rows(titles: Sequence[bytes], oids: Sequence[int], rows: Rows, styles: tuple[int, int, int]) -> bytes:
    """styles: of titles, dates and numbers; 0 for none."""
    title_style, date_style, number_style = styles
    head = b"".join(
        _text_cell(_letters(index) + b"1", title, _style(title_style)) for index, title in enumerate(titles)
    )
    lines = [b'<row r="1">' + head + b"</row>"]
    for number, row in enumerate(rows, 2):
        cells = b"".join(
            _cell(_letters(index) + b"%d" % number, KINDS.get(oid, TEXT), value, date_style, number_style)
            for index, (oid, value) in enumerate(zip(oids, row, strict=True))
            if value is not None
        )
        lines.append(b'<row r="%d">' % number + cells + b"</row>")
    return b"".join(lines)


def cell_escape(text: bytes) -> bytes:
    return _SPECIAL.sub(_escaped, text)


def _escaped(match: re.Match[bytes]) -> bytes:
    result = match[0]
    if result in _ENTITIES:
        return _ENTITIES[result]
    if result == b"_":
        return b"_x005F_"
    return b"_xFFF%b_" % (b"E" if result[2] == 0xBE else b"F") if len(result) == 3 else b"_x%04X_" % result[0]


def _cell(place: bytes, kind: str, value: bytes, date_style: int, number_style: int) -> bytes:
    if kind == NUMBER and (number := _number(value)) is not None:
        return b'<c r="%b"%b><v>%b</v></c>' % (place, _style(number_style), number)
    if kind == BOOLEAN:
        return b'<c r="%b" t="b"><v>%b</v></c>' % (place, b"1" if value.startswith(b"t") else b"0")
    if kind == DATE and (serial := date_serial(value)) is not None:
        return b'<c r="%b"%b><v>%b</v></c>' % (place, _style(date_style), serial)
    return _text_cell(place, utf16_cut(value))


def _text_cell(place: bytes, text: bytes, style: bytes = b"") -> bytes:
    cell = b'<c r="%b"%b t="inlineStr"><is><t xml:space="preserve">' % (place, style)
    return cell + cell_escape(text) + b"</t></is></c>"


def _number(text: bytes) -> bytes | None:
    if not _NUMBER.fullmatch(text):
        return None
    if len(text) <= EXACT_DIGITS:
        return text
    value = float(text)
    return repr(value).removesuffix(".0").encode() if isfinite(value) else None


def date_serial(text: bytes) -> bytes | None:
    """Return the serial number, or None for a day that spreadsheets do not support. Raises ValueError for days and
    times that do not exist."""
    match = _MOMENT.fullmatch(text)
    if match is None or text[:4] < b"1900" or (match["time"] is None and match["rest"]):
        return None
    if match["day"][5:7] == b"00" or match["day"][8:] == b"00":
        return None
    moment = datetime.fromisoformat(f"{match['day'].decode()} {(match['time'] or b'00:00:00').decode()}")
    days = (moment - _EPOCH).days
    seconds = (moment - _EPOCH).seconds
    micros = seconds * 1_000_000 + int((match["part"] or b"")[:6].ljust(6, b"0"))
    days -= days < 61
    if days + micros / 86_400e6 >= _END:
        return None
    return b"%d" % days if micros == 0 else b"%d.%012d" % (days, micros * 10_000 // 864)


def utf16_cut(text: bytes) -> bytes:
    """Return the start of a text that fits a cell, counted in UTF-16 units."""
    if len(text) <= CELL_UNITS:
        return text
    units = CELL_UNITS
    for position, byte in enumerate(text):
        if byte & 0xC0 != 0x80:
            units -= 2 if byte >= 0xF0 else 1
            if units < 0:
                return text[:position]
    return text


def _style(index: int) -> bytes:
    return b' s="%d"' % index if index else b""


def _letters(index: int) -> bytes:
    letters = ""
    number = index + 1
    while number:
        number, letter = divmod(number - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters.encode()
