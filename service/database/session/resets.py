"""What takes back what a routine may have left in its session, in one round behind the call (reference 08, 6).

Only what is needed is sent: most routines leave nothing, many others one thing.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import cache

from rowcall.core.catalogue.session_state import Trace
from rowcall.ext.driver.request import Statement
from rowcall.service.database.statements import statement_for

FEW_STATEMENTS = 64
"""As long as a session has no more, it is looked through for those that a routine has left: 0.3 µs for each."""
LOOKS = 64
"""Of a session with more: then they have cost as much as preparing all of them once more (24 µs each) would, and
forgetting all of them, a routine's too, is what never costs more than twice as much as is needed."""

UNLOCK = "select pg_catalog.pg_advisory_unlock_all()"
NO_STATEMENTS = "1 / case when exists (select from pg_catalog.pg_prepared_statements where from_sql) then 0 else 1 end"
SEED = "pg_catalog.setseed(2 * (extract(epoch from clock_timestamp())::numeric % 1)::float8 - 1)"
ALL_IN_ONE = f"{UNLOCK}, {SEED}, {NO_STATEMENTS}"
_RESETS: dict[Trace, tuple[str, ...]] = {
    # First: a time limit that was left must not end the others.
    Trace.SETTINGS: ("reset session authorization", "reset all"),
    Trace.LOCKS: (UNLOCK,),
    Trace.TEMPORARY: ("discard temp",),
    Trace.CHANNELS: ("unlisten *",),
    Trace.CURSORS: ("close all",),
    Trace.SEED: (f"select {SEED}",),
    # They cannot be told from the service's own when they are deallocated, so the connection has to go: this fails.
    Trace.STATEMENTS: (f"select {NO_STATEMENTS}",),
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
        return [statement_for(text, 0) for text in (*texts, ALL_IN_ONE)]
    return [statement_for(text, 0) for trace, texts in _RESETS.items() if trace in traces for text in texts]


DEALLOCATE = statement_for("deallocate all", 0)


def forgetting(wanted: list[Statement]) -> list[Statement] | None:
    """The same for a session that is to forget all of its statements, the service's own as well, which is not looked
    through then. None: it would not be, either way.
    """
    instead = _FORGETTING.get(wanted[-1])
    return None if instead is None else [*wanted[:-1], *instead]


_FORGETTING = {
    statement_for(ALL_IN_ONE, 0): (statement_for(f"{UNLOCK}, {SEED}", 0), DEALLOCATE),
    statement_for(f"select {NO_STATEMENTS}", 0): (DEALLOCATE,),
}
"""By the last statement."""

FULL_RESET = resets(frozenset({Trace.ANYTHING}))
"""For what nobody knows."""
