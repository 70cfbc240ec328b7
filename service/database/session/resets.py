"""What takes back what a routine may have left in its session, in one round behind the call (driver-19).

Only what is needed is sent: most routines leave nothing, many others one thing.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import cache

from rowcall.core.catalogue.session_state import Trace
from rowcall.ext.driver.request import Statement
from rowcall.service.database.statements import statement_for

UNLOCK = "select pg_catalog.pg_advisory_unlock_all()"
NO_STATEMENTS = "1 / case when exists (select from pg_catalog.pg_prepared_statements where from_sql) then 0 else 1 end"
SEED = "pg_catalog.setseed(2 * (extract(epoch from clock_timestamp())::numeric % 1)::float8 - 1)"
_RESETS: dict[Trace, tuple[str, ...]] = {
    # First: a time limit that was left must not end the others.
    Trace.SETTINGS: ("reset session authorization", "reset all"),
    Trace.LOCKS: (UNLOCK,),
    Trace.TEMPORARY: ("discard temp",),
    Trace.CHANNELS: ("unlisten *",),
    Trace.CURSORS: ("close all",),
    # They cannot be told from the service's own when they are deallocated, so the connection has to go: this fails.
    Trace.STATEMENTS: (f"select {NO_STATEMENTS}",),
    Trace.SEED: (f"select {SEED}",),
}

_COMMANDS = (Trace.SETTINGS, Trace.TEMPORARY, Trace.CHANNELS, Trace.CURSORS)

DISCARD_SEQUENCES = statement_for("discard sequences", 0)
"""In front of a call that asks for `lastval` or `currval`. Nearly every insert moves a sequence, and hardly anybody
asks: so whoever does forgets what others have moved, and nobody else pays for it."""


@cache
def resets(traces: AbstractSet[Trace]) -> list[Statement]:
    """`traces`: a frozenset. Empty when there is nothing to take back."""
    if Trace.ANYTHING in traces:
        texts = [text for trace in _COMMANDS for text in _RESETS[trace]]
        # What can be asked for in one statement.
        return [statement_for(text, 0) for text in (*texts, f"{UNLOCK}, {SEED}, {NO_STATEMENTS}")]
    return [statement_for(text, 0) for trace, texts in _RESETS.items() if trace in traces for text in texts]


FULL_RESET = resets(frozenset({Trace.ANYTHING}))
"""For what nobody knows."""
