"""The hash table of a shard, by which cached responses and tags are found. `buckets.pxd` describes the functions."""

from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.blocks cimport Place, is_there
from rowcall.ext.response_cache.layout cimport RESPONSE, CachedResponse, Region, response_at


cdef uint32_t find_block(Region *region, uint32_t kind, const uint64_t *name) noexcept nogil:
    cdef uint32_t index = region.buckets[name[1] & region.mask]
    cdef uint32_t _turn
    cdef CachedResponse *item
    # A chain has fewer items than there are blocks, unless it is a circle.
    for _turn in range(region.count):
        if index == 0:
            return 0
        item = response_at(region, index)
        if item.name[0] == name[0] and item.name[1] == name[1] and item.kind == kind:
            return index
        index = item.chain
    region.damaged = True
    return 0


cdef uint32_t find_response(Region *region, const uint64_t *name, const char *key, size_t length) noexcept nogil:
    cdef uint32_t index = find_block(region, RESPONSE, name)
    cdef Place place
    if index == 0 or response_at(region, index).key != length:
        return 0
    place.block, place.at = index, sizeof(CachedResponse)
    return index if is_there(region, &place, key, length) else 0


cdef void chain(Region *region, uint32_t index, const uint64_t *name) noexcept nogil:
    cdef uint32_t *bucket = &region.buckets[name[1] & region.mask]
    cdef CachedResponse *item = response_at(region, index)
    item.name[0], item.name[1] = name[0], name[1]
    item.chain = bucket[0]
    bucket[0] = index


cdef void unchain(Region *region, uint32_t index) noexcept nogil:
    cdef CachedResponse *item = response_at(region, index)
    cdef uint32_t *link = &region.buckets[item.name[1] & region.mask]
    cdef uint32_t _turn
    for _turn in range(region.count):
        if link[0] == index:
            link[0] = item.chain
            return
        if link[0] == 0:
            break
        link = &response_at(region, link[0]).chain
    region.damaged = True
