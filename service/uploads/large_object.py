"""The handler `large_object`: files into the database (uploads-16)."""

from __future__ import annotations

from collections import deque

from rowcall.core.uploads.checks import Status
from rowcall.core.uploads.entries import Entry, file_members, result_members
from rowcall.core.uploads.options import Common, LargeObjects
from rowcall.core.uploads.settings import HandlerSettings
from rowcall.ext.driver.execution import Execution
from rowcall.service.uploads.handler import HandlerCommon, Turn, judge, stored_file_checks
from rowcall.service.uploads.incoming_files import File
from rowcall.service.uploads.row_commands.calls import Commands, first_value

LEAST_PIECE = 65_536
"""Minimum number of bytes that one command writes: with fewer, the commands would take longer than the bytes."""
IN_FLIGHT = 4
"""Maximum number of write commands in flight."""


class LargeObject:
    """Stores the files of one request as large objects."""

    def __init__(
        self,
        key: str,
        options: LargeObjects,
        common: Common,
        settings: HandlerSettings,
        turn: Turn,
        commands: Commands,
    ) -> None:
        self.key = key
        self.common = HandlerCommon(settings, common)
        self._turn = turn
        self._commands = commands
        self._checks = stored_file_checks(self.common, settings, options, common.image_types)
        self._oid = settings.number("oid", 0)
        self._piece = max(self.common.buffer_size, LEAST_PIECE)

    async def check(self, file: File) -> tuple[Status, File]:
        return await judge(file, self._checks), file

    async def store(self, file: File) -> list[Entry]:
        transaction = self._turn.transaction
        created = await transaction.run(self._commands.create, [str(self._oid).encode()])
        oid = first_value(created)[0] or b"0"
        waiting: deque[Execution] = deque()
        place = 0
        async for piece in file.in_pieces_of(self._piece):
            values: list[bytes | None] = [oid, str(place).encode(), piece]
            waiting.append(transaction.send(self._commands.write, values))
            place += len(piece)
            if len(waiting) >= IN_FLIGHT:
                await transaction.wait_for_execution(self._commands.write, waiting.popleft())
        while waiting:
            await transaction.wait_for_execution(self._commands.write, waiting.popleft())
        return [self._entry(file, Status.OK, int(oid))]

    def refusal_entries(self, file: File, status: Status) -> list[Entry]:
        return [self._entry(file, status, None)]

    def _entry(self, file: File, status: Status, oid: int | None) -> Entry:
        return {**file_members(self.key, file.name, file.content_type, file.size), **result_members(status), "oid": oid}
