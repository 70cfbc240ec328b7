"""Classes of differences between the two engines. `docs/internals/http-engine.md` explains each class.

Two outcomes differ where the first of their responses differ in status, framing, body of a success, or in whether the
connection goes on. What follows then differs as well, and is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.engines.outcomes import Outcome, Response


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference. auto, granian: the response of each engine, None if there is none there."""

    data: bytes
    auto: Response | None
    granian: Response | None
    places: tuple[str, str]
    """What each engine has in this place, as text."""
    ends_granian: bool = False
    """granian has closed the connection, without a response behind this one."""

    @property
    def detail(self) -> str:
        """Why the event loop's server refuses the request."""
        return self.auto.detail if self.auto is not None else ""

    @property
    def statuses(self) -> tuple[int, int]:
        """Of both responses, 0 where there is none."""
        return (0 if self.auto is None else self.auto.status, 0 if self.granian is None else self.granian.status)


def difference(data: bytes, auto: Outcome, granian: Outcome) -> Difference | None:
    if auto == granian:
        return None
    mine, other = (
        [response for response in outcome.responses if response.status >= 200] for outcome in (auto, granian)
    )
    for index in range(max(len(mine), len(other))):
        first = mine[index] if index < len(mine) else None
        second = other[index] if index < len(other) else None
        if first is None or second is None or _is_other(first, second):
            places = tuple(
                outcome.missing() if response is None else str(response)
                for outcome, response in ((auto, first), (granian, second))
            )
            ends_granian = granian.ended and index + 1 >= len(other)
            return Difference(data, first, second, (places[0], places[1]), ends_granian)
    if (auto.ended, auto.rest) != (granian.ended, granian.rest):
        return Difference(data, None, None, (auto.missing(), granian.missing()))
    if len(auto.responses) != len(granian.responses):
        return Difference(data, None, None, ("interim", "interim"))
    return None


def _is_other(first: Response, second: Response) -> bool:
    return (first.status, first.framing, first.stays, first.body) != (
        second.status,
        second.framing,
        second.stays,
        second.body,
    )


def _refuses(*details: str) -> Callable[[Difference], bool]:
    """The event loop's server refuses with a text that begins with one of these."""
    return lambda difference: difference.detail.startswith(details)


_HAS_BODY = re.compile(rb"content-length:|transfer-encoding:", re.IGNORECASE)
_LATER_VERSION = re.compile(rb" HTTP/1\.[2-9]\r?\n")
_UNSAFE_TARGET = re.compile(rb"^[^ \r\n]+ [^ \r\n]*[\"<>`][^ \r\n]* HTTP/1\.", re.MULTILINE)
_UNFINISHED_TARGET = re.compile(rb"[\x80-\xff][^\r\n]*( HTTP/1\.[01])?\r?\Z")
_TOLERATED_CHUNKS = re.compile(
    rb"\r\n[0-9a-f]+([ \t]|;[^\r\n]*[\0-\x08\x0b\x0c\x0e-\x1f\x7f])|\r\n0[^\r\n]*\r\n[^:\r\n]+\r\n", re.IGNORECASE
)
_BROKEN_BODY = "the body is cut off or its chunks are broken"
_REQUEST_LINE = "the request line is invalid"
_LINE_ERRORS = ("a header line is invalid", _REQUEST_LINE, "the protocol version is invalid")
_LENGTH_ERROR = "the header Content-Length is not a single number"
_TWO_FRAMINGS = "the headers Content-Length and Transfer-Encoding"
_CODING = re.compile(rb"^transfer-encoding:", re.IGNORECASE | re.MULTILINE)
_LINE_FEED = re.compile(rb"(?<!\r)\n")
_LENGTH = re.compile(rb"^content-length:", re.IGNORECASE | re.MULTILINE)
_LARGE_LENGTH = re.compile(rb"^content-length:[ \t]*\d{19}", re.IGNORECASE | re.MULTILINE)
_UNREADABLE_CONNECTION = re.compile(rb"^connection:[^\r\n]*[\x7f-\xff]", re.IGNORECASE | re.MULTILINE)


