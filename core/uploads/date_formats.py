"""Formatting of dates and times by .NET format strings (`yyyy-MM-dd HH:mm:ss`)."""

from __future__ import annotations

import datetime
import re

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


def format_moment(moment: datetime.datetime, pattern: str) -> str:
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
