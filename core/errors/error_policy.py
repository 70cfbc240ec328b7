"""Errors of the database → HTTP: what a SQLSTATE becomes, and how much of the error the client is told.

What a routine RAISEs is meant for its caller. What PostgreSQL says by itself is meant for whoever wrote the SQL: the
names of constraints, tables and columns in it leave only where the configuration says so. The exception is the column
of a not-null violation, without which a caller cannot correct the request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rowcall.core.errors.problems import Problem

QUERY_CANCELED = "57014"

_STATUS_IN_CODE = re.compile(r"PT([45]\d\d)")
_INTEGRITY = ("23", "44")
"""Broken constraints, and what the check option of a view does not let through."""

_INTEGRITY_TITLES: Mapping[str, str] = {
    "23502": "A value is missing",
    "23503": "Another record is missing, or still refers to this one",
    "23505": "There is such a record already",
    "23514": "A value is not allowed",
    "23P01": "In conflict with another record",
    "44000": "A value is not allowed",
}
_NOT_NULL = "23502"
_OTHER_INTEGRITY_TITLE = "The change would break a rule of the data"


@dataclass(frozen=True, slots=True)
class DatabaseError:
    """What PostgreSQL reported."""

    sqlstate: str
    message: str
    raised: bool = False
    """By a RAISE of the routine."""
    detail: str | None = None
    hint: str | None = None
    names: tuple[tuple[str, str], ...] = ()
    """`constraint`, `table`, `column`, as far as the error is about them."""
    column: str | None = None
    """Name of the column for callers: that of a request parameter, or else the one in the database."""


@dataclass(frozen=True, slots=True)
class Disclosure:
    """How much of an error the client is told."""

    raised_details: bool = True
    """DETAIL and HINT of a RAISE."""
    names: bool = False
    """Of constraints, tables and columns."""

    def title(self, error: DatabaseError) -> str:
        if error.raised or self.names or not error.sqlstate.startswith(_INTEGRITY):
            return error.message
        if error.sqlstate == _NOT_NULL and error.column:
            return f"A value is missing in column '{error.column}'"
        return _INTEGRITY_TITLES.get(error.sqlstate, _OTHER_INTEGRITY_TITLE)

    def detail(self, error: DatabaseError) -> str:
        return error.detail if error.detail and error.raised and self.raised_details else error.sqlstate

    def others(self, error: DatabaseError) -> dict[str, object]:
        members: dict[str, object] = {}
        if error.raised and self.raised_details:
            members |= {"hint": error.hint} if error.hint else {}
            members |= {"sqlstate": error.sqlstate} if error.detail else {}
        return members | (dict(error.names) if self.names else {})


@dataclass(frozen=True, slots=True)
class ErrorMapping:
    """What one SQLSTATE becomes. None: the message of the server, its SQLSTATE, the default type of the status."""

    status: int
    title: str | None = None
    detail: str | None = None
    type_url: str | None = None

    def problem(self, error: DatabaseError, disclosure: Disclosure) -> Problem:
        return Problem(
            self.status,
            self.detail or disclosure.detail(error),
            title=self.title or disclosure.title(error),
            type_url=self.type_url,
            others=disclosure.others(error),
        )

    def out_of_time(self) -> Problem:
        """Without a detail, where the configuration gives none (errors-11)."""
        return Problem(self.status, self.detail, title=self.title, type_url=self.type_url)


TIMED_OUT = ErrorMapping(504, "Command execution timed out")

_CONFLICTS = ("23505", "23P01", "23503")
_UNREADABLE = (
    *("22P02", "22P05", "22001", "22003", "22007", "22008", "22009", "22015", "22021", "22026"),
    *("2200M", "2200N"),  # xml
)
"""A text that cannot be read as its type, or not kept in it."""
_BAD_PAGE = ("2201W", "2201X")
"""A LIMIT or an OFFSET below zero."""
_BAD_PATTERN = ("2201B", "22019", "22025")
"""A regular expression, or a pattern for LIKE, that is none."""
_UNUSABLE = (*_UNREADABLE, *_BAD_PAGE, *_BAD_PATTERN)
_UNFIT = ("23502", "23514", "44000", *_UNUSABLE)

BUILT_IN_CODES: Mapping[str, ErrorMapping] = {
    "42501": ErrorMapping(403, "Insufficient Privilege"),
    # A cancelled command is no success, and a status without a body would tell nobody what happened.
    QUERY_CANCELED: ErrorMapping(504, "Cancelled"),
    "P0001": ErrorMapping(400),
    "P0004": ErrorMapping(400),
    **{code: ErrorMapping(409) for code in _CONFLICTS},
    **{code: ErrorMapping(400) for code in _UNFIT},
}


FAULTS_OF_VALUES: Mapping[str, ErrorMapping] = {code: BUILT_IN_CODES[code] for code in (*_CONFLICTS, *_UNFIT)}
"""Where no policy is asked, a value that cannot be what is made of it, or that a rule of the data does not allow, is
still no fault of the service: never 500 (issue 14.11)."""


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """SQLSTATE → HTTP (errors-6 to errors-8).

    timeout: what becomes of a command that had no more time, whatever the policy says of 57014.
    """

    codes: Mapping[str, ErrorMapping] = field(default_factory=lambda: BUILT_IN_CODES)
    timeout: ErrorMapping = TIMED_OUT
    disclosure: Disclosure = Disclosure()

    def maps(self, sqlstate: str) -> bool:
        """Answered at once, and never by another attempt."""
        return sqlstate in self.codes or sqlstate == QUERY_CANCELED or _STATUS_IN_CODE.fullmatch(sqlstate) is not None

    def problem(self, error: DatabaseError) -> Problem:
        """The answer for an error of the database. Unmapped ones are 500 and name the SQLSTATE in their title."""
        mapping = self.codes.get(error.sqlstate)
        if mapping is not None:
            return mapping.problem(error, self.disclosure)
        if error.sqlstate == QUERY_CANCELED:
            return self.timeout.out_of_time()
        if chosen := _STATUS_IN_CODE.fullmatch(error.sqlstate):
            return ErrorMapping(int(chosen[1])).problem(error, self.disclosure)
        return self.unmapped(error)

    def unmapped(self, error: DatabaseError) -> Problem:
        """An error of the database that no policy knows."""
        title = f"{error.sqlstate}: {self.disclosure.title(error)}"
        return Problem(500, self.disclosure.detail(error), title=title, others=self.disclosure.others(error))


@dataclass(frozen=True, slots=True)
class ErrorPolicies:
    """Those of the configuration, by their names as written. A name that is none of them maps nothing: no policy
    inherits from another one."""

    named: Mapping[str, ErrorPolicy] = field(default_factory=lambda: {"Default": ErrorPolicy()})
    default: str = "Default"
    timeout: ErrorMapping = TIMED_OUT
    disclosure: Disclosure = Disclosure()

    def of(self, name: str | None) -> ErrorPolicy:
        return self.named.get(name or self.default) or ErrorPolicy({}, self.timeout, self.disclosure)
