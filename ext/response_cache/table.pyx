"""Cached responses, and the leases for computing responses, in memory that the processes of a host share.

A table consists of shards (`shard.pyx`) without common data, so that processors rarely contend for one lock. The key
selects the shard of a response and its lease. A tag is in every shard that has responses with it.
"""

from libc.stdint cimport uint64_t

from rowcall.ext.response_cache.buckets cimport OF_SHARD, name_of
from rowcall.ext.response_cache.layout cimport BLOCK, HEAD
from rowcall.ext.response_cache.shard cimport Shard

# Exported for the users of the table.
from rowcall.ext.response_cache.shard import AWAITED, INVALIDATED, GONE  # no-cython-lint

cdef enum:
    SHARDS = 8

HELD, FULL = 0, -1
"""Results of `begin` instead of a number. HELD: another caller holds the lease. FULL: no place for a lease is free."""
LEAST = 131_072
"""Smallest size of a table in bytes."""
SPLIT = 8_388_608
"""Size in bytes from which a table is divided into shards."""


cdef class ResponseTable:
    """Cached responses and their leases; safe to use from several processes at once.

    memory: writable buffer of LEAST bytes or more that all processes map. Zeroed memory is initialised; no other
    process may do so at the same time. process: id of the process that acquires leases here. entry: tuple class of a
    cached response: body, number of rows, whether it is NULL, when it was written, when it ends (0: never), when it
    becomes stale (0: never), head (bytes), tags (tuple of str without line feeds). All times, also those of the
    methods, are in seconds on the monotonic clock, and greater than 0; `now` is the present time. key, tag: any bytes.
    size: bytes of the memory. secret: key of the hashes of keys and tags, 16 bytes, stored in zeroed memory and ignored
    for other memory; None: random, so that clients cannot choose keys that share a bucket.

    Raises ValueError for a process that is not greater than 0, for memory that is too small or has other contents, and
    for a secret of another length. Every method raises OSError if the lock of a shard is unusable.
    """

    cdef list _shards
    cdef int _count
    cdef readonly uint64_t size

    def __cinit__(self, memory not None, int process, type entry not None, bytes secret=None):
        cdef uint64_t part
        if process <= 0:
            raise ValueError("no process")
        view = memoryview(memory)
        self.size = view.nbytes
        if self.size < LEAST:
            raise ValueError("too little memory for responses")
        self._count = SHARDS if self.size >= SPLIT else 1
        # Each shard begins at a multiple of HEAD bytes, so that its lock and its structs are aligned.
        part = self.size // self._count // HEAD * HEAD
        self._shards = [Shard(view[n * part : (n + 1) * part], process, entry, secret) for n in range(self._count)]

    cdef Shard _of(self, bytes key):
        """Return the shard of the response with this key."""
        cdef Shard first = <Shard>self._shards[0]
        cdef uint64_t[2] name
        if self._count == 1:
            return first
        name_of(&first.region, OF_SHARD, key, name)
        return <Shard>self._shards[name[0] % self._count]

    def find(self, bytes key not None, double now):
        """Return the response; None: there is none, or its lifetime has ended."""
        return self._of(key).find(key, now)

    def begin(self, bytes key not None, double ends, double now, bint fresh=False):
        """Return the response; if there is none, acquire the lease for computing it.

        Instead of a response, the result is the number of the acquired lease, HELD if the lease is held already, or
        FULL if there is no lease: no place for one is free, the table is retired, or the response is damaged. ends:
        when the lease expires; 0: never. fresh: a stale response counts as none.
        """
        return self._of(key).begin(key, ends, now, fresh)

    def holds_lease(self, bytes key not None, uint64_t number):
        """Return whether this process still holds the lease with this number."""
        return self._of(key).holds_lease(key, number)

    def store_and_release(self, bytes key not None, uint64_t number, double began, entry not None, double now):
        """End the lease with this number, and store the response if this process held the lease.

        Returns GONE if this process did not hold it; nothing is stored then. Otherwise, the result has the flag AWAITED
        if other processes wait for the response, and the flag INVALIDATED if one of its tags was, or may have been,
        invalidated since `began`, so that it was not stored. Without a flag of its own, a response is not stored either
        if there is no room for it, or if it ends when it is written. began: when the computation began. Raises
        TypeError for an entry that is not a tuple of eight values, or whose body or head is not bytes.
        """
        return self._of(key).store_and_release(key, number, began, entry, now)

    def store(self, bytes key not None, entry not None, double began, double now):
        """Store a response that was computed without a lease; return whether it was stored.

        It is not stored if the key (`invalidate` with `noted`) or one of its tags was, or may have been, invalidated
        since `began`, if the table is retired, or if there is no room. began: when the computation began. Raises
        TypeError for the same entries as `store_and_release`.
        """
        return self._of(key).store(key, entry, began, now)

    def release(self, bytes key not None, uint64_t number):
        """End the lease with this number, without a response.

        Returns AWAITED if other processes wait, 0 if not, or GONE if this process did not hold the lease.
        """
        return self._of(key).release(key, number)

    def invalidate(self, bytes key not None, double now, bint noted):
        """Invalidate one key: remove its response, and end its lease, also if another process holds it.

        Returns two booleans: whether there was a response that had not expired, and whether other processes wait for
        the response of the ended lease. noted: record the time, so that `store` refuses a response whose computation
        began before.
        """
        return self._of(key).invalidate(key, now, noted)

    def invalidate_tag(self, bytes tag not None, double now, int most):
        """Mark the tag as invalidated, and remove at most `most` responses with it from each shard.

        Returns how many of the removed responses had not expired, and whether more may be left. From now on, a response
        with this tag whose computation began before is not stored.
        """
        cdef Shard shard
        cdef int count = 0
        cdef bint more = False, here = False
        for shard in self._shards:
            count += shard.invalidate_tag(tag, now, most, &here)
            more = more or here
        return count, more

    def invalidate_all(self, bytes prefix not None):
        """Remove all responses whose key begins with `prefix`; empty: all responses. Leases and marks stay."""
        cdef Shard shard
        for shard in self._shards:
            shard.invalidate_all(prefix)

    def prune(self, double now):
        """Remove the expired responses; return their number."""
        cdef Shard shard
        cdef int count = 0
        for shard in self._shards:
            count += shard.prune(now)
        return count

    def retire(self):
        """Remove all responses and leases, and store nothing from now on: for all processes, `begin` returns FULL,
        `store` False and `store_and_release` GONE."""
        cdef Shard shard
        for shard in self._shards:
            shard.retire()

    def release_process(self, int process):
        """Release all leases of a process."""
        cdef Shard shard
        for shard in self._shards:
            shard.release_process(process)

    def invariant_violations(self):
        """Return a sentence for each invariant that does not hold (docs/internals/response-cache.md), for tests."""
        cdef Shard shard
        cdef list broken = []
        for shard in self._shards:
            broken += shard.invariant_violations()
        return broken

    @property
    def retired(self):
        """Whether a process has called `retire`."""
        # `retire` changes the last shard last.
        return (<Shard>self._shards[self._count - 1]).region.head.retired != 0

    @property
    def count(self):
        """Number of responses, including expired ones that are not removed yet; read without the locks, as `used` and
        `acquired_leases` are."""
        cdef Shard shard
        return sum([shard.region.head.count for shard in self._shards])

    @property
    def used(self):
        """Bytes of the blocks in use."""
        cdef Shard shard
        return sum([(<uint64_t>shard.region.count - 1 - shard.region.head.room) * BLOCK for shard in self._shards])

    @property
    def acquired_leases(self):
        """Number of leases acquired since the beginning."""
        cdef Shard shard
        return sum([shard.region.head.taken for shard in self._shards])
