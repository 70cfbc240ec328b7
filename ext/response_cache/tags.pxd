"""Tags of cached responses, and marks: the moments at which tags were invalidated.

If the computation of a response began before the mark of one of its tags, the response is not stored.
"""

from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.layout cimport Node, Region

# Returns the index of a tag, which is created without nodes and mark if it does not exist yet. For this, a block has to
# be free.
cdef uint32_t tag_named(Region *region, const uint64_t *name) noexcept nogil
# Marks the tag at `index` as invalidated at `now`, and drops the earliest marks if there are too many.
cdef void mark(Region *region, uint32_t index, double now) noexcept nogil
# Returns whether the tag was invalidated at `began` or later.
cdef bint is_marked(Region *region, const uint64_t *name, double began) noexcept nogil
# Drops the earliest mark, to make room. Unless the mark is older than MARKED, `floor` is moved to it: responses with
# tags whose computation began before are not stored, whatever their tags are.
cdef void drop_mark(Region *region, double now) noexcept nogil
# Makes the node with the index `node` tie a response to a tag. response, tag: their indices.
cdef void tie(Region *region, uint32_t response, uint32_t node, uint32_t tag) noexcept nogil
# Removes a node from the list of its tag, and the tag if it has no other node and no mark. The node itself is
# unchanged.
cdef void untie(Region *region, Node *item) noexcept nogil
