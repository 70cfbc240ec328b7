"""Renders the PostgreSQL text of one value as JSON. The grammar of arrays and tuples is in `values.pyx`."""

cimport cython

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.rendering.codecs cimport Codec, Kind

cdef enum:
    # Maximum depth of nested containers. Each level of quoting doubles the text, so real values stay far below.
    MAX_DEPTH = 32


@cython.final
cdef class Scratch:
    """Memory for one unquoted value at each depth: allocated once, reused for every value."""

    # The memory of each depth, which this object owns, and its size in bytes; NULL and 0 if it was not needed yet.
    cdef char *levels[MAX_DEPTH]
    cdef Py_ssize_t capacities[MAX_DEPTH]

    # Returns memory of `size` bytes for a depth, from 0 (its former content is lost), or NULL if there is no memory. It
    # is borrowed until the next call for this depth.
    cdef inline char *reserve(self, int depth, Py_ssize_t size) noexcept nogil:
        return self.levels[depth] if size <= self.capacities[depth] else self.grow(depth, size)
    # Like `reserve`, for a size that exceeds the present capacity.
    cdef char *grow(self, int depth, Py_ssize_t size) noexcept nogil
    # Frees the memory of each depth that has grown beyond 1 MiB, for a single large value.
    cdef void trim(self) noexcept nogil


# Appends the text [text, end) of the server (UTF-8, not NULL) as JSON by the rule `kind`, one of the three kinds of
# `codec`. A text that breaks the grammar of its type is appended as an escaped JSON string: the output is always valid
# JSON, provided that the json values of the server are. `depth`: number of containers around the value; containers
# deeper than MAX_DEPTH become strings. Returns -1 if the buffer failed, else 0.
cdef int render(
    const Codec *codec, Kind kind, Buffer out, Scratch scratch, const char *text, const char *end, int depth,
) noexcept nogil
