"""How the memory of a shard is laid out. Behind its head stand

    leases   who computes an answer: rows of eight places, by the hash of its key
    wheel    the answers that end, by the moment at which they do
    buckets  answers and tags, by the hash of their key or name
    blocks   an answer with its key, or a tag, or which answers have which tags; free ones are linked

Blocks have one size, so that whatever is removed makes room for whatever comes.

Nothing read from there is trusted: an index that leads out of the blocks leads to the first one, which is nobody's, and
notes that the shard is damaged; loops that follow what they find have an end. So memory that something else has written
to costs the answers of its shard, and is never left.
"""

from libc.stdint cimport int32_t, uint32_t, uint64_t

cdef extern from "robust_lock.h" nogil:
    ctypedef struct rowcall_lock:
        pass

cdef enum:
    HEAD = 4096
    BLOCK = 256
    LINK = 4          # each block begins with the next one
    PLACES = 8        # leases of one row
    SLOTS = 4096
    NODES = 15        # in a block
    NODE_BITS = 4

# What a block is, besides a further one of an answer.
cdef enum:
    FREE = 0
    ANSWER = 1
    TAG = 2

cdef struct Lease:
    uint64_t name[2]
    uint64_t number
    double ends
    int32_t process  # 0: the place is free
    uint32_t flags

cdef struct Head:
    rowcall_lock lock
    uint64_t ready
    uint64_t size          # of the shard
    uint32_t fresh         # from here on blocks have never been used
    uint32_t free          # the first of those that were
    uint32_t room          # how many are free, those that were never used among them
    uint32_t oldest
    uint32_t newest
    uint32_t first_mark
    uint32_t last_mark
    uint32_t marks
    uint64_t count         # answers
    uint64_t tick          # of the wheel; earlier slots are empty
    uint64_t taken         # leases, since the beginning
    double floor           # what was forgotten until then is not known any more
    uint64_t secret[2]
    uint32_t retired       # nothing is kept any more

# Answers and tags begin alike.
cdef struct Answer:
    uint32_t next
    uint32_t kind
    uint32_t chain         # the next one in its bucket
    uint32_t nodes         # the first block of them
    uint64_t name[2]
    uint32_t last          # block
    uint32_t blocks
    uint32_t older
    uint32_t newer
    uint32_t before        # in its slot
    uint32_t behind
    uint32_t slot
    uint32_t is_null
    uint64_t rows
    uint64_t body
    double written
    double ends
    double fresh
    uint32_t key
    uint32_t head
    uint32_t tags

cdef struct Tag:
    uint32_t next
    uint32_t kind
    uint32_t chain
    uint32_t first         # node
    uint64_t name[2]
    double mark            # when it was forgotten; 0: not
    uint32_t earlier       # marks
    uint32_t later

# That an answer has a tag.
cdef struct Node:
    uint32_t tag
    uint32_t before
    uint32_t behind
    uint32_t answer

cdef struct Nodes:
    uint32_t next
    uint32_t count
    Node nodes[NODES]

# Where all this lies for this process. Counts and sizes are its own: what stands in the memory is not asked for them.
cdef struct Region:
    Head *head
    Lease *leases
    uint64_t rows          # of leases
    uint32_t *wheel
    uint32_t *buckets
    uint32_t mask
    char *blocks
    uint32_t count         # blocks; the first one is none
    bint damaged


cdef inline bint is_over(double ends, double now) noexcept nogil:
    return ends != 0 and now >= ends


cdef inline char *block_at(Region *region, uint32_t index) noexcept nogil:
    if index >= region.count:
        region.damaged = True
        index = 0
    return region.blocks + <size_t>index * BLOCK


cdef inline uint32_t *link_of(Region *region, uint32_t index) noexcept nogil:
    return <uint32_t *>block_at(region, index)


cdef inline Answer *answer_at(Region *region, uint32_t index) noexcept nogil:
    return <Answer *>block_at(region, index)


cdef inline Tag *tag_at(Region *region, uint32_t index) noexcept nogil:
    return <Tag *>block_at(region, index)


cdef inline Nodes *nodes_at(Region *region, uint32_t index) noexcept nogil:
    return <Nodes *>block_at(region, index)


cdef inline Node *node_at(Region *region, uint32_t index) noexcept nogil:
    cdef uint32_t place = index & ((1 << NODE_BITS) - 1)
    if place >= NODES:
        region.damaged = True
        place = 0
    return &nodes_at(region, index >> NODE_BITS).nodes[place]
