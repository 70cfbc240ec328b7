"""The registry of codecs: it turns definitions by OID into linked C structs. See `codecs.pxd`.

Definitions refer to each other by OID and are linked when a codec is first resolved. Therefore types may be defined in
any order, and a composite may contain an array of itself.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memset

from rowcall.ext.base.buffer cimport PADDING
from rowcall.ext.rendering.builtin_types import ARRAYS, DELIMITERS, SCALARS
from rowcall.ext.base.buffer import escape

_KINDS = {
    "text": TEXT,
    "money": TEXT,
    "number": NUMBER,
    "floating": NUMBER,
    "boolean": BOOLEAN,
    "json": JSON,
    "datetime": DATETIME,
    "record": RECORD,
}


cdef class Codecs:
    """For each type of one catalogue, how its values are rendered.

    resolve_nested: if False, only one level of composites is parsed; a composite inside it stays PostgreSQL text in a
    JSON string (rendering-20, rendering-21).
    """

    def __init__(self, resolve_nested: bool = True) -> None:
        self.resolve_nested = resolve_nested
        self._allocations = []
        self._definitions = {}
        self._resolved = {}
        for oid, kind_name in SCALARS.items():
            self.define_scalar(oid, kind_name)
        for oid, element_oid in ARRAYS.items():
            self.define_array(oid, element_oid, DELIMITERS.get(oid, ","))

    def define_scalar(self, oid: int, kind_name: str) -> None:
        """Define a scalar type by the name of its rule: `text`, `money`, `number`, `floating`, `boolean`, `json`,
        `datetime` or `record`. Raises KeyError for an unknown name."""
        self._define(oid, ("scalar", _KINDS[kind_name]))

    def define_array(self, oid: int, element_oid: int, delimiter: str = ",") -> None:
        """Define an array type. delimiter: `typdelim` of the element type, one ASCII character. Raises ValueError
        for another delimiter."""
        if len(delimiter) != 1 or not delimiter.isascii():
            raise ValueError(f"type {oid}: the array delimiter must be one ASCII character, not {delimiter!r}")
        self._define(oid, ("array", element_oid, ord(delimiter)))

    def define_domain(self, oid: int, base_oid: int) -> None:
        """Define a domain. Over an array or a composite, it is rendered like its base type everywhere. Over any other
        type, it is rendered like its base type as a column, and as text inside arrays and composites (rendering-28);
        but timestamps have the form of `to_json` everywhere, with `T` between date and time."""
        self._define(oid, ("domain", base_oid))

    def define_composite(self, oid: int, fields: list[tuple[bytes, int]]) -> None:
        """Define a composite by its attributes in order: JSON key (UTF-8, not yet escaped) and type OID."""
        self._define(oid, ("composite", tuple([(bytes(key), int(type_oid)) for key, type_oid in fields])))

    def definition(self, oid: int) -> tuple:
        """Return the definition of a type as a tuple of one of four forms; `("scalar", True)` for an unknown type.

        The forms are `("array", element OID, code of the delimiter)`, `("domain", base OID)`, `("composite", ((key,
        type OID), …))` and `("scalar", whether it is rendered as text)`.
        """
        definition = self._definitions.get(oid, ("scalar", TEXT))
        return ("scalar", definition[1] == TEXT) if definition[0] == "scalar" else definition

    def _define(self, oid: int, definition: tuple) -> None:
        # Any struct may be linked with this type. The structs that plans use stay valid; new ones are built later.
        self._resolved.clear()
        self._definitions[oid] = definition

    cdef const Codec *resolve(self, unsigned int oid) except NULL:
        known = self._resolved.get(oid)
        if known is not None:
            return <const Codec *><size_t>known
        try:
            return self._build(oid, self._definitions.get(oid, ("scalar", TEXT)))
        except BaseException:
            # The structs linked so far may point to a half-built struct.
            self._resolved.clear()
            raise

    cdef const Codec *resolve_blankable(self, unsigned int oid) except NULL:
        cdef const Codec *codec = self.resolve(oid)
        cdef Codec *blankable
        cdef Py_ssize_t position
        if codec.kind != COMPOSITE:
            return codec
        blankable = self._new(BLANKABLE)
        blankable.fields = <Field *>self._allocate(sizeof(Field) * codec.field_count)
        blankable.field_count = codec.field_count
        for position in range(codec.field_count):
            # The key is shared: it belongs to this registry too.
            blankable.fields[position] = codec.fields[position]
            blankable.fields[position].codec = self._as_column(codec.fields[position].codec)
        return blankable

    cdef const Codec *resolve_spread(self, unsigned int oid, tuple keys) except NULL:
        cdef const Codec *codec = self.resolve(oid)
        cdef Codec *spread
        cdef Py_ssize_t position
        if codec.kind != COMPOSITE or codec.field_count != len(keys):
            raise ValueError(f"type {oid} is no composite of {len(keys)} fields")
        spread = self._new(COMPOSITE)
        spread.fields = <Field *>self._allocate(sizeof(Field) * codec.field_count)
        spread.field_count = codec.field_count
        for position in range(codec.field_count):
            self._set_key(&spread.fields[position], position, keys[position])
            spread.fields[position].codec = codec.fields[position].codec
        return spread

    cdef int _set_key(self, Field *field, Py_ssize_t position, bytes name) except -1:
        cdef bytes key = (b',"' if position else b'{"') + escape(name) + b'":'
        cdef bytes padded = key + bytes(PADDING)
        self._allocations.append(padded)
        field.key = PyBytes_AS_STRING(padded)
        field.key_length = len(key)
        return 0

    cdef const Codec *_as_column(self, const Codec *codec) except NULL:
        cdef Codec *column
        if codec.field_kind == codec.kind:
            return codec
        column = self._new(codec.kind)
        column[0] = codec[0]
        column.field_kind = codec.kind
        return column

    cdef unsigned int innermost(self, unsigned int oid) except? 0:
        cdef set seen = set()
        while oid not in seen:
            seen.add(oid)
            definition = self._definitions.get(oid)
            if definition is None or definition[0] not in ("array", "domain"):
                break
            oid = definition[1]
        return oid

    cdef void *_allocate(self, Py_ssize_t size) except NULL:
        # Zeroed memory, owned by a bytes object in the list: freed with the registry, also after an error.
        cdef bytes memory = PyBytes_FromStringAndSize(NULL, size)
        memset(PyBytes_AS_STRING(memory), 0, size)
        self._allocations.append(memory)
        return PyBytes_AS_STRING(memory)

    cdef Codec *_new(self, Kind kind) except NULL:
        cdef Codec *codec = <Codec *>self._allocate(sizeof(Codec))
        codec.kind = codec.element_kind = codec.field_kind = kind
        return codec

    cdef const Codec *_build(self, unsigned int oid, tuple definition) except NULL:
        cdef Codec *codec
        shape = definition[0]
        if shape == "array":
            return self._build_array(oid, definition)
        if shape == "domain":
            return self._build_domain(oid, definition)
        if shape == "composite":
            return self._build_composite(oid, definition)
        codec = self._new(definition[1])
        if codec.kind == RECORD:
            codec.element_kind = codec.field_kind = TEXT
        self._resolved[oid] = <size_t>codec
        return codec

    cdef const Codec *_build_array(self, unsigned int oid, tuple definition) except NULL:
        cdef Codec *codec = self._new(ARRAY)
        # Registered before its element is resolved, because the element may refer back to it.
        self._resolved[oid] = <size_t>codec
        codec.delimiter = <char>definition[2]
        codec.element = self.resolve(definition[1])
        return codec

    cdef const Codec *_build_domain(self, unsigned int oid, tuple definition) except NULL:
        cdef Codec *codec = self._new(TEXT)
        cdef const Codec *base
        # Registered as text while its base is resolved, so that a circle of domains ends as text.
        self._resolved[oid] = <size_t>codec
        base = self.resolve(definition[1])
        if base.kind == ARRAY or base.kind == COMPOSITE:
            self._resolved[oid] = <size_t>base
            return base
        codec.kind = base.kind
        if base.kind == DATETIME:
            codec.element_kind = codec.field_kind = DATETIME
        return codec

    cdef const Codec *_build_composite(self, unsigned int oid, tuple definition) except NULL:
        cdef Codec *codec = self._new(COMPOSITE)
        cdef tuple fields = definition[1]
        cdef Py_ssize_t position
        self._resolved[oid] = <size_t>codec
        codec.fields = <Field *>self._allocate(sizeof(Field) * len(fields))
        for position, (name, type_oid) in enumerate(fields):
            self._set_key(&codec.fields[position], position, name)
            codec.fields[position].codec = self._field_codec(type_oid)
        codec.field_count = len(fields)
        return codec

    cdef const Codec *_field_codec(self, unsigned int oid) except NULL:
        cdef const Codec *codec = self.resolve(oid)
        cdef Codec *flat
        if self.resolve_nested:
            return codec
        if codec.kind == COMPOSITE:
            return self._new(TEXT)
        if codec.kind == ARRAY and codec.element != NULL and codec.element.kind == COMPOSITE:
            flat = self._new(ARRAY)
            flat.delimiter = codec.delimiter
            flat.element = self._new(TEXT)
            return flat
        return codec
