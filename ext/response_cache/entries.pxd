"""Insert and remove cached responses, make room for new ones, and remove expired ones."""

from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.layout cimport Region

# Makes room for `count` blocks: removes expired responses, then the oldest ones. Returns False if that cannot suffice.
cdef bint make_room(Region *region, uint64_t count, double now) noexcept nogil
# Removes a cached response and every reference to it.
cdef void remove(Region *region, uint32_t index) noexcept nogil
# Removes expired responses from at most 64 wheel slots before `tick`. Returns the number of removed responses.
cdef uint32_t remove_ended(Region *region, double now, uint64_t tick) noexcept nogil
# Returns the number of the wheel slot of a moment, not yet reduced modulo the size of the wheel.
cdef uint64_t tick_of(double moment) noexcept nogil
# Returns whether the lengths of a response's four texts (key, head, tags, body) fit its blocks.
cdef bint is_whole(Region *region, uint32_t index) noexcept nogil
# Stores a cached response under this name, and removes an existing one with the name in any case. Returns its first
# block, or 0 if there is no room. entry: see `table.ResponseTable`. texts: the tags, joined by line ends.
cdef uint32_t insert(
    Region *region, const uint64_t *name, bytes key, tuple entry, bytes texts, list tags, double now
) except? 0
