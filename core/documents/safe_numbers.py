"""Endpoints as they look where `bigint` and `numeric` travel as texts (`Service:JsonNumbers` is `Safe`).

Clients that read numbers as IEEE doubles lose what is beyond 2^53 without noticing. Everything that describes the
service sees the same: what is written here is what the service sends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rowcall.core.catalogue.catalog import TypeInfo
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ResultPart, ResultShape, ValueKind

TypesOf = Callable[[Endpoint], Mapping[int, TypeInfo]]

OIDS = (20, 1700)
"""int8 and numeric."""
_WIDE = re.compile(r"(?:bigint|int8|numeric|decimal)(?:\([^()]*\))?(?P<array>(?:\[\])*)")
_WIDE_KINDS = (ValueKind.BIGINT, ValueKind.NUMERIC)


def numbers_as_texts(endpoints: Sequence[Endpoint], types_of: TypesOf) -> tuple[tuple[Endpoint, ...], TypesOf]:
    """The endpoints, and the types of the database that one of them runs on."""
    known: dict[int, Mapping[int, TypeInfo]] = {}

    def told_types(endpoint: Endpoint) -> Mapping[int, TypeInfo]:
        types = types_of(endpoint)
        found = known.get(id(types))
        if found is None:
            found = known[id(types)] = {oid: _type(info) for oid, info in types.items()}
        return found

    return tuple(_endpoint(one) for one in endpoints), told_types


def _name(type_name: str) -> str:
    match = _WIDE.fullmatch(type_name)
    return type_name if match is None else f"text{match['array']}"


def _type(info: TypeInfo) -> TypeInfo:
    attributes = tuple(replace(one, type_name=_name(one.type_name)) for one in info.attributes)
    return replace(info, display=_name(info.display), attributes=attributes)


def _endpoint(endpoint: Endpoint) -> Endpoint:
    routine = endpoint.routine
    return replace(
        endpoint,
        routine=replace(routine, return_type_name=_name(routine.return_type_name)),
        parameters=tuple(_parameter(one) for one in endpoint.parameters),
        shape=_shape(endpoint.shape),
    )


def _parameter(parameter: EndpointParameter) -> EndpointParameter:
    return replace(parameter, kind=ValueKind.TEXT) if parameter.kind in _WIDE_KINDS else parameter


def _shape(shape: ResultShape) -> ResultShape:
    columns = tuple(
        replace(one, column=replace(one.column, type_name=_name(one.column.type_name))) for one in shape.columns
    )
    parts = tuple(ResultPart(one.key, _shape(one.shape), one.single) for one in shape.parts)
    return replace(shape, columns=columns, parts=parts)
