"""Answers in their blocks: the room that they take, and when they go."""

from libc.stdint cimport uint32_t, uint64_t

from rowcall.ext.response_cache.layout cimport Region

# Makes room for so many blocks: what has ended goes first, then the oldest. False: there is not so much.
cdef bint make_room(Region *region, uint64_t count, double now) noexcept nogil
# An answer, and what points to it.
cdef void remove(Region *region, uint32_t index) noexcept nogil
# What has ended in slots of the wheel before this one, of some of them: how many answers.
cdef uint32_t remove_ended(Region *region, double now, uint64_t tick) noexcept nogil
# The slot of a moment, with those of the rounds before.
cdef uint64_t tick_of(double moment) noexcept nogil
# Its four texts lie in its blocks.
cdef bint is_whole(Region *region, uint32_t index) noexcept nogil
# The answer of this name, instead of the one that was there; 0: there is no room, and no answer. What an entry is:
# see `table.AnswerTable`. texts: the tags, in one.
cdef uint32_t insert(
    Region *region, const uint64_t *name, bytes key, tuple entry, bytes texts, list tags, double now
) except? 0
