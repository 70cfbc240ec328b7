"""Check the contents of a shard against the invariants of docs/internals/response-cache.md.

Nothing in the service calls this. It visits every block, and trusts no link: each loop ends after as many turns as
there are blocks.
"""

from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.entries cimport is_whole, tick_of
from rowcall.ext.response_cache.layout cimport (
    RESPONSE, NODE_BITS, NODES, PLACES, SLOTS, TAG, CachedResponse, Lease, Nodes, Region, link_of, node_at, nodes_at,
    response_at, tag_at,
)


cdef list region_invariant_violations(Region *region):
    return _Check().run(region)


cdef class _Check:
    """One pass over a shard, whose lock the caller holds.

    broken: a sentence for each broken invariant. owners: index of a block → what uses it, for messages. responses,
    tags: the indices that the buckets lead to.
    """

    cdef Region *region
    cdef list broken
    cdef dict owners
    cdef list responses
    cdef list tags

    cdef list run(self, Region *region):
        self.region = region
        self.broken, self.owners, self.responses, self.tags = [], {}, [], []
        self._buckets()
        self._blocks()
        self._order()
        self._wheel()
        self._nodes()
        self._marks()
        self._leases()
        if region.damaged:
            self._wrong("a link leads outside the blocks, or the shard was marked as damaged before")
        return self.broken

    cdef int _wrong(self, str text) except -1:
        self.broken.append(text)
        return 0

    cdef int _claim(self, uint32_t index, str owner) except -1:
        """Record what uses the block at `index`; each block has one use (shard-1). owner: the user, for messages."""
        if index == 0 or index >= self.region.head.fresh or index >= self.region.count:
            self._wrong(f"shard-1: {owner} uses block {index}, which was never allocated")
        elif index in self.owners:
            self._wrong(f"shard-1: block {index} belongs to {self.owners[index]} and to {owner}")
        else:
            self.owners[index] = owner
        return 0

    cdef int _buckets(self) except -1:
        """Each response and each tag is in the bucket of its name, once (shard-2)."""
        cdef uint32_t bucket, index, _turn
        cdef CachedResponse *item
        cdef set names = set()
        for bucket in range(self.region.mask + 1):
            index = self.region.buckets[bucket]
            for _turn in range(self.region.count):
                if index == 0:
                    break
                item = response_at(self.region, index)
                if item.kind == RESPONSE:
                    self.responses.append(index)
                elif item.kind == TAG:
                    self.tags.append(index)
                else:
                    self._wrong(f"shard-2: bucket {bucket} has block {index} of kind {item.kind}")
                if (item.name[1] & self.region.mask) != bucket:
                    self._wrong(f"shard-2: block {index} is in the bucket of another name")
                if (item.kind, item.name[0], item.name[1]) in names:
                    self._wrong(f"shard-2: block {index} has the name of another block")
                names.add((item.kind, item.name[0], item.name[1]))
                index = item.chain
            else:
                # More items than there are blocks: the links form a circle.
                self._wrong(f"shard-2: bucket {bucket} has no end")
        return 0

    cdef int _blocks(self) except -1:
        """Each block that was ever used is either free or has one owner; `room` counts the free blocks, including those
        never used (shard-1)."""
        cdef uint32_t index, free = 0, turn
        cdef uint64_t count
        cdef CachedResponse *item
        for index in self.responses:
            item = response_at(self.region, index)
            if not is_whole(self.region, index):
                self._wrong(f"shard-1: the texts of response {index} do not fit its blocks")
                continue
            count, block = 1, index
            self._claim(index, f"response {index}")
            while link_of(self.region, block)[0] and count < self.region.count:
                block = link_of(self.region, block)[0]
                self._claim(block, f"response {index}")
                count += 1
            if count != item.blocks or block != item.last:
                self._wrong(f"shard-1: response {index} has {item.blocks} blocks up to {item.last}, not {count}")
            block, turn = item.nodes, 0
            while block and turn < self.region.count:
                self._claim(block, f"nodes of response {index}")
                block = nodes_at(self.region, block).next
                turn += 1
        for index in self.tags:
            self._claim(index, f"tag {index}")
        index = self.region.head.free
        while index and free < self.region.count:
            self._claim(index, "the free list")
            index = link_of(self.region, index)[0]
            free += 1
        if self.region.head.fresh > self.region.count:
            self._wrong("shard-1: more blocks are in use than there are")
        elif self.region.head.room != free + self.region.count - self.region.head.fresh:
            self._wrong(f"shard-1: {self.region.head.room} blocks are said to be free, but {free} and the new ones are")
        # Every block from 1 to before `fresh` was allocated once, so it is free or in use.
        elif <uint32_t>len(self.owners) != self.region.head.fresh - 1:
            self._wrong(f"shard-1: {self.region.head.fresh - 1 - len(self.owners)} blocks are lost")
        return 0

    cdef int _order(self) except -1:
        """The list from oldest to newest has each response once (shard-3)."""
        cdef uint32_t index = self.region.head.oldest, older = 0, count = 0
        cdef set seen = set()
        while index and count < self.region.count:
            seen.add(index)
            if response_at(self.region, index).older != older:
                self._wrong(f"shard-3: response {index} follows the wrong one")
            older, index = index, response_at(self.region, index).newer
            count += 1
        if self.region.head.newest != older:
            self._wrong("shard-3: the list of responses does not end with the newest one")
        if seen != set(self.responses) or count != len(seen):
            self._wrong("shard-3: the list of responses is not that of the buckets")
        if self.region.head.count != <uint64_t>len(self.responses):
            self._wrong(f"shard-3: {self.region.head.count} responses are counted, {len(self.responses)} are there")
        return 0

    cdef int _wheel(self) except -1:
        """Each response with an end is in one slot, which the wheel visits when the response ends (shard-4)."""
        cdef uint32_t slot, index, before, _turn
        cdef CachedResponse *item
        cdef set seen = set()
        for slot in range(SLOTS):
            index, before = self.region.wheel[slot], 0
            for _turn in range(self.region.count):
                if index == 0:
                    break
                item = response_at(self.region, index)
                if index in seen or item.slot != slot or item.before != before:
                    self._wrong(f"shard-4: response {index} is tied to slot {slot} in a wrong way")
                # A response that had ended when it was stored is in the slot at which the wheel was then.
                if tick_of(item.ends) >= self.region.head.tick and tick_of(item.ends) % SLOTS != slot:
                    self._wrong(f"shard-4: response {index} is not in the slot of its end")
                seen.add(index)
                before, index = index, item.behind
            else:
                self._wrong(f"shard-4: slot {slot} has no end")
        if seen != {index for index in self.responses if response_at(self.region, index).ends != 0}:
            self._wrong("shard-4: the wheel does not have exactly the responses with an end")
        return 0

    cdef int _nodes(self) except -1:
        """Each node of a response is in the list of its tag, once (shard-5)."""
        cdef uint32_t index, block, place, turn, _turn, node, before
        cdef Nodes *nodes
        cdef set tied = set()
        cdef set listed = set()
        for index in self.responses:
            block, turn = response_at(self.region, index).nodes, 0
            while block and turn < self.region.count:
                nodes = nodes_at(self.region, block)
                # A new block is put in front of the full ones, so only the first one may have room.
                if not 0 < nodes.count <= NODES or (turn and nodes.count != NODES):
                    self._wrong(f"shard-5: a block of nodes of response {index} has {nodes.count} nodes")
                for place in range(min(nodes.count, <uint32_t>NODES)):
                    tied.add((block << NODE_BITS | place, nodes.nodes[place].tag, index))
                    if nodes.nodes[place].response != index:
                        self._wrong(f"shard-5: a node of response {index} names another response")
                block = nodes.next
                turn += 1
        for index in self.tags:
            node, before = tag_at(self.region, index).first, 0
            for _turn in range(self.region.count * <uint32_t>NODES):
                if node == 0:
                    break
                listed.add((node, node_at(self.region, node).tag, node_at(self.region, node).response))
                if node_at(self.region, node).tag != index or node_at(self.region, node).before != before:
                    self._wrong(f"shard-5: node {node} is tied to tag {index} in a wrong way")
                before, node = node, node_at(self.region, node).behind
            else:
                self._wrong(f"shard-5: the list of tag {index} has no end")
        if tied != listed:
            self._wrong("shard-5: responses and tags do not have the same nodes")
        return 0

    cdef int _marks(self) except -1:
        """A tag exists while it has responses or a mark; the list of marks has each mark once (shard-6)."""
        cdef uint32_t index, earlier = 0, count = 0
        cdef set marked = {index for index in self.tags if tag_at(self.region, index).mark != 0}
        cdef set seen = set()
        for index in self.tags:
            if tag_at(self.region, index).first == 0 and tag_at(self.region, index).mark == 0:
                self._wrong(f"shard-6: tag {index} has neither responses nor a mark")
        index = self.region.head.first_mark
        while index and count < self.region.count:
            seen.add(index)
            if tag_at(self.region, index).earlier != earlier:
                self._wrong(f"shard-6: mark {index} follows the wrong one")
            earlier, index = index, tag_at(self.region, index).later
            count += 1
        if self.region.head.last_mark != earlier or seen != marked or count != len(seen):
            self._wrong("shard-6: the list of marks is not that of the tags")
        if self.region.head.marks != <uint32_t>len(marked):
            self._wrong(f"shard-6: {self.region.head.marks} marks are counted, {len(marked)} are there")
        return 0

    cdef int _leases(self) except -1:
        """A name has one lease, in its row, with a number of its own; a retired shard has nothing (shard-7)."""
        cdef uint64_t place
        cdef Lease *lease
        cdef set names = set()
        cdef set numbers = set()
        for place in range(self.region.rows * PLACES):
            lease = self.region.leases + place
            if lease.process == 0:
                continue
            if lease.name[0] % self.region.rows != place // <uint64_t>PLACES:
                self._wrong("shard-7: a lease is in the row of another name")
            if (lease.name[0], lease.name[1]) in names:
                self._wrong("shard-7: a name has two leases")
            if lease.number in numbers or not 0 < lease.number <= self.region.head.taken:
                self._wrong(f"shard-7: lease {lease.number} was not acquired, or twice")
            names.add((lease.name[0], lease.name[1]))
            numbers.add(lease.number)
        if self.region.head.retired and (names or self.responses):
            self._wrong("shard-7: a retired shard has leases or responses")
        return 0
