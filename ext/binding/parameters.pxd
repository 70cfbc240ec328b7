"""C surface of the fast binder.

The methods of `FastBinder` that return `bint` bind a part of a request, and return False if the slow binder has to
decide. `values` is the list of the values by index of parameter, None for NULL. Sets of parameters are 64 bits:
`present` for the parameters that the request has, `from_path` for those that have their value from the path.
"""

from libc.stdint cimport uint64_t

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.binding.plain_values cimport Kind, Text

cdef enum:
    MAX_PARAMETERS = 64
    # Size of the hash table of names: a power of two, at least twice the number of parameters.
    TABLE_SIZE = 256

# One parameter.
cdef struct Slot:
    const char *name
    Py_ssize_t name_length
    Kind kind
    bint array
    char delimiter
    # Elements never contain characters that an array literal has to quote.
    bint bare_elements
    # An empty text is a value of this type, and not NULL.
    bint empty_is_text
    # If the parameter is absent: NULL or a default is bound (`filled`), the argument is left out (`optional`),
    # or the request fails.
    bint filled
    bint optional
    # First characters of the accepted JSON values (of an array: of its elements); NULL: any. Only used if `strict`.
    const char *starts
    Py_ssize_t starts_length
    # Only JSON values that begin with one of `starts` are accepted, and for an array only JSON arrays.
    bint strict
    # JSON null is refused.
    bint never_null

cdef class FastBinder:
    cdef Slot slots[MAX_PARAMETERS]
    # Hash table of the indices of the parameters, by name.
    cdef unsigned char table[TABLE_SIZE]
    # Number of parameters.
    cdef Py_ssize_t count
    # False: the slow binder decides about every request.
    cdef bint usable
    # A timestamp or time without an offset is in UTC.
    cdef bint utc
    # In path and query, an empty text is NULL; the word `null`, in any case, is NULL.
    cdef bint empty_is_null
    cdef bint word_is_null
    # Own the bytes to which the slots point.
    cdef tuple names
    cdef tuple starts
    # For each `filled` parameter the default as bytes, or None for NULL.
    cdef tuple fillings
    # For each parameter a function that converts a text of any form, and one that converts a JSON value of any form;
    # None: the slow binder decides about unusual forms.
    cdef tuple converters
    # Composites whose fields are parameters: name -> member of the object -> index of the parameter.
    cdef dict groups
    # The array literal that is being written.
    cdef Buffer literal
    # Buffer for decoding a long value.
    cdef Buffer decoded

    cdef int find(self, const char *name, Py_ssize_t length, int expected) noexcept nogil
    # Add the values of path, query or body to `values`, and their parameters to `present`.
    cdef bint place_path(self, dict path_values, list values, uint64_t *present)
    cdef bint place_query(self, const char *start, const char *end, list values, uint64_t *present)
    cdef bint place_body(self, const char *start, const char *end, list values, uint64_t *present)
    cdef const char *place_object(self, const char *position, const char *end, dict fields, list values,
                                  uint64_t from_path, uint64_t *seen)
    # Convert a value of an unusual form with a function of the slow binder, and bind it.
    cdef bint convert_text(self, int index, const char *text, Py_ssize_t length, list values)
    cdef bint convert_json(self, int index, const char *text, const char *end, list values)
    cdef bint convert_element(self, int index, const char *text, Py_ssize_t length)
    cdef bint place_text(self, int index, const char *text, Py_ssize_t length, list values)
    cdef bint place_json(self, int index, const char *text, const char *end, bint escaped, list values)
    cdef bint place_json_array(self, int index, const char *text, const char *end, list values)
    cdef bint add_element(self, int index, const char *text, Py_ssize_t length)
    cdef int add(self, int index, const Text *element) noexcept
    # Binds the array literal that is being written.
    cdef bint close_array(self, int index, list values)
    # Binds a value, not NULL, if it has a plain form.
    cdef bint place_value(self, int index, const char *text, Py_ssize_t length, list values)
    cdef tuple finish(self, list values, uint64_t present)
