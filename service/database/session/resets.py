"""Resets: statements that revert the session effects of a routine, in one round trip behind the call (driver-19).

Only the necessary ones are sent: most routines have no session effects, many others have one.
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
    # First: a time limit left in the session must not end the others.
    SessionEffect.SETTINGS: ("reset session authorization", "reset all"),
    SessionEffect.LOCKS: (UNLOCK,),
    SessionEffect.TEMPORARY: ("discard temp",),
    SessionEffect.CHANNELS: ("unlisten *",),
    SessionEffect.CURSORS: ("close all",),
    # When they are deallocated, they cannot be distinguished from statements of the service, so this fails on purpose
    # and the connection closes.
    SessionEffect.STATEMENTS: (f"select {NO_STATEMENTS}",),
    SessionEffect.SEED: (f"select {SEED}",),
}

_COMMANDS = (SessionEffect.SETTINGS, SessionEffect.TEMPORARY, SessionEffect.CHANNELS, SessionEffect.CURSORS)

DISCARD_SEQUENCES = statement_for("discard sequences", 0)
"""Runs in front of a call that reads `lastval` or `currval`. Nearly every insert moves a sequence and hardly any
routine reads these, so the reset is made by those that do, and costs the others nothing.
"""


@cache
def resets(traces: AbstractSet[SessionEffect]) -> list[Statement]:
    """Return the resets for these session effects (a frozenset); empty if nothing has to be reset."""
    if SessionEffect.ANYTHING in traces:
        texts = [text for trace in _COMMANDS for text in _RESETS[trace]]
        # Everything that one SELECT can do.
        return [statement_for(text, 0) for text in (*texts, f"{UNLOCK}, {SEED}, {NO_STATEMENTS}")]
    return [statement_for(text, 0) for trace, texts in _RESETS.items() if trace in traces for text in texts]


FULL_RESET = resets(frozenset({SessionEffect.ANYTHING}))
"""The resets for a routine whose session effects are unknown."""
