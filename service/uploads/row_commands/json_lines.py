"""The handler `jsonl`: a row command for each line of a file of JSON lines."""

from __future__ import annotations

from rowcall.core.errors.problems import Problem
from rowcall.core.uploads.checks import Status
from rowcall.core.uploads.json_lines import LineError, LineSplitter, check_line, members
from rowcall.core.uploads.options import Common, JsonLines
from rowcall.core.uploads.settings import HandlerSettings
from rowcall.service.uploads.handler import Turn, judge
from rowcall.service.uploads.incoming_files import File
from rowcall.service.uploads.row_commands.rows import Rows
from rowcall.service.uploads.row_commands.text_file import RowCalls, RowReader, TextFile
from rowcall.service.uploads.row_commands.tolerant import ImportRows, column_names


class JsonLineRows(TextFile):
    """Rows are the lines as they are; with `map_columns`, arrays of texts with the values of these members."""

    def __init__(
        self, key: str, options: JsonLines, common: Common, settings: HandlerSettings, turn: Turn, running: RowCalls
    ) -> None:
        super().__init__(key, common, settings, turn, running, headed=False)
        self._names = column_names(settings)
        self._checks = self.common.checks(text=settings.flag("check_format", options.check_format))

    async def check(self, file: File) -> tuple[Status, File]:
        return await judge(file, self._checks), file

    def reader(self, file: File) -> RowReader:
        return _Reader(file.name, self._names)


class _Reader(RowReader):
    """Reads one file of JSON lines. names: of `map_columns`; empty: each row is the whole line."""

    def __init__(self, file: str, names: list[str]) -> None:
        self._file = file
        self._names = names
        self._lines = LineSplitter()
        self._number = 0
        """Number of lines so far, with blank ones."""

    async def add(self, rows: Rows | ImportRows, piece: bytes, about: bytes) -> None:
        try:
            lines = self._lines.feed(piece)
        except LineError as error:
            self._number += 1
            raise self._refusal(error) from None
        await self._add(rows, lines, about)

    async def finish(self, rows: Rows | ImportRows, about: bytes) -> None:
        await self._add(rows, self._lines.finish(), about)

    async def _add(self, rows: Rows | ImportRows, lines: list[bytes], about: bytes) -> None:
        """Add lines, except blank ones. about: metadata of the file, as JSON. Raises `Problem` 400 for a line that is
        no row, unless rows with errors are reported.
        """
        good: list[bytes | None] = []
        for line in lines:
            self._number += 1
            if not line:
                continue
            try:
                good.append(members(line, self._names) if self._names else check_line(line))
            except LineError as error:
                await rows.add(good, about)
                good = []
                if not isinstance(rows, ImportRows) or not rows.reports_errors:
                    raise self._refusal(error) from None
                await rows.reject(line, f"it is no row: {error}")
        await rows.add(good, about)

    def _refusal(self, error: LineError) -> Problem:
        """Return the 400 for the line that was read last."""
        return Problem(400, f"{self._file} line {self._number} is no row: {error}")
