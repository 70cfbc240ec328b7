"""Allocates, frees, reads and writes the blocks of a shard. `blocks.pxd` describes the functions."""

from libc.stdint cimport uint32_t
from libc.string cimport memcmp, memcpy

from rowcall.ext.response_cache.layout cimport BLOCK, LINK, Head, Region, block_at, link_of


cdef uint32_t allocate_block(Region *region) noexcept nogil:
    cdef Head *head = region.head
    cdef uint32_t index = head.free
    if head.room == 0:
        region.damaged = True
        return 0
    head.room -= 1
    # Freed blocks are used before those that were never used, whose memory may not have been touched yet.
    if index:
        head.free = link_of(region, index)[0]
    else:
        index = head.fresh
        head.fresh += 1
    link_of(region, index)[0] = 0
    return index


cdef void free_blocks(Region *region, uint32_t first, uint32_t last, uint32_t count) noexcept nogil:
    cdef Head *head = region.head
    link_of(region, last)[0] = head.free
    head.free = first
    head.room += count
    # Block 0 is never free.
    if head.room >= region.count:
        region.damaged = True


cdef inline size_t _piece(Region *region, Place *place, size_t most, char **piece) noexcept nogil:
    """Return the size of the contiguous bytes at `place`, at most `most`, and advance `place` behind them.

    piece: receives the address of these bytes in the shared memory.
    """
    if place.at == BLOCK:
        place.block = link_of(region, place.block)[0]
        place.at = LINK
    piece[0] = block_at(region, place.block) + place.at
    most = min(most, <size_t>(BLOCK - place.at))
    place.at += <uint32_t>most
    return most


cdef void write(Region *region, Place *place, const char *text, size_t length) noexcept nogil:
    cdef char *piece
    cdef size_t size
    while length:
        size = _piece(region, place, length, &piece)
        memcpy(piece, text, size)
        text += size
        length -= size


cdef void read(Region *region, Place *place, char *text, size_t length) noexcept nogil:
    cdef char *piece
    cdef size_t size
    while length:
        size = _piece(region, place, length, &piece)
        memcpy(text, piece, size)
        text += size
        length -= size


cdef void skip(Region *region, Place *place, size_t length) noexcept nogil:
    cdef char *piece
    while length:
        length -= _piece(region, place, length, &piece)


cdef bint is_there(Region *region, Place *place, const char *text, size_t length) noexcept nogil:
    cdef char *piece
    cdef size_t size
    while length:
        size = _piece(region, place, length, &piece)
        if memcmp(piece, text, size) != 0:
            return False
        text += size
        length -= size
    return True
