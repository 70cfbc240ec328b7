"""The statement of one endpoint with its options, and what its executions have shown about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from rowcall.core.binding.server_refusals import ServerRefusals
from rowcall.core.catalogue.session_effects import UNKNOWN, SessionEffects
from rowcall.core.errors.error_policy import ErrorPolicy
from rowcall.core.errors.retry import RetryStrategy
from rowcall.ext.driver.execution import Statement
from rowcall.ext.rendering.body_writer import BodyWriter
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.database.preamble import Preamble, PrecedingStatements, Values
from rowcall.service.database.statements import numbers
from rowcall.service.request_context.redaction import RedactedLabel
from rowcall.service.request_context.request_context import RequestContext

MOST_STATEMENTS = 256
"""Most statements cached for one endpoint; there is one for each combination of supplied parameters. Ten optional
parameters have a thousand combinations, and all columns of a table are optional: a client that tries them one after
another must not fill the memory.
"""


Describe = Callable[[RequestContext], str]
"""Returns a description of a request for the log."""


class NoticeListener(Protocol):
    """Receives the notices of one execution while it runs, and its end."""

    def hear(self, severity: str, sqlstate: str, message: str, hint: str | None) -> None:
        """Receive one notice. severity: untranslated, whatever the language of the server."""

    def send(self, message: str) -> None:
        """Receive a message of the service itself."""

    def end(self, committed: bool) -> None:
        """Receive the end of the execution. committed: its effects are permanent. False also if this is unknown."""


Hear = Callable[[RequestContext], NoticeListener]
"""Makes the notice listener of a request."""
HearAs = Callable[[RequestContext, str], NoticeListener]
"""Makes the notice listener of a request that runs as the database role of this name."""


@dataclass(slots=True, eq=False)
class Call:
    """The statement of one endpoint with its options, and what its executions have shown about it. It lives as long as
    the compiled endpoint; each worker has its own.

    build: returns the SQL and the number of values for a mask of supplied parameters (bit n: parameter n). made: builds
    the whole statement for a mask instead of `build`, for statements that need more than SQL and a number of values.
    """

    label: str
    """Name of the endpoint for the log."""
    build: Callable[[int], tuple[str, int]]
    renderer: BodyWriter | None
    pace: PoolAssignment
    """Measured durations, by which the routine is promoted and demoted."""
    volatile: bool
    """Not declared STABLE or IMMUTABLE, so it may write."""
    procedure: bool = False
    commits: bool = False
    """A procedure that may commit while it runs: if it fails, its effects are unknown."""
    rows: bool = False
    """Returns a set of rows, which may be large."""
    stream_after: int | None = None
    """Bytes of a result from which it is streamed. None: the default of the database."""
    flush_rows: int = 0
    """Number of rows sent to the client together. 0: as many as fill a part."""
    single: bool = False
    """At most one row of the result is sent."""
    timeout: float | None = None
    """Time limit in seconds. None: the default of the database."""
    policy: ErrorPolicy = field(default_factory=ErrorPolicy)
    """Maps its errors to problem documents."""
    refusals: ServerRefusals | None = None
    """Finds the parameter whose value the server rejected as invalid. None: such an error is handled like any other."""
    retry: RetryStrategy | None = None
    """Which errors are retried, after which delays. None: no errors are retried."""
    describe: Describe | None = None
    """Describes a request for the log. None: commands are not logged."""
    sensitive: bool = False
    """Messages must not contain values of requests."""
    wrapped: bool = False
    """The procedure shares a transaction with its settings. It cannot commit then, if the server enforces that."""
    preamble: Preamble | None = None
    """Settings and commands of each request. Such a call is started with `Database.begin_with_preamble` or
    `begin_by_deadline`.
    """
    role: str | None = None
    """The database role that `preamble` sets; None: it sets none. Its rights count when a statement is prepared."""
    session: SessionEffects = UNKNOWN
    """Session effects of the routine."""
    existed: bool = True
    """The objects that it names existed when the catalogue was read or when the call last ran."""
    harmless: bool = False
    """The call has no session effects, and its statements can be guarded so that PostgreSQL enforces this (see
    `session.guarded_statements`).
    """
    may_share: bool = True
    """The endpoint does not require dedicated connections."""
    shared: bool = False
    """The routine is promoted: it runs in a pipelined pool."""
    guarded: tuple[dict[int, Statement], ...] = field(default_factory=lambda: ({}, {}, {}, {}))
    """For each pool, by mask: guarded prepared statements, which run only while the call has no session effects."""
    installing_guards: set[tuple[int, int]] = field(default_factory=set)
    """Pools and masks for which guarded statements are being installed on connections."""
    runs_alone: int = 0
    """Number of runs on dedicated connections of a call that could be guarded there."""
    statements: dict[int, Statement] = field(default_factory=dict)
    """Cached statements without guards, by mask."""
    generic: set[int] = field(default_factory=set)
    """Masks whose statement may run with a forced generic plan."""
    checked: set[int] = field(default_factory=set)
    """Masks whose generic plan has been examined, or is being examined."""
    small: bool = False
    """Has returned a result that fitted into one response."""
    large: bool = False
    """Has returned a result that did not."""
    shared_settings: Values = field(default_factory=list)
    """Settings on a pipelined connection, in addition to those of the preamble."""
    shared_ahead: PrecedingStatements | None = None
    """`shared_settings` as the statement in front of the call."""
    known: bool = False
    """`shared_settings`, `shared_ahead` and `seconds` have been computed."""
    seconds: float = 0.0
    """Time limit on a pipelined connection, in seconds; 0: none."""
    wide: bool = True
    """Its rows are large, or their size is not known yet: one chunk of rows could exceed the memory that a worker
    should use.
    """
    made: Callable[[int], Statement] | None = None
    of_tenant: bool = False
    """A command of its preamble fails if the schema of the tenant does not exist."""
    inner: Callable[[int], str] | None = None
    """Returns the SQL of the routine for a mask, if the statement is a query over its result (`queryable`)."""
    publish: tuple[Call, Callable[[RequestContext], Values]] | None = None
    """Runs behind it in its transaction: the command and the function that returns its values."""
    on_repeat: Callable[[], None] | None = None
    """Called for each repeated run of a request."""
    hear: Hear | None = None
    """Makes the notice listener of a request, for routines whose notices are data. Such a call runs in the dedicated
    pool, so that no notice is attributed to another request.
    """

    def __post_init__(self) -> None:
        if self.sensitive:
            self.label = RedactedLabel(self.label)

    def statement(self, mask: int) -> Statement:
        """Return the statement for a mask; it is built at first use, as most endpoints are called with one or two
        combinations of parameters. If `MOST_STATEMENTS` are cached, the oldest is dropped. Raises what `build` or
        `made` raises.
        """
        statement = self.statements.get(mask)
        if statement is None:
            statement = self.build_statement(mask) if self.made is None else self.made(mask)
            if len(self.statements) >= MOST_STATEMENTS:
                self._forget(next(iter(self.statements)))
            self.statements[mask] = statement
        return statement

    def drop_guards(self, mask: int) -> None:
        """Drop the guarded statements of a mask, and what was learned about its generic plan. Called after PostgreSQL
        has refused a guarded statement because a definition has changed."""
        for statements in self.guarded:
            statements.pop(mask, None)
        self.checked.discard(mask)
        self.generic.discard(mask)

    def build_statement(self, mask: int) -> Statement:
        """Return a new statement for a mask, with the SQL of `build`. A call with `made` does not use this method."""
        text, values = self.build(mask)
        repeatable = not self.volatile and not self.procedure
        return Statement(next(numbers), text.encode(), values, self.renderer, repeatable)

    def _forget(self, mask: int) -> None:
        """Drop the statements of a mask, and what was learned about its generic plan."""
        self.statements.pop(mask)
        self.drop_guards(mask)
