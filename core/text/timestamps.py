"""Convert dates and times of requests into texts with the same meaning in every PostgreSQL session (binding-8).

A text without offset is in UTC. A type without zone (`timestamp`, `date`, `time`) gets the UTC clock of a text with
offset. The result is always ISO, so that DateStyle and TimeZone of the session cannot change its meaning; digits of
fractions are unchanged. Words such as `infinity`, and years for which Python has no date, are accepted.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?,?[ ]+)?"


@functools.cache
def _dates() -> tuple[re.Pattern[str], ...]:
    """Return the patterns of dates. They are compiled at first use, because every process imports this module."""
    patterns = (
        r"(?P<y>\d{4,7})-(?P<m>\d{1,2})-(?P<d>\d{1,2})",
        r"(?P<y>\d{4})/(?P<m>\d{1,2})/(?P<d>\d{1,2})",
        r"(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4})",
        r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})(?!\d)",
        rf"{_WEEKDAY}(?P<d>\d{{1,2}})[ -](?P<m>{_MONTH})[ -](?P<y>\d{{4}})",
        rf"{_WEEKDAY}(?P<m>{_MONTH})[ ](?P<d>\d{{1,2}}),?[ ](?P<y>\d{{4}})",
    )
    return tuple(re.compile(pattern, re.ASCII | re.IGNORECASE) for pattern in patterns)


_CLOCK = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?P<fraction>\.\d*)?)?(?:[ ]?(?P<half>[ap]m)\b)?"
    r"|(?<=t)(?P<hour2>\d{2})(?P<minute2>\d{2})(?P<second2>\d{2})(?P<fraction2>\.\d*)?",
    re.ASCII | re.IGNORECASE,
)
_OFFSET = re.compile(
    r"[ ]?(?:(?P<utc>z|utc|gmt)\b|(?P<sign>[+-])(?P<h>\d{1,2})(?::?(?P<m>\d{2})(?::(?P<s>\d{2}))?)?(?!\d))"
    r"|[ ](?P<zone>[a-z]+(?:/[a-z0-9_+-]+)+)",
    re.ASCII | re.IGNORECASE,
)
_ERA = re.compile(r"[ ](?P<era>bc|ad)\b", re.IGNORECASE)
_WORDS = frozenset({"infinity", "-infinity", "epoch", "now", "today", "tomorrow", "yesterday"})

_MAX_LENGTH = 128
"""`MAXDATELEN` of PostgreSQL."""
_MAX_OFFSET = 16 * 3600
_MAX_TIMESTAMP_YEAR = 294276
_MAX_DATE_YEAR = 5874897
_MIN_YEAR = -4713
_DAY = 86400


class BadTimestampError(ValueError):
    """The text is not a date or time of the type."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a text; a part that the text does not contain is None or empty."""

    day: tuple[int, int, int] | None = None
    """Year (1 BC is 0), month, day."""
    clock: int | None = None
    """Seconds since midnight, up to and including 24:00:00."""
    fraction: str = ""
    """`.123`, as written."""
    offset: int | None = None
    """Seconds east of UTC."""
    zone: str | None = None
    """`Europe/Rome`: only PostgreSQL can resolve its offset."""


