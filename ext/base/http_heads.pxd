"""Check of header sections, for the modules that send responses."""

cpdef field_problem(headers, Py_ssize_t most_fields, Py_ssize_t most_bytes, Py_ssize_t body_length=*)
