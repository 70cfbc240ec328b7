"""Rows as an HTML table: for each value the text of the server with four characters escaped, for a boolean TRUE or
FALSE (formats-4)."""

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan
from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.base.libpq cimport PGresult, pq


cdef extern from "markup.h" nogil:
    char *html_escape(char *target, const char *text, const char *end) noexcept

cdef enum:
    BOOLEAN_OID = 16
    # Bytes of text that are escaped at once, so that the memory reserved for the worst case stays small.
    PIECE = 4096
    # Maximum number of bytes that one byte of text becomes.
    GROWTH = 6


cdef class HtmlTable(BodyWriter):
    """Writes rows as an HTML table with one header row. See `html_rows.pyi`."""

    def __init__(self, is_set: bool, titles: list[bytes], header: bytes, footer: bytes) -> None:
        cells = b"".join(b"<th>" + escape(title) + b"</th>" for title in titles)
        self._is_set = is_set
        self._count = len(titles)
        self._head = header + b"<table><tr>" + cells + b"</tr>"
        self._tail = b"</table>" + footer

    cdef RowPlan new_plan(self, const PGresult *result):
        cdef RowPlan plan = BodyWriter.new_plan(self, result)
        if plan.count != self._count:
            raise ValueError(f"the result has {plan.count} columns where {self._count} were expected")
        return plan

    cdef int begin(self, RowPlan plan, Buffer out) except -1:
        return append(out, self._head)

    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1:
        write_row(plan, out, result, row)
        if out.failed:
            raise MemoryError("no memory for the response body")
        return 0

    cdef int end(self, RowPlan plan, Buffer out, Py_ssize_t rows) except -1:
        return append(out, self._tail)


def escape(text: bytes) -> bytes:
    """Return the text, in UTF-8, with `&`, `<`, `>` and `"` escaped as HTML entities. Raises MemoryError."""
    cdef Buffer buffer = Buffer()
    cdef bytes source = text
    append_escaped(buffer, <const char *>source, len(source))
    return buffer.take()


cdef int append(Buffer out, bytes text) except -1:
    """Append `text` unchanged; return 0. Raises MemoryError."""
    if out.append(<const char *>text, len(text)) < 0:
        raise MemoryError("no memory for the response body")
    return 0


cdef void write_row(RowPlan plan, Buffer out, const PGresult *result, int row) noexcept nogil:
    """Write row number `row` of a result as a row of the table. A NULL is an empty cell. The caller checks
    `out.failed`."""
    cdef const char *text
    cdef int index
    out.append(b"<tr>", 4)
    for index in range(plan.count):
        out.append(b"<td>", 4)
        if not pq.getisnull(result, row, index):
            text = pq.getvalue(result, row, index)
            if plan.described[index].type != BOOLEAN_OID:
                append_escaped(out, text, pq.getlength(result, row, index))
            elif text[0] == c't':
                out.append(b"TRUE", 4)
            else:
                out.append(b"FALSE", 5)
        out.append(b"</td>", 5)
    out.append(b"</tr>", 5)


cdef int append_escaped(Buffer out, const char *text, Py_ssize_t size) noexcept nogil:
    """Append `size` bytes of UTF-8 with HTML entities. Returns 0, or -1 if memory cannot be allocated."""
    cdef const char *end = text + size
    cdef Py_ssize_t piece
    while text < end:
        piece = min(end - text, PIECE)
        if out.reserve(piece * GROWTH) < 0:
            return -1
        out.length = html_escape(out.data + out.length, text, text + piece) - out.data
        text += piece
    return 0
