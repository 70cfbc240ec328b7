"""Insert and remove cached responses, make room for new ones, and remove expired ones."""

from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.layout cimport Region

# Makes room for `count` blocks: removes expired responses, then the oldest ones, then marks. Returns False if that
# cannot suffice, or if the region is damaged.
cdef bint make_room(Region *region, uint64_t count, double now) noexcept nogil
# Removes the cached response at `index` and every reference to it, and frees its blocks.
cdef void remove(Region *region, uint32_t index) noexcept nogil
# Removes expired responses from at most 64 wheel slots before `tick`, a number as of `tick_of`. Returns the number of
# removed responses.
cdef uint32_t remove_ended(Region *region, double now, uint64_t tick) noexcept nogil
# Returns the number of the wheel slot of a moment, not yet reduced modulo the size of the wheel.
cdef uint64_t tick_of(double moment) noexcept nogil
# Returns whether the lengths of a response's four texts (key, head, tags, body) fit its blocks.
cdef bint is_whole(Region *region, uint32_t index) noexcept nogil
# Stores a cached response under this name, and removes an existing one with the name in any case. Returns its index, or
# 0 if there is no room. key: bytes of which `name` is the hash. entry: see `table.ResponseTable`. tags: each tag as
# bytes (UTF-8); texts: the same, joined by line feeds. Raises TypeError or OverflowError for an entry with other
# values; nothing is changed then.
cdef uint32_t insert(
    Region *region, const uint64_t *name, bytes key, tuple entry, bytes texts, list tags, double now
) except? 0