@dataclass(frozen=True, slots=True)
class TimestampReader:
    """Converters for `date`, `time`, `timetz`, `timestamp` and `timestamptz`, for one setting of
    `JsonTimestampsAreUtc`.

    Each method takes the text of a request, and returns the text for PostgreSQL. It raises `BadTimestampError` if the
    text is not a value of the type.
    """

    utc: bool = True
    """False: a text without offset, and a type without zone, are in the time zone of this host."""

    def timestamptz(self, text: str) -> str:
        if text.lower() in _WORDS:
            return text.lower()
        moment = _with_day(_parse(text), _MAX_TIMESTAMP_YEAR)
        if moment.zone is not None:
            return f"{_stamp(moment)} {moment.zone}{_era(moment)}"
        offset = self._default_offset(moment) if moment.offset is None else moment.offset
        return f"{_stamp(moment)}{_offset_text(offset)}{_era(moment)}"

    def timestamp(self, text: str) -> str:
        if text.lower() in _WORDS:
            return text.lower()
        moment = self._in_default_zone(_with_day(_parse(text), _MAX_TIMESTAMP_YEAR))
        return f"{_stamp(moment)}{_era(moment)}"

    def date(self, text: str) -> str:
        if text.lower() in _WORDS:
            return text.lower()
        moment = self._in_default_zone(_with_day(_parse(text), _MAX_DATE_YEAR))
        return f"{_day_text(moment)}{_era(moment)}"

    def time(self, text: str) -> str:
        moment = self._in_default_zone(_with_clock(_parse(text)))
        return _clock_text(moment)

    def timetz(self, text: str) -> str:
        moment = self._in_default_zone(_with_clock(_parse(text)))
        return f"{_clock_text(moment)}{_offset_text(self._default_offset(moment))}"

    def _in_default_zone(self, moment: _Parts) -> _Parts:
        """Return the same instant in UTC, or in the time zone of this host if `utc` is False, without an offset. A time
        without offset is returned unchanged. Raises `BadTimestampError` if the time names a zone, because its offset is
        unknown here."""
        if moment.zone is not None:
            raise BadTimestampError
        if moment.offset is None:
            return moment
        at_utc = _shift(moment, -moment.offset)
        return at_utc if self.utc else _shift(at_utc, _host_offset_at_utc(at_utc))

    def _default_offset(self, moment: _Parts) -> int:
        """Return the offset at this time in seconds east of UTC: 0, or that of this host's time zone if `utc` is
        False."""
        return 0 if self.utc else _host_offset(moment)


def _parse(text: str) -> _Parts:
    if len(text) > _MAX_LENGTH:
        raise BadTimestampError
    moment, position = _read_day(text)
    if moment.day is not None and text[position : position + 1] in {"T", "t", " "}:
        position += 1
    clock = _CLOCK.match(text, position)
    if clock:
        moment = _read_clock(moment, clock)
        position = clock.end()
    elif position and text[position - 1] in "Tt ":
        position -= 1
    offset = _OFFSET.match(text, position)
    if offset:
        moment = _read_offset(moment, offset)
        position = offset.end()
    era = _ERA.match(text, position)
    if era and moment.day is not None:
        moment = _read_era(moment, era["era"])
        position = era.end()
    if position != len(text):
        raise BadTimestampError
    return moment


def _read_day(text: str) -> tuple[_Parts, int]:
    for pattern in _dates():
        match = pattern.match(text)
        if match:
            month = match["m"]
            number = int(month) if month.isdigit() else _MONTHS.index(month[:3].lower()) + 1
            year = int(match["y"])
            if year == 0:
                raise BadTimestampError
            return _Parts(day=(year, number, int(match["d"]))), match.end()
    return _Parts(), 0


def _read_clock(moment: _Parts, match: re.Match[str]) -> _Parts:
    hour = int(match["hour"] or match["hour2"])
    minute = int(match["minute"] or match["minute2"])
    second = int(match["second"] or match["second2"] or 0)
    fraction = match["fraction"] or match["fraction2"] or ""
    if match["half"]:
        if not 1 <= hour <= 12:
            raise BadTimestampError
        hour = hour % 12 + (12 if match["half"].lower() == "pm" else 0)
    clock = hour * 3600 + minute * 60 + second
    # PostgreSQL accepts 24:00:00 and a leap second.
    if minute > 59 or second > 60 or clock > _DAY or (clock == _DAY and fraction.strip(".0")):
        raise BadTimestampError
    return replace(moment, clock=clock, fraction=fraction if len(fraction) > 1 else "")


