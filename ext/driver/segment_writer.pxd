"""The segments of one connection, as written into the buffer of libpq.

Methods that return int return 0, except `sync`; those without a comment are described in `segment_writer.pyx`. All are
called with the GIL.
"""

from rowcall.ext.base.libpq cimport PGconn
from rowcall.ext.driver.execution cimport Execution, Statement, Step


cdef enum:
    # libpq sends by itself when 8192 bytes are waiting: from this size on, it is unknown which bytes have been sent.
    SENT_UNASKED = 8000


cdef class SegmentWriter:
    # Borrowed from the connection, which sets it to NULL when it closes.
    cdef PGconn *conn
    # Statements are prepared; otherwise they are parsed for every execution.
    cdef bint named
    # Names of the statements that are prepared on the connection when all written segments have been run.
    cdef set prepared
    # libpq has refused a message.
    cdef bint failed
    # Upper limit for the bytes that libpq has not sent.
    cdef Py_ssize_t unsent_bytes

    cdef int connect(self, PGconn *conn, bint named) noexcept
    cdef int write(self, Execution execution) except -1
    cdef int write_part(self, Execution execution) except -1
    cdef int write_all(self, Execution execution, list statements) except -1
    cdef int command(self, Execution execution, Statement statement, list values, Step step) except -1
    cdef int sync(self) except -1
    cdef int drop_parse(self, Execution execution) except -1
    cdef bint is_statement_prepared(self, Execution execution, Step step) except -1
    cdef int _parse(self, Execution execution, Statement statement) except -1
