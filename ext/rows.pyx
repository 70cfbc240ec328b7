"""From rows to bytes: the inner loop reads libpq's text and writes the body, and no value becomes a Python object.

What can be known before the rows is put into a plan: escaped keys with their punctuation, the codec of each column.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.string cimport strcmp

from rowcall.ext.builtin_types import BYTEA
from rowcall.ext.codecs cimport ARRAY
from rowcall.ext.libpq cimport pq
from rowcall.ext.values cimport render

from rowcall.ext.buffer import escape

cdef Oid BYTEA_OID = BYTEA


cdef class Renderer:
    def __init__(self, codecs: Codecs, path: str, is_set: bool, named: bool, keys: list[bytes]) -> None:
        if path not in ("scalar", "rows"):
            raise ValueError(f"path must be 'scalar' or 'rows', not {path!r}")
        self._codecs = codecs
        self._is_scalar = path == "scalar"
        self._is_set = is_set and path == "rows"
        self._is_named = named
        self._keys = list(keys)
        self._plan = None
        self._scratch = Scratch()

    cdef RowPlan plan_for(self, const PGresult *result):
        if self._plan is None or not self._fits(self._plan, result):
            self._plan = self._new_plan(result)
        return self._plan

    cdef int begin(self, Buffer out) except -1:
        if self._is_set and out.append_char(c'[') < 0:
            raise MemoryError("no memory for the response body")
        return 0

    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1:
        cdef int outcome = write_row(plan, out, self._scratch, result, row, index)
        if outcome < 0:
            raise MemoryError("no memory for the response body")
        return outcome

    cdef int end(self, Buffer out, Py_ssize_t rows) except -1:
        self._scratch.trim()
        if self._is_set and out.append_char(c']') < 0:
            raise MemoryError("no memory for the response body")
        return 0

    cdef bint _fits(self, RowPlan plan, const PGresult *result) noexcept:
        cdef int index
        if pq.nfields(result) != plan.count:
            return False
        for index in range(plan.count):
            if pq.ftype(result, index) != plan.columns[index].type:
                return False
            if strcmp(pq.fname(result, index), plan.columns[index].name) != 0:
                return False
        return True

    cdef RowPlan _new_plan(self, const PGresult *result):
        cdef RowPlan plan = RowPlan()
        cdef Column *column
        cdef bytes fragment
        cdef int count = pq.nfields(result)
        cdef int index
        plan._codecs = self._codecs
        plan._allocations = []
        plan.columns = <Column *>plan._keep(bytes(count * sizeof(Column)))
        plan.count = count
        names = [<bytes>pq.fname(result, index) for index in range(count)]
        keys = self._keys_for(names)
        for index in range(count):
            column = &plan.columns[index]
            column.type = pq.ftype(result, index)
            column.name = plan._keep(names[index])
            column.codec = self._codecs.resolve(column.type)
            if keys:
                fragment = (b',"' if index else b'{"') + escape(keys[index]) + b'":'
                column.key = plan._keep(fragment)
                column.key_length = len(fragment)
        plan.shape = self._shape(count, plan.columns[0].codec if count else NULL)
        if plan.shape == SCALAR_TEXT and plan.columns[0].type == BYTEA_OID:
            plan.shape = SCALAR_BYTES
        return plan

    cdef Shape _shape(self, int count, const Codec *first) noexcept:
        if not self._is_scalar:
            return ROW_OBJECT if self._is_named else ROW_VALUE
        return SCALAR_JSON if count and first.kind == ARRAY else SCALAR_TEXT

    cdef list _keys_for(self, list names):
        if self._is_scalar or not self._is_named:
            if len(names) != 1:
                raise ValueError(f"the result has {len(names)} columns where one value was expected")
            return []
        if self._keys and len(self._keys) != len(names):
            raise ValueError(f"the result has {len(names)} columns where {len(self._keys)} were expected")
        return self._keys or names

    def render_result(self, pgresult_ptr: int) -> bytes:
        """The whole body for a finished result, given by the address of its PGresult (psycopg's `pgresult_ptr`).

        Of a statement that returns no set only the first row counts; a scalar NULL gives no bytes.
        """
        cdef const PGresult *result = <const PGresult *><size_t>pgresult_ptr
        cdef RowPlan plan = self.plan_for(result)
        cdef Buffer out = Buffer()
        cdef int count = pq.ntuples(result)
        cdef int row
        if not self._is_set:
            count = min(count, 1)
        self.begin(out)
        for row in range(count):
            self.row(plan, out, result, row, row)
        self.end(out, count)
        return out.take()


cdef class RowPlan:
    cdef char *_keep(self, bytes memory) except NULL:
        self._allocations.append(memory)
        return PyBytes_AS_STRING(memory)


cdef int write_row(
    RowPlan plan, Buffer out, Scratch scratch, const PGresult *result, int row, Py_ssize_t index,
) noexcept nogil:
    """Writes one row by its plan's shape; -1 without memory, 1 for a scalar NULL, else 0."""
    if plan.shape < ROW_VALUE:
        return write_scalar(plan, out, scratch, result, row)
    if index > 0:
        out.append_char(c',')
    if plan.shape == ROW_VALUE:
        write_value(&plan.columns[0], out, scratch, result, row, 0)
    else:
        write_object(plan, out, scratch, result, row)
    return -1 if out.failed else 0


cdef void write_object(
    RowPlan plan, Buffer out, Scratch scratch, const PGresult *result, int row,
) noexcept nogil:
    cdef const Column *column
    cdef int index
    if plan.count == 0:
        out.append_char(c'{')
    for index in range(plan.count):
        column = &plan.columns[index]
        out.append(column.key, column.key_length)
        write_value(column, out, scratch, result, row, index)
    out.append_char(c'}')


cdef inline void write_value(
    const Column *column, Buffer out, Scratch scratch, const PGresult *result, int row, int index,
) noexcept nogil:
    cdef const char *text
    if pq.getisnull(result, row, index):
        out.append(b"null", 4)
        return
    text = pq.getvalue(result, row, index)
    render(column.codec, column.codec.kind, out, scratch, text, text + pq.getlength(result, row, index), 0)


cdef int write_scalar(
    RowPlan plan, Buffer out, Scratch scratch, const PGresult *result, int row,
) noexcept nogil:
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


cdef int append_bytea(Buffer out, const char *text, Py_ssize_t size) noexcept nogil:
    """Appends what `\\x00ff` stands for; text that is not in this form (`bytea_output=escape`) goes out as it is."""
    cdef Py_ssize_t start = out.length
    cdef Py_ssize_t index
    cdef int high
    cdef int low
    if size < 2 or size % 2 == 1 or text[0] != c'\\' or text[1] != c'x':
        return out.append(text, size)
    if out.reserve(size) < 0:
        return -1
    for index in range(2, size, 2):
        high = hex_digit(text[index])
        low = hex_digit(text[index + 1])
        if high < 0 or low < 0:
            out.length = start
            return out.append(text, size)
        out.data[out.length] = <char>(high << 4 | low)
        out.length += 1
    return 0


cdef inline int hex_digit(char byte) noexcept nogil:
    if c'0' <= byte <= c'9':
        return byte - c'0'
    if c'a' <= byte <= c'f':
        return byte - c'a' + 10
    if c'A' <= byte <= c'F':
        return byte - c'A' + 10
    return -1
