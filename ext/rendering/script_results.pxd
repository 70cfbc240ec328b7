"""What the statements of a script add to the object that they answer with together."""

from rowcall.ext.rendering.body_writer cimport BodyWriter


cdef class NamedRows(BodyWriter):
    cdef BodyWriter _inner
    cdef bytes _prefix


cdef class AffectedRows(BodyWriter):
    cdef bytes _prefix
