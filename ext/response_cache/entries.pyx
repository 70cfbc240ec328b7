"""Inserts and removes the cached responses of a shard, and makes room for new ones. `entries.pxd` describes the
functions."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.blocks cimport Place, free_blocks, allocate_block, write
from rowcall.ext.response_cache.buckets cimport OF_TAG, chain, find_block, name_of, unchain
from rowcall.ext.response_cache.layout cimport (
    RESPONSE, BLOCK, FREE, LINK, NODE_BITS, NODES, SLOTS, CachedResponse, Head, Nodes, Region, is_over, link_of,
    nodes_at, response_at,
)
from rowcall.ext.response_cache.tags cimport drop_mark, tag_named, tie, untie

cdef enum:
    TICKS = 16        # slots of the wheel per second
    SLOTS_AT_ONCE = 64
    OWN = BLOCK - sizeof(CachedResponse)  # bytes of text in the first block of a response; FURTHER: in each further one
    FURTHER = BLOCK - LINK

cdef double LAST_END = 1e14


cdef uint64_t tick_of(double moment) noexcept nogil:
    return <uint64_t>(min(moment, LAST_END) * TICKS)


cdef bint make_room(Region *region, uint64_t count, double now) noexcept nogil:
    cdef Head *head = region.head
    cdef uint64_t tick = tick_of(now)
    if count >= region.count:
        return False
    remove_ended(region, now, tick)
    while head.room < count and not region.damaged:
        # A call visits few slots, so the wheel may still have expired responses.
        if head.tick and head.tick < tick:
            remove_ended(region, now, tick)
        elif head.oldest:
            remove(region, head.oldest)
        elif head.first_mark:
            drop_mark(region, now)
        else:
            # All other blocks belong to responses or marks, so the counts are wrong.
            region.damaged = True
    return not region.damaged


cdef void remove(Region *region, uint32_t index) noexcept nogil:
    cdef Head *head = region.head
    cdef CachedResponse *item = response_at(region, index)
    cdef uint32_t slot = item.slot
    if item.kind != RESPONSE or item.blocks == 0 or item.blocks >= region.count or slot >= SLOTS:
        region.damaged = True
        return
    unchain(region, index)
    if item.older:
        response_at(region, item.older).newer = item.newer
    else:
        head.oldest = item.newer
    if item.newer:
        response_at(region, item.newer).older = item.older
    else:
        head.newest = item.older
    if item.ends != 0:
        if item.before:
            response_at(region, item.before).behind = item.behind
        else:
            region.wheel[slot] = item.behind
        if item.behind:
            response_at(region, item.behind).before = item.before
    if item.nodes:
        _remove_nodes(region, item.nodes)
    item.kind = FREE
    head.count -= 1
    free_blocks(region, index, item.last, item.blocks)


cdef void _remove_nodes(Region *region, uint32_t block) noexcept nogil:
    cdef Nodes *nodes
    cdef uint32_t following, place
    while block and not region.damaged:
        nodes = nodes_at(region, block)
        if nodes.count > NODES:
            region.damaged = True
            return
        for place in range(nodes.count):
            untie(region, &nodes.nodes[place])
        following = nodes.next
        free_blocks(region, block, block, 1)
        block = following


cdef uint32_t remove_ended(Region *region, double now, uint64_t tick) noexcept nogil:
    cdef Head *head = region.head
    cdef uint32_t index, behind, seen, count = 0
    cdef int _turn
    if head.tick == 0:
        return 0
    # The wheel has turned more than once since: each slot has to be visited only once.
    if head.tick + SLOTS < tick:
        head.tick = tick - SLOTS
    for _turn in range(SLOTS_AT_ONCE):
        if head.tick >= tick or region.damaged:
            break
        index = region.wheel[head.tick % SLOTS]
        seen = 0
        while index:
            behind = response_at(region, index).behind
            # A slot also contains responses that end in later turns of the wheel.
            if is_over(response_at(region, index).ends, now):
                remove(region, index)
                count += 1
            index = behind
            seen += 1
            if seen == region.count:
                region.damaged = True
                break
        head.tick += 1
    return count


cdef bint is_whole(Region *region, uint32_t index) noexcept nogil:
    cdef CachedResponse *item = response_at(region, index)
    cdef uint64_t most = OWN + <uint64_t>item.blocks * FURTHER - FURTHER
    if item.blocks == 0 or item.blocks >= region.count or item.body > most:
        return False
    return item.body + item.key + <uint64_t>item.head + item.tags <= most


cdef uint32_t insert(
    Region *region, const uint64_t *name, bytes key, tuple entry, bytes texts, list tags, double now
) except? 0:
    cdef bytes body = <bytes?>entry[0]
    cdef bytes head = <bytes?>entry[6]
    cdef uint64_t rows = entry[1]
    cdef bint is_null = entry[2]
    cdef double written = entry[3], ends = entry[4], fresh = entry[5]
    cdef uint64_t length = PyBytes_GET_SIZE(key) + PyBytes_GET_SIZE(head) + PyBytes_GET_SIZE(texts)
    cdef uint64_t count = 1
    cdef uint32_t index, block, last, _at
    cdef CachedResponse *item
    cdef Place place
    index = find_block(region, RESPONSE, name)
    if index:
        remove(region, index)
    length += PyBytes_GET_SIZE(body)
    if length > OWN:
        count += (length - OWN + FURTHER - 1) // FURTHER
    # Each tag may need a block of its own, and NODES tags share a block of nodes.
    if not make_room(region, count + len(tags) + (len(tags) + NODES - 1) // NODES, now):
        return 0
    index = last = allocate_block(region)
    for _at in range(1, <uint32_t>count):
        block = allocate_block(region)
        link_of(region, last)[0] = block
        last = block
    item = response_at(region, index)
    item.kind, item.last, item.blocks, item.nodes = RESPONSE, last, <uint32_t>count, 0
    item.is_null, item.rows, item.written, item.ends, item.fresh = is_null, rows, written, ends, fresh
    item.key, item.head = <uint32_t>PyBytes_GET_SIZE(key), <uint32_t>PyBytes_GET_SIZE(head)
    item.tags, item.body = <uint32_t>PyBytes_GET_SIZE(texts), PyBytes_GET_SIZE(body)
    place.block, place.at = index, sizeof(CachedResponse)
    # The lengths are taken from the objects, not from the memory: if blocks were linked in a circle, they would be
    # overwritten here.
    write(region, &place, PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
    write(region, &place, PyBytes_AS_STRING(head), PyBytes_GET_SIZE(head))
    write(region, &place, PyBytes_AS_STRING(texts), PyBytes_GET_SIZE(texts))
    write(region, &place, PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body))
    chain(region, index, name)
    _queue(region, index, now)
    if tags:
        _tie_all(region, index, tags)
    region.head.count += 1
    return index


cdef void _queue(Region *region, uint32_t index, double now) noexcept nogil:
    """Append the response at `index` as the newest item, and add it to the wheel slot in which it ends."""
    cdef Head *head = region.head
    cdef CachedResponse *item = response_at(region, index)
    cdef uint32_t slot
    item.older, item.newer = head.newest, 0
    if item.older:
        response_at(region, item.older).newer = index
    else:
        head.oldest = index
    head.newest = index
    item.slot = item.before = item.behind = 0
    if item.ends != 0:
        if head.tick == 0:
            head.tick = tick_of(now)
        slot = <uint32_t>(max(tick_of(item.ends), head.tick) % SLOTS)
        item.slot, item.behind = slot, region.wheel[slot]
        if item.behind:
            response_at(region, item.behind).before = index
        region.wheel[slot] = index


cdef void _tie_all(Region *region, uint32_t index, list tags) noexcept:
    """Tie the response at `index` to each of its tags (bytes), for which enough blocks have to be free."""
    cdef CachedResponse *item = response_at(region, index)
    cdef Nodes *nodes = NULL
    cdef uint32_t node
    cdef uint64_t[2] name
    for text in tags:
        if nodes == NULL or nodes.count == NODES:
            node = allocate_block(region)
            nodes = nodes_at(region, node)
            nodes.next, nodes.count = item.nodes, 0
            item.nodes = node
        name_of(region, OF_TAG, <bytes>text, name)
        node = item.nodes << NODE_BITS | nodes.count
        nodes.count += 1
        tie(region, index, node, tag_named(region, name))
