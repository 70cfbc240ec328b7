"""Request parameters of a routine: composites are expanded, names converted, path segments claimed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rowcall.core.catalogue.casting import attribute_cast_text, base_of, cast_text, is_any_array
from rowcall.core.catalogue.catalog import Attribute, Parameter, ParameterMode, Routine, TypeInfo, TypeKind
from rowcall.core.data.interning import Same, memoize
from rowcall.core.endpoint.endpoint import EndpointParameter, Field, ValueKind
from rowcall.core.text.naming import camel_case, field_name, nested_name, parameter_name

_KINDS: dict[str, ValueKind] = {
    "int2": ValueKind.SMALLINT,
    "int4": ValueKind.INTEGER,
    "int8": ValueKind.BIGINT,
    "float4": ValueKind.FLOAT,
    "float8": ValueKind.FLOAT,
    "numeric": ValueKind.NUMERIC,
    "money": ValueKind.NUMERIC,
    "bool": ValueKind.BOOLEAN,
    "uuid": ValueKind.UUID,
    "timestamptz": ValueKind.TIMESTAMPTZ,
    "timestamp": ValueKind.TIMESTAMP,
    "date": ValueKind.DATE,
    "time": ValueKind.TIME,
    "timetz": ValueKind.TIMETZ,
    "text": ValueKind.TEXT,
    "varchar": ValueKind.TEXT,
    "bpchar": ValueKind.TEXT,
    "char": ValueKind.TEXT,
    "name": ValueKind.TEXT,
    "xml": ValueKind.TEXT,
    "jsonpath": ValueKind.TEXT,
    "json": ValueKind.JSON,
    "jsonb": ValueKind.JSON,
}

_TEXTS = frozenset({"text", "varchar", "bpchar", "name", "citext"})
"""Catalogue names of the types that hold any text; citext is from an extension."""


def is_textual(oid: int, types: Mapping[int, TypeInfo]) -> bool:
    """Return whether values of the type can be any text. A domain counts as its base type."""
    base = base_of(oid, types)
    return base is not None and base.kind is TypeKind.BASE and base.name in _TEXTS


def value_kind(info: TypeInfo | None) -> ValueKind:
    """Return how to check a value of this type before it is sent. Domains, enums and unknown types (None) are
    checked by the server."""
    if info is None or info.schema != "pg_catalog" or info.kind is not TypeKind.BASE:
        return ValueKind.OTHER
    return _KINDS.get(info.name, ValueKind.OTHER)


@dataclass(frozen=True, slots=True)
class ValueReading:
    """How values of a type are read."""

    kind: ValueKind
    """Kind of the element, if `array`."""
    array: bool
    fields: tuple[Field, ...]
    base: str | None = None
    """Cast of the array that is the base of a domain; otherwise None."""
    delimiter: str = ","
    """Between the elements of an array."""


def value_reading(oid: int, types: Mapping[int, TypeInfo], camel: bool) -> ValueReading:
    """Return how values of a type are read.

    Domains over arrays and composites are read as their base type, because the service composes such values. camel:
    names in requests are in camel case.
    """
    info = base_of(oid, types)
    if info is not None and info.kind is TypeKind.ARRAY:
        element = types.get(info.element)
        kind, fields = kind_and_fields(element, types, camel)
        if value_kind(base_of(info.element, types)) is ValueKind.JSON:
            # Also for a domain: an array in its elements is a JSON document, not a further dimension.
            kind = ValueKind.JSON
        below = info.oid != oid
        delimiter = "," if element is None else element.delimiter
        return ValueReading(kind, True, fields, cast_text(info.oid, types) if below else None, delimiter)
    kind, fields = kind_and_fields(types.get(oid), types, camel)
    return ValueReading(kind, is_any_array(info), fields)


def kind_and_fields(
    info: TypeInfo | None, types: Mapping[int, TypeInfo], camel: bool
) -> tuple[ValueKind, tuple[Field, ...]]:
    """Return the kind of values of a type, and the fields of a composite. info: None: unknown type. camel: names of the
    fields are in camel case."""
    base = base_of(info.oid, types) if info is not None else None
    if base is None or base.kind is not TypeKind.COMPOSITE or not base.attributes:
        return value_kind(info), ()
    return ValueKind.COMPOSITE, tuple(_field(attribute, types, camel) for attribute in base.attributes)


def _field(attribute: Attribute, types: Mapping[int, TypeInfo], camel: bool) -> Field:
    """Return the field for an attribute of a composite. camel: its name in requests is in camel case."""
    described = value_reading(attribute.type_oid, types, camel)
    return Field(
        name=attribute.name,
        api_name=nested_name(attribute.name, camel),
        kind=described.kind,
        array=described.array,
        type_text=described.base or attribute_cast_text(attribute, types),
        fields=described.fields,
        delimiter=described.delimiter,
    )


@dataclass(frozen=True, slots=True)
class Naming:
    """Naming of the fields of composite parameters. separator: between parameter and attribute. camel: names in
    requests are in camel case."""

    separator: str = "_"
    camel: bool = True

    def field(self, parameter: str, attribute: str, number: int) -> tuple[str, str]:
        """Return the database spelling of a field of a composite parameter, and its name in requests. parameter: name
        of the composite parameter; empty: it is unnamed. attribute: name of the attribute. number: of the request
        parameter for the field, from 1, for unnamed ones."""
        field = f"{parameter}{self.separator}{attribute}"
        return field, field_name(parameter or attribute, field, number, self.camel)


def expand(routine: Routine, types: Mapping[int, TypeInfo], naming: Naming) -> tuple[EndpointParameter, ...]:
    """Return the request parameters of a routine. Each composite parameter is replaced by its fields (binding-4).

    A routine with a `source` has no argument list for fields, so a composite stays one value.
    """
    return _expand_parameters(Same(routine.parameters), Same(types), naming, called=routine.source is None)


@memoize
def _expand_parameters(
    parameters: Same[tuple[Parameter, ...]],
    known: Same[Mapping[int, TypeInfo]],
    naming: Naming,
    *,
    called: bool,
) -> tuple[EndpointParameter, ...]:
    """Return the request parameters for those of a routine. called: composites are replaced by their fields."""
    types = known.value
    expanded: list[EndpointParameter] = []
    for position, parameter in enumerate(parameters.value):
        info = types.get(parameter.type_oid)
        if called and info is not None and info.kind is TypeKind.COMPOSITE and info.attributes:
            expanded.extend(_fields(parameter, position, info, types, naming, first=len(expanded) + 1))
        else:
            expanded.append(_whole(Same(parameter), position, known, naming.camel, number=len(expanded) + 1))
    return tuple(expanded)


@memoize
def _whole(
    shared: Same[Parameter], position: int, known: Same[Mapping[int, TypeInfo]], camel: bool, number: int
) -> EndpointParameter:
    """Return the one request parameter for a parameter. position: its index in the routine. number: of the request
    parameter, from 1."""
    parameter, types = shared.value, known.value
    described = value_reading(parameter.type_oid, types, camel)
    # The text of a `.sql` file's parameter without a type is sent to PostgreSQL unchanged, also if it is empty.
    untyped = parameter.type_oid == 0
    db_name = parameter.name or f"${number}"
    return EndpointParameter(
        db_name=db_name,
        api_name=_whole_name(parameter, number, camel),
        kind=ValueKind.TEXT if untyped else described.kind,
        array=described.array,
        cast=cast_text(parameter.type_oid, types),
        has_default=parameter.has_default,
        position=position,
        variadic=parameter.mode is ParameterMode.VARIADIC,
        field=db_name,
        exact=parameter.exact,
        reads_as=described.base,
        fields=described.fields,
        delimiter=described.delimiter,
        virtual=parameter.virtual,
        textual=is_textual(parameter.type_oid, types),
    )


def _whole_name(parameter: Parameter, number: int, camel: bool) -> str:
    """Return the name in requests of a parameter that is not expanded. number: of the request parameter, from 1."""
    if camel and parameter.placeholder and parameter.name:
        return camel_case(parameter.name) or f"${number}"
    return parameter_name(parameter.name, number, camel and not parameter.virtual)


def _fields(
    parameter: Parameter,
    position: int,
    info: TypeInfo,
    types: Mapping[int, TypeInfo],
    naming: Naming,
    first: int,
) -> Iterator[EndpointParameter]:
    """Yield the request parameters for the attributes of a composite parameter. position: its index in the routine.
    info: the composite type. first: number of the first request parameter, from 1."""
    for number, attribute in enumerate(info.attributes, first):
        described = value_reading(attribute.type_oid, types, naming.camel)
        field, api_name = naming.field(parameter.name or "", attribute.name, number)
        yield EndpointParameter(
            db_name=parameter.name or f"${first}",
            api_name=api_name,
            kind=described.kind,
            array=described.array,
            cast=attribute_cast_text(attribute, types),
            has_default=parameter.has_default,
            position=position,
            attribute=attribute.name,
            composite=cast_text(info.oid, types),
            field=field,
            reads_as=described.base,
            fields=described.fields,
            delimiter=described.delimiter,
            group=parameter_name(parameter.name, first, naming.camel),
            member=nested_name(attribute.name, naming.camel),
            textual=is_textual(attribute.type_oid, types),
        )


def claim_segments(parameters: Sequence[EndpointParameter], segments: Sequence[str]) -> tuple[EndpointParameter, ...]:
    """Return the parameters, with those that segments of the path supply marked as such (routing-13).

    segments: names in the path template. A segment names its parameter by API name, or else by database name, in any
    case. A segment without a matching parameter is a wildcard.
    """
    if not segments:
        return tuple(parameters)
    claimed: dict[int, str] = {}
    for segment in segments:
        index = _find(parameters, segment.lower(), claimed)
        if index is not None:
            claimed[index] = segment
    return tuple(
        replace(parameter, path=True, segment=claimed[index]) if index in claimed else parameter
        for index, parameter in enumerate(parameters)
    )


def _find(parameters: Sequence[EndpointParameter], name: str, claimed: Mapping[int, str]) -> int | None:
    """Return the index of the parameter that a segment names: by its name in requests, or else in the database; None:
    there is none. name: in lower case. claimed: indexes of parameters that other segments name."""
    free = [(index, parameter) for index, parameter in enumerate(parameters) if index not in claimed]
    for index, parameter in free:
        if parameter.api_name.lower() == name:
            return index
    return next((index for index, parameter in free if parameter.field.lower() == name), None)
