"""One shard of a response table. See `shard.pyx`."""

from libc.stdint cimport int32_t, uint32_t, uint64_t

from rowcall.ext.response_cache.layout cimport Region


# The numbers of a copied response, as in `layout.CachedResponse`.
cdef struct CopiedNumbers:
    uint64_t rows
    bint is_null
    double written
    double ends
    double fresh


cdef class Shard:
    """One shard. Methods without a comment are described at the method of `table.ResponseTable` with the same name.

    They are called with the GIL and without the lock of the shard; methods whose name begins with an underscore, except
    `_lock` and `_copied_entry`, are called with the lock.
    """

    # The memory, which is not freed while the shard exists.
    cdef Py_buffer _view
    # Addresses within this memory.
    cdef Region region
    # Id of the process that acquires leases here.
    cdef int32_t _process
    # Tuple class of a cached response.
    cdef object _entry
    # The response that `_copy` has read: numbers, body (None: the memory was damaged), tags joined by line feeds, head.
    cdef CopiedNumbers _numbers
    cdef bytes _body
    cdef bytes _texts
    cdef bytes _lines

    cdef int _lock(self) except -1
    cdef int _unlock(self) except -1
    cdef int _clear(self) except -1
    cdef uint32_t _find_unexpired(self, const uint64_t *name, bytes key, double now) noexcept
    cdef int _copy(self, uint32_t index) except -1
    cdef object _copied_entry(self)
    cdef bint _is_invalidated(self, list tags, double began) noexcept
    cdef void _mark_invalidated(self, const uint64_t *name, double now) noexcept

    cdef object find(self, bytes key, double now)
    cdef object begin(self, bytes key, double ends, double now, bint fresh)
    cdef bint holds_lease(self, bytes key, uint64_t number) except -1
    cdef int store_and_release(self, bytes key, uint64_t number, double began, entry, double now) except? -2
    cdef bint store(self, bytes key, entry, double began, double now) except -1
    cdef int release(self, bytes key, uint64_t number) except? -2
    cdef object invalidate(self, bytes key, double now, bint noted)
    # Returns the number of removed responses that had not expired. more: receives whether responses may be left.
    cdef int invalidate_tag(self, bytes tag, double now, int most, bint *more) except -1
    cdef int invalidate_all(self, bytes prefix) except -1
    cdef int prune(self, double now) except -1
    cdef int retire(self) except -1
    cdef int release_process(self, int process) except -1
    cdef list invariant_violations(self)
    cdef void _invalidate_bucket(self, uint32_t bucket, bytes prefix) noexcept
