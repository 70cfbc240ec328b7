"""Memory layout of a shard. The head is followed by

    leases   which process computes a response: rows of eight places, by the name of the response
    wheel    responses that expire, by the moment of their end
    buckets  responses and tags, by their name
    blocks   a response with its key, or a tag, or the nodes that tie responses to tags; free blocks are linked

A name is the hash of the key of a response or of the text of a tag. An index is the number of a block; 0 stands for no
block. All blocks have the same size, so that every removed object makes room for every new one.

In the functions of this folder, these parameters have the same meaning everywhere:

    region      the shard; its lock is held, unless a function says otherwise, so that no other process writes to it
    index       index of the first block of a response, a tag or nodes
    name        the two words of a name, as `buckets.name_of` writes them
    now         the present time; like all times, in seconds of the monotonic clock
    ends        when a response or lease ends; 0: never
    began       when the computation of a response began
    process     id of a process, greater than 0

Pointers into the shared memory are valid as long as the `Region`. Functions that are not `nogil` need the GIL.

Values read from this memory are not trusted. An index outside the blocks leads to the first block, which is unused, and
marks the shard as damaged; loops that follow links have a limit. Therefore, if other code overwrites this memory, the
shard loses its responses, and no access leaves the memory.
"""

from libc.stdint cimport int32_t, uint32_t, uint64_t

cdef extern from "robust_lock.h" nogil:
    ctypedef struct rowcall_lock:
        pass

cdef enum:
    HEAD = 4096       # bytes of the head, including unused ones
    BLOCK = 256       # bytes of a block
    LINK = 4          # each block begins with the index of the next one
    PLACES = 8        # leases per row of leases
    SLOTS = 4096      # of the wheel
    NODES = 15        # per block
    NODE_BITS = 4     # the index of a node is that of its block, shifted by these bits, and its place in the block

# Kind of a block, unless it continues a response.
cdef enum:
    FREE = 0
    RESPONSE = 1
    TAG = 2

cdef struct Lease:
    uint64_t name[2]
    uint64_t number  # unique in the shard, from 1
    double ends
    int32_t process  # the holder; 0: the place is free
    uint32_t flags   # `leases.AWAITED_BIT`

cdef struct Head:
    rowcall_lock lock
    uint64_t ready         # `shard.READY` when the head is initialised
    uint64_t size          # bytes of the shard
    uint32_t fresh         # blocks from this index on have never been used
    uint32_t free          # first block of the list of freed ones
    uint32_t room          # number of free blocks, including those never used
    uint32_t oldest        # ends of the list of responses in the order of insertion
    uint32_t newest
    uint32_t first_mark    # ends of the list of tags with a mark, by its moment
    uint32_t last_mark
    uint32_t marks         # number of marks
    uint64_t count         # number of responses
    uint64_t tick          # position of the wheel, as `entries.tick_of` has it; earlier slots are empty; 0: all are
    uint64_t taken         # number of leases acquired since the beginning
    double floor           # marks up to this moment may be lost: see `tags.drop_mark`
    uint64_t secret[2]     # key of the hashes
    uint32_t retired       # 1: nothing is stored any more

# `CachedResponse` (a cached response) and `Tag` begin with the same fields.
cdef struct CachedResponse:
    uint32_t next          # next block of this response, in which its texts continue
    uint32_t kind          # RESPONSE
    uint32_t chain         # next object in the bucket
    uint32_t nodes         # first block of nodes; 0 without tags
    uint64_t name[2]
    uint32_t last          # last block
    uint32_t blocks        # number of blocks, without those of nodes
    uint32_t older         # neighbours in the order of insertion
    uint32_t newer
    uint32_t before        # neighbours in the slot of the wheel
    uint32_t behind
    uint32_t slot          # of the wheel; unused if the response never ends
    uint32_t is_null       # 0 or 1
    uint64_t rows          # number of rows of the result
    uint64_t body          # length of the body in bytes
    double written         # moments: see `table.ResponseTable`
    double ends
    double fresh
    uint32_t key           # length of the key, of the head, and of the joined tags, in bytes
    uint32_t head
    uint32_t tags

cdef struct Tag:
    uint32_t next
    uint32_t kind
    uint32_t chain
    uint32_t first         # first node
    uint64_t name[2]
    double mark            # moment of the latest invalidation; 0: none
    uint32_t earlier       # neighbours in the list of marks
    uint32_t later

# Ties a response to one of its tags.
cdef struct Node:
    uint32_t tag           # index of the tag
    uint32_t before        # neighbours in the list of the tag's nodes, as indices of nodes
    uint32_t behind
    uint32_t response      # index of the response

# A block of nodes of one response.
cdef struct Nodes:
    uint32_t next          # next block of nodes of the same response
    uint32_t count         # number of nodes in this block, at least 1
    Node nodes[NODES]

# Addresses of the parts of a shard in this process. Counts and sizes are private copies, not read from shared memory.
cdef struct Region:
    Head *head
    Lease *leases
    uint64_t rows          # rows of leases
    uint32_t *wheel
    uint32_t *buckets
    uint32_t mask          # number of buckets, a power of two, minus 1
    char *blocks
    uint32_t count         # number of blocks; the first one is unused
    bint damaged           # a contradiction was found: the shard is cleared when the lock is released


# Returns whether the moment `ends` has been reached; False if it is 0.
cdef inline bint is_over(double ends, double now) noexcept nogil:
    return ends != 0 and now >= ends


# The functions `…_at` and `link_of` return the address of a block, or of the index at its start, read as the named
# struct, whatever its kind is. For an index outside the blocks, they return block 0 and mark the region as damaged.
cdef inline char *block_at(Region *region, uint32_t index) noexcept nogil:
    if index >= region.count:
        region.damaged = True
        index = 0
    return region.blocks + <size_t>index * BLOCK


cdef inline uint32_t *link_of(Region *region, uint32_t index) noexcept nogil:
    return <uint32_t *>block_at(region, index)


cdef inline CachedResponse *response_at(Region *region, uint32_t index) noexcept nogil:
    return <CachedResponse *>block_at(region, index)


cdef inline Tag *tag_at(Region *region, uint32_t index) noexcept nogil:
    return <Tag *>block_at(region, index)


cdef inline Nodes *nodes_at(Region *region, uint32_t index) noexcept nogil:
    return <Nodes *>block_at(region, index)


# index: that of a node (see NODE_BITS), not of a block.
cdef inline Node *node_at(Region *region, uint32_t index) noexcept nogil:
    cdef uint32_t place = index & ((1 << NODE_BITS) - 1)
    if place >= NODES:
        region.damaged = True
        place = 0
    return &nodes_at(region, index >> NODE_BITS).nodes[place]
