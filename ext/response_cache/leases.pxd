"""Leases: somebody is computing an answer, and whether others wait for it. One that ends takes nothing along."""

from libc.stdint cimport int32_t, int64_t, uint64_t

from rowcall.ext.response_cache.layout cimport Lease, Region

cdef enum:
    AWAITED_BIT = 1
    NOBODY = -1

# The lease of an answer, whoever has it; NULL.
cdef Lease *lease_of(Region *region, const uint64_t *name) noexcept nogil
# The same, if it is this one of this process.
cdef Lease *find_own_lease(Region *region, const uint64_t *name, int32_t process, uint64_t number) noexcept nogil
# Its flags; NOBODY for NULL.
cdef int release_lease(Lease *found) noexcept nogil
# Its number; 0: somebody has it, -1: there is no place.
cdef int64_t acquire_lease(
    Region *region, const uint64_t *name, int32_t process, double ends, double now
) noexcept nogil
# All that a process has.
cdef void release_leases_of(Region *region, int32_t process) noexcept nogil
