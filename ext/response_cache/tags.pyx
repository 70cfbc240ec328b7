"""Ties cached responses to their tags, and records when tags were invalidated. `tags.pxd` describes the functions."""

from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.blocks cimport free_blocks, allocate_block
from rowcall.ext.response_cache.buckets cimport chain, find_block, unchain
from rowcall.ext.response_cache.layout cimport FREE, TAG, Head, Node, Region, Tag, node_at, tag_at

# Seconds after which a mark is dropped without raising `floor`.
cdef double MARKED = 3600.0


cdef uint32_t tag_named(Region *region, const uint64_t *name) noexcept nogil:
    cdef uint32_t index = find_block(region, TAG, name)
    cdef Tag *tag
    if not index:
        index = allocate_block(region)
        tag = tag_at(region, index)
        tag.kind = TAG
        tag.first = tag.earlier = tag.later = 0
        tag.mark = 0
        chain(region, index, name)
    return index


cdef void _drop_tag(Region *region, uint32_t index) noexcept nogil:
    """Free the tag at `index` if it has no responses and no mark. If there is no tag, mark the region as damaged."""
    cdef Tag *tag = tag_at(region, index)
    if tag.kind != TAG:
        region.damaged = True
    elif tag.first == 0 and tag.mark == 0:
        unchain(region, index)
        tag.kind = FREE
        free_blocks(region, index, index, 1)


cdef void mark(Region *region, uint32_t index, double now) noexcept nogil:
    cdef Head *head = region.head
    cdef Tag *tag = tag_at(region, index)
    if tag.mark != 0:
        _unlink_mark(region, tag)
    # Processes may come here in another order than that in which they have read the clock: the latest moment stays.
    if now > tag.mark:
        tag.mark = now
    tag.earlier, tag.later = head.last_mark, 0
    if head.last_mark:
        tag_at(region, head.last_mark).later = index
    else:
        head.first_mark = index
    head.last_mark = index
    head.marks += 1
    # The number of marks is limited: a client that invalidates ever new names must not displace the responses.
    while head.marks > 64 and not region.damaged:
        if head.marks <= region.count >> 4 and now - tag_at(region, head.first_mark).mark <= MARKED:
            break
        # Older than MARKED, or more marks than a sixteenth of the blocks.
        drop_mark(region, now)


cdef void _unlink_mark(Region *region, Tag *tag) noexcept nogil:
    """Remove a tag from the list of marks. `tag.mark` itself stays."""
    cdef Head *head = region.head
    if tag.earlier:
        tag_at(region, tag.earlier).later = tag.later
    else:
        head.first_mark = tag.later
    if tag.later:
        tag_at(region, tag.later).earlier = tag.earlier
    else:
        head.last_mark = tag.earlier
    head.marks -= 1


cdef void drop_mark(Region *region, double now) noexcept nogil:
    cdef uint32_t index = region.head.first_mark
    cdef Tag *tag = tag_at(region, index)
    if tag.kind != TAG or tag.mark == 0:
        region.damaged = True
        return
    if now - tag.mark <= MARKED and tag.mark > region.head.floor:
        region.head.floor = tag.mark
    _unlink_mark(region, tag)
    tag.mark = 0
    _drop_tag(region, index)


cdef bint is_marked(Region *region, const uint64_t *name, double began) noexcept nogil:
    cdef uint32_t index = find_block(region, TAG, name)
    return index != 0 and tag_at(region, index).mark != 0 and tag_at(region, index).mark >= began


cdef void tie(Region *region, uint32_t response, uint32_t node, uint32_t tag) noexcept nogil:
    cdef Node *item = node_at(region, node)
    cdef uint32_t first = tag_at(region, tag).first
    item.tag, item.response, item.before, item.behind = tag, response, 0, first
    if first:
        node_at(region, first).before = node
    tag_at(region, tag).first = node


cdef void untie(Region *region, Node *item) noexcept nogil:
    if item.before:
        node_at(region, item.before).behind = item.behind
    else:
        tag_at(region, item.tag).first = item.behind
    if item.behind:
        node_at(region, item.behind).before = item.before
    _drop_tag(region, item.tag)
