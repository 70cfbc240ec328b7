"""What one endpoint runs, and what has been learned about it."""

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
from rowcall.service.database.preamble import Ahead, Preamble, Values
from rowcall.service.database.statements import numbers
from rowcall.service.request_context.redaction import Redacted
from rowcall.service.request_context.request_context import RequestContext

MOST_STATEMENTS = 256
"""Choices of parameters that are remembered for one endpoint. Ten optional ones have a thousand, and the columns of a
table are all optional: whoever tries them one after another must not fill the memory."""


Describe = Callable[[RequestContext], str]
"""What a request runs, in words for the log."""


class NoticeListener(Protocol):
    """Told of the notices of one run while it runs, and of its end."""

    def hear(self, severity: str, sqlstate: str, message: str, hint: str | None) -> None:
        """severity: as the server has it in every language."""

    def tell(self, message: str) -> None:
        """What the service itself has to say meanwhile."""

    def end(self, committed: bool) -> None:
        """committed: what the run did has taken effect. False also where that cannot be known."""


Hear = Callable[[RequestContext], NoticeListener]


@dataclass(slots=True, eq=False)
class Call:
    """What one endpoint runs, and what has been learned about it.

    build: SQL and number of values for a mask of present parameters. made: the whole statement, where that says more.
    """

    label: str
    build: Callable[[int], tuple[str, int]]
    renderer: BodyWriter | None
    pace: PoolAssignment
    volatile: bool
    procedure: bool = False
    commits: bool = False
    """A procedure that may commit on its way: what a failed one has done is not known."""
    rows: bool = False
    """Gives a set, which may be large."""
    stream_after: int | None = None
    """Bytes after which a result leaves as a stream; None: as for all others."""
    flush_rows: int = 0
    """Rows that are sent together on the way to the client; 0: as many as fill a part."""
    single: bool = False
    timeout: float | None = None
    policy: ErrorPolicy = field(default_factory=ErrorPolicy)
    """What its errors become."""
    refusals: ServerRefusals | None = None
    """Tells whose value the server could not read. None: that is an error like others."""
    retry: RetryStrategy | None = None
    describe: Describe | None = None
    """For the log. None: commands are not logged."""
    sensitive: bool = False
    """Messages must not hold the values of requests."""
    wrapped: bool = False
    """A procedure shares its transaction with its settings. It cannot commit then, where the server minds it."""
    preamble: Preamble | None = None
    """What requests bring along; only `Database.begin_with_context` may begin such a call."""
    session: SessionEffects = UNKNOWN
    """What it may leave in its session."""
    existed: bool = True
    """What it names has been there: when the catalogue was read, or when it last ran."""
    harmless: bool = False
    """It leaves nothing, and its statements can be prepared so that this stays true (see `session.wires`)."""
    may_share: bool = True
    """The endpoint does not ask for connections of its own."""
    shared: bool = False
    """Has shown that it is fast: shares connections with others."""
    guarded: tuple[dict[int, Statement], ...] = field(default_factory=lambda: ({}, {}, {}, {}))
    """For each lane, by mask: statements that run only as long as the call is harmless."""
    installing_guards: set[tuple[int, int]] = field(default_factory=set)
    """Lanes and masks for which connections are being made ready."""
    runs_alone: int = 0
    statements: dict[int, Statement] = field(default_factory=dict)
    generic: set[int] = field(default_factory=set)
    """Masks whose statement may run with a forced generic plan."""
    checked: set[int] = field(default_factory=set)
    small: bool = False
    """Has given a result that fitted one response."""
    large: bool = False
    """Has given one that did not."""
    shared_settings: Values = field(default_factory=list)
    """What it sets on a shared connection, besides what its context does."""
    shared_ahead: Ahead | None = None
    """The same as the statement in front of it."""
    known: bool = False
    """The two, and `seconds`, have been worked out."""
    seconds: float = 0.0
    """Its time limit on a shared connection."""
    wide: bool = True
    """Its rows are large, or not known yet: a chunk of them could be more than a worker should hold."""
    made: Callable[[int], Statement] | None = None
    on_repeat: Callable[[], None] | None = None
    """Told of each further run of one request."""
    hear: Hear | None = None
    """Its notices are data. It then has a connection of its own, so that no notice is taken for another request's."""

    def __post_init__(self) -> None:
        if self.sensitive:
            self.label = Redacted(self.label)

    def statement(self, mask: int) -> Statement:
        """Compiled when first needed: most endpoints are called with one or two choices of parameters."""
        statement = self.statements.get(mask)
        if statement is None:
            statement = self.build_statement(mask) if self.made is None else self.made(mask)
            if len(self.statements) >= MOST_STATEMENTS:
                self._forget(next(iter(self.statements)))
            self.statements[mask] = statement
        return statement

    def trip(self, mask: int) -> None:
        """A statement was refused because something that it rests on has changed: all are prepared anew."""
        for statements in self.guarded:
            statements.pop(mask, None)
        self.checked.discard(mask)
        self.generic.discard(mask)

    def build_statement(self, mask: int) -> Statement:
        """What `made` is there to replace."""
        text, values = self.build(mask)
        repeatable = not self.volatile and not self.procedure
        return Statement(next(numbers), text.encode(), values, self.renderer, repeatable)

    def _forget(self, mask: int) -> None:
        self.statements.pop(mask)
        self.trip(mask)
