"""Insert and remove cached responses, make room for new ones, and remove those whose lifetime has ended."""

from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.layout cimport Region

# Makes room for `count` blocks: removes ended responses first, then the oldest ones. False if the shard is too small.
cdef bint make_room(Region *region, uint64_t count, double now) noexcept nogil
# Removes a cached response and every reference to it.
cdef void remove(Region *region, uint32_t index) noexcept nogil
# Removes ended responses from a limited number of wheel slots before `tick`. Returns the number of responses removed.
cdef uint32_t remove_ended(Region *region, double now, uint64_t tick) noexcept nogil
# The wheel slot of a moment, not yet reduced modulo the size of the wheel.
cdef uint64_t tick_of(double moment) noexcept nogil
# Whether the lengths of its four texts fit its blocks.
cdef bint is_whole(Region *region, uint32_t index) noexcept nogil
# Stores a cached response under this name in place of an existing one. Returns its block, or 0 if there is no room; the
# existing one is removed in either case. entry: see `table.ResponseTable`. texts: the tags, joined.
cdef uint32_t insert(
    Region *region, const uint64_t *name, bytes key, tuple entry, bytes texts, list tags, double now
) except? 0
