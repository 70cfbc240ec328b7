"""Row commands of imports that go on behind rows with errors (`on_error skip` and `collect`).

Rows run in groups, each behind a savepoint. If a group fails, it is rolled back and its halves run, until the rows with
errors are known: the others take effect, and some rows with errors among many cost little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rowcall.core.errors.problems import Problem
from rowcall.core.uploads.row_command import RowCommand
from rowcall.core.uploads.row_errors import (
    LONGEST_VALUE,
    MOST_SHOWN,
    ColumnMapping,
    ErrorHandling,
    OnError,
    described_error,
    is_fault_of_row,
)
from rowcall.core.uploads.settings import HandlerSettings
from rowcall.ext.binding.csv_rows import array_of_texts, columns
from rowcall.ext.driver.execution import Execution
from rowcall.service.database.call import Call
from rowcall.service.database.preamble import Values
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.response.headers import argument_text
from rowcall.service.uploads.handler import HandlerCommon, Turn
from rowcall.service.uploads.row_commands.batching import BatchCallProvider, ManyRows
from rowcall.service.uploads.row_commands.calls import first_value
from rowcall.service.uploads.row_commands.rows import Rows

SAVEPOINT = "rowcall_rows"
INVALID_TEXT = "22P02"
"""SQLSTATE of a text that is no value."""
GROUP = 256
"""Rows of a group if each is an execution of its own."""
LARGE_GROUP = 2048
"""Rows of a group if one statement takes many."""
FEW = 64
"""Rows after which it is determined whether one statement can take many."""


@dataclass(slots=True)
class _Row:
    """A row of the file that waits to run. number: from 1, the header included. about: file metadata as JSON."""

    number: int
    cells: bytes | None
    about: bytes


@dataclass(slots=True)
class RowSource:
    """The command of the rows of one file, its error handling, and names for messages about its rows."""

    turn: Turn
    command: RowCommand
    call: Call
    batching: BatchCallProvider
    handling: ErrorHandling
    mapping: ColumnMapping | None
    """Finds columns by the names in the first row."""
    names: Sequence[str] | None
    """Names of the columns, for errors."""
    place: dict[str, Any] = field(default_factory=dict)
    """File and sheet, for errors."""


def rows_of_file(
    turn: Turn,
    command: RowCommand,
    call: Call,
    batching: BatchCallProvider,
    common: HandlerCommon,
    settings: HandlerSettings,
    place: dict[str, Any],
    *,
    headed: bool = True,
) -> Rows | ImportRows:
    """Return the runner of the rows of a file or sheet.

    call: runs one row. batching: finds the call that runs many. place: names of file and sheet, for errors. headed:
    with `map_columns`, the first row has the names of the columns.
    """
    names = column_names(settings)
    mapping = ColumnMapping(names) if names and headed else None
    if common.on_error.mode is OnError.ABORT and mapping is None:
        return Rows(turn.transaction, command, call, turn.context, batching)
    return ImportRows(RowSource(turn, command, call, batching, common.on_error, mapping, names or None, place))


def column_names(settings: HandlerSettings) -> list[str]:
    """Return the names of `map_columns`."""
    return settings.text("map_columns", "").replace(",", " ").split()


class ImportRows:
    """Runs the rows of one file, with the interface of `Rows`. In addition, it records errors of rows, and finds
    columns by the names in the first row."""

    def __init__(self, source: RowSource) -> None:
        self._source = source
        self._transaction = source.turn.transaction
        context: RequestContext = source.turn.context
        self._more = [
            None if (text := argument_text(context, index)) is None else text.encode()
            for index in source.command.parameters
        ]
        self._waiting: list[_Row] = []
        self._seen = 0
        """Rows of the file, the header included."""
        self._batch: ManyRows | None = None
        self._is_asked = False
        self._previous: bytes | None = None
        self.failed = 0
        """Rows with errors."""
        self.errors: list[dict[str, Any]] = []
        self.result: Any = None

    @property
    def mode(self) -> OnError:
        """What happens after a row with an error."""
        return self._source.handling.mode

    @property
    def reports_errors(self) -> bool:
        """Whether further rows run behind one with an error."""
        return self.mode is not OnError.ABORT

    @property
    def rows_run(self) -> int:
        """Number of rows that have run, including those that PostgreSQL refused and those that cannot be read. The
        header does not count."""
        return self.rows - len(self._waiting)

    async def reject(self, text: bytes, reason: str) -> None:
        """Record a row that cannot be read, after the waiting rows have run. text: of the row. reason: message of its
        error. Raises `Problem` as `add` does.
        """
        # Errors are listed in the order of the rows.
        await self._run_waiting()
        self._seen += 1
        self._record(_Row(self._seen, None, b""), INVALID_TEXT, reason, None, text.decode(errors="replace"))

    @property
    def rows(self) -> int:
        """Rows of the file without its header."""
        return self._seen - (self._source.mapping is not None and self._seen > 0)

    async def add(self, rows: list[bytes | None], about: bytes | list[bytes]) -> None:
        """Add consecutive rows. about: file metadata, of all rows or of each. Raises `Problem` for a header without the
        named columns, for an error that ends the import, and if there are too many errors.
        """
        mapping = self._source.mapping
        for place, cells in enumerate(rows):
            self._seen += 1
            if mapping is not None and not mapping.is_known:
                self._read_header(mapping, cells)
                continue
            own = about if isinstance(about, bytes) else about[place]
            self._waiting.append(_Row(self._seen, cells if mapping is None else mapping.map_row(cells), own))
            if len(self._waiting) >= (GROUP if self._batch is None else LARGE_GROUP):
                await self._run_waiting()

    def _read_header(self, mapping: ColumnMapping, cells: bytes | None) -> None:
        """Let the mapping read the names of the columns. cells: of the first row. Raises `Problem` 400 if a named
        column is missing.
        """
        missing = mapping.read_header(cells)
        if missing:
            file = self._source.place.get("file", "the file")
            raise Problem(400, f"{file} has no column {', '.join(missing)} in its first row")

    async def finish(self) -> None:
        """Run the waiting rows. Raises `Problem` as `add` does."""
        await self._run_waiting()

    async def _run_waiting(self) -> None:
        """Run the waiting rows. Raises `Problem` as `add` does."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        if self._source.handling.mode is OnError.ABORT:
            await self._run(waiting)
            await self._find_batch()
            return
        step = 1 if self._source.command.chained else len(waiting)
        for begin in range(0, len(waiting), step):
            await self._try(waiting[begin : begin + step])
        await self._find_batch()

    async def _find_batch(self) -> None:
        """Determine, once, whether many rows can run at once."""
        if not self._is_asked and self._seen >= FEW:
            self._is_asked = True
            self._batch = await self._source.batching.call()

    async def _try(self, rows: list[_Row]) -> None:
        """Run rows; if one fails, run the halves, and record the error of a single row. Raises `Problem` for an error
        that is not one of a row, and if there are too many errors.
        """
        await self._transaction.command(f"savepoint {SAVEPOINT}")
        execution, problem = await self._run_quietly(rows)
        if problem is None:
            await self._transaction.command(f"release savepoint {SAVEPOINT}")
            return
        error = None if execution is None else execution.error
        if error is None or not is_fault_of_row(error.sqlstate):
            raise problem
        await self._transaction.command(f"rollback to savepoint {SAVEPOINT}")
        await self._transaction.command(f"release savepoint {SAVEPOINT}")
        if len(rows) == 1:
            self._record(rows[0], error.sqlstate, error.message, error.column)
            return
        middle = len(rows) // 2
        await self._try(rows[:middle])
        await self._try(rows[middle:])

    def _record(self, row: _Row, sqlstate: str, message: str, column: str | None, text: str | None = None) -> None:
        """Record the error of a row. Raises `Problem` 400 if there are too many errors. sqlstate, message, column: of
        the error; column: None if it names none. text: of a row that cannot be read; None: it could be read.
        """
        source = self._source
        names = source.names
        self.failed += 1
        value = {} if text is None else {"value": text[:LONGEST_VALUE]}
        if source.handling.mode is OnError.COLLECT:
            errors = source.turn.row_errors
            error = described_error(row.number, row.cells, names, sqlstate, message, column, source.place)
            errors.append({**error, **value})
            if len(errors) >= source.handling.limit:
                raise _import_problem(errors, at_least=True)
        elif len(self.errors) < MOST_SHOWN:
            place = {name: value for name, value in source.place.items() if name != "file"}
            error = described_error(row.number, row.cells, names, sqlstate, message, column, place)
            self.errors.append({**error, **value})

    async def _run_quietly(self, rows: list[_Row]) -> tuple[Execution | None, Problem | None]:
        """Run rows, behind a savepoint that the caller has set, and return the execution and its problem (None: it
        succeeded)."""
        execution = self._send_rows(rows)
        try:
            await self._transaction.wait_for_execution(self._used, execution, quiet=True)
        except Problem as problem:
            return execution, problem
        self._previous, self.result = first_value(execution)
        return execution, None

    async def _run(self, rows: list[_Row]) -> None:
        """Run rows whose errors end the import. Raises `Problem` for such an error."""
        groups = [[row] for row in rows] if self._source.command.chained else [rows]
        for group in groups:
            await self._transaction.begin()
            execution = self._send_rows(group)
            await self._transaction.wait_for_execution(self._used, execution)
            self._previous, self.result = first_value(execution)

    @property
    def _used(self) -> Call:
        """The call by which rows run: one row each, or many at once."""
        return self._source.call if self._batch is None else self._batch.call

    def _send_rows(self, rows: list[_Row]) -> Execution:
        """Send rows and return the last execution."""
        if self._batch is None:
            *before, last = (self._values(row) for row in rows)
            return self._transaction.send(self._source.call, last, before)
        cells = [row.cells for row in rows]
        about = rows[0].about
        if self._source.batching.own_about:
            about = array_of_texts([row.about for row in rows])
        values: Values = [
            str(rows[0].number - 1).encode(),
            None if self._batch.columns else array_of_texts(cells),
            self._previous,
            about,
            *self._more,
            *columns(cells, self._batch.columns),
        ]
        return self._transaction.send(self._batch.call, values)

    def _values(self, row: _Row) -> Values:
        return [str(row.number).encode(), row.cells, self._previous, row.about, *self._more]


