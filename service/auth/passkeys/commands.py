"""The commands of passkeys: each endpoint runs its own in one transaction, and repeats all of it where the strategy
says so (passkeys-4, passkeys-5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import orjson

from rowcall.core.auth.commands import numbered
from rowcall.core.auth.login import Cell
from rowcall.core.auth.passkeys import PasskeyOptions, Row
from rowcall.core.errors.problems import Problem
from rowcall.ext.driver.execution import Statement
from rowcall.ext.rendering.cell_rows import CellRows
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
    """One of them. types: of those values that are not for PostgreSQL to infer, by their numbers."""

    def __init__(self, key: str, sql: str, services: Services, types: dict[int, int] | None = None) -> None:
        text, self.takes = numbered(sql)
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
            pace=PoolAssignment(services.options.database.slow),
            volatile=True,
            # A message could repeat what a client has sent.
            sensitive=True,
        )

    async def run(self, transaction: Transaction, *values: bytes | str | None) -> Row | None:
        """Its first row. Raises `Problem`."""
        taken = [values[number - 1] if number <= len(values) else None for number in self.takes]
        encoded = [value.encode() if isinstance(value, str) else value for value in taken]
        request = await transaction.run(self._call, encoded)
        rows: Sequence[Sequence[list[object]]] = orjson.loads(request.body) if request.body else []
        return Row([Cell(*cell) for cell in rows[0]]) if rows else None  # type: ignore[arg-type]

    def status(self, row: Row, options: PasskeyOptions) -> int:
        """Raises `Problem` for what is no status."""
        try:
            return row.status(options.columns.status)
        except ValueError as error:
            log.error("%s: the column %s cannot be used: %s", self.key, options.columns.status, error)
            raise broken("Invalid status") from None


def broken(title: str) -> Problem:
    """The command does not do what it has to."""
    return Problem(500, title=title, code="database_error")


class Transactions:
    def __init__(self, options: PasskeyOptions, services: Services, database: Database) -> None:
        self._database = database
        self._strategy = services.options.retries.of(options.retry) if options.retry is not None else None
        self._call = Call(
            label="Auth:PasskeyAuth",
            build=lambda _mask: ("select", 0),
            renderer=None,
            pace=PoolAssignment(services.options.database.slow),
            volatile=True,
        )

    async def run(self, context: RequestContext, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Commits when the work is done. Raises `Problem`, also one of the work's own; nothing stays then."""
        delays = () if self._strategy is None else self._strategy.delays
        for delay in (*delays, None):
            async with self._database.transaction(self._call, context) as transaction:
                try:
                    result = await work(transaction)
                    await transaction.commit()
                except Problem:
                    if delay is None or not self._passes(transaction.sqlstate):
                        raise
                else:
                    return result
            log.warning("Auth:PasskeyAuth: %s, the next attempt follows in %g s", transaction.sqlstate, delay)
            await asyncio.sleep(delay)
        raise AssertionError("the last attempt has no delay behind it")

    def _passes(self, sqlstate: str | None) -> bool:
        return self._strategy is not None and sqlstate in self._strategy.codes
