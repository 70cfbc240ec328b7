"""Run SQL commands of the configuration for a request: verification callbacks, challenge commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from rowcall.core.auth.commands import number_placeholders
from rowcall.core.auth.login import Cell
from rowcall.ext.rendering.cell_rows import CellRows
from rowcall.service.database.call import Call
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.pipeline.sql_call import rows_of
from rowcall.service.request_context.request_context import RequestContext

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services


ALL_TEXT: Mapping[int, str] = MappingProxyType({})
"""Type names of parameters by number: none, so all values are text."""


class Command:
    """A configured SQL command with optional positional parameters."""

    def __init__(self, label: str, sql: str, services: Services, types: Mapping[int, str] = ALL_TEXT) -> None:
        """label: name of the command for the log. types: names of the types of parameters that are not text, by
        parameter number.
        """
        text, self.takes = number_placeholders(sql, types)
        self._database = services.database
        self._call = Call(
            label=label,
            build=lambda _mask: (text, len(self.takes)),
            renderer=CellRows(services.codecs, True),
            pace=PoolAssignment(services.options.database.pools.slow),
            volatile=True,
            existed=False,
            sensitive=True,
        )

    async def run(self, context: RequestContext, values: Sequence[str | None]) -> list[list[Cell]]:
        """Run the command and return its rows.

        values: for `$1` and following, as text; None is NULL, as are missing ones. Values that the command does not use
        are ignored.

        Raises:
            Problem: the command failed.
        """
        command_context = RequestContext(context.scope, context.protocol)
        by_number = dict(enumerate(values, 1))
        used_values = (by_number.get(number) for number in self.takes)
        command_context.arguments = [None if value is None else value.encode() for value in used_values]
        await self._database.run_alone(self._call, command_context)
        self._call.existed = True
        return rows_of(command_context)
