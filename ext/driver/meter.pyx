"""Counts requests in memory that another process reads at the same time.

A row of numbers belongs to one endpoint (or one host of outgoing requests) in one worker. No lock is needed: a store of
eight bytes is atomic for readers, and no other process writes to the row.
"""

cimport cython
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer

from rowcall.ext.base.clock cimport now
from rowcall.ext.driver.request_context cimport RequestContext
from rowcall.ext.driver.execution cimport Execution, ExecutionState
from rowcall.ext.rendering.timed_rows cimport TimedPlan

# The numbers of a row: STATUSES counters, three histograms of BUCKETS counters and a sum, and the single numbers. The
# last bucket has no upper bound.
cdef enum:
    BUCKETS = 15
    HISTOGRAM = BUCKETS + 1
    STATUSES = 6
    FIRST_HISTOGRAM = STATUSES
    SINGLES = FIRST_HISTOGRAM + 3 * HISTOGRAM
    TOTAL = SINGLES + 9

# The histograms: seconds of requests, seconds that executions have waited, and seconds that the database has worked.
cdef enum:
    DURATION
    WAIT
    DATABASE

cdef enum Single:
    IN_FLIGHT = SINGLES
    ROWS
    SENT
    RENDERING
    HITS
    MISSES
    RETRIES
    LIMITED
    OVERLOADED

cdef double[BUCKETS - 1] BOUNDS
BOUNDS[:] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]

bounds = tuple([BOUNDS[number] for number in range(BUCKETS - 1)])
columns = (
    "1xx", "2xx", "3xx", "4xx", "5xx", "499",
    *[
        f"{name}:{bound}"
        for name in ("duration", "wait", "database")
        for bound in (*[f"{bound:g}" for bound in bounds], "+Inf", "sum")
    ],
    "in_flight", "rows", "bytes", "rendering", "cache_hits", "cache_misses", "retries", "limited", "overloaded",
)

cdef int GONE = 499


cdef class Meter:
    """One row of numbers, and the step that counts a request in it: it has to be the first step, and counts the end of
    the request too.

    memory: writable buffer of `len(columns)` numbers of eight bytes (double), aligned. gone: class of the errors which
    mean that the client has disconnected; None: no error means that. Raises ValueError if the memory is too small.
    """

    def __cinit__(self, memory, gone=None):
        PyObject_GetBuffer(memory, &self.view, PyBUF_WRITABLE)
        self.held = True
        if self.view.len < <Py_ssize_t>(TOTAL * sizeof(double)):
            raise ValueError(f"a row has {TOTAL} numbers")
        self.numbers = <double *>self.view.buf
        self.gone = gone

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)

    def __call__(self, RequestContext context not None):
        cdef MeteredProtocol measured = MeteredProtocol.__new__(MeteredProtocol)
        measured.meter = self
        measured.context = context
        measured.began = now()
        measured.bodiless = context.scope.method == "HEAD"
        measured.inner = context.protocol
        context.protocol = measured
        self.numbers[<int>IN_FLIGHT] += 1
        context.at_end(measured.end)

    cdef void observe(self, int histogram, double seconds) noexcept nogil:
        """Add a duration to a histogram: DURATION, WAIT or DATABASE."""
        cdef double *place = self.numbers + FIRST_HISTOGRAM + histogram * HISTOGRAM
        cdef int bucket = 0
        while bucket < BUCKETS - 1 and seconds > BOUNDS[bucket]:
            bucket += 1
        place[bucket] += 1
        place[BUCKETS] += seconds

    cdef void count(self, int status) noexcept nogil:
        """Count a response by its status; 499: the client has disconnected. A status below 100 is not counted."""
        cdef int place = 5 if status == GONE else status // 100 - 1
        if 0 <= place < STATUSES:
            self.numbers[place] += 1
        if status == 429:
            self.numbers[<int>LIMITED] += 1
        elif status == 503:
            self.numbers[<int>OVERLOADED] += 1

    cpdef add(self, str column, double amount=1.0):
        """Add to the number of a column; not for the hot path. Raises KeyError if `columns` does not have it."""
        self.numbers[COLUMN[column]] += amount

    cpdef begin(self):
        """Count the beginning of work without a request context; return the present time (`now`), for `record_end`."""
        self.numbers[<int>IN_FLIGHT] += 1
        return now()

    cpdef record_end(self, double began, int status):
        """Count the end of work that `begin` has counted at the time `began`. status: that of the response; 0: none was
        sent, which counts as 499."""
        self.numbers[<int>IN_FLIGHT] -= 1
        self.count(status or GONE)
        self.observe(DURATION, now() - began)

    cpdef count_refusal(self, int status):
        """Count a response to a request that was refused before it began."""
        self.count(status)


