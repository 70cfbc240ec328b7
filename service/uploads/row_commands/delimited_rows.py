"""The handler `csv`: a row command for each line of a file (uploads-17)."""

from __future__ import annotations

from rowcall.core.errors.problems import Problem
from rowcall.core.uploads.checks import Status
from rowcall.core.uploads.csv_text import CsvFormat, CsvRows, InvalidByteError, MalformedLineError
from rowcall.core.uploads.encodings import UnknownEncodingError, codec_name, utf8_sample
from rowcall.core.uploads.options import Common, Csv
from rowcall.core.uploads.settings import HandlerSettings
from rowcall.ext.binding.csv_rows import CsvError, EncodingError
from rowcall.ext.binding.csv_rows import CsvRows as FastRows
from rowcall.service.uploads.handler import Turn
from rowcall.service.uploads.incoming_files import File
from rowcall.service.uploads.row_commands.rows import Rows
from rowcall.service.uploads.row_commands.text_file import RowCalls, RowReader, TextFile
from rowcall.service.uploads.row_commands.tolerant import ImportRows


class DelimitedRows(TextFile):
    """Runs the rows of CSV files of one request."""

    def __init__(
        self, key: str, options: Csv, common: Common, settings: HandlerSettings, turn: Turn, running: RowCalls
    ) -> None:
        super().__init__(key, common, settings, turn, running, headed=True)
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

    def reader(self, file: File) -> RowReader:
        return _Reader(file.name, self._form)


class _Reader(RowReader):
    """Reads one CSV file."""

    def __init__(self, file: str, form: CsvFormat) -> None:
        self._file = file
        # The fast reader supports delimiters of one byte only.
        self._reader: CsvRows | FastRows = (
            FastRows(form.delimiters.encode(), form.quotes, form.blank_is_null, form.encoding)
            if form.delimiters.isascii()
            else CsvRows(form)
        )

    async def add(self, rows: Rows | ImportRows, piece: bytes, about: bytes) -> None:
        try:
            found = self._reader.feed(piece)
        except (InvalidByteError, EncodingError, MalformedLineError, CsvError) as error:
            raise self._refusal(error) from None
        await rows.add(found, about)

    async def finish(self, rows: Rows | ImportRows, about: bytes) -> None:
        try:
            found = self._reader.finish()
        except (InvalidByteError, EncodingError, MalformedLineError, CsvError) as error:
            raise self._refusal(error) from None
        await rows.add(found, about)

    def _refusal(self, error: Exception) -> Problem:
        """Return the problem for an error of the reader: 400 for bytes that are invalid in the encoding, 500 for a
        malformed line.
        """
        if isinstance(error, InvalidByteError | EncodingError):
            return Problem(400, f"{self._file} cannot be read: {error}")
        return Problem(500, f"{self._file} is no CSV: {error}")


def _codec(encoding: str) -> str | None:
    """Return the codec of an encoding; None: UTF-8. Raises `Problem` 400 for an unknown name, which a placeholder may
    have brought.
    """
    try:
        return codec_name(encoding)
    except UnknownEncodingError as error:
        raise Problem(400, str(error)) from None
