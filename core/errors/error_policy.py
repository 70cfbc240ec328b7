"""Map database errors to HTTP: the status of each SQLSTATE, and the parts of an error that the client receives.

A message that a routine RAISEs is for the caller. A message of PostgreSQL itself is for the author of the SQL: its
names of constraints, tables and columns are sent only if the configuration permits it. The exception is the column of a
not-null violation, without which a caller cannot correct the request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rowcall.core.errors.problems import Problem

QUERY_CANCELED = "57014"

_STATUS_IN_CODE = re.compile(r"PT([45]\d\d)")
_INTEGRITY = ("23", "44")
"""Classes of violated constraints, and of rows that the check option of a view refuses."""

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
    """An error that PostgreSQL reported."""

    sqlstate: str
    message: str
    raised: bool = False
    """Whether a RAISE of the routine is the source."""
    detail: str | None = None
    hint: str | None = None
    names: tuple[tuple[str, str], ...] = ()
    """Names of `constraint`, `table` and `column`, as far as the error contains them."""
    column: str | None = None
    """Name of the column for callers: that of the request parameter, else the name in the database."""


@dataclass(frozen=True, slots=True)
class Disclosure:
    """The parts of a database error that the client receives."""

    raised_details: bool = True
    """Include DETAIL and HINT of a RAISE."""
    names: bool = False
    """Include names of constraints, tables and columns."""

    def title(self, error: DatabaseError) -> str:
        """Return the title of the problem document: the message of the error. If a constraint was violated, the error
        was not raised by a routine and the client may not see names, it is a general text, in which only a not-null
        violation names the column."""
        if error.raised or self.names or not error.sqlstate.startswith(_INTEGRITY):
            return error.message
        if error.sqlstate == _NOT_NULL and error.column:
            return f"A value is missing in column '{error.column}'"
        return _INTEGRITY_TITLES.get(error.sqlstate, _OTHER_INTEGRITY_TITLE)

    def detail(self, error: DatabaseError) -> str:
        """Return the detail of the problem document: the DETAIL of a RAISE, if the client may see it, else the
        SQLSTATE."""
        return error.detail if error.detail and error.raised and self.raised_details else error.sqlstate

    def further_members(self, error: DatabaseError) -> dict[str, object]:
        """Return further members of the problem document, as far as the error has them and the client may see them:
        `hint`, `sqlstate` if `detail` is another text, and `constraint`, `table` and `column`."""
        members: dict[str, object] = {}
        if error.raised and self.raised_details:
            members |= {"hint": error.hint} if error.hint else {}
            members |= {"sqlstate": error.sqlstate} if error.detail else {}
        return members | (dict(error.names) if self.names else {})


@dataclass(frozen=True, slots=True)
class ErrorMapping:
    """The response to one SQLSTATE. If `title` or `detail` is None, it is that of the error, as far as the client may
    see it. If `type_url` is None, it is that of the status."""

    status: int
    title: str | None = None
    detail: str | None = None
    type_url: str | None = None

    def problem(self, error: DatabaseError, disclosure: Disclosure) -> Problem:
        """Return the problem of an error with this mapping."""
        return Problem(
            self.status,
            self.detail or disclosure.detail(error),
            title=self.title or disclosure.title(error),
            type_url=self.type_url,
            others=disclosure.further_members(error),
        )

    def timeout_problem(self) -> Problem:
        """Return the problem of a timeout, without a detail unless the configuration sets one (errors-11)."""
        return Problem(self.status, self.detail, title=self.title, type_url=self.type_url)


TIMED_OUT = ErrorMapping(504, "Command execution timed out")

_CONFLICTS = ("23505", "23P01", "23503")
_UNREADABLE = (
    *("22P02", "22P05", "22001", "22003", "22007", "22008", "22009", "22015", "22021", "22026"),
    *("2200M", "2200N"),  # xml
)
"""Texts that cannot be converted to a type, or do not fit into it."""
_BAD_PAGE = ("2201W", "2201X")
"""A negative LIMIT or OFFSET."""
_BAD_PATTERN = ("2201B", "22019", "22025")
"""An invalid regular expression or LIKE pattern."""
_UNUSABLE = (*_UNREADABLE, *_BAD_PAGE, *_BAD_PATTERN)
_UNFIT = ("23502", "23514", "44000", *_UNUSABLE)

BUILT_IN_CODES: Mapping[str, ErrorMapping] = {
    "42501": ErrorMapping(403, "Insufficient Privilege"),
    # A cancelled command is not a success, and a status without a body would not explain what happened.
    QUERY_CANCELED: ErrorMapping(504, "Cancelled"),
    "P0001": ErrorMapping(400),
    "P0004": ErrorMapping(400),
    **{code: ErrorMapping(409) for code in _CONFLICTS},
    **{code: ErrorMapping(400) for code in _UNFIT},
}


FAULTS_OF_VALUES: Mapping[str, ErrorMapping] = {code: BUILT_IN_CODES[code] for code in (*_CONFLICTS, *_UNFIT)}
"""Mappings for uses without an error policy.

A value that cannot be converted or that violates a constraint is an error of the request, and never gives 500.
"""


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """Mapping from SQLSTATE to HTTP (errors-6 to errors-8).

    codes: by SQLSTATE. timeout: response to a command that exceeded its timeout, and to a cancelled command (57014) if
    `codes` does not have it. disclosure: what the client sees of an error.
    """

    codes: Mapping[str, ErrorMapping] = field(default_factory=lambda: BUILT_IN_CODES)
    timeout: ErrorMapping = TIMED_OUT
    disclosure: Disclosure = Disclosure()

    def maps(self, sqlstate: str) -> bool:
        """Return whether the policy has a response for the SQLSTATE: it is in `codes`, 57014, or from PT400 to PT599.
        `service.database` does not retry commands after such errors."""
        return sqlstate in self.codes or sqlstate == QUERY_CANCELED or _STATUS_IN_CODE.fullmatch(sqlstate) is not None

    def problem(self, error: DatabaseError) -> Problem:
        """Return the problem of a database error. For SQLSTATEs PT400 to PT599 that are not in `codes`, the status is
        their number. Unmapped errors are 500 with the SQLSTATE in the title."""
        mapping = self.codes.get(error.sqlstate)
        if mapping is not None:
            return mapping.problem(error, self.disclosure)
        if error.sqlstate == QUERY_CANCELED:
            return self.timeout.timeout_problem()
        if match := _STATUS_IN_CODE.fullmatch(error.sqlstate):
            return ErrorMapping(int(match[1])).problem(error, self.disclosure)
        return self.unmapped_problem(error)

    def unmapped_problem(self, error: DatabaseError) -> Problem:
        """Return the problem with status 500 of an error that no policy maps."""
        title = f"{error.sqlstate}: {self.disclosure.title(error)}"
        return Problem(500, self.disclosure.detail(error), title=title, others=self.disclosure.further_members(error))


@dataclass(frozen=True, slots=True)
class ErrorPolicies:
    """The configured policies by name. default: name of the policy of endpoints that name none. timeout, disclosure:
    for endpoints with an unknown policy, whose errors are mapped without codes."""

    named: Mapping[str, ErrorPolicy] = field(default_factory=lambda: {"Default": ErrorPolicy()})
    default: str = "Default"
    timeout: ErrorMapping = TIMED_OUT
    disclosure: Disclosure = Disclosure()

    def of(self, name: str | None) -> ErrorPolicy:
        """Return the policy of this name, or one without codes if the name is unknown. None: the default policy."""
        return self.named.get(name or self.default) or ErrorPolicy({}, self.timeout, self.disclosure)
