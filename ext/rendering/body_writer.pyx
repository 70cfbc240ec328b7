"""Base classes of the writers of all formats. A writer creates a plan for the columns of a result, and uses it for
later results as long as their columns are the same."""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.string cimport strcmp

from rowcall.ext.base.libpq cimport pq


class ColumnsChangedError(ValueError):
    """A result has other columns, or more rows, than expected: the schema has changed since its statement was
    described."""


cdef class RowPlan:
    cdef char *keep(self, bytes memory) except NULL:
        self._allocations.append(memory)
        return PyBytes_AS_STRING(memory)

    cdef int describe(self, const PGresult *result) except -1:
        cdef int index
        self._allocations = []
        self.count = pq.nfields(result)
        # A bytes object of zeros serves as the memory of the array; it is freed with the plan.
        self.described = <Described *>self.keep(bytes(self.count * sizeof(Described)))
        for index in range(self.count):
            self.described[index].type = pq.ftype(result, index)
            self.described[index].name = self.keep(<bytes>pq.fname(result, index))
        return 0

    cdef bint fits(self, const PGresult *result) noexcept:
        cdef int index
        if pq.nfields(result) != self.count:
            return False
        for index in range(self.count):
            if pq.ftype(result, index) != self.described[index].type:
                return False
            if strcmp(pq.fname(result, index), self.described[index].name) != 0:
                return False
        return True


cdef class BodyWriter:
    cdef RowPlan plan_for(self, const PGresult *result):
        if self._plan is None or not self._plan.fits(result):
            # Only a new description is checked: an equal one has passed before.
            self._check(result)
            self._plan = self.new_plan(result)
        return self._plan

    def expect(self, types: tuple, names: tuple | None = None, one_row: bool = False) -> None:
        """Set the columns that the endpoint was built for; a result with other columns raises `ColumnsChangedError`.
        Call this before the first result: a result is only checked if its columns differ from those of the previous
        one.

        types: OID of each column, 0 for any. names: name of each column as bytes (UTF-8); None: any names. one_row: the
        driver refuses more than one row.
        """
        self._types = types
        self._names = names
        self._one_row = one_row

    cdef int _check(self, const PGresult *result) except -1:
        cdef int index
        cdef int count = pq.nfields(result)
        cdef Oid expected
        if self._types is None:
            return 0
        if count != len(self._types):
            raise ColumnsChangedError(f"the result has {count} columns where {len(self._types)} were expected")
        for index in range(count):
            expected = self._types[index]
            name = <bytes>pq.fname(result, index)
            if expected != 0 and pq.ftype(result, index) != expected:
                raise ColumnsChangedError(
                    f"column {name.decode('utf-8', 'replace')} of the result has type {pq.ftype(result, index)} where"
                    f" {expected} was expected"
                )
            if self._names is not None and name != self._names[index]:
                raise ColumnsChangedError(
                    f"column {index + 1} of the result is called {name.decode('utf-8', 'replace')} where"
                    f" {self._names[index].decode('utf-8', 'replace')} was expected"
                )
        return 0

    cdef RowPlan new_plan(self, const PGresult *result):
        cdef RowPlan plan = RowPlan()
        plan.describe(result)
        return plan

    cdef int begin(self, RowPlan plan, Buffer out) except -1:
        return 0

    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1:
        raise NotImplementedError("a format writes its rows")

    cdef int end(self, RowPlan plan, Buffer out, Py_ssize_t rows) except -1:
        return 0

    cdef int complete(self, RowPlan plan, Buffer out, PGresult *result, Py_ssize_t rows) except -1:
        return self.end(plan, out, rows)

    def render_result(self, pgresult_ptr: int) -> bytes:
        """Return the whole body for a finished result. pgresult_ptr: address of its PGresult (as in psycopg), which
        stays that of the caller; a writer that decrypts replaces values in it.

        Raises ColumnsChangedError or another ValueError if the columns do not fit or a worksheet gets too many rows,
        and MemoryError. For a routine that returns no set, only the first row is written, and a scalar NULL gives no
        bytes. `one_row` of `expect` is not checked.
        """
        cdef const PGresult *result = <const PGresult *><size_t>pgresult_ptr
        cdef RowPlan plan = self.plan_for(result)
        cdef Buffer out = Buffer()
        cdef int count = pq.ntuples(result)
        cdef int row
        if not self._is_set:
            count = min(count, 1)
        self.begin(plan, out)
        for row in range(count):
            self.row(plan, out, result, row, row)
        self.end(plan, out, count)
        return out.take()
