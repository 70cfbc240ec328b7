"""C surface of the JSON parser: validating scans that create no objects.

Every `…_end` function takes a position within the text and the end of the text, validates the element that begins at
the position, and returns the position behind it, or NULL if the element is not valid JSON (RFC 8259) in UTF-8.
"""

cdef const char *skip_space(const char *position, const char *end) noexcept nogil
cdef const char *string_end(const char *position, const char *end, bint *escaped) noexcept nogil
cdef const char *number_end(const char *position, const char *end) noexcept nogil
cdef const char *word_end(const char *position, const char *end) noexcept nogil
# `depth`: number of brackets open around the value; more than 1024 in all are refused.
cdef const char *value_end(const char *position, const char *end, int depth) noexcept nogil

# Unescapes the content (without quotes) of a valid string. Returns the length written, at most `length`.
cdef Py_ssize_t unescape_string(const char *content, Py_ssize_t length, char *target) noexcept nogil
