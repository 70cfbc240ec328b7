"""The handler `csv`: a row command for each line of a file (uploads-17)."""

from __future__ import annotations

import asyncio

from rowcall.core.errors.problems import Problem
from rowcall.core.uploads.checks import Status
from rowcall.core.uploads.csv_text import CsvFormat, CsvRows, InvalidByteError, MalformedLineError
from rowcall.core.uploads.encodings import UnknownEncodingError, codec_name, utf8_sample
from rowcall.core.uploads.entries import Entry, described, dumped, judged, with_claims
from rowcall.core.uploads.options import Common, Csv
from rowcall.core.uploads.row_command import RowCommand
from rowcall.core.uploads.settings import HandlerSettings
from rowcall.ext.binding.csv_rows import CsvError, EncodingError
from rowcall.ext.binding.csv_rows import CsvRows as FastRows
from rowcall.service.database.call import Call
from rowcall.service.uploads.handler import HandlerCommon, Turn, plain_refusal
from rowcall.service.uploads.incoming import File
from rowcall.service.uploads.row_commands.batching import Batching
from rowcall.service.uploads.row_commands.tolerant import counts_of, report_progress, rows_of_file
from rowcall.service.uploads.spool import set_aside

SMALL = 262_144
"""Bytes of a file that are held in memory to determine its size."""

AT_ONCE = 32_768
"""Bytes that are parsed before other requests have their turn: about one millisecond."""


class Delimited:
    def __init__(
        self,
        key: str,
        options: Csv,
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
        checked = settings.flag("check_format", options.check_format)
        self._checks = self.common.checks(text=checked, lines=checked)
        self._form = CsvFormat(
            settings.text("delimiters", options.delimiters) or options.delimiters,
            settings.flag("has_fields_enclosed_in_quotes", options.quotes),
            settings.flag("set_white_space_to_null", options.blank_is_null),
            _codec(settings.text("encoding", "") or options.encoding),
        )

    async def check(self, file: File) -> tuple[Status, File]:
        beginning = utf8_sample(await file.sample(self._checks.sample), self._form.encoding)
        return self._checks.judge(file.content_type, beginning), file

    async def store(self, file: File) -> list[Entry]:
        if self._command.has_file_metadata and len(await file.sample(SMALL)) >= SMALL:
            # The size of the file is part of the metadata of each row, so the file is read to its end first.
            with await set_aside(file) as stored:
                return await self._store(stored.file(), stored.size)
        return await self._store(file, file.size)

    async def _store(self, file: File, size: int) -> list[Entry]:
        rows = rows_of_file(
            self._turn, self._command, self._call, self._batching, self.common, self._settings, {"file": file.name}
        )
        about = dumped(self._metadata(file, size))
        reader = _reader(self._form)
        try:
            async for piece in file.pieces():
                for start in range(0, len(piece), AT_ONCE):
                    await rows.add(reader.feed(piece[start : start + AT_ONCE]), about)
                    report_progress(rows, self._turn, {"file": file.name})
                    await asyncio.sleep(0)
            await rows.add(reader.finish(), about)
        except (InvalidByteError, EncodingError) as error:
            raise Problem(400, f"{file.name} cannot be read: {error}") from None
        except (MalformedLineError, CsvError) as error:
            raise Problem(500, f"{file.name} is no CSV: {error}") from None
        await rows.finish()
        report_progress(rows, self._turn, {"file": file.name}, last=True)
        return [{**self._metadata(file, file.size), "lastResult": rows.result, **counts_of(rows)}]

    def _metadata(self, file: File, size: int) -> Entry:
        entry = {**described(self.key, file.name, file.content_type, size), **judged(Status.OK)}
        return with_claims(entry, self._claims_key, self._turn.claims)

    def refused(self, file: File, status: Status) -> list[Entry]:
        return [plain_refusal(self.key, file, status)]


def _codec(encoding: str) -> str | None:
    """Return the codec of an encoding. Raises `Problem` for an unknown name, which a placeholder may have brought."""
    try:
        return codec_name(encoding)
    except UnknownEncodingError as error:
        raise Problem(400, str(error)) from None


def _reader(form: CsvFormat) -> CsvRows | FastRows:
    """Return the reader of the format: the fast one, which supports delimiters of one byte only, or its twin."""
    return (
        FastRows(form.delimiters.encode(), form.quotes, form.blank_is_null, form.encoding)
        if form.delimiters.isascii()
        else CsvRows(form)
    )
