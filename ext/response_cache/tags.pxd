"""Tags of cached responses, and marks: the moments at which tags were invalidated.

If the computation of a response began before the mark of one of its tags, the response is not stored.
"""

from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.layout cimport Node, Region

# Returns the block of a tag, which is allocated if it does not exist yet. A block has to be free.
cdef uint32_t tag_named(Region *region, const uint64_t *name) noexcept nogil
# Marks a tag as invalidated at `now`.
cdef void mark(Region *region, uint32_t index, double now) noexcept nogil
# Returns whether the tag was invalidated at `began` or later.
cdef bint is_marked(Region *region, const uint64_t *name, double began) noexcept nogil
# Drops the earliest mark, to make room. Unless the mark is older than MARKED, `floor` is moved to it: responses with
# tags whose computation began before are not stored, whatever their tags are.
cdef void drop_mark(Region *region, double now) noexcept nogil
# Makes a node tie a response to a tag.
cdef void tie(Region *region, uint32_t response, uint32_t node, uint32_t tag) noexcept nogil
# Removes a node from the list of its tag, and the tag if it has no other node and no mark.
cdef void untie(Region *region, Node *item) noexcept nogil
