"""Writers that add the result of one statement of a script to the common object of all statements."""

from rowcall.ext.rendering.body_writer cimport BodyWriter


cdef class NamedRows(BodyWriter):
    # Writes the rows.
    cdef BodyWriter _inner
    # The key with its punctuation, as `key_prefix` returns it.
    cdef bytes _prefix


cdef class AffectedRows(BodyWriter):
    # As of `NamedRows`.
    cdef bytes _prefix
