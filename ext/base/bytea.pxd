"""Decode the hexadecimal text form of bytea, `\\x00ff`, to its bytes."""

from rowcall.ext.base.buffer cimport Buffer


cdef extern from "hex_text.h" nogil:
    char *hex_decode(char *target, const char *text, const char *end) noexcept


cdef inline int append_bytea(Buffer out, const char *text, Py_ssize_t size) noexcept nogil:
    """Append the bytes for which a text like `\\x00ff` stands. Return 0, or -1 if memory cannot be allocated.

    text: the output of the server for a bytea, `size` bytes long. A text in another form (`bytea_output=escape`) is
    appended unchanged.
    """
    cdef char *end
    if size < 2 or text[0] != c'\\' or text[1] != c'x':
        return out.append(text, size)
    if out.reserve(size) < 0:
        return -1
    # Decoded into the buffer directly: half of the room that is reserved here would do.
    end = hex_decode(out.data + out.length, text + 2, text + size)
    if end == NULL:
        return out.append(text, size)
    out.length = end - out.data
    return 0
