"""Session effects of routines, and the check that an earlier analysis is still valid (driver-19).

`core.sqlfile.session_effects` analyses at discovery everything that a routine can reach. A session without effects
needs no reset and may be shared; an unknown routine counts as having all effects.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from rowcall.core.data.record import Record


class SessionEffect(enum.Enum):
    """State of a session that outlasts a transaction (driver-19)."""

    SETTINGS = "settings"
    """Settings, including the role."""
    LOCKS = "advisory locks"
    TEMPORARY = "temporary objects"
    CHANNELS = "channels listened to"
    CURSORS = "cursors"
    STATEMENTS = "prepared statements"
    SEED = "the seed of random()"
    ANYTHING = "anything"
    """Unknown effects."""


@dataclass(frozen=True, slots=True)
class Dependencies(Record):
    """The objects on whose definitions an analysis rests.

    functions, relations: oids. mark: text that changes if one of the definitions changes. mentions: SQL that names each
    object, for `guard`.
    """

    functions: tuple[int, ...] = ()
    relations: tuple[int, ...] = ()
    mark: str = ""
    mentions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionEffects(Record):
    """The result of an analysis of session effects: the state that a routine may leave in its session, and whether it
    reads state that earlier requests have left there."""

    traces: frozenset[SessionEffect] = frozenset({SessionEffect.ANYTHING})
    """Effects in the session. Empty: the session is left unchanged."""
    reads_sequences: bool = True
    """The routine may use `lastval` or `currval`, which earlier requests on the session have changed."""
    reason: str = ""
    """Origin of the first effect, for display."""
    dependencies: Dependencies = Dependencies()


UNKNOWN = SessionEffects(reason="it was not analysed")

GUARD_DAY = {True: "12/31/2007", False: "31/12/2007"}
"""Whether the usual order of the session has the day before the month → text of a date that only a session with the
other order can read."""
MOST_MENTIONS = 100
"""Most objects in a guard."""
_HEAD = re.compile(
    r"(?:\s+|--[^\n]*\n|/\*(?:[^*/]|\*(?!/)|/(?!\*))*\*/)*"
    r"(?:(?P<with>with\b\s*(?P<recursive>recursive\b)?)|(?:select|insert|update|delete|merge|values)\b)",
    re.IGNORECASE,
)
"""Beginning of a statement, after comments. `MERGE` can have a WITH clause from PostgreSQL 15 on, where MERGE
exists."""


def guard(statement: str, dependencies: Dependencies, *, usual_day_first: bool) -> str | None:
    """Return the statement with a guard; None if the statement has no place for a guard, or depends on too many
    objects.

    The guard is a common table expression that is never run, not even planned, because nothing refers to it. But
    PostgreSQL records all objects in it as dependencies of the prepared statement, and parses the statement again if
    one of them has changed. The guard contains a date that is valid only with one order of day and month: the one that
    is set while the statement is prepared. Later, the connection has its usual order, which is the other one. So
    parsing again fails with 22008 before any part of the call has run.

    day_first: whether the usual order of the connection has the day first (`DateStyle` with DMY); the statement has to
    be prepared with the other order.
    """
    head = _HEAD.match(statement)
    if head is None or len(dependencies.mentions) > MOST_MENTIONS:
        return None
    parts = ["select", f"'{GUARD_DAY[usual_day_first]}'::pg_catalog.date"]
    if dependencies.mentions:
        parts.append(f"where {' or '.join(f'exists ({mention})' for mention in dependencies.mentions)}")
    expression = f"rowcall_guard as ({' '.join(parts)})"
    if head["with"] is None:
        return f"with {expression} {statement}"
    return f"with {head['recursive'] or ''} {expression}, {statement[head.end() :]}"


def guard_failed(sqlstate: str, position: str | None, context: str | None) -> bool:
    """Return whether an error is that of a guard, so that the statement has not run.

    position: of the error in the statement, as PostgreSQL reports it; other errors have a later position. context: as
    PostgreSQL reports it; an error within a function has one.
    """
    return sqlstate == "22008" and context is None and (position or "99").isdecimal() and int(position or "99") < 60


def mark_of(marks: Mapping[str, str], common: str) -> str:
    """Return one mark, a hash, for the marks of several objects.

    marks: object → text that changes with its definition. common: text that changes with definitions that affect
    all objects: casts, operators, constraints of domains, event triggers.
    """
    joined = "\n".join([common, *(f"{key} {mark}" for key, mark in sorted(marks.items()))])
    return hashlib.blake2b(joined.encode(), digest_size=12).hexdigest()


def dependencies_unchanged(marks: str, dependencies: Dependencies) -> bool:
    """Return whether the definitions are still those of the analysis.

    marks: those of the objects of `dependencies`, read again (`service.database.session.marks`), in the form
    `everywhere 1,f16385 739,r16390 741`. For any other text the result is False, because the text is from the server
    and may have been damaged.
    """
    marks_by_object = dict(entry.partition(" ")[::2] for entry in marks.split(","))
    common = marks_by_object.pop("everywhere", "")
    return mark_of(marks_by_object, common) == dependencies.mark
