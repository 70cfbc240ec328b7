"""Check of header sections, for the modules that send responses."""

# Returns a str, or None if the headers can be sent. See `http_heads.pyx` for the parameters.
cpdef field_problem(headers, Py_ssize_t most_fields, Py_ssize_t most_bytes, Py_ssize_t body_length=*)
