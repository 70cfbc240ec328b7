"""Conversion of spreadsheet cells to texts (uploads-19)."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal

from rowcall.core.data.record import Record
from rowcall.core.uploads.date_formats import format_moment

_DAY_ZERO = datetime.date(1899, 12, 31)

Cell = str | int | float | bool | datetime.datetime | datetime.date | datetime.time | datetime.timedelta | None


@dataclass(frozen=True, slots=True)
class MomentFormats(Record):
    time: str = "HH:mm:ss"
    date: str = "yyyy-MM-dd"
    datetime: str = "yyyy-MM-dd HH:mm:ss"


def cell_text(value: Cell, formats: MomentFormats) -> str | None:
    """Return the text of a cell, None if it is empty. A day at midnight is a date; a time without a day is a time."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, int | float):
        return number_text(value)
    if isinstance(value, datetime.timedelta):
        return _duration(value, formats)
    if isinstance(value, datetime.time):
        return format_moment(datetime.datetime.combine(_DAY_ZERO, value), formats.time)
    if not isinstance(value, datetime.datetime):
        return format_moment(datetime.datetime.combine(value, datetime.time()), formats.date)
    return format_moment(value, formats.date if value.time() == datetime.time() else formats.datetime)


def _duration(value: datetime.timedelta, formats: MomentFormats) -> str:
    """Return the text of a duration. It may have more hours than a day: `[h]:mm` in the sheet."""
    if datetime.timedelta() <= value < datetime.timedelta(days=1):
        return format_moment(datetime.datetime.combine(_DAY_ZERO, datetime.time()) + value, formats.time)
    seconds = round(abs(value.total_seconds()))
    sign = "-" if value < datetime.timedelta() else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def number_text(value: int | float) -> str:
    """Return the shortest text of the same number, with an exponent from 1E+15 up and from 1E-05 down."""
    if isinstance(value, int) and abs(value) < 10**15:
        return str(value)
    number = float(value)
    if number != number or number in (float("inf"), float("-inf")):
        return repr(number)
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)  # noqa: S101 (finite)
    place = exponent + len(digits) - 1
    if -5 < place < 15:
        return format(Decimal(repr(number)).normalize(), "f")
    text = "".join(map(str, digits))
    mantissa = text if len(text) == 1 else f"{text[0]}.{text[1:]}"
    return f"{'-' if sign else ''}{mantissa}E{'+' if place >= 0 else '-'}{abs(place):02d}"


def column_name(index: int) -> str:
    """Return the letters of a column: `A` for 0, `AA` for 26."""
    name = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        name = chr(65 + rest) + name
    return name
