"""Blocks: taken, given back, and walked over from one to the next."""

from libc.stdint cimport uint32_t

from rowcall.ext.response_cache.layout cimport Region

cdef struct Place:
    uint32_t block
    uint32_t at

# A block that was free. There is one: `entries.make_room` came first.
cdef uint32_t allocate_block(Region *region) noexcept nogil
# So many blocks that are linked.
cdef void free_blocks(Region *region, uint32_t first, uint32_t last, uint32_t count) noexcept nogil
# Each goes on behind what it has passed. There are blocks for all of it.
cdef void write(Region *region, Place *place, const char *text, size_t length) noexcept nogil
cdef void read(Region *region, Place *place, char *text, size_t length) noexcept nogil
cdef void skip(Region *region, Place *place, size_t length) noexcept nogil
# Exactly this text is there. Where it is not, the place is anywhere.
cdef bint is_there(Region *region, Place *place, const char *text, size_t length) noexcept nogil
