"""Run the commands of passkeys. Each endpoint runs its commands in one transaction; a login runs the command that
completes it in a second one. A whole transaction is repeated as the retry strategy says (passkeys-4, passkeys-5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import orjson

from rowcall.core.auth.commands import number_placeholders
from rowcall.core.auth.login import Cell
from rowcall.core.auth.passkeys import PasskeyOptions, Row
from rowcall.core.errors.problems import Problem
from rowcall.ext.driver.execution import Statement
from rowcall.ext.rendering.cell_rows import CellRows
from rowcall.service.auth.passkeys.requests import invalid
from rowcall.service.database.call import Call
from rowcall.service.database.database import Database
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.database.statements import numbers
from rowcall.service.database.transactions.transaction import Transaction
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext

log = logging.getLogger("rowcall")

T = TypeVar("T")
BYTEA, TEXT = 17, 25


class PasskeyCommand:
    """A configured command. key: its configuration key below `Auth:PasskeyAuth`. types: OIDs of the parameters whose
    type PostgreSQL must not infer, by parameter number.
    """

    def __init__(self, key: str, sql: str, services: Services, types: dict[int, int] | None = None) -> None:
        text, self.takes = number_placeholders(sql)
        oids = tuple((types or {}).get(number, 0) for number in self.takes)
        renderer = CellRows(services.codecs, True)
        self.key = f"Auth:PasskeyAuth:{key}"
        self._call = Call(
            label=self.key,
            build=lambda _mask: ("", 0),
            made=lambda _mask: Statement(
                next(numbers), text.encode(), len(oids), renderer, types=oids if any(oids) else None
            ),
            renderer=None,
            pace=PoolAssignment(services.options.database.pools.slow),
            volatile=True,
            # An error message could contain values of the client.
            sensitive=True,
        )

    async def run(self, transaction: Transaction, *values: bytes | str | None) -> Row | None:
        """Run the command and return its first row, or None if it returns no row. Raises `Problem` if the command
        fails, and 400 for a text of the client with a NUL, which PostgreSQL cannot store.

        values: for `$1` and following, in the text format of PostgreSQL; None is NULL, as are missing ones. Values that
        the command does not use are ignored.
        """
        used_values = [values[number - 1] if number <= len(values) else None for number in self.takes]
        encoded = [value.encode() if isinstance(value, str) else value for value in used_values]
        if any(value is not None and b"\0" in value for value in encoded):
            raise invalid("A value holds a NUL character")
        execution = await transaction.run(self._call, encoded)
        rows: Sequence[Sequence[list[Any]]] = orjson.loads(execution.body) if execution.body else []
        return Row([Cell(*cell) for cell in rows[0]]) if rows else None

    def status(self, row: Row, options: PasskeyOptions) -> int:
        """Return the status column of the row; 200 if it has no such column. Raises `Problem` 500 if it is no valid
        status."""
        try:
            return row.status(options.columns.status)
        except ValueError as error:
            log.error("%s: the column %s cannot be used: %s", self.key, options.columns.status, error)
            raise contract_problem("Invalid status") from None


def contract_problem(title: str) -> Problem:
    """Return the 500 for a command that violates its contract."""
    return Problem(500, title=title, code="database_error")


class Transactions:
    """Runs transactions on the database of the passkey commands."""

    def __init__(self, options: PasskeyOptions, services: Services, database: Database) -> None:
        self._database = database
        self._strategy = services.options.retries.of(options.retry) if options.retry is not None else None
        self._call = Call(
            label="Auth:PasskeyAuth",
            build=lambda _mask: ("select", 0),
            renderer=None,
            pace=PoolAssignment(services.options.database.pools.slow),
            volatile=True,
        )

    async def run(self, context: RequestContext, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Run the work in a transaction, commit, and return the result of the work. If a command fails with an SQLSTATE
        of the retry strategy, the whole work is repeated after its delays.

        Raises `Problem`, including those of the work; the transaction is then rolled back.
        """
        delays = () if self._strategy is None else self._strategy.delays
        for delay in (*delays, None):
            async with self._database.transaction(self._call, context) as transaction:
                try:
                    result = await work(transaction)
                    await transaction.commit()
                except Problem:
                    if delay is None or not self._is_temporary(transaction.sqlstate):
                        raise
                else:
                    return result
            log.warning(
                "Auth:PasskeyAuth: a command failed with SQLSTATE %s; it is repeated in %g s",
                transaction.sqlstate,
                delay,
            )
            await asyncio.sleep(delay)
        raise AssertionError("the last attempt has no delay behind it")

    def _is_temporary(self, sqlstate: str | None) -> bool:
        """Return whether the retry strategy treats this SQLSTATE as temporary."""
        return self._strategy is not None and sqlstate in self._strategy.codes
