"""Parquet: rows that arrive from the database become row groups of a file, which is streamed to the client.

Rows are rendered as CSV, which the library reads into columns in a thread; a group is written when it has `GROUP`
bytes. So a worker needs the same memory for many rows as for one group.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pyarrow as pa
from pyarrow import csv, parquet

from rowcall.core.endpoint.endpoint import ResultColumn
from rowcall.core.errors.problems import Problem
from rowcall.core.formats.table_formats import PARQUET
from rowcall.core.formats.workbook_names import content_disposition
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.raw_rows import RawRenderer
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.response.formats.table import Table, TableFormat

GROUP = 16_777_216
"""Bytes of CSV from which rows are written as a row group."""
_TYPES = {
    16: pa.bool_(),
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    26: pa.uint32(),
    700: pa.float32(),
    701: pa.float64(),
    1082: pa.date32(),
    1083: pa.time64("us"),
    1114: pa.timestamp("us"),
    1184: pa.timestamp("us", "UTC"),
}
"""Types by OID; values of all others are texts, as in CSV."""
_DECIMAL = re.compile(r"numeric\((\d+),(\d+)\)")
_MOST_DIGITS = 38
"""Maximum precision of a decimal in Parquet; longer ones are texts."""
_END = b"\r\n"


def parquet_format(table: Table) -> TableFormat:
    """Return the format of Parquet files. A result with a value that does not fit the type of its column is answered
    406, or cut off if it is streamed.
    """
    titles = [title.decode() for title in table.titles]
    columns = table.endpoint.shape.columns
    types = [_type_of(column) for column in columns] if len(columns) == len(titles) else [pa.string()] * len(titles)
    file = f"{table.routine.strip(chr(34))}.parquet"

    async def respond(context: RequestContext) -> None:
        execution = context.execution
        if execution is None:
            raise Problem(500, "the routine returned nothing")
        headers = [field for field in table.headers(context, PARQUET) if field[0].lower() != "content-disposition"]
        headers.append(("content-disposition", content_disposition(file)))
        encoder = ParquetEncoder(titles, types)
        if execution.streaming:
            await table.stream(context, headers, encoder)
            return
        try:
            body = await encoder.part(execution.body or b"") + await encoder.end()
        except pa.ArrowInvalid as error:
            raise Problem(406, f"the result has a value that Parquet cannot express: {error}") from None
        context.protocol.response_bytes(table.endpoint.success_status, headers, body)

    writer = RawRenderer(Codecs(), table.is_set, separator=b",", new_line=_END, csv=True)
    return TableFormat(writer, respond)


def _type_of(result_column: ResultColumn) -> pa.DataType:
    """Return the type of a column; texts for all types that have no exact counterpart."""
    column = result_column.column
    decimal = _DECIMAL.fullmatch(column.type_name)
    if decimal is not None and int(decimal[1]) <= _MOST_DIGITS:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return _TYPES.get(column.type_oid, pa.string())


class _Outlet:
    """Output of the file, which is not seekable."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._place = 0

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        self._place += len(data)
        return len(data)

    def tell(self) -> int:
        return self._place

    def flush(self) -> None:
        """Do nothing: what was written is taken later."""

    def close(self) -> None:
        """Do nothing: the last bytes are taken later."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def take(self) -> bytes:
        """Remove and return what was written."""
        data = b"".join(self._parts)
        self._parts.clear()
        return data


class ParquetEncoder:
    """Converts CSV without a header into the bytes of a file. titles: names of the columns. types: theirs, in the same
    order.
    """

    def __init__(self, titles: list[str], types: list[pa.DataType]) -> None:
        self._names = [str(number) for number in range(len(titles))]
        self._schema = pa.schema([pa.field(title, kind) for title, kind in zip(titles, types, strict=True)])
        self._convert = csv.ConvertOptions(
            column_types=dict(zip(self._names, types, strict=True)),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["t"],
            false_values=["f"],
        )
        self._rest = bytearray()
        self._outlet = _Outlet()
        self._writer = parquet.ParquetWriter(pa.PythonFile(self._outlet, mode="w"), self._schema)

    async def part(self, data: bytes) -> bytes:
        """Add CSV, which may end within a row, and return the next bytes of the file, which may be empty. Raises
        `pyarrow.ArrowInvalid` for a value that does not fit the type of its column.
        """
        self._rest += data
        return b"" if len(self._rest) < GROUP else await _in_thread(self._write_group)

    async def end(self) -> bytes:
        """Return the last bytes of the file. Raises as `part` does."""
        return await _in_thread(self._close)

    def _write_group(self) -> bytes:
        """Write the complete rows as a row group, and return the next bytes of the file. Raises as `part` does."""
        end = _last_row_end(self._rest)
        rows = bytes(memoryview(self._rest)[:end])
        del self._rest[:end]
        if rows:
            read = csv.ReadOptions(column_names=self._names, use_threads=False, block_size=len(rows) + 1)
            parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
            table = csv.read_csv(pa.BufferReader(rows), read, parse, self._convert)
            self._writer.write_table(table.rename_columns(self._schema.names).cast(self._schema))
        return self._outlet.take()

    def _close(self) -> bytes:
        data = self._write_group()
        self._writer.close()
        return data + self._outlet.take()


def _last_row_end(rows: bytearray) -> int:
    """Return the end of the last complete row: a line end behind an even number of quotes; 0: no row is complete."""
    end = len(rows)
    quotes = rows.count(b'"')
    while (place := rows.rfind(_END, 0, end)) >= 0:
        quotes -= rows.count(b'"', place, end)
        if quotes % 2 == 0:
            return place + len(_END)
        end = place
    return 0


async def _in_thread(work: Callable[[], bytes]) -> bytes:
    return await asyncio.get_running_loop().run_in_executor(None, work)
