cdef response_problem(status, headers, Py_ssize_t length)
