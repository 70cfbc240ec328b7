"""Spreadsheets: rows of a worksheet are written to a zip archive while they arrive from the database, and streamed to
the client.

No workbook exists as a whole. `ext.rendering.sheet_rows` writes the rows while they arrive, a thread compresses the
gathered part, and the client reads at its own pace, with the back-pressure of every streamed result. So there is no
file to remove, and a worker needs the same memory for ten rows as for a million.

The parts that do not depend on the rows (content types, styles, the name of the sheet …) come from xlsxwriter: it makes
a workbook with an empty sheet, into which the rows are inserted. Writing the cells with it too was tried and dropped:
at some 5 µs a cell under the interpreter's lock, it would delay every other request of the worker.
"""

from __future__ import annotations

import asyncio
import datetime
import io
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from xlsxwriter import Workbook

from rowcall.core.endpoint.template import parse_template, placeholder_names
from rowcall.core.errors.problems import Problem
from rowcall.core.formats.table_formats import EXCEL, Workbooks
from rowcall.core.formats.workbook_names import content_disposition, file_name, sheet_name
from rowcall.ext.rendering.sheet_rows import SheetRows
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.response.formats.table import Table, TableFormat
from rowcall.service.response.headers import argument_text

SHEET = "xl/worksheets/sheet1.xml"
SHEET_LIMIT = (1 << 31) - 1
"""Bytes of the sheet's XML from which the archive would need zip64, which spreadsheet programs do not read
as a stream.
"""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of all files in the archive, and of the creation of the workbook."""
_STYLE = re.compile(rb'<c r="([ABC])1" s="(\d+)">')
"""Column and cell format of the sample cells of `skeleton`."""


def excel_format(table: Table, look: Workbooks) -> TableFormat:
    """Return the format of spreadsheets. look: date and number formats, and the name of the sheet."""
    options = table.endpoint.options
    names = placeholder_names(table.endpoint.parameters)
    file_template = parse_template(options.excel_file_name or "", names)
    sheet_template = parse_template(options.excel_sheet or "", names)
    status = table.endpoint.success_status
    title, date, number = skeleton("styles", look).styles

    async def respond(context: RequestContext) -> None:
        execution = context.execution
        if execution is None:
            raise Problem(500, "the routine returned nothing")
        value_of = partial(argument_text, context)
        file = file_name(file_template.fill(value_of), table.routine)
        chosen = sheet_template.fill(value_of).strip() or look.sheet or ""
        sheet = sheet_name(chosen, table.routine)
        # A file name set with `excel_file_name` takes precedence over a header of the comment.
        headers = [field for field in table.headers(context, EXCEL) if field[0] != "content-disposition"]
        headers.append(("content-disposition", content_disposition(file)))
        encoder = WorkbookEncoder(skeleton(sheet, look))
        if execution.streaming:
            await table.stream(context, headers, encoder)
        else:
            body = await encoder.part(execution.body or b"") + await encoder.end()
            context.protocol.response_bytes(status, headers, body)

    return TableFormat(SheetRows(table.is_set, table.titles, title, date, number), respond)


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A workbook without rows."""

    members: tuple[tuple[str, bytes], ...]
    """Names and contents of all files of the archive except the sheet."""
    sheet_head: bytes
    sheet_tail: bytes
    styles: tuple[int, int, int]
    """Numbers of the cell formats of titles, dates and numbers."""


def skeleton(sheet: str, look: Workbooks) -> Skeleton:
    """Return a workbook without rows. Takes about a millisecond. sheet: name of the sheet. look: date and number
    formats.
    """
    file = io.BytesIO()
    workbook = Workbook(file, {"in_memory": True})
    # Equal rows make equal files, so that an `ETag` is stable.
    workbook.set_properties({"created": datetime.datetime(*_EPOCH)})
    page = workbook.add_worksheet(sheet)
    page.write_number(0, 0, 0, workbook.add_format({"bold": True}))
    page.write_number(0, 1, 0, workbook.add_format({"num_format": look.date_format}))
    if look.number_format != "General":
        page.write_number(0, 2, 0, workbook.add_format({"num_format": look.number_format}))
    workbook.close()
    archive = zipfile.ZipFile(file)
    members = {name: archive.read(name) for name in archive.namelist()}
    xml = members.pop(SHEET)
    head, _, rest = xml.partition(b"<sheetData>")
    samples, _, tail = rest.partition(b"</sheetData>")
    styles = {column: int(style) for column, style in _STYLE.findall(samples)}
    return Skeleton(
        members=tuple(members.items()),
        # The number of rows is not known yet; readers do not need it.
        sheet_head=re.sub(rb"<dimension [^>]*>", b"", head) + b"<sheetData>",
        sheet_tail=b"</sheetData>" + tail,
        styles=(styles[b"A"], styles[b"B"], styles.get(b"C", 0)),
    )


class _Outlet:
    """Output of the archive. It is not seekable, so zipfile writes sizes and checksums behind the data."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        pass

    def take(self) -> bytes:
        """Remove and return what was written."""
        data = b"".join(self._parts)
        self._parts.clear()
        return data


class WorkbookEncoder:
    """Converts rows of the sheet, as XML, into bytes of the file. Compression runs in a thread, one part at a time."""

    def __init__(self, frame: Skeleton) -> None:
        self._frame = frame
        self._outlet = _Outlet()
        # The outlet has the methods of a file that writing uses.
        self._archive = zipfile.ZipFile(self._outlet, "w", zipfile.ZIP_DEFLATED)  # type: ignore[call-overload]
        self._size = 0
        for name, content in frame.members:
            self._archive.writestr(_member(name), content)
        self._sheet = self._archive.open(_member(SHEET), "w")
        self._sheet.write(frame.sheet_head)

    async def part(self, data: bytes) -> bytes:
        """Add rows to the sheet, and return the next bytes of the file, which may be empty. Raises ValueError if the
        sheet is too large for a spreadsheet.
        """
        self._size += len(data)
        if self._size > SHEET_LIMIT:
            raise ValueError("the worksheet is larger than spreadsheet programs can read")
        return await _in_thread(self._add, data)

    async def end(self) -> bytes:
        """End the sheet, and return the last bytes of the file."""
        return await _in_thread(self._close, self._frame.sheet_tail)

    def _add(self, data: bytes) -> bytes:
        self._sheet.write(data)
        return self._outlet.take()

    def _close(self, tail: bytes) -> bytes:
        self._sheet.write(tail)
        self._sheet.close()
        self._archive.close()
        return self._outlet.take()


async def _in_thread(work: Callable[[bytes], bytes], data: bytes) -> bytes:
    return await asyncio.get_running_loop().run_in_executor(None, work, data)


def _member(name: str) -> zipfile.ZipInfo:
    """Return the description of a compressed file in the archive. name: its path there."""
    member = zipfile.ZipInfo(name, _EPOCH)
    member.compress_type = zipfile.ZIP_DEFLATED
    return member
