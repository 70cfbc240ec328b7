"""C surface of the fast binder."""

from libc.stdint cimport uint64_t

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.binding.plain_values cimport Kind, Text

cdef enum:
    MAX_PARAMETERS = 64
    # Size of the hash table of names: a power of two, at least twice the number of parameters.
    TABLE_SIZE = 256

cdef struct Slot:
    const char *name
    Py_ssize_t name_length
    Kind kind
    bint array
    char delimiter
    bint bare_elements
    bint empty_is_text
    # If the parameter is absent: NULL or a default is bound (`filled`), the argument is left out (`optional`),
    # or the request fails.
    bint filled
    bint optional
    # First characters of the accepted JSON values, or of their elements; NULL: any.
    const char *starts
    Py_ssize_t starts_length
    # Arrays have to be JSON arrays; texts are refused.
    bint strict
    # JSON null is refused.
    bint never_null

cdef class FastBinder:
    cdef Slot slots[MAX_PARAMETERS]
    cdef unsigned char table[TABLE_SIZE]
    cdef Py_ssize_t count
    cdef bint usable
    cdef bint utc
    cdef bint empty_is_null
    cdef bint word_is_null
    # These keep the bytes alive to which the slots point.
    cdef tuple names
    cdef tuple starts
    # For each `filled` parameter the default as bytes, or None for NULL.
    cdef tuple fillings
    # For each parameter two functions that convert a text, or a JSON value, of any form.
    cdef tuple converters
    # Composites whose fields are parameters: name -> member of the object -> index of the parameter.
    cdef dict groups
    # The array literal that is being written.
    cdef Buffer literal
    # Buffer for decoding a long value.
    cdef Buffer decoded

    cdef int find(self, const char *name, Py_ssize_t length, int expected) noexcept nogil
    cdef bint place_path(self, dict path_values, list values, uint64_t *present)
    cdef bint place_query(self, const char *start, const char *end, list values, uint64_t *present)
    cdef bint place_body(self, const char *start, const char *end, list values, uint64_t *present)
    cdef const char *place_object(self, const char *position, const char *end, dict fields, list values,
                                  uint64_t from_path, uint64_t *seen)
    cdef bint convert_text(self, int index, const char *text, Py_ssize_t length, list values)
    cdef bint convert_json(self, int index, const char *text, const char *end, list values)
    cdef bint convert_element(self, int index, const char *text, Py_ssize_t length)
    cdef bint place_text(self, int index, const char *text, Py_ssize_t length, list values)
    cdef bint place_json(self, int index, const char *text, const char *end, bint escaped, list values)
    cdef bint place_json_array(self, int index, const char *text, const char *end, list values)
    cdef bint add_element(self, int index, const char *text, Py_ssize_t length)
    cdef int add(self, int index, const Text *element) noexcept
    cdef bint close_array(self, int index, list values)
    cdef bint place_value(self, int index, const char *text, Py_ssize_t length, list values)
    cdef tuple finish(self, list values, uint64_t present)
