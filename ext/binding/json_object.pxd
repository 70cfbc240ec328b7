"""C surface of the JSON parser: validating scans that create no objects.

Every `…_end` function takes a position within the text and the end of the text, validates the element that begins at
the position, and returns the position behind it, or NULL if the element is not valid JSON (RFC 8259) in UTF-8.
"""

# Returns the position of the first character that is no white space, or the end.
cdef const char *skip_space(const char *position, const char *end) noexcept nogil
# `escaped` receives whether the string contains a backslash.
cdef const char *string_end(const char *position, const char *end, bint *escaped) noexcept nogil
cdef const char *number_end(const char *position, const char *end) noexcept nogil
# A word is `true`, `false` or `null`.
cdef const char *word_end(const char *position, const char *end) noexcept nogil
# `depth`: number of open brackets around the value. More than 1024 open brackets are refused.
cdef const char *value_end(const char *position, const char *end, int depth) noexcept nogil

# Unescapes the content (without quotes) of a valid string. Returns the number of bytes written, at most `length`.
cdef Py_ssize_t unescape_string(const char *content, Py_ssize_t length, char *target) noexcept nogil
