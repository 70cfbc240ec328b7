"""Routines and types written by hand, like those that discovery reads from a database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rowcall.core.building.endpoint_builder import EndpointDefaults, build_endpoint
from rowcall.core.catalogue.catalog import (
    Attribute,
    Catalog,
    Column,
    Parameter,
    ParameterMode,
    Routine,
    RoutineKind,
    TypeInfo,
    TypeKind,
    Volatility,
)
from rowcall.core.endpoint.capabilities import CommentsMode
from rowcall.core.endpoint.endpoint import Endpoint

BUILT_IN = {
    16: ("bool", "boolean"),
    17: ("bytea", "bytea"),
    20: ("int8", "bigint"),
    21: ("int2", "smallint"),
    23: ("int4", "integer"),
    25: ("text", "text"),
    114: ("json", "json"),
    1042: ("bpchar", "character"),
    1082: ("date", "date"),
    1184: ("timestamptz", "timestamp with time zone"),
    1560: ("bit", "bit"),
    1700: ("numeric", "numeric"),
    2950: ("uuid", "uuid"),
    3802: ("jsonb", "jsonb"),
    869: ("inet", "inet"),
}
PSEUDO = {2249: "record", 2278: "void", 2283: "anyelement", 2277: "anyarray"}
GAUGE, CRATE, FLAG_BOX, QUANTITY, STATE, GAUGES, HIDDEN, DOCUMENT = range(90001, 90009)
ARRAY = 10000
"""The OID of the array of a built-in type is the type's OID plus this."""


def _types() -> Iterable[TypeInfo]:
    for oid, (name, display) in BUILT_IN.items():
        yield TypeInfo(oid, "pg_catalog", name, display, TypeKind.BASE)
        yield TypeInfo(oid + ARRAY, "pg_catalog", f"_{name}", f"{display}[]", TypeKind.ARRAY, element=oid)
    for oid, name in PSEUDO.items():
        yield TypeInfo(oid, "pg_catalog", name, name, TypeKind.PSEUDO)
    gauge = (Attribute("id", 23, "integer"), Attribute("unit_code", 25, "text"))
    crate = (Attribute("code", 1042, "character(3)"), Attribute("item", GAUGE, "gauge"))
    yield TypeInfo(GAUGE, "public", "gauge", "gauge", TypeKind.COMPOSITE, attributes=gauge)
    yield TypeInfo(GAUGES, "public", "_gauge", "gauge[]", TypeKind.ARRAY, element=GAUGE)
    yield TypeInfo(CRATE, "shop", "crate", "shop.crate", TypeKind.COMPOSITE, attributes=crate)
    flag = (Attribute("is_on", 16, "boolean"),)
    yield TypeInfo(FLAG_BOX, "public", "flagbox", "flagbox", TypeKind.COMPOSITE, attributes=flag)
    yield TypeInfo(QUANTITY, "shop", "quantity", "shop.quantity", TypeKind.DOMAIN, base=23)
    yield TypeInfo(DOCUMENT, "shop", "document", "shop.document", TypeKind.DOMAIN, base=114)
    yield TypeInfo(STATE, "shop", "State", 'shop."State"', TypeKind.ENUM)
    yield TypeInfo(HIDDEN, "hidden", "secret", "hidden.secret", TypeKind.COMPOSITE)


TYPES = {info.oid: info for info in _types()}
EVERYTHING = EndpointDefaults().of_source(CommentsMode.PARSE_ALL)


def parameter(name: str | None, oid: int = 23, default: bool = False, **changes: Any) -> Parameter:
    return replace(Parameter(name, oid, TYPES[oid].display, ParameterMode.IN, default), **changes)


def column(name: str, oid: int = 23) -> Column:
    return Column(name, oid, TYPES[oid].display)


def routine(
    *parameters: Parameter, name: str = "f", returns: int = 23, columns: tuple[Column, ...] = (), **changes: Any
) -> Routine:
    numbered = tuple(replace(item, argument=item.argument or index) for index, item in enumerate(parameters))
    made = Routine(
        oid=1,
        kind=RoutineKind.FUNCTION,
        schema="public",
        name=name,
        comment=None,
        language="sql",
        strict=False,
        volatility=Volatility.VOLATILE,
        returns_set=False,
        return_type_oid=returns,
        return_type_name=TYPES[returns].display,
        parameters=numbered,
        columns=columns,
    )
    return replace(made, **changes)


def catalog(*routines: Routine) -> Catalog:
    return Catalog(150000, routines, TYPES)


def endpoint(*parameters: Parameter, defaults: EndpointDefaults = EVERYTHING, **changes: Any) -> Endpoint:
    made = routine(*parameters, **changes)
    built = build_endpoint(made, catalog(made), defaults).endpoint
    assert built is not None
    return built
