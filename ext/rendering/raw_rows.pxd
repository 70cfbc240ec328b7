"""Rows as the text of PostgreSQL, and as the bytes of a bytea column."""

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan
from rowcall.ext.rendering.codecs cimport Codecs
from rowcall.ext.base.libpq cimport PGresult


cdef class RawPlan(RowPlan):
    """How the values of one result description are separated and quoted."""

    # For each column 1 if its values are quoted, else 0.
    cdef char *quoted
    # Quoted values that a spreadsheet would take for formulas get an apostrophe in front.
    cdef bint escapes_formulas
    # Rows are CSV (RFC 4180): NULL has no quotes, so it differs from an empty text.
    cdef bint csv
    # The header row and what follows it, and its length in bytes; empty without a header row.
    cdef const char *header
    cdef Py_ssize_t header_length


cdef class RawRenderer(BodyWriter):
    # `raw_rows.pyi` describes the parameters from which these fields are set.
    cdef Codecs _codecs
    cdef bint _csv
    cdef bint _has_header
    cdef bint _escapes_formulas
    cdef bint _quotes
    cdef bytes _separator
    cdef bytes _new_line

    # Returns the row of the column names, each in quotes, with its line end.
    cdef bytes _header(self, RawPlan plan)


cdef class BytesRenderer(BodyWriter):
    pass
