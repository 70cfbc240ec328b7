"""Rows as JSON: the format of nearly every endpoint."""

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan
from rowcall.ext.rendering.codecs cimport Codec, Codecs
from rowcall.ext.base.libpq cimport Oid, PGresult
from rowcall.ext.rendering.values cimport Scratch

# What a result becomes.
cdef enum Shape:
    # The text of a scalar, unchanged.
    SCALAR_TEXT
    # A scalar array, as JSON.
    SCALAR_JSON
    # The bytes of a scalar bytea.
    SCALAR_BYTES
    # A row without column names: the bare JSON value.
    ROW_VALUE
    ROW_OBJECT

# How one column is written. Its texts belong to the plan, its codec to the registry; lengths are in bytes.
cdef struct Column:
    const Codec *codec
    # `{"first":` or `,"other":`, padded; NULL in a row without names, and if the column is spread over the row.
    const char *key
    Py_ssize_t key_length
    # What is written if a composite that is spread over the row is NULL: `,"width":null,"height":null`; the address
    # NULL for every other column.
    const char *blank
    Py_ssize_t blank_length


cdef class JsonPlan(RowPlan):
    """The codecs and escaped keys of the columns of one result description."""

    cdef Shape shape
    # Between two rows: a comma, or a line feed for JSON lines.
    cdef char separator
    # The first `shown` columns are written: all but the hidden columns, or only one.
    cdef int shown
    # One for each column of the result; only those that are written are set.
    cdef Column *columns
    # Owns the codecs to which the columns point.
    cdef Codecs _codecs


cdef class Renderer(BodyWriter):
    # `rows.pyi` describes the parameters from which these fields are set.
    cdef Codecs _codecs
    cdef bint _is_scalar
    cdef bint _is_named
    cdef list _keys
    cdef bint _blank_is_null
    cdef bint _first_only
    # Number of last columns of the result that are not written.
    cdef int _hidden
    # Each row is a line, without the brackets of an array.
    cdef bint _lines
    cdef Scratch _scratch

    # Returns the codec of a column of this type (OID), which is borrowed from the registry.
    cdef const Codec *_codec(self, Oid type) except NULL
    # Returns the shape of a result, SCALAR_TEXT also for bytea. count: number of columns; first: codec of the first
    # one, NULL without columns.
    cdef Shape _shape(self, int count, const Codec *first) noexcept
    # Returns the keys of the columns, as `rows.pyi` describes them; empty if rows are written without keys. names:
    # names (bytes) of the columns of the result that are not hidden. Raises ColumnsChangedError if their number is
    # wrong.
    cdef list _keys_for(self, list names)
    # Lets column `index` (from 0), a composite, be written as members of the row. keys: those of its fields (bytes,
    # UTF-8, not escaped). Raises ValueError if the column has another type.
    cdef int _spread(self, JsonPlan plan, int index, tuple keys) except -1
