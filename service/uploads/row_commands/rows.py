"""Row commands: one execution for each row of a file, many of them in flight (uploads-20)."""

from __future__ import annotations

from typing import Any

from rowcall.core.uploads.row_command import RowCommand
from rowcall.ext.binding.csv_rows import array_of_texts, columns
from rowcall.ext.driver.execution import Execution
from rowcall.service.database.call import Call
from rowcall.service.database.preamble import Values
from rowcall.service.database.transactions.transaction import Transaction
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.response.headers import argument_text
from rowcall.service.uploads.row_commands.batching import BatchCallProvider, ManyRows
from rowcall.service.uploads.row_commands.calls import first_value

ROWS = 256
"""Rows whose executions are sent together."""
FEW = 64
"""Rows that run one by one before it is determined whether many can run at once."""
FIRST_BATCH = 128
"""Rows of the first batch."""
LARGEST_BATCH = 2048
"""Maximum number of rows of a batch."""
MOST_BYTES = 1_048_576
"""Bytes of cells that wait to be sent, at most: rows may be long."""
SHORT, LONG = 0.05, 0.25
"""Seconds of a batch: if it was shorter, the next is twice as large; if longer, half as large. A time limit applies to
one statement.
"""


class Rows:
    """Runs a row command for the rows of one file, or of one sheet.

    Call `add` for consecutive rows, as often as needed, then `finish`; after that, `result` is the result of the last
    row.
    """

    def __init__(
        self,
        transaction: Transaction,
        command: RowCommand,
        call: Call,
        context: RequestContext,
        batching: BatchCallProvider,
    ) -> None:
        self._transaction = transaction
        self._call = call
        self._more = [
            None if (text := argument_text(context, index)) is None else text.encode() for index in command.parameters
        ]
        self._chained = command.chained
        self._batching = batching
        self._batch: ManyRows | None = None
        self._size = FIRST_BATCH
        self._cells: list[bytes | None] = []
        self._abouts: list[bytes | None] = []
        """File metadata of each row, if it differs."""
        self._about = b""
        """File metadata of all rows otherwise."""
        self._previous: bytes | None = None
        self._count = 0
        """Rows that have been sent."""
        self._waiting_bytes = 0
        """Bytes of the cells that have not been sent."""
        self._waiting: list[Values] = []
        self._sent: list[Execution] = []
        self.result: Any = None

    @property
    def rows_run(self) -> int:
        """Number of rows that have been sent; the last ones may still be in flight."""
        return self._count

    async def add(self, rows: list[bytes | None], about: bytes | list[bytes]) -> None:
        """Add consecutive rows: their cells, as array literals or JSON; None: a blank line. about: file metadata as
        JSON, of all rows or of each. Raises `Problem` if a row failed.
        """
        for place, cells in enumerate(rows):
            if self._batch is not None:
                await self._add_to_batch(rows[place:], about if isinstance(about, bytes) else about[place:])
                return
            own = about if isinstance(about, bytes) else about[place]
            await self._add_one(self._count + len(self._waiting) + 1, cells, own)

    async def _add_one(self, number: int, cells: bytes | None, about: bytes) -> None:
        """Add a row that runs by a statement of its own. number: from 1. cells, about: as for `add`."""
        self._waiting.append([str(number).encode(), cells, self._previous, about, *self._more])
        self._waiting_bytes += len(cells or b"")
        if number == 1:
            await self._run_first()
        elif self._chained or len(self._waiting) >= ROWS or self._waiting_bytes >= MOST_BYTES:
            await self._send()
        if number == FEW:
            await self._find_batch()

    async def _run_first(self) -> None:
        """Run the first row alone. If the command returns no result, the next rows need not wait for the row before
        them.
        """
        await self._transaction.begin()
        await self._send()
        if self._chained and self._last is not None:
            self._chained = self._last.plan is not None

    async def _find_batch(self) -> None:
        """Determine whether many rows can run at once from now on."""
        batch = await self._batching.call()
        if batch is not None:
            await self._drain()
            self._batch = batch

    _last: Execution | None = None

    async def _send(self) -> None:
        """Send the waiting rows, each as an execution."""
        *before, last = self._waiting
        self._waiting = []
        self._waiting_bytes = 0
        self._count += len(before) + 1
        await self._send_in_segment(self._call, last, before, alone=self._chained)

    async def _send_in_segment(self, call: Call, last: Values, before: list[Values], *, alone: bool) -> None:
        """Send the executions with the values `before`, and then with `last`, in one segment; if several segments are
        in flight, wait for the oldest one first. Then wait for all if the next row needs their result (`alone`), or
        if this was the first row.
        """
        if len(self._sent) > 1:
            await self._settle(self._sent.pop(0), call)
        self._sent.append(self._transaction.send(call, last, before))
        if alone or self._count == 1:
            await self._settle_all(call)

    async def _settle_all(self, call: Call) -> None:
        """Wait for all executions in flight. call: the one that they run."""
        sent, self._sent = self._sent, []
        for execution in sent:
            await self._settle(execution, call)

    async def _settle(self, execution: Execution, call: Call) -> None:
        """Wait for an execution, and store its result. call: the one that it runs. Raises `Problem` if it failed."""
        await self._transaction.wait_for_execution(call, execution)
        self._last = execution
        self._previous, self.result = first_value(execution)

    # --- batches -----------------------------------------------------------------------------------------------------

    async def _add_to_batch(self, rows: list[bytes | None], about: bytes | list[bytes]) -> None:
        """Add rows that run many at once, and send those that fill a batch. about: the file metadata, of all rows or of
        each.
        """
        self._cells += rows
        if isinstance(about, bytes):
            self._about = about
        else:
            self._abouts += about
        self._waiting_bytes += _bytes(rows)
        while len(self._cells) >= self._size:
            await self._send_batch(self._size)
        if self._waiting_bytes >= MOST_BYTES:
            await self._send_batch(len(self._cells))

    async def _send_batch(self, size: int) -> None:
        """Send the first `size` waiting rows as one execution, and choose the size of the next batch by the duration of
        the last finished execution."""
        assert self._batch is not None  # noqa: S101
        batch = self._batch
        cells, self._cells = self._cells[:size], self._cells[size:]
        self._waiting_bytes = _bytes(self._cells)
        about = self._about
        if self._abouts:
            about, self._abouts = array_of_texts(self._abouts[:size]), self._abouts[size:]
        nested_rows = None if batch.columns else array_of_texts(cells)
        values = [
            str(self._count).encode(),
            nested_rows,
            self._previous,
            about,
            *self._more,
            *columns(cells, batch.columns),
        ]
        self._count += len(cells)
        await self._send_in_segment(batch.call, values, [], alone=self._chained)
        if self._last is not None:
            if self._last.seconds < SHORT:
                self._size = min(LARGEST_BATCH, self._size * 2)
            elif self._last.seconds > LONG:
                self._size = max(1, self._size // 2)

    async def _drain(self) -> None:
        """Send the waiting rows, and wait for all executions."""
        if self._waiting:
            await self._send()
        await self._settle_all(self._call if self._batch is None else self._batch.call)

    async def finish(self) -> None:
        """Run the waiting rows, and wait for all. Raises `Problem` if one failed."""
        if self._cells:
            await self._send_batch(len(self._cells))
        await self._drain()


def _bytes(rows: list[bytes | None]) -> int:
    """Return the total size of the cells in bytes."""
    return sum(map(len, filter(None, rows)))
