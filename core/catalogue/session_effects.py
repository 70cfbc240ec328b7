"""What a routine may leave in its session for whoever comes next, and how to see that this is still true.

Worked out at discovery (`core.sqlfile.session_effects`) from everything the routine can reach. A session in which
nothing can be left needs no reset, and may be shared; what could not be proven counts as leaving everything.

Rule driver-19.
"""

from __future__ import annotations

import enum
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from rowcall.core.data.record import Record


class SessionEffect(enum.Enum):
    """What outlives a transaction in a session (driver-19)."""

    SETTINGS = "settings"
    """Parameters, the role included."""
    LOCKS = "advisory locks"
    TEMPORARY = "temporary objects"
    CHANNELS = "channels listened to"
    CURSORS = "cursors"
    STATEMENTS = "prepared statements"
    SEED = "the seed of random()"
    ANYTHING = "anything"
    """Nobody can tell."""


@dataclass(frozen=True, slots=True)
class Dependencies(Record):
    """The objects whose definitions the verdict rests on.

    mark: changes when one of them does. mentions: SQL that names each of them, for `wire`.
    """

    functions: tuple[int, ...] = ()
    relations: tuple[int, ...] = ()
    mark: str = ""
    mentions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionEffects(Record):
    traces: frozenset[SessionEffect] = frozenset({SessionEffect.ANYTHING})
    """Empty: it leaves its session as it has found it."""
    reads_sequences: bool = True
    """It may ask for `lastval` or `currval`, which the requests before it have moved."""
    reason: str = ""
    """Where the first of the traces comes from, for people."""
    dependencies: Dependencies = Dependencies()


UNKNOWN = SessionEffects(reason="it was not looked at")

GUARD_DAY = {True: "12/31/2007", False: "31/12/2007"}
"""A day that only the other order of day and month can read, by whether the session reads the day first."""
MOST_MENTIONS = 100
_HEAD = re.compile(
    r"(?:\s+|--[^\n]*\n|/\*(?:[^*/]|\*(?!/)|/(?!\*))*\*/)*"
    r"(?:(?P<with>with\b\s*(?P<recursive>recursive\b)?)|(?:select|insert|update|delete|merge|values)\b)",
    re.IGNORECASE,
)
"""What a statement begins with, comments skipped. `MERGE` takes one from PostgreSQL 15 on, where it is."""


def guard(statement: str, dependencies: Dependencies, *, day_first: bool) -> str | None:
    """`statement` behind a tripwire; None where it has no place for one.

    The common table expression is never run, not even planned: nothing refers to it. But PostgreSQL notes everything
    that it names as something that the prepared statement depends on, and reads the statement anew when one of these
    has changed. The day in it can be read only under the order of day and month that was set, for that moment, when
    the statement was prepared; so a later reading fails, with 22008, before anything of the call has run.
    """
    head = _HEAD.match(statement)
    if head is None or len(dependencies.mentions) > MOST_MENTIONS:
        return None
    parts = ["select", f"'{GUARD_DAY[day_first]}'::pg_catalog.date"]
    if dependencies.mentions:
        parts.append(f"where {' or '.join(f'exists ({mention})' for mention in dependencies.mentions)}")
    expression = f"rowcall_wire as ({' '.join(parts)})"
    if head["with"] is None:
        return f"with {expression} {statement}"
    return f"with {head['recursive'] or ''} {expression}, {statement[head.end() :]}"


def guard_failed(sqlstate: str, position: str | None, context: str | None) -> bool:
    """The error is that of the wire, and so of a statement that has not run: everything else is further behind."""
    return sqlstate == "22008" and context is None and (position or "99").isdecimal() and int(position or "99") < 60


def mark_of(marks: Mapping[str, str], everywhere: str) -> str:
    """One short text for the definitions of several things."""
    joined = "\n".join([everywhere, *(f"{key} {mark}" for key, mark in sorted(marks.items()))])
    return hashlib.blake2b(joined.encode(), digest_size=12).hexdigest()


def dependencies_unchanged(marks: str, dependencies: Dependencies) -> bool:
    """marks: those of the objects of `reach`, read anew (`service.database.session.marks`).

    False also for a text that holds no marks: it comes from the server, and may have been damaged on its way.
    """
    found = dict(entry.partition(" ")[::2] for entry in marks.split(","))
    everywhere = found.pop("everywhere", "")
    return mark_of(found, everywhere) == dependencies.mark
