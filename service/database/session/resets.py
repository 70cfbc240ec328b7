"""What takes back what a routine may have left in its session, in one round behind the call (driver-19).

Only what is needed is sent: most routines leave nothing, many others one thing.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import cache

from rowcall.core.catalogue.session_effects import SessionEffect
from rowcall.ext.driver.execution import Statement
from rowcall.service.database.statements import statement_for

UNLOCK = "select pg_catalog.pg_advisory_unlock_all()"
NO_STATEMENTS = "1 / case when exists (select from pg_catalog.pg_prepared_statements where from_sql) then 0 else 1 end"
SEED = "pg_catalog.setseed(2 * (extract(epoch from clock_timestamp())::numeric % 1)::float8 - 1)"
_RESETS: dict[SessionEffect, tuple[str, ...]] = {
    # First: a time limit that was left must not end the others.
    SessionEffect.SETTINGS: ("reset session authorization", "reset all"),
    SessionEffect.LOCKS: (UNLOCK,),
    SessionEffect.TEMPORARY: ("discard temp",),
    SessionEffect.CHANNELS: ("unlisten *",),
    SessionEffect.CURSORS: ("close all",),
    # They cannot be told from the service's own when they are deallocated, so the connection has to go: this fails.
    SessionEffect.STATEMENTS: (f"select {NO_STATEMENTS}",),
    SessionEffect.SEED: (f"select {SEED}",),
}

_COMMANDS = (SessionEffect.SETTINGS, SessionEffect.TEMPORARY, SessionEffect.CHANNELS, SessionEffect.CURSORS)

DISCARD_SEQUENCES = statement_for("discard sequences", 0)
"""In front of a call that asks for `lastval` or `currval`. Nearly every insert moves a sequence, and hardly anybody
asks: so whoever does forgets what others have moved, and nobody else pays for it."""


@cache
def resets(traces: AbstractSet[SessionEffect]) -> list[Statement]:
    """`traces`: a frozenset. Empty when there is nothing to take back."""
    if SessionEffect.ANYTHING in traces:
        texts = [text for trace in _COMMANDS for text in _RESETS[trace]]
        # What can be asked for in one statement.
        return [statement_for(text, 0) for text in (*texts, f"{UNLOCK}, {SEED}, {NO_STATEMENTS}")]
    return [statement_for(text, 0) for trace, texts in _RESETS.items() if trace in traces for text in texts]


FULL_RESET = resets(frozenset({SessionEffect.ANYTHING}))
"""For what nobody knows."""
