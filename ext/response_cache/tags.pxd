"""Tags of cached responses, and marks: the moment at which a tag was invalidated.

A response whose computation began before the mark of one of its tags is not stored.
"""

from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.layout cimport Node, Region

# The block of a tag, allocated if it does not exist yet. There has to be a free block.
cdef uint32_t tag_named(Region *region, const uint64_t *name) noexcept nogil
# Marks a tag as invalidated at `now`.
cdef void mark(Region *region, uint32_t index, double now) noexcept nogil
# Whether the tag was invalidated at `began` or later.
cdef bint is_marked(Region *region, const uint64_t *name, double began) noexcept nogil
# Drops the earliest mark. Unless it is older than MARKED, responses begun before it are not stored, whatever tags they
# have.
cdef void drop_mark(Region *region, double now) noexcept nogil
# Makes a node tie a response to a tag.
cdef void tie(Region *region, uint32_t response, uint32_t node, uint32_t tag) noexcept nogil
cdef void untie(Region *region, Node *item) noexcept nogil
