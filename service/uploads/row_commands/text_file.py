"""The common base of the handlers for text files: it runs a row command for each row, while the file arrives."""

from __future__ import annotations

import abc
import asyncio
from typing import NamedTuple

from rowcall.core.uploads.checks import Status
from rowcall.core.uploads.entries import Entry, file_members, format_entry, result_members, with_claims
from rowcall.core.uploads.options import Common
from rowcall.core.uploads.row_command import RowCommand
from rowcall.core.uploads.settings import HandlerSettings
from rowcall.service.database.call import Call
from rowcall.service.uploads.handler import HandlerCommon, Turn, plain_refusal
from rowcall.service.uploads.incoming_files import File
from rowcall.service.uploads.row_commands.batching import BatchCallProvider
from rowcall.service.uploads.row_commands.rows import Rows
from rowcall.service.uploads.row_commands.tolerant import ImportRows, counts_of, report_progress, rows_of_file
from rowcall.service.uploads.spool import set_aside

SMALL = 262_144
"""Bytes of a file that are held in memory to determine its size."""
AT_ONCE = 32_768
"""Bytes that are parsed before other requests have their turn: about one millisecond."""


class RowCalls(NamedTuple):
    """How rows run: one by one by `call`, and many at once by `batching`."""

    command: RowCommand
    call: Call
    batching: BatchCallProvider


class RowReader(abc.ABC):
    """Reads one file, and adds its rows."""

    @abc.abstractmethod
    async def add(self, rows: Rows | ImportRows, piece: bytes, about: bytes) -> None:
        """Add the rows that a piece of the file completes. about: metadata of the file, as JSON. Raises `Problem` if a
        row is refused, or the file cannot be read.
        """

    @abc.abstractmethod
    async def finish(self, rows: Rows | ImportRows, about: bytes) -> None:
        """Add the rows that the end of the file completes. about: as for `add`. Raises `Problem` as `add` does."""


class TextFile(abc.ABC):
    """Handler of text files with a row in each line. headed: with `map_columns`, the first row names the columns."""

    def __init__(
        self,
        key: str,
        common: Common,
        settings: HandlerSettings,
        turn: Turn,
        running: RowCalls,
        *,
        headed: bool,
    ) -> None:
        self.key = key
        self.common = HandlerCommon(settings, common)
        self._turn = turn
        self._settings = settings
        self._running = running
        self._claims_key = common.claims_key
        self._headed = headed

    @abc.abstractmethod
    def reader(self, file: File) -> RowReader:
        """Return the reader of a file."""

    async def store(self, file: File) -> list[Entry]:
        if self._running.command.has_file_metadata and len(await file.sample(SMALL)) >= SMALL:
            # The size of the file is part of the metadata of each row, so the file is read to its end first.
            with await set_aside(file) as stored:
                return await self._store(stored.file(), stored.size)
        return await self._store(file, file.size)

    async def _store(self, file: File, size: int) -> list[Entry]:
        """Run the rows of the file, and return its entry. size: of the file in bytes, for the metadata that row
        commands get.
        """
        place = {"file": file.name}
        rows = rows_of_file(
            self._turn, *self._running, self.common, self._settings, place, headed=self._headed,
        )  # fmt: skip
        about = format_entry(self._metadata(file, size))
        reader = self.reader(file)
        async for piece in file.pieces():
            for start in range(0, len(piece), AT_ONCE):
                await reader.add(rows, piece[start : start + AT_ONCE], about)
                report_progress(rows, self._turn, place)
                await asyncio.sleep(0)
        await reader.finish(rows, about)
        await rows.finish()
        report_progress(rows, self._turn, place, last=True)
        return [{**self._metadata(file, file.size), "lastResult": rows.result, **counts_of(rows)}]

    def _metadata(self, file: File, size: int) -> Entry:
        entry = {**file_members(self.key, file.name, file.content_type, size), **result_members(Status.OK)}
        return with_claims(entry, self._claims_key, self._turn.claims)

    def refusal_entries(self, file: File, status: Status) -> list[Entry]:
        return [plain_refusal(self.key, file, status)]
