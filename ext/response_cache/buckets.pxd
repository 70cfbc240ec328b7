"""Hash table of a shard: finds cached responses by their key and tags by their name."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.layout cimport Region

# Writes the hash of `length` bytes to `out`. key, out: two words.
cdef extern from "keyed_hash.h" nogil:
    void rowcall_keyed_hash(const uint64_t *key, const char *text, size_t length, uint64_t *out)

# Kinds of hashed texts. The kind is a part of the hash key, so that equal texts of different kinds have other hashes.
cdef enum:
    OF_KEY = 1        # key of a response
    OF_TAG = 2        # tag
    OF_MARK = 3       # key of a response, as the name of a mark (`ResponseTable.invalidate`)
    OF_SHARD = 4      # key of a response, for the choice of its shard


# Writes the name of a text to `name`, two words: the hash with the secret of the shard. what: kind of the text, OF_….
# The lock need not be held, as the secret never changes.
cdef inline void name_of(Region *region, int what, bytes text, uint64_t *name) noexcept:
    cdef uint64_t[2] key
    key[0] = region.head.secret[0] ^ <uint64_t>what
    key[1] = region.head.secret[1]
    rowcall_keyed_hash(key, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text), name)


# Returns the index of the cached response or tag (kind: RESPONSE or TAG) with this name, or 0.
cdef uint32_t find_block(Region *region, uint32_t kind, const uint64_t *name) noexcept nogil
# Returns the index of the cached response with this name and exactly this key, of `length` bytes, or 0.
cdef uint32_t find_response(Region *region, const uint64_t *name, const char *key, size_t length) noexcept nogil
# Gives a cached response or tag its name, and adds it to the bucket of the name.
cdef void chain(Region *region, uint32_t index, const uint64_t *name) noexcept nogil
# Removes a cached response or tag from its bucket.
cdef void unchain(Region *region, uint32_t index) noexcept nogil
