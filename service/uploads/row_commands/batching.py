"""Determines, once for each row command, whether one statement can process many rows (`core.uploads.batches`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import psycopg

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.uploads.batches import Batch, Pattern, Types, batch, is_one_evaluation, pattern, with_nulls
from rowcall.core.uploads.row_command import CELLS, FILE, PREVIOUS, RowCommand
from rowcall.ext.driver.execution import Statement
from rowcall.ext.rendering.cell_rows import CellRows
from rowcall.service.database.call import Call
from rowcall.service.database.database import Database
from rowcall.service.database.generic_plans import generic_plan
from rowcall.service.database.statements import numbers
from rowcall.service.uploads.row_commands.calls import call_without_error_policy

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")


@dataclass(frozen=True, slots=True)
class ManyRows:
    """A call that processes many rows at once."""

    call: Call
    columns: tuple[int, ...]
    """As in `core.uploads.batches.Batch`."""


class BatchCallProvider:
    """Provides the call for many rows: `await call()` returns it, or None. The first call determines it, others wait
    for that.
    """

    def __init__(self, endpoint: Endpoint, services: Services, command: RowCommand, *, own_about: bool = False) -> None:
        """own_about: whether the file metadata differs from row to row."""
        self.own_about = own_about and command.has_file_metadata
        self._endpoint = endpoint
        self._services = services
        self._command = command
        self._pattern = pattern(command)
        self._answer: asyncio.Task[ManyRows | None] | None = None

    async def call(self) -> ManyRows | None:
        """Return the call for many rows; None if rows have to run one by one."""
        if self._pattern is None:
            return None
        if self._answer is None:
            self._answer = asyncio.create_task(self._find(self._pattern))
        return await asyncio.shield(self._answer)

    async def _find(self, pattern: Pattern) -> ManyRows | None:
        """Determine the call for many rows. None: rows have to run one by one, also if the command cannot be analysed;
        that is logged.
        """
        try:
            plan = await _batch(self._services.database, self._command, pattern, self.own_about)
        except psycopg.Error as error:
            log.debug("%s: rows run one by one: %s", self._endpoint.name, str(error).strip())
            return None
        if plan is None:
            return None

        def statement() -> Statement:
            return Statement(
                next(numbers),
                plan.sql.encode(),
                self._command.values + len(plan.columns),
                CellRows(self._services.codecs, True),
                picks=plan.picks,
                types=plan.types,
            )

        return ManyRows(
            call_without_error_policy(self._endpoint, self._services, "row_command", statement), plan.columns
        )


async def _batch(database: Database, command: RowCommand, pattern: Pattern, own_about: bool) -> Batch | None:
    """Return the statement for many rows, or None if the command cannot process several rows at once. own_about: as for
    `BatchCallProvider.__init__`. Raises `psycopg.Error` for a command that cannot be analysed, and may be invalid.
    """
    async with database.maintenance_connection() as connection:
        if not pattern.inserts:
            plan = await generic_plan(connection, command.sql, len(command.picks))
            if not is_one_evaluation(plan):
                return None
        statement = batch(command, pattern, await _types(connection, command, own_about))
        await _prepare(connection, "rowcall_batch", statement.sql, statement.types)
        return statement


async def _types(connection: psycopg.AsyncConnection[Any], command: RowCommand, own_about: bool) -> Types:
    """Return the types that only the server can determine. own_about: as for `BatchCallProvider.__init__`."""
    json = CELLS in command.picks and not command.types[command.picks.index(CELLS)]
    if not (command.chained or own_about or json):
        return Types()
    await _prepare(connection, "rowcall_row", command.sql, command.types)
    query = (
        "select parameter_types::pg_catalog.text[] from pg_catalog.pg_prepared_statements where name = 'rowcall_row'"
    )
    (parameter_types,) = await (await connection.execute(query)).fetchone() or ([],)
    types = Types()
    if json:
        types = replace(types, cells=parameter_types[command.picks.index(CELLS)])
    if own_about:
        types = replace(types, about=parameter_types[command.picks.index(FILE)])
    if command.chained:
        result = await _result_type(connection, command, parameter_types)
        types = replace(types, result=result, previous=parameter_types[command.picks.index(PREVIOUS)])
    return types


async def _result_type(connection: psycopg.AsyncConnection[Any], command: RowCommand, taken: Sequence[str]) -> str:
    """Return the name of the type of the value that the command returns. taken: types of its parameters."""
    probe = f"select * from ({with_nulls(command, taken)}\n) as probe(value) where false"
    described = (await connection.execute(probe.encode())).description
    value = described[0].type_code if described else 25
    name = "select %s::pg_catalog.oid::pg_catalog.regtype::pg_catalog.text"
    (result,) = await (await connection.execute(name, (value,))).fetchone() or ("text",)
    return str(result)


async def _prepare(connection: psycopg.AsyncConnection[Any], name: str, text: str, types: tuple[int, ...]) -> None:
    """Prepare a statement under a name. text: its SQL. types: oids of its parameters; 0: PostgreSQL infers the type.
    Raises `psycopg.Error`.
    """
    names = {0: "unknown", 23: "pg_catalog.int4", 1009: "pg_catalog.text[]"}
    declared = ", ".join(names[oid] for oid in types)
    await connection.execute(f"prepare {name} ({declared}) as {text}".encode())