def _read_offset(moment: _Parts, match: re.Match[str]) -> _Parts:
    if match["zone"]:
        return replace(moment, zone=match["zone"])
    if match["utc"]:
        return replace(moment, offset=0)
    minute, second = int(match["m"] or 0), int(match["s"] or 0)
    offset = int(match["h"]) * 3600 + minute * 60 + second
    if minute > 59 or second > 59 or offset >= _MAX_OFFSET:
        raise BadTimestampError
    return replace(moment, offset=-offset if match["sign"] == "-" else offset)


def _read_era(moment: _Parts, era: str) -> _Parts:
    year, month, day = moment.day or (1, 1, 1)
    return replace(moment, day=(1 - year, month, day)) if era.lower() == "bc" else moment


def _with_day(moment: _Parts, max_year: int) -> _Parts:
    """Return `moment`, at midnight if it contains no time. Raises `BadTimestampError` if it has no day, or the day
    does not exist or is in a year that PostgreSQL does not support. max_year: the last year of the type."""
    if moment.day is None:
        raise BadTimestampError
    year, month, day = moment.day
    if not _MIN_YEAR <= year <= max_year:
        raise BadTimestampError
    try:
        _in_cycle(year, month, day)
    except ValueError:
        raise BadTimestampError from None
    return moment if moment.clock is not None else replace(moment, clock=0)


def _with_clock(moment: _Parts) -> _Parts:
    if moment.clock is None:
        raise BadTimestampError
    return moment if moment.day is None else _with_day(moment, _MAX_TIMESTAMP_YEAR)


def _in_cycle(year: int, month: int, day: int) -> datetime:
    """Return the same day in one of the years 2000 to 2399, which Python supports: the calendar repeats every 400
    years. Raises ValueError if the day does not exist."""
    return datetime(2000 + year % 400, month, day)


def _shift(moment: _Parts, seconds: int) -> _Parts:
    clock = (moment.clock or 0) + seconds
    if moment.day is None:
        return replace(moment, clock=clock % _DAY, offset=None)
    year = moment.day[0]
    moved = _in_cycle(*moment.day) + timedelta(seconds=clock)
    day = (moved.year - 2000 + year // 400 * 400, moved.month, moved.day)
    return replace(moment, day=day, clock=moved.hour * 3600 + moved.minute * 60 + moved.second, offset=None)


def _host_offset(moment: _Parts) -> int:
    local = _naive(moment).astimezone()
    return int((local.utcoffset() or timedelta()).total_seconds())


def _host_offset_at_utc(moment: _Parts) -> int:
    naive = _naive(moment)
    instant = datetime.fromisoformat(f"{naive.isoformat()}+00:00")
    return int((instant.astimezone().utcoffset() or timedelta()).total_seconds())


def _naive(moment: _Parts) -> datetime:
    """Return day and clock as a datetime without zone. Without a day, it is today. A year that Python does not support
    is replaced by the equivalent one of 2000 to 2399."""
    today = date.today()
    year, month, day = moment.day or (today.year, today.month, today.day)
    start = datetime(year, month, day) if 1 < year < 9999 else _in_cycle(year, month, day)
    return start + timedelta(seconds=moment.clock or 0)


def _stamp(moment: _Parts) -> str:
    return f"{_day_text(moment)} {_clock_text(moment)}"


def _day_text(moment: _Parts) -> str:
    year, month, day = moment.day or (0, 0, 0)
    return f"{year if year > 0 else 1 - year:04d}-{month:02d}-{day:02d}"


def _clock_text(moment: _Parts) -> str:
    minutes, second = divmod(moment.clock or 0, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02d}:{minute:02d}:{second:02d}{moment.fraction}"


def _era(moment: _Parts) -> str:
    return " BC" if moment.day is not None and moment.day[0] <= 0 else ""


def _offset_text(offset: int) -> str:
    sign = "-" if offset < 0 else "+"
    minutes, second = divmod(abs(offset), 60)
    hour, minute = divmod(minutes, 60)
    if second:
        return f"{sign}{hour:02d}:{minute:02d}:{second:02d}"
    return f"{sign}{hour:02d}:{minute:02d}" if minute else f"{sign}{hour:02d}"
