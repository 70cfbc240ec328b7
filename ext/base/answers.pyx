"""Kept answers, and who is computing which, in memory that processes share.

A table consists of shards, which share nothing, so that many processors seldom meet at one lock: an answer and its
lease are in the shard that its key tells, and a tag is in each shard that has answers with it. In a shard an answer
lies in blocks of one size, so that whatever is removed makes room for whatever comes. Behind the head stand

    leases   who computes an answer: rows of eight places, by the hash of its key
    wheel    the answers that end, by the moment at which they do
    buckets  answers and tags, by the hash of their key or name
    blocks   an answer with its key, or a tag, or which answers have which tags; free ones are linked

Every operation holds the lock of the shard while it looks or writes, for a microsecond and the time that it takes to
copy the body; nothing is ever waited for inside, and nothing made that could start the collector of cycles, whose
finalizers may want the lock too. So what one process has written or forgotten, the next one to ask sees. The lock is
robust: when a process dies in it, the next one clears the shard. That loses answers, and a lease that is gone only
means that its answer is not kept; nothing that was forgotten comes back.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from os import urandom
from time import monotonic

cdef extern from "<errno.h>" nogil:
    int EOWNERDEAD

cdef extern from "robust_lock.h" nogil:
    ctypedef struct rowcall_lock:
        pass
    int rowcall_lock_init(rowcall_lock *)
    int rowcall_lock_take(rowcall_lock *)
    void rowcall_lock_mend(rowcall_lock *)
    void rowcall_lock_give(rowcall_lock *)

cdef extern from "keyed_hash.h" nogil:
    void rowcall_keyed_hash(const uint64_t *key, const char *text, size_t length, uint64_t *out)

cdef enum:
    HEAD = 4096
    BLOCK = 256
    LINK = 4          # each block begins with the next one
    PLACES = 8        # leases of one row
    MOST_ROWS = 512
    SHARDS = 8
    SLOTS = 4096
    TICKS = 16        # slots of the wheel for one second
    SLOTS_AT_ONCE = 64
    BUCKETS_AT_ONCE = 4096
    NODES = 15        # in a block
    NODE_BITS = 4
    READY = 0x616e7377

# What a block is, besides a further one of an answer.
cdef enum:
    ANSWER = 1
    TAG = 2

# Of which the hash is taken.
cdef enum:
    OF_KEY = 1
    OF_TAG = 2
    OF_MARK = 3
    OF_SHARD = 4

cdef enum:
    AWAITED_BIT = 1
    FORGOTTEN_BIT = 2
    NOBODY = -1

cdef double MARKED = 3600.0
cdef double LAST_END = 1e14

cdef struct Lease:
    uint64_t name[2]
    uint64_t number
    double ends
    int32_t process  # 0: the place is free
    uint32_t flags

cdef struct Head:
    rowcall_lock lock
    uint32_t ready
    uint32_t blocks        # the first one is none
    uint32_t fresh         # from here on they have never been used
    uint32_t free          # the first of those that were
    uint32_t room          # how many are free, those that were never used among them
    uint32_t oldest
    uint32_t newest
    uint32_t first_mark
    uint32_t last_mark
    uint32_t marks
    uint64_t count         # answers
    uint64_t tick          # of the wheel; earlier slots are empty
    uint64_t taken         # leases, since the beginning
    double floor           # what was forgotten until then is not known any more
    uint64_t secret[2]
    uint32_t retired       # nothing is kept any more

# Both begin alike.
cdef struct Answer:
    uint32_t next
    uint32_t kind
    uint32_t chain         # the next one in its bucket
    uint32_t nodes         # the first block of them
    uint64_t name[2]
    uint32_t last          # block
    uint32_t blocks
    uint32_t older
    uint32_t newer
    uint32_t before        # in its slot
    uint32_t behind
    uint32_t slot
    uint32_t is_null
    uint64_t rows
    uint64_t body
    double written
    double ends
    double fresh
    uint32_t key
    uint32_t head
    uint32_t tags

cdef struct Tag:
    uint32_t next
    uint32_t kind
    uint32_t chain
    uint32_t first         # node
    uint64_t name[2]
    double mark            # when it was forgotten; 0: not
    uint32_t earlier       # marks
    uint32_t later

# That an answer has a tag.
cdef struct Node:
    uint32_t tag
    uint32_t before
    uint32_t behind
    uint32_t answer

cdef struct Nodes:
    uint32_t next
    uint32_t count
    Node nodes[NODES]

cdef struct Place:
    uint32_t block
    uint32_t at

GONE = NOBODY
AWAITED, FORGOTTEN = AWAITED_BIT, FORGOTTEN_BIT
HELD, FULL = 0, -1
"""What `begin` says instead of a number."""
LEAST = 131_072
"""Bytes of a table."""
SPLIT = 8_388_608
"""Bytes from which a table has shards."""


cdef inline bint is_over(double ends, double now) noexcept:
    return ends != 0 and now >= ends


cdef uint64_t rows_for(uint64_t size) noexcept:
    cdef uint64_t rows = size >> 14
    return MOST_ROWS if rows > MOST_ROWS else (64 if rows < 64 else rows)


cdef uint32_t buckets_for(uint64_t size) noexcept:
    """One for four blocks."""
    cdef uint32_t buckets = 64
    while <uint64_t>buckets * BLOCK * 4 < size and buckets < (1 << 26):
        buckets *= 2
    return buckets


cdef struct Given:
    uint64_t rows
    bint is_null
    double written
    double ends
    double fresh


cdef class Shard:
    """See `AnswerTable`."""

    cdef Py_buffer _view
    cdef Head *_head
    cdef Lease *_leases
    cdef uint32_t *_wheel
    cdef uint32_t *_buckets
    cdef char *_blocks
    cdef uint64_t _rows
    cdef uint32_t _mask
    cdef int32_t _process
    cdef object _entry
    cdef uint64_t _size
    cdef Given _given
    cdef bytes _body
    cdef bytes _texts
    cdef bytes _lines

    def __cinit__(self, memory not None, int process, type entry not None):
        cdef int failure
        cdef uint64_t blocks, begin
        PyObject_GetBuffer(memory, &self._view, PyBUF_WRITABLE)
        self._size = self._view.len
        self._process = process
        self._entry = entry
        self._rows = rows_for(self._size)
        self._mask = buckets_for(self._size) - 1
        self._head = <Head *>self._view.buf
        self._leases = <Lease *>(<char *>self._view.buf + HEAD)
        self._wheel = <uint32_t *>(self._leases + self._rows * PLACES)
        self._buckets = self._wheel + SLOTS
        begin = <char *>(self._buckets + self._mask + 1) - <char *>self._view.buf
        begin = (begin + BLOCK - 1) // BLOCK * BLOCK
        self._blocks = <char *>self._view.buf + begin
        if self._head.ready != READY:
            failure = rowcall_lock_init(&self._head.lock)
            if failure:
                raise OSError(failure, "the lock of the answers")
            secret = urandom(16)
            memcpy(self._head.secret, PyBytes_AS_STRING(secret), 16)
            blocks = (self._size - begin) // BLOCK
            self._head.blocks = <uint32_t>min(blocks, <uint64_t>1 << (32 - NODE_BITS))
            self._head.fresh = 1
            self._head.room = self._head.blocks - 1
            self._head.ready = READY

    def __dealloc__(self):
        PyBuffer_Release(&self._view)

    # --- the lock ----------------------------------------------------------------------------------------------------

    cdef int _lock(self) except -1:
        cdef int failure = rowcall_lock_take(&self._head.lock)
        if failure == EOWNERDEAD:
            # It may have been in the middle of anything.
            self._clear()
            rowcall_lock_mend(&self._head.lock)
        elif failure:
            raise OSError(failure, "the lock of the answers")
        return 0

    cdef void _unlock(self) noexcept:
        rowcall_lock_give(&self._head.lock)

    cdef int _clear(self) except -1:
        cdef Head *head = self._head
        memset(self._leases, 0, self._rows * PLACES * sizeof(Lease))
        memset(self._wheel, 0, SLOTS * sizeof(uint32_t))
        memset(self._buckets, 0, (<size_t>self._mask + 1) * sizeof(uint32_t))
        head.fresh = 1
        head.room = head.blocks - 1
        head.free = head.oldest = head.newest = head.first_mark = head.last_mark = head.marks = 0
        head.count = 0
        head.floor = monotonic()
        return 0

    # --- leases ------------------------------------------------------------------------------------------------------

    cdef Lease *_lease(self, const uint64_t *name) noexcept:
        cdef Lease *row = self._leases + (name[0] % self._rows) * PLACES
        cdef int index
        for index in range(PLACES):
            if row[index].process and row[index].name[0] == name[0] and row[index].name[1] == name[1]:
                return &row[index]
        return NULL

    cdef Lease *_own(self, const uint64_t *name, uint64_t number) noexcept:
        cdef Lease *found = self._lease(name)
        if found and found.process == self._process and found.number == number:
            return found
        return NULL

    cdef int _end(self, Lease *found) noexcept:
        if not found:
            return NOBODY
        found.process = 0
        return <int>found.flags

    cdef int64_t _take(self, const uint64_t *name, double ends, double now) noexcept:
        cdef Lease *found = self._lease(name)
        cdef Lease *row
        cdef int index
        if self._head.retired:
            return -1
        if found and not is_over(found.ends, now):
            if found.process != self._process:
                found.flags |= AWAITED_BIT
            return 0
        if not found:
            row = self._leases + (name[0] % self._rows) * PLACES
            for index in range(PLACES):
                if not row[index].process or is_over(row[index].ends, now):
                    found = &row[index]
                    break
            else:
                return -1
        self._head.taken += 1
        found.name[0], found.name[1] = name[0], name[1]
        found.process, found.number, found.ends, found.flags = self._process, self._head.taken, ends, 0
        return <int64_t>self._head.taken

    # --- blocks ------------------------------------------------------------------------------------------------------

    cdef inline char *_block(self, uint32_t index) noexcept:
        return self._blocks + <size_t>index * BLOCK

    cdef inline Answer *_answer(self, uint32_t index) noexcept:
        return <Answer *>self._block(index)

    cdef inline Tag *_tag(self, uint32_t index) noexcept:
        return <Tag *>self._block(index)

    cdef inline Node *_node(self, uint32_t index) noexcept:
        return &(<Nodes *>self._block(index >> NODE_BITS)).nodes[index & ((1 << NODE_BITS) - 1)]

    cdef uint32_t _taken_block(self) noexcept:
        """There is one: `_make_room` came first."""
        cdef Head *head = self._head
        cdef uint32_t index = head.free
        head.room -= 1
        if index:
            head.free = (<uint32_t *>self._block(index))[0]
        else:
            index = head.fresh
            head.fresh += 1
        (<uint32_t *>self._block(index))[0] = 0
        return index

    cdef void _give_blocks(self, uint32_t first, uint32_t last, uint32_t count) noexcept:
        (<uint32_t *>self._block(last))[0] = self._head.free
        self._head.free = first
        self._head.room += count

    cdef bint _make_room(self, uint64_t count, double now) noexcept:
        """For so many blocks: what has ended goes first, then the oldest."""
        cdef Head *head = self._head
        cdef uint64_t tick = <uint64_t>(now * TICKS)
        if count >= head.blocks:
            return False
        self._remove_ended(now, tick)
        while head.room < count:
            if head.tick and head.tick < tick:
                self._remove_ended(now, tick)
            elif head.oldest:
                self._remove(head.oldest)
            elif head.first_mark:
                self._drop_mark(now)
            else:
                return False
        return True

    cdef void _write(self, Place *place, const char *text, size_t length) noexcept:
        cdef size_t part
        while length:
            if place.at == BLOCK:
                place.block = (<uint32_t *>self._block(place.block))[0]
                place.at = LINK
            part = min(length, <size_t>(BLOCK - place.at))
            memcpy(self._block(place.block) + place.at, text, part)
            place.at += <uint32_t>part
            text += part
            length -= part

    cdef void _read(self, Place *place, char *text, size_t length) noexcept:
        cdef size_t part
        while length:
            if place.at == BLOCK:
                place.block = (<uint32_t *>self._block(place.block))[0]
                place.at = LINK
            part = min(length, <size_t>(BLOCK - place.at))
            memcpy(text, self._block(place.block) + place.at, part)
            place.at += <uint32_t>part
            text += part
            length -= part

    cdef bint _is_there(self, Place *place, const char *text, size_t length) noexcept:
        cdef size_t part
        while length:
            if place.at == BLOCK:
                place.block = (<uint32_t *>self._block(place.block))[0]
                place.at = LINK
            part = min(length, <size_t>(BLOCK - place.at))
            if memcmp(self._block(place.block) + place.at, text, part) != 0:
                return False
            place.at += <uint32_t>part
            text += part
            length -= part
        return True

    # --- by name -----------------------------------------------------------------------------------------------------

    cdef void _name(self, int what, bytes text, uint64_t *name) noexcept:
        cdef uint64_t[2] key
        key[0] = self._head.secret[0] ^ <uint64_t>what
        key[1] = self._head.secret[1]
        rowcall_keyed_hash(key, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), name)

    cdef uint32_t _find(self, uint32_t kind, const uint64_t *name) noexcept:
        cdef uint32_t index = self._buckets[name[1] & self._mask]
        cdef Answer *one
        while index:
            one = self._answer(index)
            if one.name[0] == name[0] and one.name[1] == name[1] and one.kind == kind:
                return index
            index = one.chain
        return 0

    cdef uint32_t _find_answer(self, const uint64_t *name, bytes key) noexcept:
        cdef uint32_t index = self._find(ANSWER, name)
        cdef Place place
        if not index or self._answer(index).key != <uint32_t>PyBytes_GET_SIZE(key):
            return 0
        place.block, place.at = index, sizeof(Answer)
        return index if self._is_there(&place, PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)) else 0

    cdef void _chain(self, uint32_t index, const uint64_t *name) noexcept:
        cdef uint32_t *bucket = &self._buckets[name[1] & self._mask]
        cdef Answer *one = self._answer(index)
        one.name[0], one.name[1] = name[0], name[1]
        one.chain = bucket[0]
        bucket[0] = index

    cdef void _unchain(self, uint32_t index) noexcept:
        cdef Answer *one = self._answer(index)
        cdef uint32_t *link = &self._buckets[one.name[1] & self._mask]
        while link[0] != index:
            link = &self._answer(link[0]).chain
        link[0] = one.chain

    # --- tags --------------------------------------------------------------------------------------------------------

    cdef uint32_t _tag_named(self, const uint64_t *name) noexcept:
        """Made where there is none; there is room for it."""
        cdef uint32_t index = self._find(TAG, name)
        cdef Tag *tag
        if not index:
            index = self._taken_block()
            tag = self._tag(index)
            tag.kind = TAG
            tag.first = tag.earlier = tag.later = 0
            tag.mark = 0
            self._chain(index, name)
        return index

    cdef void _drop_tag(self, uint32_t index) noexcept:
        """If nothing needs it."""
        cdef Tag *tag = self._tag(index)
        if tag.first == 0 and tag.mark == 0:
            self._unchain(index)
            self._give_blocks(index, index, 1)

    cdef void _mark(self, uint32_t index, double now) noexcept:
        """It is forgotten now."""
        cdef Head *head = self._head
        cdef Tag *tag = self._tag(index)
        if tag.mark != 0:
            self._unlink_mark(tag)
        tag.mark = now
        tag.earlier, tag.later = head.last_mark, 0
        if head.last_mark:
            self._tag(head.last_mark).later = index
        else:
            head.first_mark = index
        head.last_mark = index
        head.marks += 1
        # Whoever forgets one name after the other must not take the room of the answers.
        while head.marks > 64 and (head.marks > head.blocks >> 4 or now - self._tag(head.first_mark).mark > MARKED):
            self._drop_mark(now)

    cdef void _unlink_mark(self, Tag *tag) noexcept:
        cdef Head *head = self._head
        if tag.earlier:
            self._tag(tag.earlier).later = tag.later
        else:
            head.first_mark = tag.later
        if tag.later:
            self._tag(tag.later).earlier = tag.earlier
        else:
            head.last_mark = tag.earlier
        head.marks -= 1

    cdef void _drop_mark(self, double now) noexcept:
        """The earliest. What was begun before it is not kept any more, whatever its tags are."""
        cdef uint32_t index = self._head.first_mark
        cdef Tag *tag = self._tag(index)
        if now - tag.mark <= MARKED and tag.mark > self._head.floor:
            self._head.floor = tag.mark
        self._unlink_mark(tag)
        tag.mark = 0
        self._drop_tag(index)

    cdef bint _is_marked(self, const uint64_t *name, double began) noexcept:
        cdef uint32_t index = self._find(TAG, name)
        return index != 0 and self._tag(index).mark != 0 and self._tag(index).mark >= began

    cdef void _tie(self, uint32_t answer, uint32_t node, uint32_t tag) noexcept:
        cdef Node *one = self._node(node)
        cdef uint32_t first = self._tag(tag).first
        one.tag, one.answer, one.before, one.behind = tag, answer, 0, first
        if first:
            self._node(first).before = node
        self._tag(tag).first = node

    cdef void _untie(self, Node *one) noexcept:
        if one.before:
            self._node(one.before).behind = one.behind
        else:
            self._tag(one.tag).first = one.behind
        if one.behind:
            self._node(one.behind).before = one.before
        self._drop_tag(one.tag)

    # --- answers -----------------------------------------------------------------------------------------------------

    cdef void _remove(self, uint32_t index) noexcept:
        """An answer, and what points to it."""
        cdef Head *head = self._head
        cdef Answer *one = self._answer(index)
        cdef Nodes *nodes
        cdef uint32_t block, following, place
        self._unchain(index)
        if one.older:
            self._answer(one.older).newer = one.newer
        else:
            head.oldest = one.newer
        if one.newer:
            self._answer(one.newer).older = one.older
        else:
            head.newest = one.older
        if one.ends != 0:
            if one.before:
                self._answer(one.before).behind = one.behind
            else:
                self._wheel[one.slot] = one.behind
            if one.behind:
                self._answer(one.behind).before = one.before
        block = one.nodes
        while block:
            nodes = <Nodes *>self._block(block)
            for place in range(nodes.count):
                self._untie(&nodes.nodes[place])
            following = nodes.next
            self._give_blocks(block, block, 1)
            block = following
        head.count -= 1
        self._give_blocks(index, one.last, one.blocks)

    cdef uint32_t _remove_ended(self, double now, uint64_t tick) noexcept:
        """What has ended in slots before this one, of some of them."""
        cdef Head *head = self._head
        cdef uint32_t index, behind, count = 0
        cdef int turn
        if head.tick == 0:
            return 0
        if head.tick + SLOTS < tick:
            head.tick = tick - SLOTS
        for turn in range(SLOTS_AT_ONCE):
            if head.tick >= tick:
                break
            index = self._wheel[head.tick % SLOTS]
            while index:
                behind = self._answer(index).behind
                if is_over(self._answer(index).ends, now):
                    self._remove(index)
                    count += 1
                index = behind
            head.tick += 1
        return count

    cdef int _copy(self, uint32_t index) except -1:
        """For `_made`, which follows without the lock."""
        cdef Answer *one = self._answer(index)
        cdef Place place
        self._given.rows, self._given.is_null = one.rows, one.is_null != 0
        self._given.written, self._given.ends, self._given.fresh = one.written, one.ends, one.fresh
        self._body = PyBytes_FromStringAndSize(NULL, one.body)
        self._lines = self._texts = b""
        place.block, place.at = index, sizeof(Answer)
        self._skip(&place, one.key)
        if one.head:
            self._lines = PyBytes_FromStringAndSize(NULL, one.head)
            self._read(&place, PyBytes_AS_STRING(self._lines), one.head)
        if one.tags:
            self._texts = PyBytes_FromStringAndSize(NULL, one.tags)
            self._read(&place, PyBytes_AS_STRING(self._texts), one.tags)
        self._read(&place, PyBytes_AS_STRING(self._body), one.body)
        return 0

    cdef object _made(self):
        """The answer that has been copied, as a tuple."""
        cdef Given given = self._given
        cdef bytes body = self._body
        cdef bytes head = self._lines
        cdef bytes texts = self._texts
        self._body = self._lines = self._texts = None
        tags = tuple(texts.decode().split("\n")) if texts else ()
        values = (body, given.rows, given.is_null, given.written, given.ends, given.fresh, head, tags)
        return tuple.__new__(self._entry, values)

    cdef void _skip(self, Place *place, size_t length) noexcept:
        cdef size_t part
        while length:
            if place.at == BLOCK:
                place.block = (<uint32_t *>self._block(place.block))[0]
                place.at = LINK
            part = min(length, <size_t>(BLOCK - place.at))
            place.at += <uint32_t>part
            length -= part

    cdef bint _put(self, const uint64_t *name, bytes key, tuple entry, bytes texts, list tags, double now) except -1:
        """Instead of the one that was there. False: there is no room, and no answer."""
        cdef bytes body = <bytes?>entry[0]
        cdef bytes head = <bytes?>entry[6]
        cdef uint64_t rows = entry[1]
        cdef bint is_null = entry[2]
        cdef double written = entry[3], ends = entry[4], fresh = entry[5]
        cdef uint64_t length = PyBytes_GET_SIZE(key) + PyBytes_GET_SIZE(head) + PyBytes_GET_SIZE(texts)
        cdef uint64_t count = 1, blocks, tick
        cdef uint32_t index, block, last, at, node = 0
        cdef Answer *one
        cdef Nodes *nodes = NULL
        cdef Place place
        cdef uint64_t[2] tag
        index = self._find(ANSWER, name)
        if index:
            self._remove(index)
        length += PyBytes_GET_SIZE(body)
        if length > BLOCK - sizeof(Answer):
            count += (length - (BLOCK - sizeof(Answer)) + (BLOCK - LINK) - 1) // (BLOCK - LINK)
        blocks = count + len(tags) + (len(tags) + NODES - 1) // NODES
        if not self._make_room(blocks, now):
            return False
        index = last = self._taken_block()
        for at in range(1, <uint32_t>count):
            block = self._taken_block()
            (<uint32_t *>self._block(last))[0] = block
            last = block
        one = self._answer(index)
        one.kind, one.last, one.blocks, one.nodes = ANSWER, last, <uint32_t>count, 0
        one.is_null, one.rows, one.written, one.ends, one.fresh = is_null, rows, written, ends, fresh
        one.key, one.head = <uint32_t>PyBytes_GET_SIZE(key), <uint32_t>PyBytes_GET_SIZE(head)
        one.tags, one.body = <uint32_t>PyBytes_GET_SIZE(texts), PyBytes_GET_SIZE(body)
        place.block, place.at = index, sizeof(Answer)
        self._write(&place, PyBytes_AS_STRING(key), one.key)
        self._write(&place, PyBytes_AS_STRING(head), one.head)
        self._write(&place, PyBytes_AS_STRING(texts), one.tags)
        self._write(&place, PyBytes_AS_STRING(body), one.body)
        self._chain(index, name)
        one.older, one.newer = self._head.newest, 0
        if one.older:
            self._answer(one.older).newer = index
        else:
            self._head.oldest = index
        self._head.newest = index
        if ends != 0:
            tick = <uint64_t>(min(ends, LAST_END) * TICKS)
            if self._head.tick == 0:
                self._head.tick = <uint64_t>(now * TICKS)
            one.slot = <uint32_t>(max(tick, self._head.tick) % SLOTS)
            one.before, one.behind = 0, self._wheel[one.slot]
            if one.behind:
                self._answer(one.behind).before = index
            self._wheel[one.slot] = index
        for text in tags:
            if nodes == NULL or nodes.count == NODES:
                block = self._taken_block()
                nodes = <Nodes *>self._block(block)
                nodes.next, nodes.count = one.nodes, 0
                one.nodes = block
            self._name(OF_TAG, <bytes>text, tag)
            node = one.nodes << NODE_BITS | nodes.count
            nodes.count += 1
            self._tie(index, node, self._tag_named(tag))
        self._head.count += 1
        return True

    cdef bint _is_forgotten(self, list tags, double began) noexcept:
        """What was begun then may be older than a forgetting of one of its tags."""
        cdef uint64_t[2] name
        for text in tags:
            self._name(OF_TAG, <bytes>text, name)
            if self._is_marked(name, began):
                return True
        return len(tags) > 0 and began <= self._head.floor

    # --- for the store -----------------------------------------------------------------------------------------------

    cdef object find(self, bytes key, double now):
        cdef uint64_t[2] name
        cdef uint32_t index
        self._name(OF_KEY, key, name)
        self._lock()
        try:
            index = self._find_answer(name, key)
            if index and is_over(self._answer(index).ends, now):
                index = 0
            if index:
                self._copy(index)
        finally:
            self._unlock()
        return self._made() if index else None

    cdef object begin(self, bytes key, double ends, double now, bint fresh):
        cdef uint64_t[2] name
        cdef uint32_t index
        cdef int64_t number = 0
        self._name(OF_KEY, key, name)
        self._lock()
        try:
            index = self._find_answer(name, key)
            if index and is_over(self._answer(index).ends, now):
                index = 0
            if index and fresh and is_over(self._answer(index).fresh, now):
                index = 0
            if index:
                self._copy(index)
            else:
                number = self._take(name, ends, now)
        finally:
            self._unlock()
        return self._made() if index else number

    cdef bint has(self, bytes key, uint64_t number) except -1:
        cdef uint64_t[2] name
        cdef Lease *found
        self._name(OF_KEY, key, name)
        self._lock()
        found = self._own(name, number)
        self._unlock()
        return found != NULL

    cdef int keep(self, bytes key, uint64_t number, double began, entry, double now) except? -2:
        cdef uint64_t[2] name
        cdef int flags
        cdef tuple values = _values(entry)
        cdef list tags = [tag.encode() for tag in values[7]] if values[7] else []
        cdef bytes texts = b"\n".join(tags) if tags else b""
        self._name(OF_KEY, key, name)
        self._lock()
        try:
            flags = self._end(self._own(name, number))
            if flags == NOBODY:
                return flags
            if tags and self._is_forgotten(tags, began):
                return flags | FORGOTTEN_BIT
            if values[4] == 0 or values[4] > values[3]:
                self._put(name, key, values, texts, tags, now)
            return flags
        finally:
            self._unlock()

    cdef bint put(self, bytes key, entry, double began, double now) except -1:
        cdef uint64_t[2] name
        cdef uint64_t[2] mark
        cdef tuple values = _values(entry)
        cdef list tags = [tag.encode() for tag in values[7]] if values[7] else []
        cdef bytes texts = b"\n".join(tags) if tags else b""
        self._name(OF_KEY, key, name)
        self._name(OF_MARK, key, mark)
        self._lock()
        try:
            if self._head.retired or began <= self._head.floor or self._is_marked(mark, began) or self._is_forgotten(tags, began):
                return False
            return self._put(name, key, values, texts, tags, now)
        finally:
            self._unlock()

    cdef int drop(self, bytes key, uint64_t number) except? -2:
        cdef uint64_t[2] name
        cdef int flags
        self._name(OF_KEY, key, name)
        self._lock()
        flags = self._end(self._own(name, number))
        self._unlock()
        return flags

    cdef object forget(self, bytes key, double now, bint noted):
        cdef uint64_t[2] name
        cdef uint64_t[2] mark
        cdef uint32_t index
        cdef int flags
        cdef bint found
        self._name(OF_KEY, key, name)
        self._name(OF_MARK, key, mark)
        self._lock()
        index = self._find_answer(name, key)
        found = index != 0 and not is_over(self._answer(index).ends, now)
        if index:
            self._remove(index)
        flags = self._end(self._lease(name))
        if noted:
            self._note(mark, now)
        self._unlock()
        return found, flags != NOBODY and (flags & AWAITED_BIT) != 0

    cdef void _note(self, const uint64_t *name, double now) noexcept:
        cdef uint32_t index = self._find(TAG, name)
        if index == 0 and self._make_room(1, now):
            # What made room may have changed the buckets, not this name.
            index = self._tag_named(name)
        if index:
            self._mark(index, now)
        else:
            self._head.floor = now

    cdef int forget_tag(self, bytes tag, double now, int most, bint *more) except -1:
        cdef uint64_t[2] name
        cdef uint32_t index, answer
        cdef int count = 0, turn
        self._name(OF_TAG, tag, name)
        self._lock()
        self._note(name, now)
        more[0] = False
        for turn in range(most):
            index = self._find(TAG, name)
            if index == 0 or self._tag(index).first == 0:
                break
            answer = self._node(self._tag(index).first).answer
            count += not is_over(self._answer(answer).ends, now)
            self._remove(answer)
        else:
            more[0] = True
        self._unlock()
        return count

    cdef int forget_all(self, bytes prefix) except -1:
        cdef uint64_t bucket = 0, end
        cdef uint32_t index, behind
        cdef Place place
        while bucket <= self._mask:
            end = min(bucket + BUCKETS_AT_ONCE, <uint64_t>self._mask + 1)
            self._lock()
            while bucket < end:
                index = self._buckets[bucket]
                while index:
                    behind = self._answer(index).chain
                    if self._answer(index).kind == ANSWER and self._answer(index).key >= PyBytes_GET_SIZE(prefix):
                        place.block, place.at = index, sizeof(Answer)
                        if self._is_there(&place, PyBytes_AS_STRING(prefix), PyBytes_GET_SIZE(prefix)):
                            self._remove(index)
                            # Its tags may have stood behind it.
                            behind = self._buckets[bucket]
                    index = behind
                bucket += 1
            self._unlock()
        return 0

    cdef int prune(self, double now) except -1:
        cdef uint64_t tick = <uint64_t>(now * TICKS) + 1
        cdef int count = 0
        cdef bint more = True
        while more:
            self._lock()
            count += self._remove_ended(now, tick)
            more = self._head.tick != 0 and self._head.tick < tick
            if not more and self._head.tick:
                # In the slot of this moment there are others.
                self._head.tick = tick - 1
            self._unlock()
        return count

    cdef int retire(self) except -1:
        self._lock()
        self._head.retired = 1
        self._clear()
        self._unlock()
        return 0

    cdef int forget_process(self, int process) except -1:
        cdef uint64_t index
        self._lock()
        for index in range(self._rows * PLACES):
            if self._leases[index].process == process:
                self._end(&self._leases[index])
        self._unlock()
        return 0


cdef class AnswerTable:
    """memory: LEAST bytes or more that all processes map; where they are zero they are made ready, and nobody else may
    be doing so. process: whose leases are taken. entry: the tuple that an answer is: body, rows, whether it is NULL,
    when it was written, when it ends and ceases to be fresh (0: never), head, tags. Times on the monotonic clock, which
    is past 0."""

    cdef list _shards
    cdef int _count
    cdef readonly uint64_t size

    def __cinit__(self, memory not None, int process, type entry not None):
        cdef uint64_t part
        if process <= 0:
            raise ValueError("no process")
        view = memoryview(memory)
        self.size = view.nbytes
        if self.size < LEAST:
            raise ValueError("too little memory for answers")
        self._count = SHARDS if self.size >= SPLIT else 1
        part = self.size // self._count // HEAD * HEAD
        self._shards = [Shard(view[one * part : (one + 1) * part], process, entry) for one in range(self._count)]

    cdef Shard _of(self, bytes key):
        cdef Shard first = <Shard>self._shards[0]
        cdef uint64_t[2] name
        if self._count == 1:
            return first
        first._name(OF_SHARD, key, name)
        return <Shard>self._shards[name[0] % self._count]

    def find(self, bytes key not None, double now):
        """The answer, unless it has ended; None."""
        return self._of(key).find(key, now)

    def begin(self, bytes key not None, double ends, double now, bint fresh=False):
        """The answer; else the number of the lease to compute it, HELD where somebody has that, FULL where there is no
        place for one. ends: when it is nobody's any more; 0: never. fresh: only an answer that is."""
        return self._of(key).begin(key, ends, now, fresh)

    def has(self, bytes key not None, uint64_t number):
        """This lease is ours."""
        return self._of(key).has(key, number)

    def keep(self, bytes key not None, uint64_t number, double began, entry not None, double now):
        """Ends the lease, and keeps the answer if the lease was ours: AWAITED, where other processes wait for it, and
        FORGOTTEN, where one of its tags was meanwhile. GONE: it was not ours, and the answer is not kept."""
        return self._of(key).keep(key, number, began, entry, now)

    def put(self, bytes key not None, entry not None, double began, double now):
        """An answer that nobody had a lease for, unless it was forgotten (`forget`, noted) since it was begun."""
        return self._of(key).put(key, entry, began, now)

    def drop(self, bytes key not None, uint64_t number):
        """Ends the lease: AWAITED, or GONE where it was not ours."""
        return self._of(key).drop(key, number)

    def forget(self, bytes key not None, double now, bint noted):
        """Ends answer and lease: whether there was an answer, and whether other processes wait for one. noted: `put`
        shall know of it too."""
        return self._of(key).forget(key, now, noted)

    def forget_tag(self, bytes tag not None, double now, int most):
        """Ends so many answers that have it in each shard: how many of them had not ended, and whether there are more.
        Whatever was begun before is not kept with it."""
        cdef Shard shard
        cdef int count = 0
        cdef bint more = False, here = False
        for shard in self._shards:
            count += shard.forget_tag(tag, now, most, &here)
            more = more or here
        return count, more

    def forget_all(self, bytes prefix not None):
        """Ends all answers whose key begins so."""
        cdef Shard shard
        for shard in self._shards:
            shard.forget_all(prefix)

    def prune(self, double now):
        """Ends what has ended: how many answers."""
        cdef Shard shard
        cdef int count = 0
        for shard in self._shards:
            count += shard.prune(now)
        return count

    def retire(self):
        """Ends all answers and leases, and keeps none from now on: `begin` says FULL."""
        cdef Shard shard
        for shard in self._shards:
            shard.retire()

    def forget_process(self, int process):
        """All leases that it had."""
        cdef Shard shard
        for shard in self._shards:
            shard.forget_process(process)

    @property
    def retired(self):
        """By whichever process."""
        return (<Shard>self._shards[self._count - 1])._head.retired != 0

    @property
    def count(self):
        """Answers, those that have ended and were not removed yet among them."""
        cdef Shard shard
        return sum([shard._head.count for shard in self._shards])

    @property
    def used(self):
        """Bytes of the blocks in use."""
        cdef Shard shard
        return sum([(<uint64_t>shard._head.blocks - 1 - shard._head.room) * BLOCK for shard in self._shards])

    @property
    def taken(self):
        """Leases, since the beginning."""
        cdef Shard shard
        return sum([shard._head.taken for shard in self._shards])


cdef tuple _values(entry):
    """Of an entry, which is no mere tuple."""
    if not isinstance(entry, tuple) or len(entry) != 8:
        raise TypeError("this is no answer")
    return <tuple>entry