COLUMN = {name: number for number, name in enumerate(columns)}


@cython.freelist(256)
cdef class MeteredProtocol:
    """Wraps the HTTP server's protocol object while one request is counted."""

    def __call__(self):
        return self.inner()

    def __aiter__(self):
        return self.inner.__aiter__()

    async def client_disconnect(self):
        await self.inner.client_disconnect()
        self.left = True

    def response_empty(self, int status, headers):
        self.inner.response_empty(status, headers)
        self.record_response(status, 0)

    def response_bytes(self, int status, headers, body):
        self.inner.response_bytes(status, headers, body)
        self.record_response(status, 0 if self.bodiless else len(body))

    def response_str(self, int status, headers, str body):
        self.inner.response_str(status, headers, body)
        self.record_response(status, 0 if self.bodiless else len(body) if body.isascii() else len(body.encode()))

    def response_file(self, int status, headers, file):
        self.inner.response_file(status, headers, file)
        self.record_response(status, 0)

    def response_file_range(self, int status, headers, file, start, end):
        self.inner.response_file_range(status, headers, file, start, end)
        self.record_response(status, 0 if self.bodiless else end - start)

    def response_stream(self, int status, headers):
        stream = self.inner.response_stream(status, headers)
        self.record_response(status, 0)
        return stream

    cdef int record_response(self, int status, Py_ssize_t sent) except -1:
        """Store the status of the response for `end`, and count its bytes and the time that its execution has waited.

        If `end` was called before, count the response instead of the waiting time. If the client has disconnected, the
        status is 499. A second call has no effect. sent: bytes of the body; 0: unknown.
        """
        cdef Execution request
        cdef double moment, ran
        if self.status:
            return 0
        if self.left:
            status = GONE  # the client has disconnected, so that no status reaches it
        self.status = status
        self.meter.numbers[<int>SENT] += sent
        if self.context is None:
            self.meter.count(status)  # response to the error that ended the request
            self.meter.observe(DURATION, now() - self.began)
            return 0
        request = self.context.execution
        # The execution of a cached response has never begun.
        if request is not None and request.began > 0:
            moment = now()
            ran = request.seconds
            if request.state != ExecutionState.DONE and request.head_since > 0:
                ran += moment - request.head_since
            self.meter.observe(WAIT, max(0.0, moment - request.began - ran))
        return 0

    def end(self, context, error):
        """Count the end of a request, whose steps are done (error: None) or failed.

        If the response has not begun, as after a failure, `record_response` counts it later. If the client has
        disconnected, none follows, and the request counts as 499 here.
        """
        cdef Meter meter = self.meter
        cdef Execution request = (<RequestContext?>context).execution
        self.context = None
        meter.numbers[<int>IN_FLIGHT] -= 1
        if request is not None and request.began > 0:
            meter.observe(DATABASE, request.seconds)
            meter.numbers[<int>ROWS] += request.rows
            if type(request.plan) is TimedPlan:
                meter.numbers[<int>RENDERING] += (<TimedPlan>request.plan).seconds
        if not self.status:
            # `record_response` counts the response that follows.
            if error is None or type(error) is not meter.gone:
                return
            self.status = GONE
        meter.count(self.status)
        meter.observe(DURATION, now() - self.began)
