"""Heads of HTTP/1.1 messages: what other modules check of responses."""

cpdef field_problem(headers, Py_ssize_t most_fields, Py_ssize_t most_bytes, Py_ssize_t body_length=*)
