"""One value's PostgreSQL text → JSON. The grammar of arrays and tuples lives in `values.pyx`."""

cimport cython

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.rendering.codecs cimport Codec, Kind

cdef enum:
    # Levels of containers in containers. Each level of quoting doubles the text, so real values stay far below.
    MAX_DEPTH = 32


@cython.final
cdef class Scratch:
    """Room for one unquoted value at each depth: allocated once, reused for every value."""

    cdef char *levels[MAX_DEPTH]
    cdef Py_ssize_t capacities[MAX_DEPTH]

    # Room for `size` bytes at a depth (what was there is lost), or NULL when there is no memory.
    cdef inline char *reserve(self, int depth, Py_ssize_t size) noexcept nogil:
        return self.levels[depth] if size <= self.capacities[depth] else self.grow(depth, size)
    cdef char *grow(self, int depth, Py_ssize_t size) noexcept nogil
    # Gives back what single large values have taken.
    cdef void trim(self) noexcept nogil


# Appends [text, end) as JSON by the rule `kind` of a codec. Text that breaks its type's grammar is appended as an
# escaped JSON string: the output is always valid JSON, provided that the server's json values are.
# -1 when the buffer failed, else 0.
cdef int render(
    const Codec *codec, Kind kind, Buffer out, Scratch scratch, const char *text, const char *end, int depth,
) noexcept nogil
