"""Who is computing what, in memory that processes share: a table of leases behind one lock.

Every operation holds the lock for a fraction of a microsecond and touches one row of eight places, so nothing is ever
waited for inside. The lock is robust: when a process dies in it, the next one clears the table. What is lost by that
are leases, and a lease that is gone only means that its answer is not kept.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

cdef extern from "<errno.h>" nogil:
    int EOWNERDEAD

cdef extern from "robust_lock.h" nogil:
    ctypedef struct rowcall_lock:
        pass
    int rowcall_lock_init(rowcall_lock *)
    int rowcall_lock_take(rowcall_lock *)
    void rowcall_lock_mend(rowcall_lock *)
    void rowcall_lock_give(rowcall_lock *)

cdef enum:
    WIDTH = 16
    PLACES = 8
    READY = 0x6c656173

# What a lease says besides whose it is.
cdef enum:
    AWAITED_BIT = 1
    ANSWERED_BIT = 2
    NOBODY = -1

cdef struct Lease:
    char name[WIDTH]
    uint64_t number
    double ends
    int32_t process  # 0: the place is free
    uint32_t flags

cdef struct Head:
    rowcall_lock lock
    uint32_t ready
    uint64_t ended

cdef enum:
    HEAD = 4096

TAKEN, TAKEN_ANEW, HELD, FULL = range(4)
"""What `take` says. TAKEN_ANEW: leases have ended since, so what they left may be there now."""
GONE = NOBODY
AWAITED, ANSWERED = AWAITED_BIT, ANSWERED_BIT
WIDTH_OF_NAME = WIDTH


def size_for(rows: int) -> int:
    """Bytes."""
    return HEAD + rows * PLACES * sizeof(Lease)


cdef class Leases:
    """memory: `size_for(rows)` bytes that all processes map; where they are zero they are made ready, and nobody else
    may be doing so. process: whose leases are taken. Names are hashes of WIDTH_OF_NAME bytes."""

    cdef Py_buffer _view
    cdef Head *_head
    cdef Lease *_leases
    cdef uint64_t _rows
    cdef int32_t _process

    def __cinit__(self, memory not None, int process):
        cdef int failure
        if process <= 0:
            raise ValueError("no process")
        PyObject_GetBuffer(memory, &self._view, PyBUF_WRITABLE)
        if self._view.len < <Py_ssize_t>(HEAD + PLACES * sizeof(Lease)):
            raise ValueError("too little memory for leases")
        self._head = <Head *>self._view.buf
        self._leases = <Lease *>(<char *>self._view.buf + HEAD)
        self._rows = (<size_t>self._view.len - HEAD) // (PLACES * sizeof(Lease))
        self._process = process
        if self._head.ready != READY:
            failure = rowcall_lock_init(&self._head.lock)
            if failure:
                raise OSError(failure, "the lock of the leases")
            self._head.ready = READY

    def __dealloc__(self):
        PyBuffer_Release(&self._view)

    cdef int _lock(self) except -1:
        cdef int failure = rowcall_lock_take(&self._head.lock)
        if failure == EOWNERDEAD:
            # It may have been in the middle of a place.
            memset(self._leases, 0, self._rows * PLACES * sizeof(Lease))
            self._head.ended += 1
            rowcall_lock_mend(&self._head.lock)
        elif failure:
            raise OSError(failure, "the lock of the leases")
        return 0

    cdef void _unlock(self) noexcept:
        rowcall_lock_give(&self._head.lock)

    cdef Lease *_row(self, const char *name) noexcept:
        cdef uint64_t place
        memcpy(&place, name, sizeof(place))
        return self._leases + (place % self._rows) * PLACES

    cdef Lease *_find(self, const char *name) noexcept:
        cdef Lease *row = self._row(name)
        cdef int index
        for index in range(PLACES):
            if row[index].process and memcmp(row[index].name, name, WIDTH) == 0:
                return &row[index]
        return NULL

    cdef Lease *_own(self, const char *name, uint64_t number) noexcept:
        cdef Lease *found = self._find(name)
        if found and found.process == self._process and found.number == number:
            return found
        return NULL

    @property
    def ended(self) -> int:
        """Counts the leases that have ended. Read in the lock: what was written before one ended is seen after this."""
        self._lock()
        ended = self._head.ended
        self._unlock()
        return ended

    def take(self, bytes name, uint64_t number, double ends, double now, uint64_t seen) -> int:
        """ends: when it is nobody's any more; 0: never. seen: what `ended` was before an answer was looked for."""
        cdef const char *text = _text(name)
        cdef Lease *found
        cdef Lease *row
        cdef int index
        self._lock()
        found = self._find(text)
        if found and (found.ends == 0 or now < found.ends):
            if found.process != self._process:
                found.flags |= AWAITED_BIT
            self._unlock()
            return HELD
        if not found:
            row = self._row(text)
            for index in range(PLACES):
                if not row[index].process or (row[index].ends != 0 and row[index].ends <= now):
                    found = &row[index]
                    break
            else:
                self._unlock()
                return FULL
        memcpy(found.name, text, WIDTH)
        found.process, found.number, found.ends, found.flags = self._process, number, ends, 0
        anew = self._head.ended != seen
        self._unlock()
        return TAKEN_ANEW if anew else TAKEN

    def answer(self, bytes name, uint64_t number) -> None:
        """Its answer is there, and about to be written down."""
        cdef const char *text = _text(name)
        cdef Lease *found
        self._lock()
        found = self._own(text, number)
        if found:
            found.flags |= ANSWERED_BIT
        self._unlock()

    def has(self, bytes name, uint64_t number) -> bool:
        cdef const char *text = _text(name)
        self._lock()
        found = self._own(text, number) != NULL
        self._unlock()
        return found

    def drop(self, bytes name, uint64_t number) -> int:
        """Ends it; gives AWAITED and ANSWERED as they are, GONE where it is no longer ours."""
        cdef const char *text = _text(name)
        cdef Lease *found
        self._lock()
        found = self._own(text, number)
        flags = self._end(found)
        self._unlock()
        return flags

    def forget(self, bytes name) -> int:
        """`drop` of whoever has it."""
        cdef const char *text = _text(name)
        cdef Lease *found
        self._lock()
        found = self._find(text)
        flags = self._end(found)
        self._unlock()
        return flags

    cdef int _end(self, Lease *found) noexcept:
        if not found:
            return NOBODY
        cdef int flags = found.flags
        found.process = 0
        self._head.ended += 1
        return flags

    def forget_process(self, int process) -> None:
        """All that it had."""
        cdef uint64_t index
        self._lock()
        for index in range(self._rows * PLACES):
            if self._leases[index].process == process:
                self._end(&self._leases[index])
        self._unlock()


cdef const char *_text(bytes name) except NULL:
    if name is None or len(name) != WIDTH:
        raise ValueError("the name of a lease has another length")
    return name