def report_progress(rows: Rows | ImportRows, turn: Turn, place: Mapping[str, object], *, last: bool = False) -> None:
    """Publish how many rows have run, if the endpoint reports progress. place: names of file and sheet. last: all have
    run.
    """
    if turn.progress is not None:
        turn.progress.report_rows(place, rows.rows_run, rows.failed if isinstance(rows, ImportRows) else 0, last=last)


def counts_of(rows: Rows | ImportRows) -> dict[str, Any]:
    """Return the members `rows`, `failed` and `errors` for the entry of a file whose rows with errors are skipped
    (`on_error skip`); empty for other files."""
    if not isinstance(rows, ImportRows) or rows.mode is not OnError.SKIP:
        return {}
    return {"rows": rows.rows, "failed": rows.failed, "errors": rows.errors}


def refuse_rows(errors: list[dict[str, Any]]) -> None:
    """Raise `Problem` 400 if rows of an import have errors."""
    if errors:
        raise _import_problem(errors)


def _import_problem(errors: list[dict[str, Any]], *, at_least: bool = False) -> Problem:
    """Return the response to an import with errors. at_least: there may be more errors than these."""
    count = len(errors)
    rows = "row has an error" if count == 1 else "rows have errors"
    detail = f"{'at least ' if at_least else ''}{count} {rows}; nothing was imported"
    return Problem(400, detail, others={"errors": errors})
