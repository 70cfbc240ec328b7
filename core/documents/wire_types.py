"""Rewrites endpoints and types to what the service sends under the configured options, for all descriptions and
clients.

With `Service:JsonNumbers` set to `Safe`, `bigint` and `numeric` are sent as strings: clients that read numbers as IEEE
doubles lose digits beyond 2^53 without noticing. Without `ResolveNestedCompositeTypes` composites within composites are
sent as strings as well (rendering-20, rendering-21).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from rowcall.core.catalogue.casting import base_of
from rowcall.core.catalogue.catalog import TypeInfo, TypeKind
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, Field, ResultPart, ResultShape, ValueKind
from rowcall.core.endpoint.result_types import cast_type

Typed = TypeVar("Typed", EndpointParameter, Field)
Types = Mapping[int, TypeInfo]
TypesOf = Callable[[Endpoint], Types]

OIDS = (20, 1700)
"""Oids of int8 and numeric."""
_WIDE = re.compile(r"(?:bigint|int8|numeric|decimal)(?:\([^()]*\))?(?P<array>(?:\[\])*)")
_WIDE_KINDS = (ValueKind.BIGINT, ValueKind.NUMERIC)


def as_wire_types(
    endpoints: Sequence[Endpoint], types_of: TypesOf, *, safe_numbers: bool, resolve_nested: bool
) -> tuple[Sequence[Endpoint], TypesOf]:
    """Return copies of the endpoints whose parameters and results have the types as which values are sent, and a
    function that returns the types of an endpoint's database in the same form.

    types_of: returns the types of an endpoint's database. safe_numbers: `bigint` and `numeric` are sent as strings.
    resolve_nested: False: composites within composites are sent as strings.
    """
    if not resolve_nested:
        endpoints = [replace(item, shape=_with_text_types(item.shape, types_of(item))) for item in endpoints]
        types_of = _changed_types(types_of, _without_composites)
    if safe_numbers:
        endpoints = [_endpoint(item) for item in endpoints]
        types_of = _changed_types(types_of, lambda info, _: _type(info))
    return endpoints, types_of


def _changed_types(types_of: TypesOf, change: Callable[[TypeInfo, Types], TypeInfo]) -> TypesOf:
    known: dict[int, Types] = {}

    def documented_types(endpoint: Endpoint) -> Types:
        types = types_of(endpoint)
        response = known.get(id(types))
        if response is None:
            response = known[id(types)] = {oid: change(info, types) for oid, info in types.items()}
        return response

    return documented_types


# --- composites within composites --------------------------------------------------------------------------------

_TEXT, _TEXTS = 25, 1009
_TEXT_NAMES = {_TEXT: "text", _TEXTS: "text[]"}


def _as_text(oid: int, types: Types) -> int:
    """Return the oid of the type as which a value is sent within a composite: `text` for a composite, `text[]` for an
    array of composites. 0: the type is another one, and is sent as such."""
    info = base_of(oid, types)
    if info is None:
        return 0
    if info.kind is TypeKind.COMPOSITE:
        return _TEXT
    element = base_of(info.element, types) if info.kind is TypeKind.ARRAY else None
    return _TEXTS if element is not None and element.kind is TypeKind.COMPOSITE else 0


def _without_composites(info: TypeInfo, types: Types) -> TypeInfo:
    return replace(
        info,
        attributes=tuple(
            replace(item, type_oid=text, type_name=_TEXT_NAMES[text])
            if (text := _as_text(item.type_oid, types))
            else item
            for item in info.attributes
        ),
    )


def _with_text_types(shape: ResultShape, types: Types) -> ResultShape:
    columns = []
    for item in shape.columns:
        # A selected column is sent as its cast says; a column taken out of the text of a composite is within it.
        text = cast_type(item.expression) if item.position is None else _as_text(item.column.type_oid, types)
        result = replace(item.column, type_oid=text, type_name=_TEXT_NAMES[text]) if text else item.column
        columns.append(replace(item, column=result))
    parts = tuple(ResultPart(item.key, _with_text_types(item.shape, types), item.single) for item in shape.parts)
    return replace(shape, columns=tuple(columns), parts=parts)


# --- large numbers -----------------------------------------------------------------------------------------------


def _name(type_name: str) -> str:
    match = _WIDE.fullmatch(type_name)
    return type_name if match is None else f"text{match['array']}"


def _type(info: TypeInfo) -> TypeInfo:
    attributes = tuple(replace(item, type_name=_name(item.type_name)) for item in info.attributes)
    return replace(info, display=_name(info.display), attributes=attributes)


def _endpoint(endpoint: Endpoint) -> Endpoint:
    routine = endpoint.routine
    return replace(
        endpoint,
        routine=replace(routine, return_type_name=_name(routine.return_type_name)),
        parameters=tuple(_parameter(item) for item in endpoint.parameters),
        shape=_shape(endpoint.shape),
    )


def _parameter(parameter: Typed) -> Typed:
    """Return a parameter, or an attribute of a composite, with text in place of `bigint` and `numeric` at every
    depth."""
    kind = ValueKind.TEXT if parameter.kind in _WIDE_KINDS else parameter.kind
    return replace(parameter, kind=kind, fields=tuple(_parameter(item) for item in parameter.fields))


def _shape(shape: ResultShape) -> ResultShape:
    columns = tuple(
        replace(item, column=replace(item.column, type_name=_name(item.column.type_name))) for item in shape.columns
    )
    parts = tuple(ResultPart(item.key, _shape(item.shape), item.single) for item in shape.parts)
    return replace(shape, columns=columns, parts=parts)
