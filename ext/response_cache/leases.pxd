"""Leases: which process computes a response, and whether others wait for it. Removing a response keeps its lease."""

from libc.stdint cimport int32_t, int64_t, uint64_t

from rowcall.ext.response_cache.layout cimport Lease, Region

cdef enum:
    AWAITED_BIT = 1
    NO_LEASE = -1

# The lease for a response, of any process, or NULL.
cdef Lease *lease_of(Region *region, const uint64_t *name) noexcept nogil
# The same, if it belongs to this process and has this number.
cdef Lease *find_own_lease(Region *region, const uint64_t *name, int32_t process, uint64_t number) noexcept nogil
# Releases a lease. Returns its flags, or NO_LEASE for NULL.
cdef int release_lease(Lease *lease) noexcept nogil
# Returns the number of the acquired lease, 0 if the lease is held already, or -1 if the row is full.
cdef int64_t acquire_lease(
    Region *region, const uint64_t *name, int32_t process, double ends, double now
) noexcept nogil
# Releases all leases of a process.
cdef void release_leases_of(Region *region, int32_t process) noexcept nogil
