"""Calls of the service itself, without preamble: of jobs, recorded requests and published results."""

from __future__ import annotations

import orjson

from rowcall.core.auth.login import Cell
from rowcall.ext.driver.execution import Statement
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.raw_rows import RawRenderer
from rowcall.service.database.call import Call
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.database.statements import numbers
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext


def sql_call(
    label: str,
    sql: str,
    values: int,
    services: Services,
    *,
    binary: tuple[int, ...] | None = None,
    reads: bool = True,
    sensitive: bool = False,
) -> Call:
    """Return a call of the SQL. Its result is the texts of the columns, separated by NUL, with a line feed between
    rows. label: name of the call in messages. values: number of parameters. binary: indexes of parameters that are sent
    in binary. reads: the result is used. sensitive: messages contain no values."""
    renderer = RawRenderer(Codecs(), True, separator=b"\0", new_line=b"\n", quotes=False) if reads else None
    return Call(
        label=label,
        build=lambda _mask: ("", 0),
        made=lambda _mask: Statement(next(numbers), sql.encode(), values, renderer, binary=binary),
        renderer=None,
        pace=PoolAssignment(services.options.database.pools.slow),
        volatile=True,
        sensitive=sensitive,
    )


def rows_of(context: RequestContext) -> list[list[Cell]]:
    """Return the rows of a finished call that was rendered by `CellRows`."""
    execution = context.execution
    body = b"" if execution is None else execution.body
    return [[Cell(*cell) for cell in row] for row in orjson.loads(body)] if body else []
