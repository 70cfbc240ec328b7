"""Deadlines of clients: the time for which a client waits, read from a header of its request.

`Request-Timeout: 2` is in seconds (draft-thomson-hybi-http-timeout), or an interval such as `500ms`.

`grpc-timeout: 500m` is a number of at most eight digits and one of the units H, M, S, m, u and n (gRPC over HTTP/2).

`X-Envoy-Expected-Rq-Timeout-Ms: 500` is in milliseconds.

`Deadline: 2026-11-22T12:00:00Z` is a moment: RFC 3339, IMF-fixdate (RFC 9110, 5.6.7), or seconds since 1970.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from rowcall.core.data.record import Record
from rowcall.core.sections.declaration import interval, section, texts
from rowcall.core.text.interval import parse_interval

_GRPC = re.compile(r"(\d{1,8})([HMSmun])", re.ASCII)
_GRPC_SECONDS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,9})?", re.ASCII)


def _valid_header(text: str) -> str:
    name = text.lower()
    if name not in FORMS:
        raise ValueError(f"'{name}' is none of {', '.join(FORMS)}")
    return name


@section(
    "Service:Deadlines",
    "Time limit of requests, including waiting and outgoing requests. After it the request gets 504, and its "
    "running work is cancelled.",
)
class DeadlineOptions(Record):
    """Options of client deadlines. Times are in seconds. otherwise: deadline of endpoints without their own; None:
    none. headers: names in lower case, keys of `FORMS`. shortest: shorter deadlines of clients are raised to it."""

    otherwise: float | None = interval(
        "Default", None, "Deadline of endpoints without the annotation `deadline`. null: none."
    )
    headers: tuple[str, ...] = texts(
        "RequestHeaders",
        (),
        "Headers with which clients may shorten the deadline: `Request-Timeout`, `Deadline`, `grpc-timeout`, "
        "`X-Envoy-Expected-Rq-Timeout-Ms`. The first of them in a request applies. None of them extends a "
        "deadline.",
        each=_valid_header,
    )
    shortest: float = interval(
        "Shortest", "10 milliseconds", "Minimum deadline of a client; shorter ones are raised to it."
    )


def seconds_left(name: str, value: str, now: float) -> float | None:
    """Return the seconds until the deadline in the header, negative if it has passed; None: it is malformed.

    name: of the header, a key of `FORMS`. value: as sent. now: seconds since 1970.
    """
    seconds = FORMS[name](value.strip(), now)
    return None if seconds is None or not math.isfinite(seconds) else seconds


def time_left(name: str, value: str, seconds: float) -> str:
    """Return the value of a header with a deadline for another service. name: of the header, a key of `FORMS`. value:
    as the client has sent it. seconds: time that is left.

    A whole number stays a whole number, as some services understand nothing else. A point in time is passed on
    unchanged.
    """
    whole = max(1, math.ceil(seconds * 1000))
    match name:
        case "request-timeout":
            return str(max(1, math.ceil(seconds))) if value.strip().isdecimal() else f"{whole}ms"
        case "grpc-timeout":
            return f"{whole}m" if whole < 10**8 else f"{math.ceil(seconds)}S"
        case "x-envoy-expected-rq-timeout-ms":
            return str(whole)
    return value


def _interval(value: str, _now: float) -> float | None:
    return parse_interval(value)


def _grpc(value: str, _now: float) -> float | None:
    match = _GRPC.fullmatch(value)
    return None if match is None else int(match[1]) * _GRPC_SECONDS[match[2]]


def _milliseconds(value: str, _now: float) -> float | None:
    return float(value) / 1000 if _NUMBER.fullmatch(value) else None


def _moment(value: str, now: float) -> float | None:
    """Return the seconds until a moment, negative if it has passed; None: the text is malformed, or a date without an
    offset.

    value: seconds since 1970, a date and time in ISO 8601 (RFC 3339), or an IMF-fixdate. now: seconds since 1970.
    """
    if _NUMBER.fullmatch(value):
        return float(value) - now
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(value)
            if moment.tzinfo is not None:
                return (moment.astimezone(UTC) - datetime.fromtimestamp(now, UTC)).total_seconds()
        except (ValueError, OverflowError):
            continue
    return None


FORMS: Mapping[str, Callable[[str, float], float | None]] = {
    "request-timeout": _interval,
    "grpc-timeout": _grpc,
    "x-envoy-expected-rq-timeout-ms": _milliseconds,
    "deadline": _moment,
}
"""Header in lower case → function that returns the seconds left, from the value and the time; None: malformed."""
