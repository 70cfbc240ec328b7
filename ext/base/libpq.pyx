"""Look up the functions of the libpq that psycopg has loaded. See `libpq.pxd`."""

import importlib

try:
    import psycopg.pq
except ImportError as error:
    # psycopg is installed without an implementation, or the libpq of its implementation is missing.
    raise ImportError(
        f"psycopg's C implementation (psycopg[c] or psycopg[binary]) is needed, with libpq 14 or newer: {error}"
    ) from error


cdef extern from "libpq_table.h" nogil:
    void *dlopen(const char *filename, int flags)
    char *dlerror()
    int RTLD_LAZY
    int RTLD_NOLOAD
    const char *libpq_fill(LibpqFunctions *table, void *library)


cdef int _load() except -1:
    """Fill the table `pq`; return 0. Raises `ImportError` if psycopg or its libpq cannot be used."""
    implementation = psycopg.pq.__impl__
    if implementation not in ("c", "binary"):
        raise ImportError(
            "psycopg's C implementation (psycopg[c] or psycopg[binary]) is needed; "
            f"the one in use is {implementation!r}"
        )
    # dlsym on the handle of psycopg's own extension module searches the libpq it is linked with.
    module = importlib.import_module(f"psycopg_{implementation}.pq")
    cdef bytes path = module.__file__.encode()
    # The handle is never closed: the functions are used until the process ends.
    cdef void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD)
    if library == NULL:
        raise ImportError(f"cannot reopen {module.__file__}: {(<bytes>dlerror()).decode(errors='replace')}")
    cdef const char *missing = libpq_fill(&pq, library)
    if missing != NULL:
        raise ImportError(
            f"libpq 14 or newer is needed; the one in use ({psycopg.pq.version() // 10000}) "
            f"has no {(<bytes>missing).decode()}"
        )
    return 0


_load()

version: int = pq.libVersion()
can_batch_syncs: bool = pq.sendPipelineSync != NULL
