"""The handler `excel`: a row command for each row of a workbook (uploads-18)."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

import orjson

from rowcall.core.errors.problems import Problem
from rowcall.core.uploads.checks import Status
from rowcall.core.uploads.entries import Entry, file_members, format_entry, result_members, with_claims
from rowcall.core.uploads.options import Common, Excel
from rowcall.core.uploads.row_command import RowCommand
from rowcall.core.uploads.settings import HandlerSettings
from rowcall.service.database.call import Call
from rowcall.service.interpreter import FOLDER, interpreter_command, interpreter_environment
from rowcall.service.uploads.handler import FormatError, HandlerCommon, Turn, judge, plain_refusal
from rowcall.service.uploads.incoming_files import File
from rowcall.service.uploads.row_commands.batching import BatchCallProvider
from rowcall.service.uploads.row_commands.rows import Rows
from rowcall.service.uploads.row_commands.tolerant import ImportRows, counts_of, report_progress, rows_of_file
from rowcall.service.uploads.spool import SpooledFile, set_aside

SIGNATURES = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
"""First bytes of packed workbooks, and of those before 2007."""
AHEAD = 131_072
"""Bytes that are read ahead from the reader: half of those that asyncio buffers."""
SAVEPOINT = "rowcall_workbook"
EXHAUSTED = frozenset({-signal.SIGABRT, -signal.SIGKILL, -signal.SIGXCPU})
"""Exit codes of a reader that ran out of memory (python-calamine aborts then) or processor time."""


class Spreadsheet:
    """Runs the rows of workbooks of one request.

    commands, calls, batchings: each with a value for rows as arrays (key False) and one for rows as JSON (key True);
    the settings of the request choose.
    """

    def __init__(
        self,
        key: str,
        options: Excel,
        common: Common,
        settings: HandlerSettings,
        turn: Turn,
        commands: Mapping[bool, RowCommand],
        calls: Mapping[bool, Call],
        batchings: Mapping[bool, BatchCallProvider],
    ) -> None:
        self.key = key
        self.common = HandlerCommon(settings, common)
        self._turn = turn
        self._settings = settings
        self._checks = self.common.checks()
        self._claims_key = common.claims_key
        as_json = settings.flag("row_is_json", options.row_is_json)
        self._command = commands[as_json]
        self._call = calls[as_json]
        self._batching = batchings[as_json]
        self._options = {
            "all": settings.flag("all_sheets", options.all_sheets),
            "sheet": settings.text_or_none("sheet_name", options.sheet_name) or None,
            "time": settings.text("time_format", options.time_format) or options.time_format,
            "date": settings.text("date_format", options.date_format) or options.date_format,
            "datetime": settings.text("datetime_format", options.datetime_format) or options.datetime_format,
            "json": as_json,
            "max_cells": options.max_cells,
        }

    async def check(self, file: File) -> tuple[Status, File]:
        status = await judge(file, self._checks)
        if status is Status.OK and not (await file.sample(8)).startswith(SIGNATURES):
            status = Status.INVALID_FORMAT
        return status, file

    async def store(self, file: File) -> list[Entry]:
        """Store the file as a whole first, as the directory of a packed workbook is at its end, then run its rows.

        Raises:
            FormatError: the file is no workbook, or cannot be read to its end.
            Problem: 413 for a workbook that exceeds a limit, 500 or 507 for errors of the disk, and that of a failed
            row.
        """
        stored = self._turn.cleanup.enter_context(await set_aside(file))
        await self._turn.transaction.command(f"savepoint {SAVEPOINT}")
        row_errors = self._turn.row_errors.copy()
        async with _reader(stored, self._options) as process:
            entries = await self._read(process, stored)
        if entries is None:
            await self._turn.transaction.command(f"rollback to savepoint {SAVEPOINT}")
            self._turn.row_errors = row_errors
            raise FormatError(stored.file())
        await self._turn.transaction.command(f"release savepoint {SAVEPOINT}")
        return entries

    async def _read(self, process: Process, stored: SpooledFile) -> list[Entry] | None:
        """Run the rows. Return None if the workbook cannot be read, entirely or from some point on. Raises `Problem`:
        413 for a workbook that is too large, and that of a failed row."""
        output = cast(asyncio.StreamReader, process.stdout)
        entries: list[Entry] = []
        sheet: _Sheet | None = None
        while True:
            message = await _message(output)
            if sheet is not None and "rows" not in message:
                entries.append(await sheet.finish())
                sheet = None
            if "rows" in message and sheet is not None:
                await sheet.add(message["rows"])
                # Messages that have arrived already are read without waiting, so let other requests run.
                await asyncio.sleep(0)
            elif "sheet" in message:
                sheet = self._sheet(stored, message["sheet"])
            elif "end" in message:
                return entries
            elif "too_large" in message:
                raise Problem(413, f"the workbook {stored.name} is too large: {message['too_large']}")
            elif not message and await process.wait() in EXHAUSTED:
                raise Problem(413, f"the workbook {stored.name} is too large: reading it takes too much memory or time")
            elif "sheets" not in message:
                return None

    def _sheet(self, stored: SpooledFile, name: str) -> _Sheet:
        place = {"file": stored.name, "sheet": name}
        rows = rows_of_file(self._turn, self._command, self._call, self._batching, self.common, self._settings, place)
        about = {**file_members(self.key, stored.name, stored.content_type, stored.size), "sheet": name}
        metadata = format_entry(with_claims(about, self._claims_key, self._turn.claims))
        return _Sheet(rows, about, metadata, self._turn, place, with_metadata=self._command.has_file_metadata)

    def refusal_entries(self, file: File, status: Status) -> list[Entry]:
        return [plain_refusal(self.key, file, status)]


class _Sheet:
    """Runs the rows of one sheet."""

    def __init__(
        self,
        rows: Rows | ImportRows,
        about: dict[str, Any],
        metadata: bytes,
        turn: Turn,
        place: Mapping[str, object],
        *,
        with_metadata: bool,
    ) -> None:
        """about: members of the entry of the sheet. metadata: the same as a JSON object, with the claims, for row
        commands, without the index of the row. place: names of file and sheet, for progress. with_metadata: whether the
        command takes the metadata.
        """
        self._rows = rows
        self._about = about
        self._turn = turn
        self._place = place
        # Only the row index differs from row to row.
        self._begun = metadata[:-1]
        self._with_metadata = with_metadata
        self._count = 0

    async def add(self, rows: list[tuple[int, str]]) -> None:
        """Add rows: index in the sheet, and cells as an array literal or JSON. Raises `Problem` if a row failed."""
        self._count += len(rows)
        metadata = [b'%b,"rowIndex":%d}' % (self._begun, index) for index, _ in rows] if self._with_metadata else b""
        await self._rows.add([cells.encode() for _, cells in rows], metadata)
        report_progress(self._rows, self._turn, self._place)

    async def finish(self) -> Entry:
        """Wait for all rows, and return the entry of the sheet. Raises `Problem` if a row failed."""
        await self._rows.finish()
        report_progress(self._rows, self._turn, self._place, last=True)
        # `result` is the older name of `lastResult` (uploads-18); both are sent.
        result = self._rows.result
        members = {
            **self._about,
            **result_members(Status.OK),
            "rows": self._count,
            "lastResult": result,
            "result": result,
        }
        return {**members, **counts_of(self._rows)}


async def _message(output: asyncio.StreamReader) -> dict[str, Any]:
    """Read a message. Return an empty one if the output of the reader has ended before it or in the middle of it."""
    size = await output.readline()
    if not size.endswith(b"\n"):
        return {}
    try:
        message: dict[str, Any] = orjson.loads(await output.readexactly(int(size)))
    except asyncio.IncompleteReadError:
        return {}
    return message


@contextlib.asynccontextmanager
async def _reader(stored: SpooledFile, options: Mapping[str, object]) -> AsyncIterator[Process]:
    """Run the reader of a workbook in a process, yield the process, and kill it afterwards. options: as
    `sheet_reader.main` takes them, without `file`.
    """
    number = stored.stored.fileno()
    process = await asyncio.create_subprocess_exec(
        *interpreter_command("-m", "rowcall.service.uploads.row_commands.sheet_reader"),
        orjson.dumps({**options, "file": number}).decode(),
        cwd=FOLDER,
        env=interpreter_environment(),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        pass_fds=(number,),
        limit=AHEAD,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
