"""Check every response directly before the HTTP server, whether it comes from SQL, another service or a cache.

granian aborts the worker process for a status or a header section that it cannot write, so none of these may reach it.
"""

import cython

from rowcall.ext.base.http_heads cimport field_problem

cdef enum:
    MOST_FIELDS = 1_000
    MOST_BYTES = 1_048_576

_INTERNAL_ERROR = [("content-type", "application/problem+json")]
_INTERNAL_ERROR_BODY = b'{"title":"Internal Server Error","status":500}'


class InvalidResponseError(Exception):
    """The response cannot be sent. No part of it was sent, so that the caller may send another one."""


@cython.freelist(256)
cdef class GuardedProtocol:
    """Wraps the HTTP server's protocol object for one request, and passes valid responses on.

    The first invalid response of a request is not sent: its `response_*` method raises `InvalidResponseError`, and the
    caller may send another response. If that is invalid too, a 500 response without details is sent in its place;
    only `response_stream`, which has to return a writer, raises again.
    """

    # The protocol object of the HTTP server.
    cdef readonly object inner
    # An invalid response has raised its error.
    cdef bint rejected

    def __init__(self, protocol):
        self.inner = protocol

    def __call__(self):
        return self.inner()

    def __aiter__(self):
        return self.inner.__aiter__()

    def client_disconnect(self):
        return self.inner.client_disconnect()

    def response_empty(self, status, headers):
        if self._accepts(status, headers, -1):
            self.inner.response_empty(status, headers)

    def response_bytes(self, status, headers, body):
        if self._accepts(status, headers, len(body)):
            self.inner.response_bytes(status, headers, body)

    def response_str(self, status, headers, body):
        self.response_bytes(status, headers, (<str?>body).encode())

    def response_file(self, status, headers, file):
        if self._accepts(status, headers, -1):
            self.inner.response_file(status, headers, file)

    def response_file_range(self, status, headers, file, start, end):
        if self._accepts(status, headers, end - start):
            self.inner.response_file_range(status, headers, file, start, end)

    def response_stream(self, status, headers):
        self._check(status, headers, -1)
        return self.inner.response_stream(status, headers)

    def fail(self):
        """Send a 500 response without details."""
        self.inner.response_bytes(500, _INTERNAL_ERROR, _INTERNAL_ERROR_BODY)

    cdef bint _accepts(self, status, headers, Py_ssize_t length) except -1:
        """Return whether the response can be sent. Raises `InvalidResponseError` for the first invalid one; for a
        later one, sends a 500 instead and returns False. length: bytes of the body; -1: unknown here."""
        if self.rejected:
            if response_problem(status, headers, length) is not None:
                self.fail()
                return False
            return True
        self._check(status, headers, length)
        return True

    cdef int _check(self, status, headers, Py_ssize_t length) except -1:
        """Raise `InvalidResponseError` for an invalid response, and record that; return 0 for a valid one."""
        problem = response_problem(status, headers, length)
        if problem is not None:
            self.rejected = True
            raise InvalidResponseError(problem)
        return 0


cdef response_problem(status, headers, Py_ssize_t length):
    """Return why a response cannot be sent, as a sentence; None if it can. length: bytes of its body; -1: unknown here.

    status, headers: any objects; a status that is not an int and a header that is not a pair of str are reasons.
    An interim status (1xx) is refused, as it cannot be the status of a final response (RFC 9110, 15.2).
    """
    if type(status) is not int or not 200 <= status <= 599:
        return "its status is not from 200 to 599"
    return field_problem(headers, MOST_FIELDS, MOST_BYTES, length)
