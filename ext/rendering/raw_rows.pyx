"""Raw results: the text of the server, with only the separators that the comment sets (rendering-36 to rendering-39).

Quotes depend on the type of a column and not on a value, so each plan determines the quoted columns before the first
row; only in CSV, NULL has no quotes. Without a separator no value is quoted, because there is nothing from which quotes
would protect. The names in a header are always quoted.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memchr

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.base.bytea cimport append_bytea
from rowcall.ext.base.libpq cimport pq

from rowcall.ext.rendering.builtin_types import FIRST_CREATED, PLAIN_CSV, QUOTED_RAW


cdef class RawPlan(RowPlan):
    pass


cdef class RawRenderer(BodyWriter):
    """Writes values as the server prints them, with separators. See `raw_rows.pyi`."""

    def __init__(
        self,
        codecs: Codecs,
        is_set: bool,
        separator: bytes | None = None,
        new_line: bytes = b"",
        header: bool = False,
        escapes_formulas: bool = False,
        quotes: bool = True,
        csv: bool = False,
    ) -> None:
        self._csv = csv
        self._codecs = codecs
        self._escapes_formulas = escapes_formulas
        self._quotes = quotes and separator is not None
        self._is_set = is_set
        self._separator = separator or b""
        self._new_line = new_line
        self._has_header = header

    cdef RowPlan new_plan(self, const PGresult *result):
        cdef RawPlan plan = RawPlan()
        cdef bytes header
        cdef int index
        cdef unsigned int innermost
        plan.describe(result)
        plan.quoted = plan.keep(bytes(plan.count))
        for index in range(plan.count):
            if self._csv:
                plan.quoted[index] = plan.described[index].type not in PLAIN_CSV
            elif self._quotes:
                innermost = self._codecs.innermost(plan.described[index].type)
                # A text of a created type, such as citext, can be a formula too.
                plan.quoted[index] = innermost in QUOTED_RAW or (self._escapes_formulas and innermost >= FIRST_CREATED)
        plan.escapes_formulas = self._escapes_formulas
        plan.csv = self._csv
        header = self._header(plan) if self._has_header else b""
        plan.header = plan.keep(header)
        plan.header_length = len(header)
        return plan

    cdef bytes _header(self, RawPlan plan):
        cdef Buffer header = Buffer()
        cdef bytes name
        cdef int index
        for index in range(plan.count):
            name = plan.described[index].name
            if index > 0:
                header.append(PyBytes_AS_STRING(self._separator), PyBytes_GET_SIZE(self._separator))
            write_quoted(header, PyBytes_AS_STRING(name), PyBytes_GET_SIZE(name), self._escapes_formulas)
        header.append(PyBytes_AS_STRING(self._new_line), PyBytes_GET_SIZE(self._new_line))
        return header.take()

    cdef int begin(self, RowPlan plan, Buffer out) except -1:
        if plan is not None and out.append((<RawPlan>plan).header, (<RawPlan>plan).header_length) < 0:
            raise MemoryError("no memory for the response body")
        return 0

    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1:
        # In CSV, every line has an end, also the last one (RFC 4180); elsewhere a line end is between two rows.
        if index > 0 and not self._csv:
            out.append(PyBytes_AS_STRING(self._new_line), PyBytes_GET_SIZE(self._new_line))
        write_values(
            <RawPlan>plan, out, result, row, PyBytes_AS_STRING(self._separator), PyBytes_GET_SIZE(self._separator)
        )
        if self._csv:
            out.append(PyBytes_AS_STRING(self._new_line), PyBytes_GET_SIZE(self._new_line))
        if out.failed:
            raise MemoryError("no memory for the response body")
        return 0


cdef class BytesRenderer(BodyWriter):
    """Writes the bytes of a single bytea column, row after row; NULL contributes nothing."""

    def __init__(self, is_set: bool) -> None:
        self._is_set = is_set

    cdef RowPlan new_plan(self, const PGresult *result):
        cdef RowPlan plan = RowPlan()
        plan.describe(result)
        if plan.count != 1:
            raise ValueError(f"the result has {plan.count} columns where one value was expected")
        return plan

    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1:
        if pq.getisnull(result, row, 0):
            return 0
        if append_bytea(out, pq.getvalue(result, row, 0), pq.getlength(result, row, 0)) < 0:
            raise MemoryError("no memory for the response body")
        return 0


cdef void write_values(
    RawPlan plan, Buffer out, const PGresult *result, int row, const char *separator, Py_ssize_t separator_length,
) noexcept nogil:
    """Write the values of row number `row` of a result; NULL is an empty text (rendering-36), in quotes if its column
    is quoted, but never in CSV. The caller checks for a failed append.

    separator: `separator_length` bytes between two values.
    """
    cdef int index
    for index in range(plan.count):
        if index > 0:
            out.append(separator, separator_length)
        if plan.quoted[index] and not (plan.csv and pq.getisnull(result, row, index)):
            write_quoted(out, pq.getvalue(result, row, index), pq.getlength(result, row, index), plan.escapes_formulas)
        else:
            out.append(pq.getvalue(result, row, index), pq.getlength(result, row, index))


cdef void write_quoted(Buffer out, const char *text, Py_ssize_t size, bint escapes_formulas) noexcept nogil:
    """Write the `size` bytes of a text in quotes, with each quote inside doubled.

    escapes_formulas: write an apostrophe before a text that a spreadsheet would take for a formula.
    """
    cdef const char *end = text + size
    cdef const char *quote
    out.append_char(c'"')
    if escapes_formulas and size > 0 and text[0] in (c"=", c"+", c"-", c"@", c"\t", c"\r", c"\n"):
        out.append_char(c"'")
    while text < end:
        quote = <const char *>memchr(text, c'"', end - text)
        if quote == NULL:
            out.append(text, end - text)
            break
        # Up to and including the quote, which is then written again.
        out.append(text, quote + 1 - text)
        out.append_char(c'"')
        text = quote + 1
    out.append_char(c'"')
