"""C surface of the JSON parser: validating scans that create no objects.

Every `…_end` function takes a position within the text and the end of the text, validates the element that begins at
the position, and returns the position behind it, or NULL if the element is not valid JSON (RFC 8259) in UTF-8. The
byte at `end` is not read. All positions are borrowed pointers into the same text.
"""

# Returns the position of the first character that is no white space, or the end.
cdef const char *skip_space(const char *position, const char *end) noexcept nogil
# `escaped` receives whether the string contains a backslash.
cdef const char *string_end(const char *position, const char *end, bint *escaped) noexcept nogil
cdef const char *number_end(const char *position, const char *end) noexcept nogil
# A word is `true`, `false` or `null`.
cdef const char *word_end(const char *position, const char *end) noexcept nogil
# `depth`: number of open brackets around the value, at most 1024. A value that opens a bracket beyond this number is
# refused.
cdef const char *value_end(const char *position, const char *end, int depth) noexcept nogil

# Unescapes the `length` bytes between the quotes of a string that `string_end` has accepted, as UTF-8 into `target`,
# which needs room for `length` bytes. Returns the number of bytes written; an escape \u0000 becomes a NUL.
cdef Py_ssize_t unescape_string(const char *content, Py_ssize_t length, char *target) noexcept nogil
