"""Cache steps in front of and behind an execution, for the common cases of cached responses in shared memory.

The common cases are a hit, and a miss for which no other request waits. All other cases are handled by fallback steps,
which the caller passes in.

The key of a cached response identifies the caller and the values. Each part has its kind and its length, so that no
text from a client can be confused with the border of two parts: absent, NULL and an empty text give three keys, and so
do `ab`, `c` and `a`, `bc` (caching-10).
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdio cimport snprintf
from libc.string cimport memcpy

from rowcall.ext.driver.request_context cimport RequestContext
from rowcall.ext.driver.execution cimport Execution, ExecutionState

from time import monotonic

from rowcall.ext.driver.execution import finished_execution

cdef enum:
    # Room for the length of an argument in decimal digits, and a colon.
    DIGITS = 24


def encode_key(bytes prefix not None, mask, list arguments not None, key_mask):
    """Return the cache key of a request.

    prefix: beginning of the key, for the endpoint and the caller. mask: int with the bits of the present parameters;
    `arguments` has the text of each as bytes, None for NULL. key_mask: int with the bits of the parameters that are
    part of the key.

    Raises TypeError for an argument of another type, and ValueError if `mask` does not have one bit for each argument;
    the latter is checked only if a present parameter is not part of the key.
    """
    if mask & ~key_mask:
        arguments = _key_arguments(mask, arguments, key_mask)
    return _key(prefix, b"%x:" % (mask & key_mask), arguments)


cdef list _key_arguments(mask, list arguments, key_mask):
    """Return the arguments of the parameters that are part of the key. The parameters are as of `encode_key`; raises
    ValueError if `mask` does not have one bit for each argument."""
    places = [index for index in range(mask.bit_length()) if mask >> index & 1]
    return [text for index, text in zip(places, arguments, strict=True) if key_mask >> index & 1]


cdef bytes _key(bytes prefix, bytes present, list arguments):
    """Return the cache key: the prefix, the mask, and each argument (bytes) with its length, or `-` for None. present:
    text of the mask, with the colon at its end. Raises TypeError for an argument of another type."""
    cdef Py_ssize_t most = PyBytes_GET_SIZE(prefix) + PyBytes_GET_SIZE(present)
    cdef bytes key, text
    cdef char *place
    for argument in arguments:
        most += 1 if argument is None else DIGITS + PyBytes_GET_SIZE(<bytes?>argument)
    key = PyBytes_FromStringAndSize(NULL, most)
    place = PyBytes_AS_STRING(key)
    memcpy(place, PyBytes_AS_STRING(prefix), PyBytes_GET_SIZE(prefix))
    place += PyBytes_GET_SIZE(prefix)
    memcpy(place, PyBytes_AS_STRING(present), PyBytes_GET_SIZE(present))
    place += PyBytes_GET_SIZE(present)
    for argument in arguments:
        if argument is None:
            place[0] = b"-"
            place += 1
        else:
            text = <bytes>argument
            place += snprintf(place, DIGITS, "%zd:", PyBytes_GET_SIZE(text))
            memcpy(place, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
            place += PyBytes_GET_SIZE(text)
    return key[:place - PyBytes_AS_STRING(key)]


cdef class Lease:
    """The right and duty to compute the response for a key.

    cache: stores the response, and informs waiting requests. name: key of the lease in the table; number: its number
    there, from 1. began: when the lease was acquired, in seconds of the monotonic clock. tags: those (str) that the
    response will have.
    """

    cdef readonly object cache
    cdef readonly bytes name
    cdef readonly object number
    cdef readonly double began
    cdef public tuple tags

    def __cinit__(self, cache, bytes name, number, double began):
        self.cache = cache
        self.name = name
        self.number = number
        self.began = began
        self.tags = ()


cdef class CacheLookup:
    """Step in front of the execution: takes the cached response, or acquires the lease to compute it.

    prefix: beginning of the cache key. key_mask: bits of the parameters that are part of the key. table: table of
    cached responses (`ext.response_cache.table`). seconds: lifetime of a lease; 0: until it is released. longest:
    maximum number of bytes of a key; requests with longer keys go to `otherwise`. unshared: if it is not empty, every
    request goes to `otherwise`. lease(cache, name, number, began): returns the lease object. cache: passed to `lease`.
    ending: called at the end of a request that has acquired a lease. compute: the steps that compute and store the
    response; a miss enters them. on_hit(context): called for a hit; None: no call. report(context, outcome): called
    with `hit` or `miss`; None: no call. otherwise: the fallback step, also for requests with a parameter that is not
    part of the key, and if no lease can be acquired.
    """

    cdef bytes _prefix
    cdef object _key_mask, _begin, _cache, _lease, _ending, _on_hit, _report, _otherwise
    cdef dict _unshared
    cdef double _seconds
    cdef Py_ssize_t _longest
    cdef tuple _compute
    cdef object _mask
    cdef bytes _present

    def __init__(self, bytes prefix not None, key_mask, table, double seconds, Py_ssize_t longest,
                 dict unshared not None,
                 cache, lease, ending, tuple compute not None, on_hit, report, otherwise):
        self._prefix = prefix
        self._key_mask = key_mask
        self._begin = table.begin
        self._seconds = seconds
        self._longest = longest
        self._unshared = unshared
        self._cache = cache
        self._lease = lease
        self._ending = ending
        self._compute = compute
        self._on_hit = on_hit
        self._report = report
        self._otherwise = otherwise
        self._mask = None

    def __call__(self, RequestContext context not None):
        cdef bytes key
        cdef double at
        mask = context.mask
        if mask is not self._mask and mask != self._mask:
            # Most requests of an endpoint have the same parameters, so the text of the mask is reused.
            if mask & ~self._key_mask:
                return self._otherwise(context)
            self._mask = mask
            self._present = b"%x:" % mask
        key = _key(self._prefix, self._present, context.arguments)
        if PyBytes_GET_SIZE(key) > self._longest or self._unshared:
            return self._otherwise(context)
        at = monotonic()
        # An entry for a hit; else the number of the acquired lease, from 1, or HELD or FULL, at most 0.
        result = self._begin(key, at + self._seconds if self._seconds > 0 else 0.0, at)
        if type(result) is not int:
            context.execution = finished_execution(result[0], result[1], result[2])
            if self._on_hit is not None:
                self._on_hit(context)
            if self._report is not None:
                self._report(context, "hit")
        elif result > 0:
            context.lease = self._lease(self._cache, key, result, at)
            if context.endings is None:
                context.endings = []
            context.endings.append(self._ending)
            if self._report is not None:
                self._report(context, "miss")
            context.enter(self._compute)
        else:
            return self._otherwise(context)
        return None


cdef class CacheWriter:
    """Step behind the execution: stores the response, and ends the lease.

    keep: method of the table. waiting: not empty if requests of this process wait for a response. completed(lease,
    entry, flags): called if requests wait, or if the table returned flags. ending: that of the `CacheLookup`; when the
    lease has ended here, it is removed from the request if the request has no other ending. seconds: lifetime of the
    response; below 0: until it is invalidated. largest: size in bytes from which a body is not stored. needs_row: a
    result without a row is not stored. most: a result with more rows is not stored; 0: any number. otherwise: the
    fallback step, for every result that is not stored here, such as a failed or a streamed one, and for a lease of
    another class. Without a lease the step does nothing.
    """

    cdef object _keep, _completed, _ending, _otherwise
    cdef dict _waiting
    cdef double _seconds
    cdef Py_ssize_t _largest, _most
    cdef bint _needs_row

    def __init__(self, keep, dict waiting not None, completed, ending, double seconds, Py_ssize_t largest,
                 bint needs_row, Py_ssize_t most, otherwise):
        self._keep = keep
        self._waiting = waiting
        self._completed = completed
        self._ending = ending
        self._seconds = seconds
        self._largest = largest
        self._needs_row = needs_row
        self._most = most
        self._otherwise = otherwise

    def __call__(self, RequestContext context not None):
        cdef Execution execution = context.execution
        cdef Lease lease
        cdef list endings = context.endings
        cdef double at = 0, ends = 0
        cdef int flags
        if context.lease is None:
            return None
        if (execution is None or execution.state != ExecutionState.DONE or execution.body is None
                or PyBytes_GET_SIZE(execution.body) >= self._largest or (self._needs_row and execution.rows == 0)
                or (self._most and execution.rows > self._most) or not isinstance(context.lease, Lease)):
            return self._otherwise(context)
        # From here on the lease ends by `keep`, so the ending, which would release it, is not needed.
        lease = <Lease>context.lease
        context.lease = None
        if endings is not None and len(endings) == 1 and endings[0] is self._ending:
            context.endings = None
        # Without a lifetime, both times stay 0: the response never ends.
        now = monotonic()
        if self._seconds >= 0:
            at = now
            ends = at + self._seconds
        entry = (execution.body, execution.rows, execution.is_null, at, ends, 0.0, b"", lease.tags)
        flags = self._keep(lease.name, lease.number, lease.began, entry, now)
        if flags or self._waiting:
            self._completed(lease, entry, flags)
        return None
