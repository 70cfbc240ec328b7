# Returns a sentence (str), or None if the response can be sent. See `response_guard.pyx`.
cdef response_problem(status, headers, Py_ssize_t length)
