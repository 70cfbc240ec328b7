"""The libpq functions that the hot path calls, as pointers looked up at import in the libpq that psycopg loaded.

psycopg opens the connections and this package uses them, so both must use the same library: two copies of libpq cannot
share a `PGconn`. Looking the functions up in the loaded library makes a second copy impossible, needs no headers to
build, and lets one wheel use newer functions where they exist (`PQsendPipelineSync` is libpq 17).

Each member of `LibpqFunctions` is the function of libpq with `PQ` in front of its name, and is NULL if it is optional
(`sendPipelineSync`, `setChunkedRowsMode`: libpq 17) and this libpq does not have it. All may be called without the GIL,
by one thread per connection. Of the functions that return int as a success, `setnonblocking` returns 0 and the others 1
for success; `flush` returns 0 if everything was sent, 1 if bytes are left, -1 after an error.

The caller of `getResult` owns the result and frees it by `clear`; NULL: no result is left of the present command.
Every text that is returned is NUL-terminated, in the encoding of the client (UTF-8), and borrowed from its result or
connection. Texts and arrays that are passed in are only read during the call. Rows and columns are counted from 0;
`getvalue` returns an empty text for NULL. The letter of a field of an error (`resultErrorField`) is that of the
protocol, and the result is NULL if the field is missing.
"""

cdef extern from "libpq_table.h" nogil:
    ctypedef struct PGconn:
        pass
    ctypedef struct PGresult:
        pass
    ctypedef unsigned int Oid
    # Called by libpq while it parses, for a notice that it frees itself afterwards. arg: as passed to
    # `setNoticeReceiver`.
    ctypedef void (*NoticeReceiver)(void *arg, const PGresult *result) noexcept

    ctypedef struct LibpqFunctions:
        int (*libVersion)() noexcept nogil
        int (*status)(const PGconn *) noexcept nogil
        int (*transactionStatus)(const PGconn *) noexcept nogil
        const char *(*parameterStatus)(const PGconn *, const char *) noexcept nogil
        char *(*errorMessage)(const PGconn *) noexcept nogil
        int (*socket)(const PGconn *) noexcept nogil
        int (*backendPID)(const PGconn *) noexcept nogil
        int (*setnonblocking)(PGconn *, int) noexcept nogil
        int (*enterPipelineMode)(PGconn *) noexcept nogil
        int (*pipelineSync)(PGconn *) noexcept nogil
        int (*sendFlushRequest)(PGconn *) noexcept nogil
        int (*sendPipelineSync)(PGconn *) noexcept nogil
        int (*sendPrepare)(PGconn *, const char *, const char *, int, const Oid *) noexcept nogil
        int (*sendQueryPrepared)(
            PGconn *, const char *, int, const char *const *, const int *, const int *, int) noexcept nogil
        int (*sendQueryParams)(
            PGconn *, const char *, int, const Oid *, const char *const *, const int *, const int *, int) noexcept nogil
        int (*setSingleRowMode)(PGconn *) noexcept nogil
        int (*setChunkedRowsMode)(PGconn *, int) noexcept nogil
        int (*consumeInput)(PGconn *) noexcept nogil
        int (*isBusy)(PGconn *) noexcept nogil
        int (*flush)(PGconn *) noexcept nogil
        PGresult *(*getResult)(PGconn *) noexcept nogil
        NoticeReceiver (*setNoticeReceiver)(PGconn *, NoticeReceiver, void *) noexcept nogil
        int (*resultStatus)(const PGresult *) noexcept nogil
        char *(*resultErrorField)(const PGresult *, int) noexcept nogil
        char *(*resultErrorMessage)(const PGresult *) noexcept nogil
        int (*ntuples)(const PGresult *) noexcept nogil
        int (*nfields)(const PGresult *) noexcept nogil
        char *(*fname)(const PGresult *, int) noexcept nogil
        Oid (*ftype)(const PGresult *, int) noexcept nogil
        char *(*getvalue)(const PGresult *, int, int) noexcept nogil
        int (*getlength)(const PGresult *, int, int) noexcept nogil
        int (*getisnull)(const PGresult *, int, int) noexcept nogil
        int (*setvalue)(PGresult *, int, int, char *, int) noexcept nogil
        char *(*cmdStatus)(PGresult *) noexcept nogil
        char *(*cmdTuples)(PGresult *) noexcept nogil
        void (*clear)(PGresult *) noexcept nogil

# What `resultStatus` returns.
cpdef enum ExecStatus:
    PGRES_EMPTY_QUERY = 0
    PGRES_COMMAND_OK = 1
    PGRES_TUPLES_OK = 2
    PGRES_COPY_OUT = 3
    PGRES_COPY_IN = 4
    PGRES_BAD_RESPONSE = 5
    PGRES_NONFATAL_ERROR = 6
    PGRES_FATAL_ERROR = 7
    PGRES_COPY_BOTH = 8
    PGRES_SINGLE_TUPLE = 9
    PGRES_PIPELINE_SYNC = 10
    PGRES_PIPELINE_ABORTED = 11
    PGRES_TUPLES_CHUNK = 12

# What `status` returns.
cdef enum:
    CONNECTION_OK = 0
    CONNECTION_BAD = 1

# What `transactionStatus` returns.
cdef enum TransactionStatus:
    PQTRANS_IDLE = 0
    PQTRANS_ACTIVE = 1
    PQTRANS_INTRANS = 2
    PQTRANS_INERROR = 3
    PQTRANS_UNKNOWN = 4

# Filled when `libpq` is imported, and never changed afterwards.
cdef LibpqFunctions pq
