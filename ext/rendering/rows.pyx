"""Rows as JSON: the inner loop reads the text of libpq and writes the body, without a Python object for any value.

The plan contains what is known before the first row: escaped keys with their punctuation, the codec of each column.
"""

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan
from rowcall.ext.base.buffer cimport PADDING, Buffer
from rowcall.ext.rendering.builtin_types import BYTEA
from rowcall.ext.base.bytea cimport append_bytea
from rowcall.ext.rendering.codecs cimport ARRAY
from rowcall.ext.base.libpq cimport Oid, pq
from rowcall.ext.rendering.values cimport render

from rowcall.ext.rendering.body_writer import ColumnsChangedError
from rowcall.ext.base.buffer import escape

cdef Oid BYTEA_OID = BYTEA


cdef class JsonPlan(RowPlan):
    pass


cdef class Renderer(BodyWriter):
    """Writes the JSON body of one endpoint statement, or the text of its scalar. See `rows.pyi`."""

    def __init__(
        self, codecs: Codecs, path: str, is_set: bool, named: bool, keys: list[bytes | tuple[bytes, ...]],
        blank_is_null: bool = False, first_only: bool = False, hidden: int = 0, lines: bool = False,
    ) -> None:
        if path not in ("scalar", "rows"):
            raise ValueError(f"path must be 'scalar' or 'rows', not {path!r}")
        self._codecs = codecs
        self._is_scalar = path == "scalar"
        self._is_set = is_set and path == "rows"
        self._is_named = named
        self._keys = list(keys)
        self._blank_is_null = blank_is_null
        self._first_only = first_only
        self._hidden = hidden
        self._lines = lines
        self._scratch = Scratch()

    cdef int begin(self, RowPlan plan, Buffer out) except -1:
        if self._is_set and not self._lines and out.append_char(c'[') < 0:
            raise MemoryError("no memory for the response body")
        return 0

    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1:
        cdef int outcome = write_row(<JsonPlan>plan, out, self._scratch, result, row, index)
        if outcome < 0:
            raise MemoryError("no memory for the response body")
        return outcome

    cdef int end(self, RowPlan plan, Buffer out, Py_ssize_t rows) except -1:
        self._scratch.trim()
        if self._lines:
            if rows > 0 and out.append_char(c'\n') < 0:
                raise MemoryError("no memory for the response body")
        elif self._is_set and out.append_char(c']') < 0:
            raise MemoryError("no memory for the response body")
        return 0

    cdef RowPlan new_plan(self, const PGresult *result):
        """Return the plan of a result (borrowed). Raises ColumnsChangedError for a wrong number of columns, and
        ValueError if a column that is spread over the row is no composite with the expected fields."""
        cdef JsonPlan plan = JsonPlan()
        cdef Column *column
        cdef bytes fragment
        cdef int index
        plan.describe(result)
        plan._codecs = self._codecs
        plan.separator = c'\n' if self._lines else c','
        plan.shown = min(plan.count, 1) if self._first_only else max(plan.count - self._hidden, 0)
        plan.columns = <Column *>plan.keep(bytes(plan.count * sizeof(Column)))
        keys = self._keys_for([<bytes>plan.described[index].name for index in range(plan.count - self._hidden)])
        for index in range(plan.shown):
            column = &plan.columns[index]
            column.codec = self._codec(plan.described[index].type)
            if keys and isinstance(keys[index], tuple):
                self._spread(plan, index, keys[index])
            elif keys:
                fragment = (b',"' if index else b'{"') + escape(keys[index]) + b'":'
                column.key = plan.keep(fragment + bytes(PADDING))
                column.key_length = len(fragment)
        plan.shape = self._shape(plan.count, plan.columns[0].codec if plan.count else NULL)
        # The result of a scalar has one column: `_keys_for` has refused any other number, as no scalar is `first_only`.
        if plan.shape == SCALAR_TEXT and plan.described[0].type == BYTEA_OID:
            plan.shape = SCALAR_BYTES
        return plan

    cdef int _spread(self, JsonPlan plan, int index, tuple keys) except -1:
        cdef Column *column = &plan.columns[index]
        # The first member of the row begins with the brace, every other one with a comma.
        cdef bytes blank = b"".join([b',"' + escape(key) + b'":null' for key in keys])
        column.codec = self._codecs.resolve_spread(plan.described[index].type, keys)
        column.blank = plan.keep(b"{" + blank[1:] if index == 0 else blank)
        column.blank_length = len(blank)
        return 0

    cdef const Codec *_codec(self, Oid type) except NULL:
        return self._codecs.resolve_blankable(type) if self._blank_is_null else self._codecs.resolve(type)

    cdef Shape _shape(self, int count, const Codec *first) noexcept:
        if not self._is_scalar:
            return ROW_OBJECT if self._is_named else ROW_VALUE
        return SCALAR_JSON if count and first.kind == ARRAY else SCALAR_TEXT

    cdef list _keys_for(self, list names):
        if self._is_scalar or not self._is_named:
            if len(names) != 1 and not self._first_only:
                raise ColumnsChangedError(f"the result has {len(names)} columns where one value was expected")
            return []
        if self._first_only:
            return self._keys
        if self._keys and len(self._keys) != len(names):
            raise ColumnsChangedError(f"the result has {len(names)} columns where {len(self._keys)} were expected")
        return self._keys or names


