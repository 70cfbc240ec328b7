"""What takes back what a routine may have left in its session, in one round behind the call (reference 08, 6).

Only what is needed is sent: most routines leave nothing, many others one thing.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import cache

from rowcall.core.catalogue.session_state import Trace
from rowcall.ext.driver.request import Statement
from rowcall.service.database.statements import statement_for

_RESETS: dict[Trace, tuple[str, ...]] = {
    # First: a time limit that was left must not end the others.
    Trace.SETTINGS: ("reset session authorization", "reset all"),
    Trace.LOCKS: ("select pg_catalog.pg_advisory_unlock_all()",),
    Trace.TEMPORARY: ("discard temp",),
    Trace.CHANNELS: ("unlisten *",),
    Trace.CURSORS: ("close all",),
    # They cannot be told from the service's own when they are deallocated, so the connection has to go: this fails.
    Trace.STATEMENTS: (
        "select 1 / case when exists (select from pg_catalog.pg_prepared_statements where from_sql) then 0 else 1 end",
    ),
    Trace.SEED: ("select pg_catalog.setseed(2 * (extract(epoch from clock_timestamp())::numeric % 1)::float8 - 1)",),
}

DISCARD_SEQUENCES = statement_for("discard sequences", 0)
"""In front of a call that asks for `lastval` or `currval`. Nearly every insert moves a sequence, and hardly anybody
asks: so whoever does forgets what others have moved, and nobody else pays for it."""


@cache
def resets(traces: AbstractSet[Trace]) -> list[Statement]:
    """`traces`: a frozenset. Empty when there is nothing to take back."""
    wanted = _RESETS if Trace.ANYTHING in traces else {trace: _RESETS[trace] for trace in _RESETS if trace in traces}
    return [statement_for(text, 0) for texts in wanted.values() for text in texts]


FULL_RESET = resets(frozenset({Trace.ANYTHING}))
"""For what nobody knows."""
