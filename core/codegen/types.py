"""TypeScript types for PostgreSQL types, and the interfaces of one file (clients-13 to clients-17)."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rowcall.core.catalogue.casting import base_of
from rowcall.core.catalogue.catalog import TypeInfo, TypeKind
from rowcall.core.catalogue.value_constraints import ValueConstraints
from rowcall.core.codegen.names import free, member, pascal, string_literal
from rowcall.core.codegen.options import ClientCodeOptions
from rowcall.core.endpoint.endpoint import ResultColumn, ResultShape, ValueKind
from rowcall.core.text.naming import api_name, nested_name

_NUMBER_WORDS = """smallint int2 integer int int4 bigint int8 numeric decimal real float4 float8 float smallserial
serial bigserial serial2 serial4 serial8"""
_NUMBERS = frozenset((*_NUMBER_WORDS.split(), "double precision"))
_BOOLEANS = frozenset({"boolean", "bool"})
_JSONS = frozenset({"json", "jsonb"})
_DATES = frozenset({"date", "timestamp", "timestamptz", "timestamp without time zone", "timestamp with time zone"})
_MODIFIER = re.compile(r"\(.*?\)")
_NUMBER_KINDS = frozenset({ValueKind.SMALLINT, ValueKind.INTEGER, ValueKind.BIGINT, ValueKind.FLOAT, ValueKind.NUMERIC})

UPLOADED = (
    "type: string",
    "fileName: string",
    "contentType: string",
    "size: number",
    "success: boolean",
    "status: string",
    "[key: string]: unknown",
)
"""Members of the metadata of an uploaded file."""

FILTER = "QueryFilter"
"""Name of the type of filters (`core.codegen.queries`), to which a number is appended if it is taken."""


@functools.cache
def plain_type(type_name: str, json_type: str, *, exact: bool) -> str:
    """Return the TypeScript type of a scalar or array type by its name in PostgreSQL: `number`, `string[]`. json_type:
    type of `json` and `jsonb`. exact: as for `array_of`."""
    name = _MODIFIER.sub("", type_name).replace('"', "").strip().lower()
    if name.endswith("[]"):
        return array_of(plain_type(name.rstrip("[]"), json_type, exact=exact), exact=exact)
    name = " ".join(name.split())
    if name in _NUMBERS:
        return "number"
    if name in _BOOLEANS:
        return "boolean"
    return json_type if name in _JSONS else "string"


def is_date(type_name: str) -> bool:
    """Return whether the type is a date or timestamp, or an array of them."""
    name = _MODIFIER.sub("", type_name).replace("[]", "")
    return " ".join(name.lower().split()) in _DATES


def kind_type(kind: ValueKind, json_type: str, *, array: bool, exact: bool) -> str:
    """Return the TypeScript type of a request value. json_type: type of JSON values. array: the value is an array of
    this kind. exact: as for `array_of`."""
    result = "string"
    if kind in _NUMBER_KINDS:
        result = "number"
    elif kind is ValueKind.BOOLEAN:
        result = "boolean"
    elif kind is ValueKind.JSON:
        result = json_type
    return array_of(result, exact=exact) if array else result


def rows_of(row: str) -> str:
    """Return the type of a list. row: type of its elements."""
    return f"({row})[]" if " | " in row else f"{row}[]"


def array_of(element: str, *, exact: bool) -> str:
    """Return the type of an array in PostgreSQL. element: type of its elements, without null. exact: include null,
    which no array excludes (`Service:ExactTypes`)."""
    return rows_of(or_null(element) if exact else element)


def or_null(type_text: str) -> str:
    return type_text if type_text == "any" or type_text.endswith("| null") else f"{type_text} | null"


def exact_type(kind: str, constraints: ValueConstraints) -> str:
    """Return the union of the possible values, or for an array the type of an array of this union; `kind` itself if the
    constraints list no values of this type. kind: a type in TypeScript."""
    inner = kind.rstrip("[]")
    element = inner.removeprefix("(").removesuffix(" | null)")
    response = {"string": str, "number": int}.get(element)
    if (
        not constraints.choices
        or response is None
        or not all(isinstance(item, response) for item in constraints.choices)
    ):
        return kind
    union = " | ".join(string_literal(item) if isinstance(item, str) else str(item) for item in constraints.choices)
    return array_of(union, exact=element != inner) if kind != inner else union


def property_text(name: str, kind: str, constraints: ValueConstraints, *, optional: bool = False) -> str:
    """Return the declaration of an interface property, with its comment if the constraints have a text. kind: type in
    TypeScript, without null. optional: requests may leave the property out."""
    null = "" if constraints.never_null else " | null"
    words = " ".join((constraints.text or "").replace("*/", "*\\/").split())
    text = f"/** {words} */\n    " if words else ""
    return f"{text}{member(name)}{'?' if optional else ''}: {exact_type(kind, constraints)}{null}"


@dataclass(slots=True)
class Interface:
    """An interface in TypeScript. members: their declarations."""

    name: str
    members: tuple[str, ...]

    def text(self, export: bool) -> str:
        lines = "".join(f"    {item};\n" for item in self.members)
        return f"{'export ' if export else ''}interface {self.name} {{\n{lines}}}\n"


@dataclass(slots=True)
class Interfaces:
    """The interfaces of one file: composites first, then requests and responses. A method whose result contains the
    name of an interface adds that interface to the file."""

    options: ClientCodeOptions
    composites: list[Interface] = field(default_factory=list)
    models: list[Interface] = field(default_factory=list)
    _structures: dict[tuple[object, ...], str] = field(default_factory=dict)
    _merged: dict[tuple[str, ...], str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    filter_name: str = ""
    """Name of the type of a filter; empty: no request takes filters."""

    def filters(self) -> str:
        """Return the type of the filters of a column, all of which have to be true, and add the type of one filter at
        its first use."""
        if not self.filter_name:
            self.filter_name = free(FILTER, self.taken)
        return f"{self.filter_name} | {self.filter_name}[]"

    def model(self, name: str, members: Iterable[str], *, mergeable: bool = True) -> str:
        """Add the interface of a request or response and return its name: `name`, or `name` with a number if another
        interface of the file has that name.

        members: declarations; of several for one property, the first counts. mergeable: with `UniqueModels`, an equal
        interface that was added as mergeable is used instead, and its name is returned.
        """
        lines = tuple(_unique(members))
        if self.options.unique_models and mergeable and lines in self._merged:
            return self._merged[lines]
        name = free(name, self.taken)
        self.models.append(Interface(name, lines))
        if mergeable:
            self._merged.setdefault(lines, name)
        return name

    def composite(self, info: TypeInfo, column: str, types: Mapping[int, TypeInfo], *, spread: bool = False) -> str:
        """Return the name of the interface of a composite type, and add the interface at its first use.

        It is named after the first column with this structure. column: name of the column. types: those of the
        database, by oid. spread: its attributes are sent as columns of the row, not as an object.
        """
        key = _structure(info, types, spread=spread)
        known = self._structures.get(key)
        if known is not None:
            return known
        name = free(f"I{pascal(column)}", self.taken)
        # Registered before its members: a type may lead to itself.
        self._structures[key] = name
        members = [
            property_text(
                nested_name(item.name, self.options.camel),
                self.value(item.type_oid, item.type_name, item.name, types, is_nested=not spread),
                item.constraints,
            )
            for item in info.attributes
        ]
        self.composites.append(Interface(name, tuple(_unique(members))))
        return name

    def value(
        self,
        oid: int,
        type_name: str,
        name: str,
        types: Mapping[int, TypeInfo],
        *,
        is_nested: bool = False,
        spread: bool = False,
    ) -> str:
        """Return the TypeScript type of a value.

        oid, type_name: of its type in PostgreSQL. name: of the column, after which the interface of a composite is
        named. types: those of the database, by oid. is_nested: the value is in an array or in the text of a composite,
        where domains are texts. spread: the attributes of a composite are sent as columns of the row, so that they are
        not `is_nested`.
        """
        if type_name == "record":
            return "(string | null)[]"
        info = base_of(oid, types)
        if info is None:
            return self._plain(type_name)
        if info.kind is TypeKind.COMPOSITE and info.attributes:
            return self.composite(info, name, types, spread=spread)
        if info.kind is TypeKind.ARRAY:
            element = types.get(info.element)
            if element is not None:
                inner = self.value(element.oid, element.display, name, types, is_nested=True)
                return array_of(inner, exact=self.options.exact)
        if info.oid == oid:
            return self._plain(type_name)
        return "string" if is_nested else self._plain(info.display)

    def _plain(self, type_name: str) -> str:
        return plain_type(type_name, self.options.json_type, exact=self.options.exact)

    def column(self, column: ResultColumn, shape: ResultShape, types: Mapping[int, TypeInfo], name: str = "") -> str:
        """Return the TypeScript type of a column. shape: of the result to which it belongs. types: those of the
        database, by oid. name: after which the interface of a composite is named; empty: that of the column."""
        item, taken_out = column.column, column.position is not None
        name = name or item.name
        return self.value(item.type_oid, item.type_name, name, types, is_nested=taken_out, spread=shape.blank_is_null)

    def columns(self, shape: ResultShape, types: Mapping[int, TypeInfo]) -> list[str]:
        """Return the declarations of the members of a row's interface. types: those of the database, by oid."""
        return [
            property_text(item.key.decode(), self.column(item, shape, types), item.column.constraints)
            for item in shape.columns
        ]


