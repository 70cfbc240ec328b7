"""Calls of the service itself, without preamble: of jobs, recorded requests and published results."""

from __future__ import annotations

from rowcall.ext.driver.execution import Statement
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.raw_rows import RawRenderer
from rowcall.service.database.call import Call
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.database.statements import numbers
from rowcall.service.pipeline.services import Services


def own_call(
    label: str,
    sql: str,
    values: int,
    services: Services,
    *,
    binary: tuple[int, ...] | None = None,
    reads: bool = True,
    sensitive: bool = False,
) -> Call:
    """Return a call whose result is the texts of a row, separated by NUL. values: their number; binary: the indexes of
    those sent in binary. reads: the result is used.
    """
    renderer = RawRenderer(Codecs(), True, separator=b"\0", new_line=b"\n", quotes=False) if reads else None
    return Call(
        label=label,
        build=lambda _mask: ("", 0),
        made=lambda _mask: Statement(next(numbers), sql.encode(), values, renderer, binary=binary),
        renderer=None,
        pace=PoolAssignment(services.options.database.slow),
        volatile=True,
        sensitive=sensitive,
    )
