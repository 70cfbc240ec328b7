"""Shapes of values in requests and responses, independent of the language of the client (Dart, Python).

A shape follows the JSON form of a value: composites are objects; domains and enums within arrays and composites are
texts, and so is `money` (clients-13, clients-17).
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from rowcall.core.catalogue.casting import base_of
from rowcall.core.catalogue.catalog import Attribute, TypeInfo, TypeKind
from rowcall.core.catalogue.value_constraints import ValueConstraints
from rowcall.core.codegen.names import pascal
from rowcall.core.endpoint.endpoint import EndpointParameter, ResultColumn, ResultShape, ValueKind
from rowcall.core.text.naming import nested_name


class Scalar(enum.Enum):
    """Type of a single value in JSON, from which each language derives its own type."""

    INTEGER = "integer"
    BIGINT = "bigint"
    FLOAT = "float"
    NUMERIC = "numeric"
    BOOLEAN = "boolean"
    JSON = "json"
    DATE = "date"
    TIMESTAMP = "timestamp"
    TIMESTAMPTZ = "timestamptz"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Plain:
    """The shape of a single value."""

    scalar: Scalar
    choices: tuple[str | int, ...] = ()
    """The possible values; empty: any."""


@dataclass(frozen=True, slots=True)
class ListOf:
    """The shape of an array."""

    element: Shape


@dataclass(frozen=True, slots=True)
class RowField:
    """A member of an object."""

    key: str
    """Key in JSON."""
    shape: Shape
    optional: bool = False
    """Omitted from a request if it is null, so that the default of the database applies."""
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """An object. Rows with equal fields are equal."""

    fields: tuple[RowField, ...]
    name: str = field(default="", compare=False)
    """Suggested name of its type."""
    composite: bool = field(default=False, compare=False)
    """The row is a composite. Equal composites share one type."""


Shape = Plain | ListOf | Row

TEXT = Plain(Scalar.TEXT)
INTEGER = Plain(Scalar.INTEGER)
JSON = Plain(Scalar.JSON)

_NAMES = {
    Scalar.INTEGER: "smallint int2 integer int int4 smallserial serial serial2 serial4",
    Scalar.BIGINT: "bigint int8 bigserial serial8",
    Scalar.FLOAT: "real float4 float8 float",
    Scalar.NUMERIC: "numeric decimal",
    Scalar.BOOLEAN: "boolean bool",
    Scalar.JSON: "json jsonb",
    Scalar.DATE: "date",
    Scalar.TIMESTAMP: "timestamp",
    Scalar.TIMESTAMPTZ: "timestamptz",
}
_BY_NAME = {
    "double precision": Scalar.FLOAT,
    "timestamp without time zone": Scalar.TIMESTAMP,
    "timestamp with time zone": Scalar.TIMESTAMPTZ,
    **{name: scalar for scalar, names in _NAMES.items() for name in names.split()},
}
_BY_KIND = {
    ValueKind.SMALLINT: Scalar.INTEGER,
    ValueKind.INTEGER: Scalar.INTEGER,
    ValueKind.BIGINT: Scalar.BIGINT,
    ValueKind.FLOAT: Scalar.FLOAT,
    ValueKind.NUMERIC: Scalar.NUMERIC,
    ValueKind.BOOLEAN: Scalar.BOOLEAN,
    ValueKind.JSON: Scalar.JSON,
    ValueKind.DATE: Scalar.DATE,
    ValueKind.TIMESTAMP: Scalar.TIMESTAMP,
    ValueKind.TIMESTAMPTZ: Scalar.TIMESTAMPTZ,
}
_MODIFIER = re.compile(r"\(.*?\)")


@functools.cache
def named_shape(type_name: str) -> Shape:
    """Return the shape of a scalar or array type by its name, in any case and with or without a modifier; an unknown
    type is a text. Arrays of several dimensions count as one-dimensional."""
    name = " ".join(_MODIFIER.sub("", type_name).replace('"', "").lower().split())
    if name.endswith("[]"):
        return ListOf(named_shape(name.rstrip("[]")))
    return Plain(_BY_NAME.get(name, Scalar.TEXT))


def parameter_shape(parameter: EndpointParameter) -> Shape:
    response = Plain(_BY_KIND.get(parameter.kind, Scalar.TEXT))
    return exact(ListOf(response) if parameter.array else response, parameter.constraints)


def exact(shape: Shape, constraints: ValueConstraints) -> Shape:
    """Return the shape with the possible values from the constraints of a column or parameter. For an array, they apply
    to its elements. The shape is unchanged if the constraints list no values, or values of another type."""
    if not constraints.choices:
        return shape
    if isinstance(shape, ListOf):
        return ListOf(exact(shape.element, constraints))
    if not isinstance(shape, Plain):
        return shape
    response = _CHOSEN.get(shape.scalar)
    if response is None or not all(isinstance(item, response) for item in constraints.choices):
        return shape
    return replace(shape, choices=constraints.choices)


_CHOSEN = {Scalar.TEXT: str, Scalar.INTEGER: int, Scalar.BIGINT: int}


@dataclass(frozen=True, slots=True)
class ShapeReader:
    """Derives shapes from the types of one database. types: by oid. camel: fields of composites are in camelCase."""

    types: Mapping[int, TypeInfo]
    camel: bool = True

    def rows(self, shape: ResultShape, name: str) -> Row:
        """Return the shape of one row of a result. name: suggested name of its type."""
        return Row(
            tuple(
                RowField(
                    item.key.decode(),
                    exact(self.column(item, shape), item.column.constraints),
                    nullable=not item.column.constraints.never_null,
                )
                for item in shape.columns
            ),
            name,
        )

    def column(self, column: ResultColumn, shape: ResultShape, name: str = "") -> Shape:
        """Return the shape of a column. shape: of the result to which it belongs. name: after which the type of a
        composite is named; empty: that of the column."""
        item, taken_out = column.column, column.position is not None
        name = name or item.name
        return self.value(item.type_oid, item.type_name, name, is_nested=taken_out, spread=shape.blank_is_null)

    def value(self, oid: int, type_name: str, name: str, *, is_nested: bool = False, spread: bool = False) -> Shape:
        """Return the shape of a value.

        oid, type_name: of its type in PostgreSQL. name: of the column, after which the type of a composite is named.
        is_nested: the value is in an array or in the text of a composite, where domains are texts. spread: the
        attributes of a composite are sent as columns of the row, so that they are not `is_nested`.
        """
        if type_name == "record":
            return ListOf(TEXT)
        info = base_of(oid, self.types)
        if info is None:
            return named_shape(type_name)
        if info.kind is TypeKind.COMPOSITE and info.attributes:
            return Row(tuple(self._fields(info.attributes, is_nested=not spread)), pascal(name), composite=True)
        element = self.types.get(info.element) if info.kind is TypeKind.ARRAY else None
        if element is not None:
            return ListOf(self.value(element.oid, element.display, name, is_nested=True))
        if info.oid == oid:
            return named_shape(type_name)
        return TEXT if is_nested else named_shape(info.display)

    def _fields(self, attributes: tuple[Attribute, ...], *, is_nested: bool) -> Iterator[RowField]:
        for item in attributes:
            shape = self.value(item.type_oid, item.type_name, item.name, is_nested=is_nested)
            yield RowField(nested_name(item.name, self.camel), exact(shape, item.constraints))