def _structure(
    info: TypeInfo, types: Mapping[int, TypeInfo], depth: int = 3, *, spread: bool = False
) -> tuple[object, ...]:
    """Return a key that is equal for composites with the same interface. types: those of the database, by oid. depth:
    number of levels of nested composites that count. spread: attributes are sent as columns of the row, where the base
    type of a domain counts."""
    parts: list[object] = []
    for attribute in info.attributes:
        inner = base_of(attribute.type_oid, types)
        array = inner is not None and inner.kind is TypeKind.ARRAY
        element = types.get(inner.element) if inner is not None and array else inner
        nested: object = attribute.type_name if inner is None or not spread else inner.display
        if element is not None and element.kind is TypeKind.COMPOSITE and depth:
            nested = _structure(element, types, depth - 1)
        parts.append((api_name(attribute.name), nested, array, attribute.constraints))
    return tuple(parts)


def _unique(members: Iterable[str]) -> Iterable[str]:
    """Yield the declarations of members; of several with one name, only the first."""
    seen: set[str] = set()
    for member_text in members:
        item = member_text.rpartition("*/\n    ")[2]
        name = item.partition(":")[0].removesuffix("?") if not item.startswith(('"', "[")) else item.partition('":')[0]
        if name not in seen:
            seen.add(name)
            yield member_text
