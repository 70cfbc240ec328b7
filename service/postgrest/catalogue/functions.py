"""Functions of the catalogue: callable ones, computed relationships and media handlers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from rowcall.core.postgrest.schema import (
    Argument,
    Cardinality,
    Function,
    MediaHandler,
    Relationship,
)
from rowcall.service.postgrest.catalogue import queries

Name = tuple[str, str]
"""Schema and name."""
MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+|\*/\*")
RAW_TYPES = ("bytea", "json", "jsonb", "text", "xml")
"""Types of a single parameter without a name that takes the whole body."""


@dataclass(frozen=True, slots=True)
class Types:
    """Types by oid. domains: rows of `queries.DOMAINS`. enums: labels in order. rows: the relation of each row type."""

    domains: Mapping[int, tuple[Any, ...]]
    enums: Mapping[int, Sequence[str]]
    rows: Mapping[int, Name]

    def base_of(self, oid: int, name: str) -> tuple[int, str]:
        """Return oid and name of the type below all domains; the given oid and name for a type that is no domain."""
        while (domain := self.domains.get(oid)) is not None:
            oid, name = domain[3], domain[4]
        return oid, name

    def is_row(self, oid: int, kind: str) -> bool:
        """Whether the type, or the one below all domains, is a row type. kind: `typtype` of the type."""
        while (domain := self.domains.get(oid)) is not None:
            oid, kind = domain[3], domain[8]
        return kind == "c"

    def is_required(self, oid: int) -> bool:
        """Whether the type is a domain that refuses NULL, or whose base is such a domain, at any depth."""
        while (domain := self.domains.get(oid)) is not None:
            if domain[6]:
                return True
            oid = domain[3]
        return False

    def media_type(self, oid: int) -> str | None:
        """Return the name of the type if it is a domain that is a media type, else None."""
        domain = self.domains.get(oid)
        return domain[2] if domain is not None and MEDIA_TYPE.fullmatch(domain[2]) else None


Read = tuple[dict[Name, tuple[Function, ...]], list[Relationship], tuple[MediaHandler, ...]]
"""Callable functions by name, computed relationships, and media handlers."""


async def read_functions(
    connection: psycopg.AsyncConnection[Any],
    values: Mapping[str, Any],
    types: Types,
    exposed: Sequence[str],
) -> Read:
    """Return callable functions by name, computed relationships and media handlers. values: parameters of
    `queries.FUNCTIONS`. exposed: names of schemas; functions of others are left out. Raises `psycopg.Error`."""
    functions: dict[Name, list[Function]] = defaultdict(list)
    computed: list[Relationship] = []
    handlers: list[MediaHandler] = []
    cursor = await connection.execute(queries.FUNCTIONS, values)
    for row in await cursor.fetchall():
        if row[1] not in exposed:
            continue
        if row[3] == "a":
            handlers += _handlers(row, types)
            continue
        relationship = _computed_relationship(row, types)
        if relationship is not None and relationship.target[0] in exposed:
            computed.append(relationship)
        function = _function(row, types)
        if function is not None:
            functions[function.schema, function.name].append(function)
    return {name: tuple(items) for name, items in functions.items()}, computed, tuple(handlers)


def _function(row: tuple[Any, ...], types: Types) -> Function | None:
    """Return a function; None: its parameters cannot be passed by name nor as a whole body. row: of
    `queries.FUNCTIONS`.
    """
    (_, schema, name, _, volatility, is_set, _, names, modes, count, defaults, variadic, type_names, _) = row[:14]
    oid, kind, type_name, result_name, settings, comment = row[14:]
    modes = modes or ["i"] * count
    names = list(names or [])
    names += [""] * (len(modes) - len(names))
    arguments = _arguments(names, modes, type_names or [], count, defaults, variadic)
    if any(not item.name for item in arguments) and not _takes_body(arguments):
        return None
    outputs = tuple(
        Argument(item, type_of)
        for item, mode, type_of in zip(names, modes, type_names or [], strict=True)
        if mode in "obt"
    )
    composite = bool(outputs) or types.is_row(oid, kind)
    relation = _relation_of(oid, types)
    media_type = types.media_type(oid)
    return Function(
        schema,
        name,
        arguments,
        volatility,
        is_set,
        composite,
        result_name == "void",
        result_name,
        relation,
        tuple((item.partition("=")[0], item.partition("=")[2]) for item in settings or ()),
        media_type,
        comment,
        media_type is not None and types.base_of(oid, "")[1] == "bytea",
        outputs,
        type_name if composite else "",
        row[0],
    )


def _arguments(
    names: Sequence[str], modes: Sequence[str], types: Sequence[str], count: int, defaults: int, variadic: bool
) -> tuple[Argument, ...]:
    """Return the input parameters. names, modes, types: of all parameters in order, outputs included; names may be
    empty texts, modes are as in `pg_proc.proargmodes`. count: number of input parameters. defaults: how many of the
    last input parameters have a default. variadic: whether the last input parameter is VARIADIC."""
    inputs = [(name, type_name) for name, mode, type_name in zip(names, modes, types, strict=True) if mode in "ibv"]
    return tuple(
        Argument(name, type_name, place < count - defaults, variadic and place == count - 1)
        for place, (name, type_name) in enumerate(inputs)
    )


def _takes_body(arguments: Sequence[Argument]) -> bool:
    """Return whether exactly one input parameter has no name, and the first input parameter has a type of `RAW_TYPES`.
    arguments: input parameters."""
    unnamed = [item for item in arguments if not item.name]
    return len(unnamed) == 1 and arguments[0].type in RAW_TYPES


def _relation_of(oid: int, types: Types) -> Name | None:
    """Return the relation whose row type is this type, or its base if it is a domain; None: there is none."""
    return types.rows.get(types.base_of(oid, "")[0])


def _computed_relationship(row: tuple[Any, ...], types: Types) -> Relationship | None:
    """Return the relationship of a function from one row type to another; None: the function is of another kind. row:
    of `queries.FUNCTIONS`.
    """
    arguments: Sequence[int] = row[13]
    origin = types.rows.get(arguments[0]) if len(arguments) == 1 else None
    target = types.rows.get(row[14])
    if origin is None or target is None:
        return None
    single = not row[5] or row[6] == 1
    return Relationship(
        origin,
        target,
        Cardinality.MANY_TO_ONE if single else Cardinality.ONE_TO_MANY,
        row[2],
        function=(row[1], row[2]),
        self_reference=origin == target,
    )


def _handlers(row: tuple[Any, ...], types: Types) -> list[MediaHandler]:
    """Return the media handler that an aggregate is; empty if it is none. row: of `queries.FUNCTIONS`."""
    media_type = types.media_type(row[14])
    arguments: Sequence[int] = row[13]
    if media_type is None or len(arguments) != 1:
        return []
    binary = types.base_of(row[14], "")[1] == "bytea"
    relation = types.rows.get(arguments[0])
    if relation is None and arguments[0] != 2283:  # anyelement
        return []
    return [MediaHandler(media_type, (row[1], row[2]), relation, binary)]
