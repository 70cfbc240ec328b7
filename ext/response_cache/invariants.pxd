"""Check the contents of a shard against its invariants, for tests."""

from rowcall.ext.response_cache.layout cimport Region

# Returns a sentence for each invariant of docs/internals/response-cache.md that does not hold. The caller holds the
# lock.
cdef list region_invariant_violations(Region *region)
