"""Rows as the rows of a worksheet: typed cells from the text of the server (formats-6, formats-7).

Strings are part of the cells, not of a table of shared strings, so that a row can be forgotten once it is written.
`core.formats` writes the other parts of the file, which do not depend on the rows.
"""

from cpython.mem cimport PyMem_Free
from libc.math cimport isfinite
from libc.stdint cimport int64_t
from libc.string cimport strlen

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan
from rowcall.ext.base.buffer cimport Buffer, is_json_number
from rowcall.ext.base.libpq cimport PGresult, pq


cdef extern from "markup.h" nogil:
    char *cell_escape(char *target, const char **position, const char *stop, const char *end) noexcept
    const char *utf16_cut(const char *text, const char *end, Py_ssize_t units) noexcept
    bint date_serial(const char *text, const char *end, int64_t *days, int64_t *micros) noexcept

cdef extern from "Python.h":
    double PyOS_string_to_double(const char *text, char **end, void *overflow) except? -1
    char *PyOS_double_to_string(double value, char format, int precision, int flags, int *kind) except NULL

cdef extern from "stdio.h" nogil:
    int snprintf(char *target, size_t size, const char *format, ...)

cdef enum:
    MAX_ROWS = 1048576
    # Maximum number of UTF-16 units in a cell.
    CELL_UNITS = 32767
    # Bytes of text that are escaped at once, so that the memory reserved for the worst case stays small.
    PIECE = 4096
    # Maximum number of bytes that one byte of text becomes.
    GROWTH = 7
    # A number of at most so many characters keeps all its digits in a double. A longer number is rounded here, as a
    # program that reads the file would round it.
    EXACT_DIGITS = 15

ROW_LIMIT = MAX_ROWS

# Built-in types, by OID, whose cells are not texts. Domains have the OID of their base type in results.
cdef dict KINDS = {
    20: CELL_NUMBER, 21: CELL_NUMBER, 23: CELL_NUMBER, 700: CELL_NUMBER, 701: CELL_NUMBER, 790: CELL_NUMBER,
    1700: CELL_NUMBER, 16: CELL_BOOLEAN, 1082: CELL_DATE, 1114: CELL_DATE, 1184: CELL_DATE,
}
cdef const char *TEXT_MIDDLE = b'" t="inlineStr"><is><t xml:space="preserve">'


cdef class SheetPlan(RowPlan):
    pass


cdef class SheetRows(BodyWriter):
    """Writes the `<row>` elements of a worksheet; the first one contains the titles. See `sheet_rows.pyi`."""

    def __init__(self, is_set: bool, titles: list[bytes], title_style: int, date_style: int, number_style: int) -> None:
        cdef Buffer out = Buffer()
        self._is_set = is_set
        self._count = len(titles)
        self._date_style = style_of(date_style)
        self._number_style = style_of(number_style)
        out.write(b'<row r="1">')
        for index, title in enumerate(titles):
            out.write(b'<c r="%b1"%b t="inlineStr"><is><t xml:space="preserve">' % (
                column_letters(index), style_of(title_style)))
            append_text(out, <const char *>title, len(title))
            out.write(b"</t></is></c>")
        out.write(b"</row>")
        self._head = out.take()

    cdef RowPlan new_plan(self, const PGresult *result):
        cdef SheetPlan plan = SheetPlan()
        cdef Cell *cell
        cdef int index
        plan.describe(result)
        if plan.count != self._count:
            raise ValueError(f"the result has {plan.count} columns where {self._count} were expected")
        plan.cells = <Cell *>plan.keep(bytes(plan.count * sizeof(Cell)))
        for index in range(plan.count):
            cell = &plan.cells[index]
            cell.kind = <CellKind><int>KINDS.get(plan.described[index].type, CELL_TEXT)
            opening = b'<c r="' + column_letters(index)
            cell.opening = plan.keep(opening)
            cell.opening_length = len(opening)
            middle = self._middle(cell.kind)
            cell.middle = plan.keep(middle)
            cell.middle_length = len(middle)
        return plan

    def _middle(self, kind: int) -> bytes:
        """Return the XML of a cell between its reference (such as `A7`) and its value. kind: a `CellKind`."""
        if kind == CELL_NUMBER:
            return b'"' + self._number_style + b"><v>"
        if kind == CELL_DATE:
            return b'"' + self._date_style + b"><v>"
        return b'" t="b"><v>' if kind == CELL_BOOLEAN else TEXT_MIDDLE

    cdef int begin(self, RowPlan plan, Buffer out) except -1:
        if out.append(<const char *>self._head, len(self._head)) < 0:
            raise MemoryError("no memory for the response body")
        return 0

    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1:
        if index + 2 > MAX_ROWS:
            raise ValueError(f"a worksheet holds no more than {MAX_ROWS} rows")
        write_row(<SheetPlan>plan, out, result, row, index + 2)
        if out.failed:
            raise MemoryError("no memory for the response body")
        return 0


