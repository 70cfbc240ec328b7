"""The monotonic clock."""

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int clock_gettime(int clock, timespec *moment)
    int CLOCK_MONOTONIC


cdef inline double now() noexcept nogil:
    """Return the seconds since the start of this clock, which all processes of the host share: the time that
    `time.monotonic` returns."""
    cdef timespec moment
    clock_gettime(CLOCK_MONOTONIC, &moment)
    return moment.tv_sec + moment.tv_nsec * 1e-9
