"""Convert an unparsed JSON value of a request into the text that PostgreSQL reads (binding-10, JSON specifics).

Objects become record literals if the type is a composite, at any depth, and arrays become array literals. Numbers are
never parsed, so that no digit is lost. All faults of a value are reported, not only the first one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rowcall.core.binding.conversion import (
    MAX_NUMBER_LENGTH,
    NOUNS,
    Converter,
    NotConvertible,
    converter,
    sized_converter,
)
from rowcall.core.binding.invalid_values import InvalidValue, InvalidValueError, invalid_value
from rowcall.core.binding.strict_types import StrictTypes, integral
from rowcall.core.endpoint.endpoint import EndpointParameter, Field, ValueKind
from rowcall.core.errors.binding_error import MOST_FAULTS, quote_value
from rowcall.core.text import json_text, record_literal
from rowcall.core.text.array_literal import MAX_DIMENSIONS, ArrayShapeError, Nested, literal, parse

_VERBATIM = frozenset({ValueKind.TEXT, ValueKind.JSON, ValueKind.OTHER})
_NUMBERS = frozenset({ValueKind.SMALLINT, ValueKind.INTEGER, ValueKind.BIGINT, ValueKind.FLOAT, ValueKind.NUMERIC})
_BARE_IN_ARRAYS = _NUMBERS | {ValueKind.BOOLEAN, ValueKind.UUID}
_NUMBER_START = b"-0123456789"


@dataclass(frozen=True, slots=True)
class Reader:
    """Converts values of one type: that of a parameter, or of an attribute inside a composite.

    Every method raises `InvalidValueError` for a value that does not fit the type.
    """

    name: str
    """Name of the parameter or attribute in requests."""
    kind: ValueKind
    array: bool
    type_text: str
    convert: Converter
    delimiter: str
    attributes: tuple[Reader, ...] = ()
    """Of a composite: its attributes in order."""
    keys: Mapping[str, int] | None = None
    """Member of an object → index of the attribute."""
    strict: bool = False
    """Accept only values of the documented JSON types."""
    starts: bytes | None = None
    """With `strict`: the first characters of these values; None: any."""
    never_null: bool = False
    """`null` is refused."""
    sized: bool = False
    """The length of texts is checked."""

    @classmethod
    def of(
        cls,
        name: str,
        typed: EndpointParameter | Field,
        timestamps_utc: bool,
        strict: StrictTypes | None = None,
        never_null: bool = False,
    ) -> Reader:
        """Return the reader for a parameter or an attribute. name: its name in requests. timestamps_utc: timestamps
        without a zone are in UTC. strict: the accepted types of JSON values; None: values of other types are converted.
        never_null: `null` as the whole value is refused; attributes and elements may still be `null`. The length of a
        text is checked for a parameter that is a field of a composite, because its call has casts."""
        kind, fields = typed.kind, typed.fields
        element = typed.type_text.removesuffix("[]")
        convert = plain = converter(kind, element, timestamps_utc=timestamps_utc)
        if isinstance(typed, EndpointParameter) and typed.attribute is not None:
            convert = sized_converter(plain, element)
        inner = (cls.of(field.api_name, field, timestamps_utc, strict) for field in fields)
        return cls(
            name,
            kind,
            typed.array,
            typed.type_text,
            convert,
            typed.delimiter,
            tuple(inner),
            _keys(fields),
            strict is not None,
            None if strict is None else strict.starts(typed),
            never_null,
            convert is not plain,
        )

    @property
    def element_text(self) -> str:
        """Return the type of an element, for messages."""
        return self.type_text.removesuffix("[]")

    def read(self, raw: bytes) -> str | None:
        """Return the text that PostgreSQL reads for an unparsed JSON value; None for NULL. Raises
        `InvalidValueError`."""
        if raw == b"null":
            if self.never_null:
                raise invalid_value("null is not allowed", self.type_text)
            return None
        if not self.array:
            return self.read_element(raw)
        if raw[:1] == b'"' and not self.strict:
            return self._literal(self._string(raw))
        if raw[:1] != b"[":
            raise invalid_value(f"{quote_value(raw)} is not an array", self.type_text)
        return self.array_literal(self._items(raw, 1))

    def convert_text(self, text: str) -> str:
        """Return the text that PostgreSQL reads for the text of one element."""
        try:
            return self.convert(text)
        except NotConvertible as error:
            raise invalid_value(f"{quote_value(text)} {error}", self.element_text) from None

    def array_literal(self, elements: list[Nested]) -> str:
        """Return the array literal of converted elements: texts, None for NULL, and lists for further dimensions."""
        try:
            return literal(elements, quoted=self.kind not in _BARE_IN_ARRAYS, delimiter=self.delimiter)
        except ArrayShapeError as error:
            raise invalid_value(str(error), self.type_text) from None

    def _items(self, raw: bytes, depth: int) -> list[Nested]:
        """Return the converted elements of a JSON array. depth: its dimension, from 1."""
        items: list[Nested] = []
        spots: list[InvalidValue] = []
        for index, element in enumerate(json_text.elements(raw)):
            try:
                items.append(self._item(element, depth))
            except InvalidValueError as error:
                spots += error.with_outer_step(f"[{index}]")
                if len(spots) >= MOST_FAULTS:
                    break
        if spots:
            raise InvalidValueError(spots)
        return items

    def _item(self, raw: bytes, depth: int) -> Nested:
        """Return the converted element: a list if it is one more dimension. depth: dimension of its array."""
        # An element of json[] that is an array is a JSON value; for every other type it is one more dimension.
        if raw[:1] != b"[" or self.kind is ValueKind.JSON:
            return self.read_element(raw)
        if depth == MAX_DIMENSIONS:
            raise invalid_value(f"arrays have at most {MAX_DIMENSIONS} dimensions", self.type_text)
        return self._items(raw, depth + 1)

    def read_element(self, raw: bytes) -> str | None:
        """Return the text that PostgreSQL reads for one element of an array, or for a value that is not an array;
        None for NULL. Raises `InvalidValueError`."""
        kind = self.kind
        if raw == b"null":
            return None
        if self.starts is not None and raw[:1] not in self.starts:
            raise invalid_value(f"{quote_value(raw)} is not {NOUNS[kind]}", self.element_text)
        if raw[:1] == b'"':
            return self.convert_text(self._string(raw))
        if kind is ValueKind.COMPOSITE and raw[:1] == b"{":
            return self._record(raw)
        if self.sized:
            return self.convert_text(raw.decode())
        if kind in _VERBATIM or (kind is ValueKind.BOOLEAN and raw in {b"true", b"false"}):
            return raw.decode()
        if kind is ValueKind.NUMERIC and raw[:1] in _NUMBER_START and len(raw) <= MAX_NUMBER_LENGTH:
            return raw.decode()
        if kind in _NUMBERS and raw[:1] in _NUMBER_START:
            text = raw.decode()
            return self.convert_text(integral(kind, text) if self.strict else text)
        raise invalid_value(f"{quote_value(raw)} is not {NOUNS[kind]}", self.element_text)

    def _literal(self, text: str) -> str:
        """Return the text if it is an array literal of PostgreSQL such as `{1,2}`, which is accepted in place of a JSON
        array."""
        if text[:1] != "{" or text[-1:] != "}":
            raise invalid_value(f"{quote_value(text)} is not an array", self.type_text)
        if self.sized:
            try:
                elements = parse(text, self.delimiter)
            except ValueError:
                raise invalid_value(f"{quote_value(text)} is not an array", self.type_text) from None
            self._check_elements(elements)
        return text

    def _check_elements(self, elements: list[Nested]) -> None:
        """Raise `InvalidValueError` if the text of an element, in any dimension, does not fit the type."""
        for element in elements:
            if isinstance(element, list):
                self._check_elements(element)
            elif element is not None:
                self.convert_text(element)

    def _record(self, raw: bytes) -> str:
        """Return the record literal of a JSON object. Missing attributes are NULL, as for a composite parameter;
        unknown and repeated ones are faults. Raises `InvalidValueError` with all faults."""
        values: list[str | None] = [None] * len(self.attributes)
        spots: list[InvalidValue] = []
        seen: set[int] = set()
        for key, value in self._object(raw):
            index = (self.keys or {}).get(key)
            if index is None:
                spots.append(InvalidValue(f".{key[:100]}", "is unknown"))
                continue
            if index in seen:
                spots.append(
                    InvalidValue(f".{key[:100]}", "the attribute is there twice", self.attributes[index].type_text)
                )
                continue
            seen.add(index)
            try:
                values[index] = self.attributes[index].read(value)
            except InvalidValueError as error:
                spots += error.with_outer_step(f".{key}")
        if spots:
            raise InvalidValueError(spots)
        return record_literal.literal(values)

    def _object(self, raw: bytes) -> list[tuple[str, bytes]]:
        try:
            return json_text.object_members(raw)
        except json_text.JsonTextError as error:
            raise invalid_value(str(error), self.element_text) from None

    def _string(self, raw: bytes) -> str:
        try:
            return json_text.unescape(raw)
        except json_text.JsonTextError as error:
            raise invalid_value(f"the value {error}", self.type_text) from None


def _keys(fields: Sequence[Field]) -> dict[str, int] | None:
    """Return a mapping from the names of attributes, in requests and in the database, to their indexes; None without
    fields.

    Names in requests have precedence.
    """
    keys = {field.name: index for index, field in enumerate(fields)}
    return keys | {field.api_name: index for index, field in enumerate(fields)} or None
