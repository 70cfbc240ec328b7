"""Leases: which process computes a response, and whether others wait for it.

A lease does not depend on a response: it stays when the response is removed.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t

from rowcall.ext.response_cache.layout cimport Lease, Region

cdef enum:
    AWAITED_BIT = 1   # flag of a lease: another process waits for the response
    NO_LEASE = -1     # result of `release_lease` for NULL

# Returns the lease for a response, of any process, even an expired one; NULL if there is none.
cdef Lease *lease_of(Region *region, const uint64_t *name) noexcept nogil
# Returns the lease for a response if it belongs to this process and has this number, or NULL.
cdef Lease *find_own_lease(Region *region, const uint64_t *name, int32_t process, uint64_t number) noexcept nogil
# Releases a lease, which may be NULL. Returns AWAITED_BIT if other processes wait for it, 0 if not, or NO_LEASE for
# NULL.
cdef int release_lease(Lease *lease) noexcept nogil
# Acquires the lease for a response until `ends` (0: without end). Returns its number; 0 if the lease is held already,
# which marks it as awaited if another process holds it; -1 if the row is full or the shard retired.
cdef int64_t acquire_lease(
    Region *region, const uint64_t *name, int32_t process, double ends, double now
) noexcept nogil
# Releases all leases of a process.
cdef void release_leases_of(Region *region, int32_t process) noexcept nogil
