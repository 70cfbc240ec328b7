"""Row commands: one run for each row of a file, many of them on their way at a time (reference 05, 5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.error_policy import ErrorPolicy
from rowcall.core.uploads.entries import json_value
from rowcall.core.uploads.row_command import ROW_VALUES, RowCommand
from rowcall.ext.driver.request import Request, Statement
from rowcall.ext.rendering.cell_rows import CellRows
from rowcall.service.database.call import Call
from rowcall.service.database.context import Values
from rowcall.service.database.held.transaction import Transaction
from rowcall.service.database.lane_choice import LaneChoice
from rowcall.service.database.statements import numbers
from rowcall.service.exchange.exchange import Exchange
from rowcall.service.response.headers import argument_text

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

ROWS = 256
"""Sent together, and answered together."""


@dataclass(frozen=True, slots=True)
class Commands:
    """The service's own commands about large objects."""

    create: Call
    write: Call


def large_object_commands(endpoint: Endpoint, services: Services) -> Commands:
    create = b"select pg_catalog.lo_create($1::pg_catalog.oid)"
    write = b"select pg_catalog.lo_put($1::pg_catalog.oid, $2::pg_catalog.int8, $3::pg_catalog.bytea)"
    return Commands(
        _call(
            endpoint,
            services,
            "lo_create",
            lambda: Statement(next(numbers), create, 1, CellRows(services.codecs, True)),
        ),
        _call(endpoint, services, "lo_put", lambda: Statement(next(numbers), write, 3)),
    )


def row_call(endpoint: Endpoint, services: Services, command: RowCommand) -> Call:
    def statement() -> Statement:
        return Statement(
            next(numbers),
            command.sql.encode(),
            command.values,
            CellRows(services.codecs, True),
            picks=command.picks,
            types=command.types if any(command.types) else None,
        )

    return _call(endpoint, services, "row_command", statement)


def _call(endpoint: Endpoint, services: Services, what: str, statement: Any) -> Call:
    """Policies are for what the routine says; errors of these commands are plain ones (reference 05, 5.6)."""
    return Call(
        label=f"{endpoint.name} {what}",
        build=lambda _mask: ("", 0),
        made=lambda _mask: statement(),
        renderer=None,
        pace=LaneChoice(services.options.database.slow),
        volatile=True,
        policy=ErrorPolicy({}, services.options.policies.timeout),
        sensitive=endpoint.options.sensitive,
        hear=services.hear(endpoint),
    )


def first_value(request: Request) -> tuple[bytes | None, Any]:
    """First column of the first row: its text, and what it is as JSON. NULL without a row."""
    rows = orjson.loads(request.body) if request.body else []
    if not rows or not rows[0]:
        return None, None
    _, type_oid, is_array, text, json = rows[0][0]
    return None if text is None else text.encode(), json_value(type_oid, is_array, json)


class Rows:
    """The rows of one file, or of one sheet, through a row command.

    `add` each, then `finish`; `result` is what the last one gave.
    """

    def __init__(self, transaction: Transaction, command: RowCommand, call: Call, exchange: Exchange) -> None:
        self._transaction = transaction
        self._call = call
        self._more = [
            None if (text := argument_text(exchange, index)) is None else text.encode() for index in command.parameters
        ]
        self._chained = command.chained
        self._previous: bytes | None = None
        self._first = True
        self._waiting: list[Values] = []
        self._sent: list[Request] = []
        self.result: Any = None

    async def add(self, number: int, cells: bytes | None, about: bytes) -> None:
        self._waiting.append([str(number).encode(), cells, self._previous, about, *self._more])
        if self._first:
            await self._look()
        elif self._chained or len(self._waiting) >= ROWS:
            await self._send()

    async def _look(self) -> None:
        """A command that gives no result at all has none for the next row either."""
        self._first = False
        await self._transaction.begin()
        await self._send()
        if self._chained and (request := await self._settled()) is not None:
            self._chained = request.plan is not None

    async def _send(self) -> None:
        *before, last = self._waiting
        self._waiting = []
        if len(self._sent) > 1:
            await self._settle(self._sent.pop(0))
        self._sent.append(self._transaction.send(self._call, last, before))
        if self._chained:
            await self._settled()

    async def _settled(self) -> Request | None:
        request = None
        for request in self._sent:
            await self._settle(request)
        self._sent = []
        return request

    async def _settle(self, request: Request) -> None:
        await self._transaction.finished(self._call, request)
        self._previous, self.result = first_value(request)

    async def finish(self) -> None:
        if self._waiting:
            await self._send()
        await self._settled()


__all__ = ["ROW_VALUES", "Commands", "Rows", "first_value", "large_object_commands", "row_call"]
