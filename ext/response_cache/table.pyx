"""Kept answers, and who is computing which, in memory that processes share.

A table consists of shards (`shard.pyx`), which share nothing, so that many processors seldom meet at one lock: an
answer and its lease are in the shard that its key tells, and a tag is in each shard that has answers with it.
"""

from libc.stdint cimport uint64_t

from rowcall.ext.response_cache.buckets cimport OF_SHARD, name_of
from rowcall.ext.response_cache.layout cimport BLOCK, HEAD
from rowcall.ext.response_cache.shard cimport Shard

# Exported for the users of the table.
from rowcall.ext.response_cache.shard import AWAITED, FORGOTTEN, GONE  # no-cython-lint

cdef enum:
    SHARDS = 8

HELD, FULL = 0, -1
"""What `begin` says instead of a number."""
LEAST = 131_072
"""Bytes of a table."""
SPLIT = 8_388_608
"""Bytes from which a table has shards."""


cdef class ResponseTable:
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
        name_of(&first.region, OF_SHARD, key, name)
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

    def invalidate_tag(self, bytes tag not None, double now, int most):
        """Ends so many answers that have it in each shard: how many of them had not ended, and whether there are more.
        Whatever was begun before is not kept with it."""
        cdef Shard shard
        cdef int count = 0
        cdef bint more = False, here = False
        for shard in self._shards:
            count += shard.invalidate_tag(tag, now, most, &here)
            more = more or here
        return count, more

    def invalidate_all(self, bytes prefix not None):
        """Ends all answers whose key begins so."""
        cdef Shard shard
        for shard in self._shards:
            shard.invalidate_all(prefix)

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

    def release_process(self, int process):
        """All leases that it had."""
        cdef Shard shard
        for shard in self._shards:
            shard.release_process(process)

    @property
    def retired(self):
        """By whichever process."""
        return (<Shard>self._shards[self._count - 1]).region.head.retired != 0

    @property
    def count(self):
        """Answers, those that have ended and were not removed yet among them."""
        cdef Shard shard
        return sum([shard.region.head.count for shard in self._shards])

    @property
    def used(self):
        """Bytes of the blocks in use."""
        cdef Shard shard
        return sum([(<uint64_t>shard.region.count - 1 - shard.region.head.room) * BLOCK for shard in self._shards])

    @property
    def taken(self):
        """Leases, since the beginning."""
        cdef Shard shard
        return sum([shard.region.head.taken for shard in self._shards])
