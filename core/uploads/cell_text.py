"""Conversion of spreadsheet cells to texts (uploads-19)."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from decimal import Decimal

from rowcall.core.data.record import Record

_DAY_ZERO = datetime.date(1899, 12, 31)
_TOKEN = re.compile(
    r"'[^']*'|\"[^\"]*\"|\\.|y{1,5}|M{1,4}|d{1,4}|H{1,2}|h{1,2}|m{1,2}|s{1,2}|f{1,7}|F{1,7}|t{1,2}|.", re.S
)

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

Cell = str | int | float | bool | datetime.datetime | datetime.date | datetime.time | datetime.timedelta | None
"""Value of a cell as the reader of spreadsheets returns it."""


@dataclass(frozen=True, slots=True)
class MomentFormats(Record):
    """Formats of times, dates, and dates with times: custom format strings of .NET."""

    time: str = "HH:mm:ss"
    date: str = "yyyy-MM-dd"
    datetime: str = "yyyy-MM-dd HH:mm:ss"


def cell_text(value: Cell, formats: MomentFormats) -> str | None:
    """Return the text of a cell; None: the cell is empty. NUL is left out.

    A date with the time 00:00:00 has the format of dates. Booleans are `True` and `False`; numbers are as in
    `number_text`.
    """
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
    """Return the text of a duration: in the format of times if it is at least 0 and less than 24 hours, else
    `[-]hh:mm:ss`. In a sheet, a duration may have more than 24 hours (`[h]:mm`)."""
    if datetime.timedelta() <= value < datetime.timedelta(days=1):
        return format_moment(datetime.datetime.combine(_DAY_ZERO, datetime.time()) + value, formats.time)
    seconds = round(abs(value.total_seconds()))
    sign = "-" if value < datetime.timedelta() else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def format_moment(moment: datetime.datetime, pattern: str) -> str:
    """Return the text of a date and time by a custom format string of .NET, such as `yyyy-MM-dd HH:mm:ss`. Names of
    months and days are English; unknown characters stay."""
    return "".join(_part(token, moment) for token in _TOKEN.findall(pattern))


def _part(token: str, moment: datetime.datetime) -> str:
    kind, size = token[0], len(token)
    if kind in "'\"" and size > 1:
        return token[1:-1]
    if kind == "\\":
        return token[1:]
    if kind == "y":
        return str(moment.year % 100 if size <= 2 else moment.year).zfill(1 if size == 1 else size)
    if kind == "M" and size > 2:
        return _MONTHS[moment.month - 1][: 3 if size == 3 else None]
    if kind == "d" and size > 2:
        return _DAYS[moment.weekday()][: 3 if size == 3 else None]
    if kind in "fF":
        digits = f"{moment.microsecond:06d}0"[:size]
        return digits if kind == "f" else digits.rstrip("0")
    if kind == "t":
        return ("AM" if moment.hour < 12 else "PM")[:size]
    numbers = {
        "M": moment.month,
        "d": moment.day,
        "H": moment.hour,
        "h": (moment.hour - 1) % 12 + 1,
        "m": moment.minute,
        "s": moment.second,
    }
    return str(numbers[kind]).zfill(size) if kind in numbers else token


def number_text(value: int | float) -> str:
    """Return the shortest text of a number. If its absolute value is 1E+15 or above, or below 1E-04, it has an
    exponent: `1.5E-05`."""
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
    """Return the letters of a column of a spreadsheet: `A` for index 0, `AA` for 26."""
    name = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        name = chr(65 + rest) + name
    return name