def column_letters(index: int) -> bytes:
    """Return the letters of a column. index: its number, from 0: `A` for 0, `Z` for 25, `AA` for 26."""
    letters = b""
    number = index + 1
    while number:
        number, letter = divmod(number - 1, 26)
        letters = bytes([ord("A") + letter]) + letters
    return letters


cdef bytes style_of(int index):
    """Return the attribute of a cell for a cell format of the workbook, with a blank in front; empty for 0, the default
    format. index: number of the format in the workbook."""
    return b' s="%d"' % index if index else b""


cdef int write_row(SheetPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t number) except -1:
    """Write row number `row` of a result as row `number` of the worksheet, from 1; return 0. A NULL has no cell. The
    caller checks `out.failed`."""
    cdef char place[24]
    cdef int length = snprintf(place, sizeof(place), b"%zd", number)
    cdef const char *text
    cdef int index
    out.append(b'<row r="', 8)
    out.append(place, length)
    out.append(b'">', 2)
    for index in range(plan.count):
        if pq.getisnull(result, row, index):
            continue
        text = pq.getvalue(result, row, index)
        out.append(plan.cells[index].opening, plan.cells[index].opening_length)
        out.append(place, length)
        if not write_typed(&plan.cells[index], out, text, pq.getlength(result, row, index)):
            write_text(out, text, pq.getlength(result, row, index))
    out.append(b"</row>", 6)
    return 0


cdef bint write_typed(const Cell *cell, Buffer out, const char *text, Py_ssize_t size) except -1:
    """Write the rest of a cell whose opening and row number are written, if the value can be a cell of its kind.

    Returns False, and writes nothing, for a text column, and if the `size` bytes of `text` do not have the form of the
    kind. `text` is NUL-terminated, as libpq returns it.
    """
    cdef int64_t days = 0
    cdef int64_t micros = 0
    cdef double value = 0
    if cell.kind == CELL_NUMBER:
        if not is_json_number(text, text + size):
            return False
        if size > EXACT_DIGITS:
            value = PyOS_string_to_double(text, NULL, NULL)
            if not isfinite(value):
                return False
        out.append(cell.middle, cell.middle_length)
        if size > EXACT_DIGITS:
            append_double(out, value)
        else:
            out.append(text, size)
    elif cell.kind == CELL_BOOLEAN:
        out.append(cell.middle, cell.middle_length)
        out.append_char(c'1' if text[0] == c't' else c'0')
    elif cell.kind == CELL_DATE:
        if not date_serial(text, text + size, &days, &micros):
            return False
        out.append(cell.middle, cell.middle_length)
        append_serial(out, days, micros)
    else:
        return False
    out.append(b"</v></c>", 8)
    return True


cdef int append_double(Buffer out, double value) except -1:
    """Append a finite number with the fewest digits that give the same double; return 0. Raises MemoryError."""
    cdef char *text = PyOS_double_to_string(value, c'r', 0, 0, NULL)
    out.append(text, strlen(text))
    PyMem_Free(text)
    return 0


cdef void append_serial(Buffer out, long long days, long long micros) noexcept nogil:
    """Write a date as days since 1899-12-30, with twelve decimals (about 0.1 µs) unless it is midnight. micros:
    microseconds since midnight."""
    cdef char text[48]
    cdef int length
    if micros == 0:
        length = snprintf(text, sizeof(text), b"%lld", days)
    else:
        # A day has 86,400,000,000 microseconds, so this is the part of the day in units of 10^-12.
        length = snprintf(text, sizeof(text), b"%lld.%012lld", days, micros * 10000 // 864)
    out.append(text, length)


cdef void write_text(Buffer out, const char *text, Py_ssize_t size) noexcept nogil:
    """Write the rest of a text cell whose opening and row number are written. text: `size` bytes of UTF-8; a text of
    more than CELL_UNITS UTF-16 units is cut."""
    out.append(TEXT_MIDDLE, strlen(TEXT_MIDDLE))
    append_text(out, text, utf16_cut(text, text + size, CELL_UNITS) - text)
    out.append(b"</t></is></c>", 13)


cdef int append_text(Buffer out, const char *text, Py_ssize_t size) noexcept nogil:
    """Append `size` bytes of UTF-8, escaped for a cell. Returns 0, or -1 if memory cannot be allocated."""
    cdef const char *end = text + size
    while text < end:
        # `cell_escape` writes a character that begins before the end of the piece whole: up to three bytes more.
        if out.reserve((PIECE + 2) * GROWTH) < 0:
            return -1
        out.length = cell_escape(out.data + out.length, &text, min(text + PIECE, end), end) - out.data
    return 0
