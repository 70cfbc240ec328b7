"""The calls of upload handlers: row commands, and commands for large objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.error_policy import FAULTS_OF_VALUES, ErrorPolicy
from rowcall.core.uploads.entries import VOID, json_value
from rowcall.core.uploads.row_command import RowCommand
from rowcall.ext.driver.execution import Execution, Statement
from rowcall.ext.rendering.cell_rows import CellRows
from rowcall.service.database.call import Call
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.database.statements import numbers

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services


@dataclass(frozen=True, slots=True)
class Commands:
    """The service's own commands for large objects."""

    create: Call
    write: Call


def large_object_commands(endpoint: Endpoint, services: Services) -> Commands:
    """Return the commands that create a large object and write a part of it."""
    create = b"select pg_catalog.lo_create($1::pg_catalog.oid)"
    write = b"select pg_catalog.lo_put($1::pg_catalog.oid, $2::pg_catalog.int8, $3::pg_catalog.bytea)"
    return Commands(
        call_without_error_policy(
            endpoint,
            services,
            "lo_create",
            lambda: Statement(next(numbers), create, 1, CellRows(services.codecs, True)),
        ),
        call_without_error_policy(
            endpoint, services, "lo_put", lambda: Statement(next(numbers), write, 3, binary=(2,))
        ),
    )


def row_call(endpoint: Endpoint, services: Services, command: RowCommand) -> Call:
    """Return the call of a row command for one row."""

    def statement() -> Statement:
        return Statement(
            next(numbers),
            command.sql.encode(),
            command.values,
            CellRows(services.codecs, True),
            picks=command.picks,
            types=command.types if any(command.types) else None,
        )

    return call_without_error_policy(endpoint, services, "row_command", statement)


def call_without_error_policy(endpoint: Endpoint, services: Services, what: str, statement: Callable[[], Any]) -> Call:
    """Return a call whose errors are not subject to the error policy, which is for the routine (uploads-23).

    A cell that the command cannot take, or that violates a constraint, is a fault of the file: 400 or 409, unless
    `UnusableValues` is Established. what: name of the call in messages. statement: returns a new statement.
    """
    faults = {} if endpoint.options.lenient else FAULTS_OF_VALUES
    return Call(
        label=f"{endpoint.name} {what}",
        build=lambda _mask: ("", 0),
        made=lambda _mask: statement(),
        renderer=None,
        pace=PoolAssignment(services.options.database.pools.slow),
        volatile=True,
        policy=ErrorPolicy(faults, services.options.policies.timeout),
        sensitive=endpoint.options.sensitive,
    )


def first_value(execution: Execution) -> tuple[bytes | None, Any]:
    """Return the first column of the first row, as text and as JSON value. Both are None if it is NULL, if there is no
    row, or if its type is void.
    """
    rows = orjson.loads(execution.body) if execution.body else []
    if not rows or not rows[0]:
        return None, None
    _, type_oid, is_array, text, json = rows[0][0]
    if type_oid == VOID:
        return None, None
    return None if text is None else text.encode(), json_value(type_oid, is_array, json)
