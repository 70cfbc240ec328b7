"""Tags of answers, and marks: when a tag was forgotten, so that what was begun before is not kept with it."""

from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.layout cimport Node, Region

# Its block, made where there is none; there is room for it.
cdef uint32_t tag_named(Region *region, const uint64_t *name) noexcept nogil
# It is forgotten now.
cdef void mark(Region *region, uint32_t index, double now) noexcept nogil
# It was forgotten then, or later.
cdef bint is_marked(Region *region, const uint64_t *name, double began) noexcept nogil
# The earliest. What was begun before it is not kept any more, whatever its tags are.
cdef void drop_mark(Region *region, double now) noexcept nogil
# Makes a node say that an answer has a tag.
cdef void tie(Region *region, uint32_t answer, uint32_t node, uint32_t tag) noexcept nogil
cdef void untie(Region *region, Node *one) noexcept nogil
