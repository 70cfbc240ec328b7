"""Routine parameters → request parameters: composites taken apart, names converted, path segments claimed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rowcall.core.casting import attribute_cast_text, cast_text, element_of
from rowcall.core.catalog import Parameter, ParameterMode, Routine, TypeInfo, TypeKind
from rowcall.core.endpoint import EndpointParameter, ValueKind
from rowcall.core.naming import field_name, parameter_name

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


def value_kind(info: TypeInfo | None) -> ValueKind:
    """How to check a value of this type before it is sent. Domains and enums are left to the server."""
    if info is None or info.schema != "pg_catalog" or info.kind is not TypeKind.BASE:
        return ValueKind.OTHER
    return _KINDS.get(info.name, ValueKind.OTHER)


@dataclass(frozen=True, slots=True)
class Naming:
    """How the fields of composite parameters are called. separator: between parameter and attribute."""

    separator: str = "_"
    camel: bool = True

    def field(self, parameter: str, attribute: str, number: int) -> tuple[str, str]:
        """Database spelling and name in requests; `number` counts the request parameters from 1."""
        field = f"{parameter}{self.separator}{attribute}"
        return field, field_name(parameter or attribute, field, number, self.camel)


def expand(routine: Routine, types: Mapping[int, TypeInfo], naming: Naming) -> tuple[EndpointParameter, ...]:
    """All request parameters of a routine, a composite one replaced by its fields (reference 01, 2.4).

    Behind a `source` there is no argument list that could take fields: a composite stays one value.
    """
    called = routine.source is None
    expanded: list[EndpointParameter] = []
    for position, parameter in enumerate(routine.parameters):
        info = types.get(parameter.type_oid)
        if called and info is not None and info.kind is TypeKind.COMPOSITE and info.attributes:
            expanded.extend(_fields(parameter, position, info, types, naming, first=len(expanded) + 1))
        else:
            expanded.append(_whole(parameter, position, types, naming.camel, number=len(expanded) + 1))
    return tuple(expanded)


def _whole(
    parameter: Parameter, position: int, types: Mapping[int, TypeInfo], camel: bool, number: int
) -> EndpointParameter:
    element = element_of(parameter.type_oid, types)
    db_name = parameter.name or f"${number}"
    return EndpointParameter(
        db_name=db_name,
        api_name=parameter_name(parameter.name, number, camel),
        kind=value_kind(element or types.get(parameter.type_oid)),
        array=element is not None,
        cast=cast_text(parameter.type_oid, types),
        has_default=parameter.has_default,
        position=position,
        variadic=parameter.mode is ParameterMode.VARIADIC,
        field=db_name,
        exact=parameter.exact,
    )


def _fields(
    parameter: Parameter,
    position: int,
    info: TypeInfo,
    types: Mapping[int, TypeInfo],
    naming: Naming,
    first: int,
) -> Iterator[EndpointParameter]:
    for number, attribute in enumerate(info.attributes, first):
        element = element_of(attribute.type_oid, types)
        field, api_name = naming.field(parameter.name or "", attribute.name, number)
        yield EndpointParameter(
            db_name=parameter.name or f"${first}",
            api_name=api_name,
            kind=value_kind(element or types.get(attribute.type_oid)),
            array=element is not None,
            cast=attribute_cast_text(attribute, types),
            has_default=parameter.has_default,
            position=position,
            attribute=attribute.name,
            composite=cast_text(info.oid, types),
            field=field,
        )


def claim_segments(parameters: Sequence[EndpointParameter], segments: Sequence[str]) -> tuple[EndpointParameter, ...]:
    """Mark the parameters that the path supplies: by API name, then database name, in any case (spec 4.1 rule 3).

    A segment that names no parameter stays a wildcard.
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


def _find(parameters: Sequence[EndpointParameter], wanted: str, taken: Mapping[int, str]) -> int | None:
    free = [(index, parameter) for index, parameter in enumerate(parameters) if index not in taken]
    for index, parameter in free:
        if parameter.api_name.lower() == wanted:
            return index
    return next((index for index, parameter in free if parameter.field.lower() == wanted), None)
