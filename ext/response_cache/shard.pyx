"""One shard of a response table: each operation runs completely under the lock of the shard.

An operation holds the lock while it searches or writes, for about a microsecond and the time to copy the body. Under
the lock nothing waits, and no object is created that could start the cyclic garbage collector, whose finalizers may
need the lock too. Therefore each operation sees everything that earlier operations of any process have written or
invalidated. The lock is robust: if a process dies while it holds the lock, the next process clears the shard; a process
that finds the shard damaged clears it as well. Clearing loses responses and leases, and a response without its lease is
not stored, so that an invalidated response never comes back.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from rowcall.ext.response_cache.blocks cimport Place, is_there, read, skip
from rowcall.ext.response_cache.buckets cimport OF_KEY, OF_MARK, OF_TAG, find_response, find_block, name_of
from rowcall.ext.response_cache.entries cimport insert, is_whole, make_room, remove, remove_ended, tick_of
from rowcall.ext.response_cache.invariants cimport region_invariant_violations
from rowcall.ext.response_cache.layout cimport (
    RESPONSE, BLOCK, HEAD, NODE_BITS, PLACES, SLOTS, TAG, CachedResponse, Head, Lease, Region, is_over, node_at,
    response_at, rowcall_lock, tag_at,
)
from rowcall.ext.response_cache.leases cimport (
    AWAITED_BIT, NO_LEASE, release_lease, release_leases_of, lease_of, find_own_lease, acquire_lease,
)
from rowcall.ext.response_cache.tags cimport is_marked, mark, tag_named

from os import urandom
from time import monotonic

cdef extern from "<errno.h>" nogil:
    int EOWNERDEAD

cdef extern from "robust_lock.h" nogil:
    int rowcall_lock_init(rowcall_lock *)
    int rowcall_lock_take(rowcall_lock *)
    void rowcall_lock_mend(rowcall_lock *)
    void rowcall_lock_give(rowcall_lock *)

cdef enum:
    MOST_ROWS = 512     # of leases
    BUCKETS_AT_ONCE = 4096  # buckets that `invalidate_all` searches before it releases the lock
    READY = 0x326e7377  # has to change with the layout
    INVALIDATED_BIT = 2

GONE = NO_LEASE
AWAITED, INVALIDATED = AWAITED_BIT, INVALIDATED_BIT


cdef uint64_t _rows_for(uint64_t size) noexcept:
    """Return the number of rows of leases for a shard of this size in bytes, from 64 to MOST_ROWS."""
    cdef uint64_t rows = size >> 14
    return MOST_ROWS if rows > MOST_ROWS else (64 if rows < 64 else rows)


cdef uint32_t _buckets_for(uint64_t size) noexcept:
    """Return the number of buckets, a power of two, for a shard of this size in bytes: about one for four blocks."""
    cdef uint32_t buckets = 64
    while <uint64_t>buckets * BLOCK * 4 < size and buckets < (1 << 26):
        buckets *= 2
    return buckets


cdef class Shard:
    """One shard in the memory of a table.

    memory: writable buffer, all zero or initialised before with the same size. process, entry, secret: see
    `table.ResponseTable`. Raises ValueError for memory with other contents, and OSError as `_make_ready` does.
    """

    def __cinit__(self, memory not None, int process, type entry not None, bytes secret):
        cdef Region *region = &self.region
        cdef uint64_t size, begin
        PyObject_GetBuffer(memory, &self._view, PyBUF_WRITABLE)
        size = self._view.len
        self._process = process
        self._entry = entry
        region.rows = _rows_for(size)
        region.mask = _buckets_for(size) - 1
        region.head = <Head *>self._view.buf
        region.leases = <Lease *>(<char *>self._view.buf + HEAD)
        region.wheel = <uint32_t *>(region.leases + region.rows * PLACES)
        region.buckets = region.wheel + SLOTS
        begin = <char *>(region.buckets + region.mask + 1) - <char *>self._view.buf
        begin = (begin + BLOCK - 1) // BLOCK * BLOCK
        region.blocks = <char *>self._view.buf + begin
        region.count = <uint32_t>min((size - begin) // BLOCK, <uint64_t>1 << (32 - NODE_BITS))
        if region.head.ready == 0:
            self._make_ready(size, urandom(sizeof(region.head.secret)) if secret is None else secret)
        elif region.head.ready != READY or region.head.size != size:
            raise ValueError("this memory holds no responses, or has another version or size; create it again")

    def __dealloc__(self):
        PyBuffer_Release(&self._view)

    def _make_ready(self, uint64_t size, bytes secret not None):
        """Initialise the head of zeroed memory of `size` bytes. Raises OSError if the lock cannot be initialised, and
        ValueError for a secret of another length.

        If a process died here earlier, it has written to the head only.
        """
        cdef Head *head = self.region.head
        cdef int failure
        if len(secret) != sizeof(head.secret):
            raise ValueError("a secret of another length")
        memset(head, 0, sizeof(Head))
        failure = rowcall_lock_init(&head.lock)
        if failure:
            raise OSError(failure, "the lock of the responses")
        memcpy(head.secret, PyBytes_AS_STRING(secret), sizeof(head.secret))
        head.size = size
        head.fresh = 1
        head.room = self.region.count - 1
        # Last, so that a head that is ready is complete.
        head.ready = READY

    cdef int _lock(self) except -1:
        """Take the lock. If a process has died while it held the lock, clear the shard. Raises OSError if the lock
        is unusable."""
        cdef int failure = rowcall_lock_take(&self.region.head.lock)
        if failure == EOWNERDEAD:
            # The process died within an operation, so the contents may be inconsistent.
            self._clear()
            rowcall_lock_mend(&self.region.head.lock)
        elif failure:
            raise OSError(failure, "the lock of the responses")
        return 0

    cdef int _unlock(self) except -1:
        """Release the lock, which this process holds. If a contradiction was found, clear the shard before."""
        if self.region.damaged:
            self._clear()
        rowcall_lock_give(&self.region.head.lock)
        return 0

    cdef int _clear(self) except -1:
        """Remove all responses, leases and marks, and set `floor` to the present. Called with the lock."""
        cdef Region *region = &self.region
        cdef Head *head = region.head
        memset(region.leases, 0, region.rows * PLACES * sizeof(Lease))
        memset(region.wheel, 0, SLOTS * sizeof(uint32_t))
        memset(region.buckets, 0, (<size_t>region.mask + 1) * sizeof(uint32_t))
        head.fresh = 1
        head.room = region.count - 1
        head.free = head.oldest = head.newest = head.first_mark = head.last_mark = head.marks = 0
        head.count = head.tick = 0
        head.floor = monotonic()
        region.damaged = False
        return 0

    cdef uint32_t _find_unexpired(self, const uint64_t *name, bytes key, double now) noexcept:
        """Return the index of the response with this key if its lifetime has not ended, or 0. name: that of the key."""
        cdef uint32_t index = find_response(&self.region, name, PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
        return 0 if index and is_over(response_at(&self.region, index).ends, now) else index

    cdef int _copy(self, uint32_t index) except -1:
        """Copy the response at `index` from the shared memory to attributes; return 0. `_copied_entry` makes the entry
        later, without the lock.

        If its memory turns out to be damaged, `_body` is None.
        """
        cdef CachedResponse *item = response_at(&self.region, index)
        cdef Place place
        if self.region.damaged or not is_whole(&self.region, index):
            self.region.damaged = True
            return 0
        self._numbers.rows, self._numbers.is_null = item.rows, item.is_null != 0
        self._numbers.written, self._numbers.ends, self._numbers.fresh = item.written, item.ends, item.fresh
        # `bytes` are not tracked by the cyclic garbage collector, so creating them cannot start it.
        self._body = PyBytes_FromStringAndSize(NULL, item.body)
        self._lines = self._texts = b""
        place.block, place.at = index, sizeof(CachedResponse)
        skip(&self.region, &place, item.key)
        if item.head:
            self._lines = PyBytes_FromStringAndSize(NULL, item.head)
            read(&self.region, &place, PyBytes_AS_STRING(self._lines), item.head)
        if item.tags:
            self._texts = PyBytes_FromStringAndSize(NULL, item.tags)
            read(&self.region, &place, PyBytes_AS_STRING(self._texts), item.tags)
        read(&self.region, &place, PyBytes_AS_STRING(self._body), item.body)
        if self.region.damaged:
            self._body = None
        return 0

    cdef object _copied_entry(self):
        """Return the response that `_copy` has copied as an entry, or None if its memory was damaged; forget the copy.
        Called without the lock."""
        cdef CopiedNumbers numbers = self._numbers
        cdef bytes body = self._body
        cdef bytes head = self._lines
        cdef bytes texts = self._texts
        self._body = self._lines = self._texts = None
        if body is None:
            return None
        tags = tuple(texts.decode("utf-8", "replace").split("\n")) if texts else ()
        values = (body, numbers.rows, numbers.is_null, numbers.written, numbers.ends, numbers.fresh, head, tags)
        return tuple.__new__(self._entry, values)

    cdef bint _is_invalidated(self, list tags, double began) noexcept:
        """Return whether one of the tags (bytes) may have been invalidated at `began` or later."""
        cdef uint64_t[2] name
        for text in tags:
            name_of(&self.region, OF_TAG, <bytes>text, name)
            if is_marked(&self.region, name, began):
                return True
        return len(tags) > 0 and began <= self.region.head.floor

    cdef void _mark_invalidated(self, const uint64_t *name, double now) noexcept:
        """Mark a name as invalidated at `now`. If there is no room for the mark, move `floor` to `now`."""
        cdef uint32_t index = find_block(&self.region, TAG, name)
        if index == 0 and make_room(&self.region, 1, now):
            # `make_room` may have changed the buckets, but has not added this name.
            index = tag_named(&self.region, name)
        if index:
            mark(&self.region, index, now)
        elif now > self.region.head.floor:
            self.region.head.floor = now

    cdef object find(self, bytes key, double now):
        cdef uint64_t[2] name
        cdef uint32_t index
        name_of(&self.region, OF_KEY, key, name)
        self._lock()
        try:
            index = self._find_unexpired(name, key, now)
            if index:
                self._copy(index)
        finally:
            self._unlock()
        return self._copied_entry() if index else None

    cdef object begin(self, bytes key, double ends, double now, bint fresh):
        cdef uint64_t[2] name
        cdef uint32_t index
        cdef int64_t number = 0
        name_of(&self.region, OF_KEY, key, name)
        self._lock()
        try:
            index = self._find_unexpired(name, key, now)
            if index and fresh and is_over(response_at(&self.region, index).fresh, now):
                index = 0
            if index:
                self._copy(index)
                if self._body is None:
                    # FULL: `_unlock` clears the shard, and this caller computes the response without a lease.
                    index = 0
                    number = -1
            else:
                number = acquire_lease(&self.region, name, self._process, ends, now)
        finally:
            self._unlock()
        return self._copied_entry() if index else number

    cdef bint holds_lease(self, bytes key, uint64_t number) except -1:
        cdef uint64_t[2] name
        cdef Lease *lease
        name_of(&self.region, OF_KEY, key, name)
        self._lock()
        lease = find_own_lease(&self.region, name, self._process, number)
        self._unlock()
        return lease != NULL

    cdef int store_and_release(self, bytes key, uint64_t number, double began, entry, double now) except? -2:
        cdef uint64_t[2] name
        cdef int flags
        cdef tuple values = _values(entry)
        cdef list tags = [tag.encode() for tag in values[7]] if values[7] else []
        cdef bytes texts = b"\n".join(tags) if tags else b""
        name_of(&self.region, OF_KEY, key, name)
        self._lock()
        try:
            flags = release_lease(find_own_lease(&self.region, name, self._process, number))
            if flags == NO_LEASE:
                return flags
            if tags and self._is_invalidated(tags, began):
                return flags | INVALIDATED_BIT
            # A response that ends at the time when it is written serves only the requests that wait for it.
            if values[4] == 0 or values[4] > values[3]:
                insert(&self.region, name, key, values, texts, tags, now)
            return flags
        finally:
            self._unlock()

    cdef bint store(self, bytes key, entry, double began, double now) except -1:
        cdef uint64_t[2] name
        cdef uint64_t[2] mark_name
        cdef tuple values = _values(entry)
        cdef list tags = [tag.encode() for tag in values[7]] if values[7] else []
        cdef bytes texts = b"\n".join(tags) if tags else b""
        name_of(&self.region, OF_KEY, key, name)
        name_of(&self.region, OF_MARK, key, mark_name)
        self._lock()
        try:
            if self.region.head.retired or began <= self.region.head.floor or is_marked(&self.region, mark_name, began):
                return False
            if self._is_invalidated(tags, began):
                return False
            return insert(&self.region, name, key, values, texts, tags, now) != 0 and not self.region.damaged
        finally:
            self._unlock()

    cdef int release(self, bytes key, uint64_t number) except? -2:
        cdef uint64_t[2] name
        cdef int flags
        name_of(&self.region, OF_KEY, key, name)
        self._lock()
        flags = release_lease(find_own_lease(&self.region, name, self._process, number))
        self._unlock()
        return flags

    cdef object invalidate(self, bytes key, double now, bint noted):
        cdef uint64_t[2] name
        cdef uint64_t[2] mark_name
        cdef uint32_t index
        cdef int flags
        cdef bint existed
        name_of(&self.region, OF_KEY, key, name)
        name_of(&self.region, OF_MARK, key, mark_name)
        self._lock()
        index = find_response(&self.region, name, PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
        existed = index != 0 and not is_over(response_at(&self.region, index).ends, now)
        if index:
            remove(&self.region, index)
        flags = release_lease(lease_of(&self.region, name))
        if noted:
            self._mark_invalidated(mark_name, now)
        self._unlock()
        return existed, flags != NO_LEASE and (flags & AWAITED_BIT) != 0

    cdef int invalidate_tag(self, bytes tag, double now, int most, bint *more) except -1:
        cdef uint64_t[2] name
        cdef uint32_t index, response
        cdef int count = 0, _turn
        name_of(&self.region, OF_TAG, tag, name)
        self._lock()
        self._mark_invalidated(name, now)
        more[0] = False
        # `remove` unties the response from the tag, whose next response is then the first one.
        for _turn in range(most):
            index = find_block(&self.region, TAG, name)
            if index == 0 or tag_at(&self.region, index).first == 0 or self.region.damaged:
                break
            response = node_at(&self.region, tag_at(&self.region, index).first).response
            count += not is_over(response_at(&self.region, response).ends, now)
            remove(&self.region, response)
        else:
            more[0] = True
        self._unlock()
        return count

    cdef int invalidate_all(self, bytes prefix) except -1:
        cdef uint64_t bucket = 0, end
        while bucket <= self.region.mask:
            end = min(bucket + BUCKETS_AT_ONCE, <uint64_t>self.region.mask + 1)
            self._lock()
            while bucket < end and not self.region.damaged:
                self._invalidate_bucket(<uint32_t>bucket, prefix)
                bucket += 1
            if self.region.damaged:
                # `_unlock` clears the shard.
                bucket = <uint64_t>self.region.mask + 1
            self._unlock()
        return 0

    cdef void _invalidate_bucket(self, uint32_t bucket, bytes prefix) noexcept:
        """Remove the responses whose key begins with `prefix` from one bucket. bucket: its number, from 0."""
        cdef Region *region = &self.region
        cdef uint32_t index = region.buckets[bucket], behind, seen = 0
        cdef Place place
        while index:
            behind = response_at(region, index).chain
            place.block, place.at = index, sizeof(CachedResponse)
            if (response_at(region, index).kind == RESPONSE
                    and response_at(region, index).key >= PyBytes_GET_SIZE(prefix)
                    and is_there(region, &place, PyBytes_AS_STRING(prefix), PyBytes_GET_SIZE(prefix))):
                remove(region, index)
                # `remove` may have freed tags of the response that were next in this bucket: start again.
                behind = region.buckets[bucket]
                seen = 0
            index = behind
            seen += 1
            if seen == region.count or region.damaged:
                region.damaged = True
                return

    cdef int prune(self, double now) except -1:
        cdef uint64_t tick = tick_of(now) + 1
        cdef Head *head = self.region.head
        cdef int count = 0
        cdef bint more = True
        while more:
            self._lock()
            count += remove_ended(&self.region, now, tick)
            more = head.tick != 0 and head.tick < tick and not self.region.damaged
            if not more and head.tick:
                # The slot of this moment may contain responses that end later.
                head.tick = tick - 1
            self._unlock()
        return count

    cdef int retire(self) except -1:
        self._lock()
        self.region.head.retired = 1
        self._clear()
        self._unlock()
        return 0

    cdef int release_process(self, int process) except -1:
        self._lock()
        release_leases_of(&self.region, process)
        self._unlock()
        return 0

    cdef list invariant_violations(self):
        self._lock()
        try:
            return region_invariant_violations(&self.region)
        finally:
            self._unlock()


cdef tuple _values(entry):
    """Return the entry as a tuple; `entry` may be of a subclass. Raises `TypeError` for anything but a tuple of eight
    values, whose types are not checked."""
    if not isinstance(entry, tuple) or len(entry) != 8:
        raise TypeError("not a cached response")
    return <tuple>entry
