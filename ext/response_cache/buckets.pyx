"""See buckets.pxd."""

from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.blocks cimport Place, is_there
from rowcall.ext.response_cache.layout cimport ANSWER, Answer, Region, answer_at


cdef uint32_t find_block(Region *region, uint32_t kind, const uint64_t *name) noexcept nogil:
    cdef uint32_t index = region.buckets[name[1] & region.mask]
    cdef uint32_t _turn
    cdef Answer *one
    for _turn in range(region.count):
        if index == 0:
            return 0
        one = answer_at(region, index)
        if one.name[0] == name[0] and one.name[1] == name[1] and one.kind == kind:
            return index
        index = one.chain
    region.damaged = True
    return 0


cdef uint32_t find_answer(Region *region, const uint64_t *name, const char *key, size_t length) noexcept nogil:
    cdef uint32_t index = find_block(region, ANSWER, name)
    cdef Place place
    if index == 0 or answer_at(region, index).key != length:
        return 0
    place.block, place.at = index, sizeof(Answer)
    return index if is_there(region, &place, key, length) else 0


cdef void chain(Region *region, uint32_t index, const uint64_t *name) noexcept nogil:
    cdef uint32_t *bucket = &region.buckets[name[1] & region.mask]
    cdef Answer *one = answer_at(region, index)
    one.name[0], one.name[1] = name[0], name[1]
    one.chain = bucket[0]
    bucket[0] = index


cdef void unchain(Region *region, uint32_t index) noexcept nogil:
    cdef Answer *one = answer_at(region, index)
    cdef uint32_t *link = &region.buckets[one.name[1] & region.mask]
    cdef uint32_t _turn
    for _turn in range(region.count):
        if link[0] == index:
            link[0] = one.chain
            return
        if link[0] == 0:
            break
        link = &answer_at(region, link[0]).chain
    region.damaged = True
