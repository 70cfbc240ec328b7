"""Driver statements by role and SQL text, bounded: each role prepares each shape of a query once on a connection.

PostgreSQL checks the use of schemas when it prepares a statement, and inlines functions into its plan, which another
role may not execute. Roles therefore never share a prepared statement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rowcall.core.postgrest.sql.output import Statement as Sql
from rowcall.ext.driver.execution import Statement
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.raw_rows import RawRenderer
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.database.preamble import Values
from rowcall.service.database.statements import numbers
from rowcall.service.postgrest.bounded_mapping import BoundedMapping

MOST_STATEMENTS = 2000
"""Maximum number of texts that a worker keeps."""
BYTES_PER_CHARACTER = 2
"""Of a text, which is kept as such and in UTF-8."""
SEPARATOR = b"\0"
"""Between columns of the result row. A text of PostgreSQL cannot contain it."""


@dataclass(slots=True)
class CachedStatement:
    """A driver statement. pace: durations of its runs; None: they may not be pipelined."""

    statement: Statement
    pace: PoolAssignment | None


class StatementCache:
    """Statements whose result is rows of texts, separated by `SEPARATOR`, with a line feed between rows."""

    def __init__(self, new_pace: Callable[[], PoolAssignment | None], size: int = MOST_STATEMENTS) -> None:
        """new_pace: returns the record of durations of a new statement; None if no statement may be pipelined. size:
        maximum number of statements.
        """
        self._new_pace = new_pace
        self._renderer = RawRenderer(Codecs(), True, separator=SEPARATOR, new_line=b"\n", quotes=False)
        self._statements: BoundedMapping[tuple[str, str, bool], CachedStatement] = BoundedMapping(size)
        self.misses = 0
        """How often a text was new for its role."""

    def __len__(self) -> int:
        return len(self._statements)

    def find(self, sql: Sql, role: str, repeatable: bool) -> CachedStatement:
        """Return the statement of a role for a text, a new one if there is none yet. repeatable: running it twice does
        no harm, so it may be pipelined.
        """
        key = (sql.sql, role, repeatable)
        cached = self._statements.get(key)
        if cached is None:
            self.misses += 1
            statement = Statement(next(numbers), sql.sql.encode(), len(sql.parameters), self._renderer, repeatable)
            cached = CachedStatement(statement, self._new_pace() if repeatable else None)
            self._statements.store(key, cached, BYTES_PER_CHARACTER * len(sql.sql))
        return cached


def values_of(sql: Sql) -> Values:
    """Return the parameters as the driver takes them: in UTF-8, None for NULL. A text with a NUL is not refused here,
    but when the execution is submitted (ValueError)."""
    return [None if value is None else value.encode() for value in sql.parameters]
