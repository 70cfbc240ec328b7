"""Acquires and releases the leases of a shard for computing responses. `leases.pxd` describes the functions."""

from libc.stdint cimport int32_t, int64_t, uint64_t

from rowcall.ext.response_cache.layout cimport PLACES, Lease, Region, is_over


cdef Lease *lease_of(Region *region, const uint64_t *name) noexcept nogil:
    cdef Lease *row = region.leases + (name[0] % region.rows) * PLACES
    cdef int index
    for index in range(PLACES):
        if row[index].process and row[index].name[0] == name[0] and row[index].name[1] == name[1]:
            return &row[index]
    return NULL


cdef Lease *find_own_lease(Region *region, const uint64_t *name, int32_t process, uint64_t number) noexcept nogil:
    cdef Lease *lease = lease_of(region, name)
    if lease and lease.process == process and lease.number == number:
        return lease
    return NULL


cdef int release_lease(Lease *lease) noexcept nogil:
    if not lease:
        return NO_LEASE
    lease.process = 0
    return lease.flags & AWAITED_BIT


cdef int64_t acquire_lease(
    Region *region, const uint64_t *name, int32_t process, double ends, double now
) noexcept nogil:
    cdef Lease *lease = lease_of(region, name)
    cdef Lease *row
    cdef int index
    if region.head.retired:
        return -1
    if lease and not is_over(lease.ends, now):
        # Waiting requests of the process itself are not counted here: that process knows them.
        if lease.process != process:
            lease.flags |= AWAITED_BIT
        return 0
    # An expired lease of this name is taken over in place, so that a name never has two.
    if not lease:
        row = region.leases + (name[0] % region.rows) * PLACES
        for index in range(PLACES):
            if not row[index].process or is_over(row[index].ends, now):
                lease = &row[index]
                break
        else:
            return -1
    region.head.taken += 1
    lease.name[0], lease.name[1] = name[0], name[1]
    lease.process, lease.number, lease.ends, lease.flags = process, region.head.taken, ends, 0
    return <int64_t>region.head.taken


cdef void release_leases_of(Region *region, int32_t process) noexcept nogil:
    cdef uint64_t index
    for index in range(region.rows * PLACES):
        if region.leases[index].process == process:
            release_lease(&region.leases[index])
