"""The types that the columns of a result have on the wire, as far as the catalogue tells.

What an endpoint promises has been made for them: its content type, its keys, how values are told. A result that has
others comes from a schema that has changed since (`ext.rendering.body_writer`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby

from rowcall.core.catalogue.casting import base_of
from rowcall.core.catalogue.catalog import TypeInfo, TypeKind
from rowcall.core.endpoint.endpoint import ResultColumn, ResultShape

FIRST_USER_OID = 16384
"""Of what users have made; another database may have another one for a type of the same name."""
ANY = 0
"""Whatever it is: a polymorphic type, a record without columns, a type that the catalogue does not have."""
_CASTS = {"::text": 25, "::text[]": 1009}


def wire_type(oid: int, types: Mapping[int, TypeInfo]) -> int:
    """PostgreSQL describes a domain by the type below it."""
    info = base_of(oid, types)
    return ANY if info is None or info.kind is TypeKind.PSEUDO else info.oid


def wire_types(columns: tuple[ResultColumn, ...], types: Mapping[int, TypeInfo]) -> tuple[int, ...]:
    """One for each column of the result; those that stand for a spread composite are one."""
    return tuple(_wire_types(columns, types))


def _wire_types(columns: tuple[ResultColumn, ...], types: Mapping[int, TypeInfo]) -> Iterator[int]:
    for position, neighbours in groupby(columns, key=lambda column: column.position):
        if position is None:
            yield from (_cast(column) or wire_type(column.column.type_oid, types) for column in neighbours)
        else:
            group = next(neighbours).group
            yield ANY if group is None else wire_type(group.type_oid, types)


def of_any_user_type(shape: ResultShape) -> ResultShape:
    """The same result from another database, where types of the same names have other oids."""
    wire = None if shape.wire is None else tuple(oid if oid < FIRST_USER_OID else ANY for oid in shape.wire)
    parts = tuple(replace(part, shape=of_any_user_type(part.shape)) for part in shape.parts)
    return replace(shape, wire=wire, parts=parts)


def cast_type(expression: str) -> int:
    """Of SQL that ends in a cast to text; `ANY` for other SQL."""
    return next((oid for end, oid in _CASTS.items() if expression.endswith(end)), ANY)


def _cast(column: ResultColumn) -> int:
    return cast_type(column.expression)


def column_names(columns: tuple[ResultColumn, ...]) -> tuple[bytes, ...] | None:
    """Where the SQL is not ours its columns may be others behind the same text (`select *`). None: we have named them
    ourselves."""
    if not columns or any(column.expression for column in columns):
        return None
    found: list[bytes] = []
    for position, neighbours in groupby(columns, key=lambda column: column.position):
        if position is None:
            found += (column.column.name.encode() for column in neighbours)
        else:
            first = next(neighbours)
            found.append((first.group or first.column).name.encode())
    return tuple(found)
