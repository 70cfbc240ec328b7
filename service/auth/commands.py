"""SQL of the configuration that runs for a request: verification callbacks, challenge commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import orjson

from rowcall.core.auth.commands import numbered
from rowcall.core.auth.login import Cell
from rowcall.ext.rendering.cell_rows import CellRows
from rowcall.service.database.call import Call
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.request_context.request_context import RequestContext

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services


ALL_TEXT: Mapping[int, str] = MappingProxyType({})


class Command:
    """One command with optional positional parameters."""

    def __init__(self, label: str, sql: str, services: Services, types: Mapping[int, str] = ALL_TEXT) -> None:
        """types: of those values that are no text."""
        text, self.takes = numbered(sql, types)
        self._database = services.database
        self._call = Call(
            label=label,
            build=lambda _mask: (text, len(self.takes)),
            renderer=CellRows(services.codecs, True),
            pace=PoolAssignment(services.options.database.slow),
            volatile=True,
            existed=False,
            sensitive=True,
        )

    async def run(self, context: RequestContext, values: Sequence[str | None]) -> list[list[Cell]]:
        """Its rows. values: for `$1` and on, as far as the command has them.

        Raises:
            Problem: it failed.
        """
        inner = RequestContext(context.scope, context.protocol)
        known = dict(enumerate(values, 1))
        taken = (known.get(number) for number in self.takes)
        inner.arguments = [None if value is None else value.encode() for value in taken]
        await self._database.run_alone(self._call, inner)
        self._call.existed = True
        return rows_of(inner)


def rows_of(context: RequestContext) -> list[list[Cell]]:
    """What a finished call with a `CellRows` writer gave."""
    request = context.execution
    body = b"" if request is None else request.body
    return [[Cell(*cell) for cell in row] for row in orjson.loads(body)] if body else []
