"""Rows that the service reads itself, such as those of a login: for each value its column, type, text and JSON.

`[[["user_id",23,false,"41","41"],["user_roles",1009,true,"{a}","[\\"a\\"]"],["depot",25,false,null,"null"]]]`: a cell
has the name of the column, the OID of its type, whether the type is an array, the text of the server, and the JSON of
the value in a string, so that a JSON parser does not change, for example, the digits of a number.
"""

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan
from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.rendering.codecs cimport ARRAY
from rowcall.ext.base.libpq cimport PGresult, pq
from rowcall.ext.rendering.values cimport render

from rowcall.ext.base.buffer import escape


cdef class CellPlan(RowPlan):
    pass


cdef class CellRows(BodyWriter):
    """Writes rows as a JSON array of arrays of cells: name of the column, type OID, whether it is an array, text, JSON.
    """

    def __init__(self, codecs: Codecs, is_set: bool) -> None:
        self._codecs = codecs
        self._is_set = is_set
        self._scratch = Scratch()

    cdef RowPlan new_plan(self, const PGresult *result):
        cdef CellPlan plan = CellPlan()
        cdef bytes head
        cdef int index
        plan.describe(result)
        plan._codecs = self._codecs
        plan.codecs = <const Codec **>plan.keep(bytes(plan.count * sizeof(void *)))
        plan.heads = <const char **>plan.keep(bytes(plan.count * sizeof(void *)))
        plan.lengths = <Py_ssize_t *>plan.keep(bytes(plan.count * sizeof(Py_ssize_t)))
        for index in range(plan.count):
            plan.codecs[index] = self._codecs.resolve(plan.described[index].type)
            is_array = b"true" if plan.codecs[index].kind == ARRAY else b"false"
            head = b'["%b",%d,%b,' % (escape(<bytes>plan.described[index].name), plan.described[index].type, is_array)
            plan.heads[index] = plan.keep(head)
            plan.lengths[index] = len(head)
        return plan

    cdef int begin(self, RowPlan plan, Buffer out) except -1:
        if out.append_char(c'[') < 0:
            raise MemoryError("no memory for the rows")
        return 0

    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1:
        if index > 0:
            out.append_char(c',')
        write_cells(<CellPlan>plan, out, self._scratch, result, row)
        if out.failed:
            raise MemoryError("no memory for the rows")
        return 0

    cdef int end(self, RowPlan plan, Buffer out, Py_ssize_t rows) except -1:
        self._scratch.trim()
        if out.append_char(c']') < 0:
            raise MemoryError("no memory for the rows")
        return 0


cdef int write_cells(CellPlan plan, Buffer out, Scratch scratch, const PGresult *result, int row) except -1:
    """Write row number `row` of a result as an array of cells; return 0. The caller checks `out.failed`. Raises
    MemoryError."""
    cdef const char *text
    cdef Py_ssize_t size
    cdef Buffer json
    cdef bytes value
    cdef int index
    out.append_char(c'[')
    for index in range(plan.count):
        if index > 0:
            out.append_char(c',')
        out.append(plan.heads[index], plan.lengths[index])
        if pq.getisnull(result, row, index):
            out.append(b'null,"null"]', 12)
            continue
        text = pq.getvalue(result, row, index)
        size = pq.getlength(result, row, index)
        out.append_string(text, size)
        out.append_char(c',')
        # The JSON of the value becomes a JSON string, so it is written to a buffer of its own first.
        json = Buffer()
        render(plan.codecs[index], plan.codecs[index].kind, json, scratch, text, text + size, 0)
        value = json.take()
        out.append_string(<const char *>value, len(value))
        out.append_char(c']')
    out.append_char(c']')
    return 0
