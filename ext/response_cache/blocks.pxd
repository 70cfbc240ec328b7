"""The blocks of a shard: allocate, free, read and write them, following the links from one block to the next."""

from libc.stdint cimport uint32_t

from rowcall.ext.response_cache.layout cimport Region

# A position in linked blocks: index of the block, and offset of the byte in it; BLOCK: at the start of the next block.
cdef struct Place:
    uint32_t block
    uint32_t at

# Allocates a block, whose link is set to 0, and returns its index. A block has to be free, as `entries.make_room`
# ensures; otherwise the region is marked as damaged and the result is 0.
cdef uint32_t allocate_block(Region *region) noexcept nogil
# Frees `count` blocks that are linked from `first` to `last`; both are indices.
cdef void free_blocks(Region *region, uint32_t first, uint32_t last, uint32_t count) noexcept nogil
# The following functions advance `place` behind the `length` bytes that they process, for which blocks have to exist.
# text: memory of the process, of `length` bytes, that is read or, by `read`, written.
cdef void write(Region *region, Place *place, const char *text, size_t length) noexcept nogil
cdef void read(Region *region, Place *place, char *text, size_t length) noexcept nogil
cdef void skip(Region *region, Place *place, size_t length) noexcept nogil
# Returns whether exactly this text is at `place`. If it is not, `place` is undefined afterwards.
cdef bint is_there(Region *region, Place *place, const char *text, size_t length) noexcept nogil
