"""Answers and tags by the hash of their key or name."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.layout cimport Region

cdef extern from "keyed_hash.h" nogil:
    void rowcall_keyed_hash(const uint64_t *key, const char *text, size_t length, uint64_t *out)

# Of what the hash is taken.
cdef enum:
    OF_KEY = 1
    OF_TAG = 2
    OF_MARK = 3
    OF_SHARD = 4


cdef inline void name_of(Region *region, int what, bytes text, uint64_t *name) noexcept:
    cdef uint64_t[2] key
    key[0] = region.head.secret[0] ^ <uint64_t>what
    key[1] = region.head.secret[1]
    rowcall_keyed_hash(key, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), name)


# The block of an answer or a tag; 0.
cdef uint32_t find_block(Region *region, uint32_t kind, const uint64_t *name) noexcept nogil
# The same for the answer that has exactly this key.
cdef uint32_t find_answer(Region *region, const uint64_t *name, const char *key, size_t length) noexcept nogil
cdef void chain(Region *region, uint32_t index, const uint64_t *name) noexcept nogil
cdef void unchain(Region *region, uint32_t index) noexcept nogil