def _is_line_feed(difference: Difference) -> bool:
    if not difference.detail.startswith(_LINE_ERRORS):
        return False
    # Behind a body that is a byte longer than announced, the end of a line is a line feed alone as well.
    is_behind_body = difference.detail == _REQUEST_LINE and difference.statuses[1] not in (0, 400)
    return is_behind_body or _LINE_FEED.search(difference.data) is not None


def _is_chunks(difference: Difference) -> bool:
    auto, granian = difference.auto, difference.granian
    if auto is None or granian is None:
        return False
    if auto.status == granian.status and (auto.stays, granian.stays) == (False, True):
        # The response does not depend on the body; whether the connection goes on does.
        return _TOLERATED_CHUNKS.search(difference.data) is not None
    return auto.detail.startswith(_BROKEN_BODY) and not granian.detail.startswith(_BROKEN_BODY)


def _is_unread_body(difference: Difference) -> bool:
    auto, granian = difference.auto, difference.granian
    if not _HAS_BODY.search(difference.data):
        return False
    if granian is None:
        # granian closes the connection without having announced it.
        return difference.places[1] == "closed" and difference.places[0] != "rest"
    if auto is None:
        return False
    if (auto.status, auto.framing, auto.body) != (granian.status, granian.framing, granian.body):
        return False
    # Where the body is broken, the event loop announces that it closes the connection, and granian may just close it.
    return granian.stays != auto.stays and (auto.stays or difference.ends_granian)


CLASSES: dict[str, Callable[[Difference], bool]] = {
    "early refusal": lambda difference: difference.statuses[0] >= 400 and difference.places[1] == "open",
    "late refusal": lambda difference: (
        difference.places == ("open", "400 length close") and _UNFINISHED_TARGET.search(difference.data) is not None
    ),
    "host": _refuses("the header Host is not"),
    "expectation": _refuses("no other expectation"),
    "major version": _refuses("the protocol version is not supported"),
    "form of the target": _refuses("the request target is invalid"),
    "transfer coding": _refuses("the header Transfer-Encoding does not", "no other transfer coding"),
    "two framings": lambda difference: (
        difference.detail.startswith(_TWO_FRAMINGS)
        or (difference.detail == _LENGTH_ERROR and _CODING.search(difference.data) is not None)
    ),
    "repeated length": lambda difference: (
        difference.detail == _LENGTH_ERROR and len(_LENGTH.findall(difference.data)) > 1
    ),
    "large length": lambda difference: (
        difference.detail == _LENGTH_ERROR and _LARGE_LENGTH.search(difference.data) is not None
    ),
    "CONNECT": _refuses("the method CONNECT"),
    "line feed alone": _is_line_feed,
    "chunks": _is_chunks,
    "trailers": lambda difference: (
        difference.granian is not None
        and difference.granian.detail.startswith(_BROKEN_BODY)
        and not difference.detail.startswith(_BROKEN_BODY)
    ),
    "unread body": _is_unread_body,
    "minor version": lambda difference: (
        difference.statuses[1] == 400 and _LATER_VERSION.search(difference.data) is not None
    ),
    "characters of the target": lambda difference: (
        difference.statuses[1] == 400
        and difference.granian is not None
        and not difference.granian.detail
        and _UNSAFE_TARGET.search(difference.data) is not None
    ),
    "unreadable Connection": lambda difference: (
        difference.auto is not None
        and difference.granian is not None
        and difference.auto.stays != difference.granian.stays
        and _UNREADABLE_CONNECTION.search(difference.data) is not None
    ),
    "interim response": lambda difference: difference.places == ("interim", "interim"),
}
"""By name, in the order in which they are tried."""


def class_of(found: Difference) -> str | None:
    """Return the name of the class; None: no class explains it."""
    return next((name for name, applies in CLASSES.items() if applies(found)), None)
