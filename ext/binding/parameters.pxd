"""C surface of the fast binder.

The methods of `FastBinder` that return `bint` bind a part of a request, and return False if the slow binder has to
decide. They are called with the GIL, and raise MemoryError if memory cannot be allocated. Their parameters are:

    index      index of a parameter, as in `slots`
    values     list of the values (bytes) by index of parameter, None for NULL, which the methods fill
    text       borrowed text that is not NUL-terminated, of `length` bytes or up to `end`; UTF-8 unless a method says
               otherwise
    escaped    whether the JSON string contains a backslash

Sets of parameters are 64 bits, by index: `present` for the parameters that the request has, `from_path` for those that
have their value from the path, which takes precedence.
"""

from libc.stdint cimport uint64_t

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.binding.plain_values cimport Kind, Text

cdef enum:
    MAX_PARAMETERS = 64
    # Size of the hash table of names: a power of two, at least twice the number of parameters.
    TABLE_SIZE = 256

# One parameter. Its texts are borrowed from `FastBinder.names` and `FastBinder.starts`.
cdef struct Slot:
    # API name (UTF-8), and its length in bytes.
    const char *name
    Py_ssize_t name_length
    Kind kind
    bint array
    # Between the elements of an array literal: `,` or `;`.
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
    # No value has a plain form: `converters` convert each one.
    bint converted

cdef class FastBinder:
    cdef Slot slots[MAX_PARAMETERS]
    # Hash table of the indices of the parameters, by name; 255 marks an empty place.
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

    # Returns the index of a parameter, or -1. expected: index that is tried first.
    cdef int find(self, const char *name, Py_ssize_t length, int expected) noexcept nogil
    # Add the values of path, query or body to `values`, and their parameters to `present`. path_values: name → decoded
    # value, both str. [start, end): the query without its question mark, still encoded, or the body.
    cdef bint place_path(self, dict path_values, list values, uint64_t *present)
    cdef bint place_query(self, const char *start, const char *end, list values, uint64_t *present)
    cdef bint place_body(self, const char *start, const char *end, list values, uint64_t *present)
    # Binds the members of a JSON object; returns the position behind it, or NULL. See `parameters.pyx`.
    cdef const char *place_object(self, const char *position, const char *end, dict fields, list values,
                                  uint64_t from_path, uint64_t *seen)
    # Convert a value of an unusual form with a function of the slow binder, and bind it, or add it to the array literal
    # that is being written. An error of that function means that the slow binder has to decide.
    cdef bint convert_text(self, int index, const char *text, Py_ssize_t length, list values)
    cdef bint convert_json(self, int index, const char *text, const char *end, list values)
    cdef bint convert_element(self, int index, const char *text, Py_ssize_t length)
    # Bind a text of path or query (decoded), or a valid JSON value, by the type of the parameter.
    cdef bint place_text(self, int index, const char *text, Py_ssize_t length, list values)
    cdef bint place_json(self, int index, const char *text, const char *end, bint escaped, list values)
    cdef bint place_json_array(self, int index, const char *text, const char *end, list values)
    # Add an element to the array literal that is being written: a decoded text of the query, or any value. `add`
    # returns -1 if there is no memory, else 0.
    cdef bint add_element(self, int index, const char *text, Py_ssize_t length)
    cdef int add(self, int index, const Text *element) noexcept
    # Binds the array literal that is being written, and empties `literal`.
    cdef bint close_array(self, int index, list values)
    # Binds a value, not NULL, if it has a plain form.
    cdef bint place_value(self, int index, const char *text, Py_ssize_t length, list values)
    # Returns (mask, values, has-NULL) of the bound request, or None if a parameter is missing.
    cdef tuple finish(self, list values, uint64_t present)
