/* The functions of libpq that rowcall calls, one row each; `libpq.pyx` fills the table by name at import.
   Own declarations instead of libpq-fe.h: no headers are needed to build. */
#ifndef ROWCALL_LIBPQ_TABLE_H
#define ROWCALL_LIBPQ_TABLE_H

#include <dlfcn.h>

typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;
typedef unsigned int Oid;
typedef void (*NoticeReceiver)(void *arg, const PGresult *result);

#define LIBPQ_REQUIRED(X) \
    X(int, libVersion, (void)) \
    X(int, status, (const PGconn *)) \
    X(int, transactionStatus, (const PGconn *)) \
    X(const char *, parameterStatus, (const PGconn *, const char *)) \
    X(char *, errorMessage, (const PGconn *)) \
    X(int, socket, (const PGconn *)) \
    X(int, backendPID, (const PGconn *)) \
    X(int, setnonblocking, (PGconn *, int)) \
    X(int, enterPipelineMode, (PGconn *)) \
    X(int, pipelineSync, (PGconn *)) \
    X(int, sendFlushRequest, (PGconn *)) \
    X(int, sendPrepare, (PGconn *, const char *, const char *, int, const Oid *)) \
    X(int, sendQueryPrepared, (PGconn *, const char *, int, const char *const *, const int *, const int *, int)) \
    X(int, sendQueryParams, \
      (PGconn *, const char *, int, const Oid *, const char *const *, const int *, const int *, int)) \
    X(int, setSingleRowMode, (PGconn *)) \
    X(int, consumeInput, (PGconn *)) \
    X(int, isBusy, (PGconn *)) \
    X(int, flush, (PGconn *)) \
    X(PGresult *, getResult, (PGconn *)) \
    X(NoticeReceiver, setNoticeReceiver, (PGconn *, NoticeReceiver, void *)) \
    X(int, resultStatus, (const PGresult *)) \
    X(char *, resultErrorField, (const PGresult *, int)) \
    X(char *, resultErrorMessage, (const PGresult *)) \
    X(int, ntuples, (const PGresult *)) \
    X(int, nfields, (const PGresult *)) \
    X(char *, fname, (const PGresult *, int)) \
    X(Oid, ftype, (const PGresult *, int)) \
    X(char *, getvalue, (const PGresult *, int, int)) \
    X(int, getlength, (const PGresult *, int, int)) \
    X(int, getisnull, (const PGresult *, int, int)) \
    X(int, setvalue, (PGresult *, int, int, char *, int)) \
    X(char *, cmdStatus, (PGresult *)) \
    X(char *, cmdTuples, (PGresult *)) \
    X(void, clear, (PGresult *))

/* libpq 17 and newer: NULL where it is missing. */
#define LIBPQ_OPTIONAL(X) \
    X(int, sendPipelineSync, (PGconn *)) \
    X(int, setChunkedRowsMode, (PGconn *, int))

#define LIBPQ_MEMBER(result, name, arguments) result (*name) arguments;
typedef struct {
    LIBPQ_REQUIRED(LIBPQ_MEMBER)
    LIBPQ_OPTIONAL(LIBPQ_MEMBER)
} LibpqFunctions;

/* Returns the name of the first required function that is missing, else NULL. */
static const char *libpq_fill(LibpqFunctions *table, void *library) {
#define LIBPQ_REQUIRE(result, name, arguments) \
    table->name = (result (*) arguments) dlsym(library, "PQ" #name); \
    if (table->name == 0) return "PQ" #name;
#define LIBPQ_TRY(result, name, arguments) table->name = (result (*) arguments) dlsym(library, "PQ" #name);
    LIBPQ_REQUIRED(LIBPQ_REQUIRE)
    LIBPQ_OPTIONAL(LIBPQ_TRY)
    return 0;
}

#endif
