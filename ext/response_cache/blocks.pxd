"""Allocate, free, read and write the blocks of a shard, following the links from one block to the next."""

from libc.stdint cimport uint32_t

from rowcall.ext.response_cache.layout cimport Region

cdef struct Place:
    uint32_t block
    uint32_t at

# Allocates a free block. There has to be one: `entries.make_room` was called before.
cdef uint32_t allocate_block(Region *region) noexcept nogil
# Frees `count` blocks that are linked from `first` to `last`.
cdef void free_blocks(Region *region, uint32_t first, uint32_t last, uint32_t count) noexcept nogil
# The following functions advance `place` behind the bytes they process. The blocks for all of `length` have to exist.
cdef void write(Region *region, Place *place, const char *text, size_t length) noexcept nogil
cdef void read(Region *region, Place *place, char *text, size_t length) noexcept nogil
cdef void skip(Region *region, Place *place, size_t length) noexcept nogil
# Whether exactly this text is at `place`. If not, the position of `place` afterwards is undefined.
cdef bint is_there(Region *region, Place *place, const char *text, size_t length) noexcept nogil