cdef int write_row(
    JsonPlan plan, Buffer out, Scratch scratch, const PGresult *result, int row, Py_ssize_t index,
) noexcept nogil:
    """Write row number `row` of a result, from 0, in the shape of its plan. index: number of rows written before.

    Returns -1 if memory cannot be allocated, 1 for a scalar NULL (nothing is written), else 0.
    """
    cdef Py_ssize_t start
    if plan.shape < ROW_VALUE:
        return write_scalar(plan, out, scratch, result, row)
    if index > 0:
        out.append_char(plan.separator)
    start = out.length
    if plan.shape == ROW_VALUE:
        write_value(&plan.columns[0], out, scratch, result, row, 0)
    else:
        write_object(plan, out, scratch, result, row)
    if out.failed:
        return -1
    if plan.separator == c'\n':
        join_lines(out, start)
    return 0


cdef void join_lines(Buffer out, Py_ssize_t start) noexcept nogil:
    """Replace line breaks by blanks from `start` to the end of the buffer. JSON has them only between its tokens, as in
    the text of `json_agg`, and escaped in strings."""
    cdef Py_ssize_t place
    for place in range(start, out.length):
        if out.data[place] == c'\n' or out.data[place] == c'\r':
            out.data[place] = c' '


cdef void write_object(
    JsonPlan plan, Buffer out, Scratch scratch, const PGresult *result, int row,
) noexcept nogil:
    """Write row number `row` of a result as an object. The caller checks `out.failed`."""
    cdef const Column *column
    cdef int index
    # The key of the first column begins with the brace.
    if plan.shown == 0:
        out.append_char(c'{')
    for index in range(plan.shown):
        column = &plan.columns[index]
        if column.blank != NULL:
            write_spread(column, out, scratch, result, row, index)
            continue
        out.append_padded(column.key, column.key_length)
        write_value(column, out, scratch, result, row, index)
    out.append_char(c'}')


cdef void write_spread(
    const Column *column, Buffer out, Scratch scratch, const PGresult *result, int row, int index,
) noexcept nogil:
    """Write the fields of a composite as members of the row. A value that cannot be parsed is written like NULL.

    column: that of the composite. row, index: numbers of the row and the column in `result`, from 0.
    """
    cdef Py_ssize_t start = out.length
    if not pq.getisnull(result, row, index):
        write_value(column, out, scratch, result, row, index)
        # An object was written, not a string: its braces make room for those of the row, or a comma.
        if not out.failed and out.data[start] == c'{':
            out.data[start] = c'{' if index == 0 else c','
            out.length -= 1
            return
        out.length = start
    out.append(column.blank, column.blank_length)


cdef inline void write_value(
    const Column *column, Buffer out, Scratch scratch, const PGresult *result, int row, int index,
) noexcept nogil:
    """Write the value in a row and column of a result, both numbered from 0, as JSON. The caller checks
    `out.failed`."""
    cdef const char *text
    if pq.getisnull(result, row, index):
        out.append(b"null", 4)
        return
    text = pq.getvalue(result, row, index)
    render(column.codec, column.codec.kind, out, scratch, text, text + pq.getlength(result, row, index), 0)


cdef int write_scalar(
    JsonPlan plan, Buffer out, Scratch scratch, const PGresult *result, int row,
) noexcept nogil:
    """Write the value in the first column of a row. Returns what `write_row` returns."""
    cdef const char *text
    cdef Py_ssize_t size
    if pq.getisnull(result, row, 0):
        return 1
    text = pq.getvalue(result, row, 0)
    size = pq.getlength(result, row, 0)
    if plan.shape == SCALAR_JSON:
        return render(plan.columns[0].codec, ARRAY, out, scratch, text, text + size, 0)
    if plan.shape == SCALAR_BYTES:
        return append_bytea(out, text, size)
    return out.append(text, size)
