"""The handler `jsonl`: a row command for each line of a file of JSON lines."""

from __future__ import annotations

import asyncio

from rowcall.core.errors.problems import Problem
from rowcall.core.uploads.checks import Status
from rowcall.core.uploads.entries import Entry, described, dumped, judged, with_claims
from rowcall.core.uploads.json_lines import LineError, LineSplitter, checked, members
from rowcall.core.uploads.options import Common, JsonLines
from rowcall.core.uploads.row_command import RowCommand
from rowcall.core.uploads.settings import HandlerSettings
from rowcall.service.database.call import Call
from rowcall.service.uploads.handler import HandlerCommon, Turn, judge, plain_refusal
from rowcall.service.uploads.incoming import File
from rowcall.service.uploads.row_commands.batching import Batching
from rowcall.service.uploads.row_commands.delimited import AT_ONCE, SMALL
from rowcall.service.uploads.row_commands.rows import Rows
from rowcall.service.uploads.row_commands.tolerant import (
    ImportRows,
    column_names,
    counts_of,
    report_progress,
    rows_of_file,
)
from rowcall.service.uploads.spool import set_aside


class JsonLineRows:
    """Rows are the lines as they are; with `map_columns`, arrays of texts with the values of these members."""

    def __init__(
        self,
        key: str,
        options: JsonLines,
        common: Common,
        settings: HandlerSettings,
        turn: Turn,
        command: RowCommand,
        call: Call,
        batching: Batching,
    ) -> None:
        self.key = key
        self.common = HandlerCommon(settings, common)
        self._turn = turn
        self._settings = settings
        self._command = command
        self._call = call
        self._batching = batching
        self._claims_key = common.claims_key
        self._names = column_names(settings)
        self._checks = self.common.checks(text=settings.flag("check_format", options.check_format))

    async def check(self, file: File) -> tuple[Status, File]:
        return await judge(file, self._checks), file

    async def store(self, file: File) -> list[Entry]:
        if self._command.has_file_metadata and len(await file.sample(SMALL)) >= SMALL:
            # The size of the file is part of the metadata of each row, so the file is read to its end first.
            with await set_aside(file) as stored:
                return await self._store(stored.file(), stored.size)
        return await self._store(file, file.size)

    async def _store(self, file: File, size: int) -> list[Entry]:
        rows = rows_of_file(
            self._turn, self._command, self._call, self._batching, self.common, self._settings, {"file": file.name},
            headed=False,
        )  # fmt: skip
        about = dumped(self._metadata(file, size))
        lines = LineSplitter()
        try:
            async for piece in file.pieces():
                for start in range(0, len(piece), AT_ONCE):
                    await self._add(rows, lines.feed(piece[start : start + AT_ONCE]), about)
                    report_progress(rows, self._turn, {"file": file.name})
                    await asyncio.sleep(0)
            await self._add(rows, lines.finish(), about)
        except LineError as error:
            raise Problem(400, f"{file.name} line {rows.seen + 1} is no row: {error}") from None
        await rows.finish()
        report_progress(rows, self._turn, {"file": file.name}, last=True)
        return [{**self._metadata(file, file.size), "lastResult": rows.result, **counts_of(rows)}]

    async def _add(self, rows: Rows | ImportRows, lines: list[bytes], about: bytes) -> None:
        """Add lines. Raises `LineError` for one that is no row, unless rows with errors are reported."""
        good: list[bytes | None] = []
        for line in lines:
            try:
                good.append(members(line, self._names) if self._names else checked(line))
            except LineError as error:
                await rows.add(good, about)
                good = []
                if not isinstance(rows, ImportRows) or not rows.reports_errors:
                    raise
                await rows.reject(line, f"it is no row: {error}")
        await rows.add(good, about)

    def _metadata(self, file: File, size: int) -> Entry:
        entry = {**described(self.key, file.name, file.content_type, size), **judged(Status.OK)}
        return with_claims(entry, self._claims_key, self._turn.claims)

    def refused(self, file: File, status: Status) -> list[Entry]:
        return [plain_refusal(self.key, file, status)]
