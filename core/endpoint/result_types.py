"""The types of result columns in the protocol, as far as the catalogue shows them.

Content type, keys and rendering of an endpoint depend on these types. If a result has other types, the schema has
changed after it was read (`ext.rendering.body_writer`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby

from rowcall.core.catalogue.casting import base_of
from rowcall.core.catalogue.catalog import FIRST_USER_OID, TypeInfo, TypeKind
from rowcall.core.endpoint.endpoint import ResultColumn, ResultShape

ANY = 0
"""Any type: for a polymorphic type, a record without columns, a type that is not in the catalogue."""
_CASTS = {"::text": 25, "::text[]": 1009}


def wire_type(oid: int, types: Mapping[int, TypeInfo]) -> int:
    """Return the oid of the type of a value in the protocol; `ANY` for a pseudo-type or an unknown oid. PostgreSQL
    describes a domain by its base type."""
    info = base_of(oid, types)
    return ANY if info is None or info.kind is TypeKind.PSEUDO else info.oid


def wire_types(columns: tuple[ResultColumn, ...], types: Mapping[int, TypeInfo]) -> tuple[int, ...]:
    """Return a type for each column of the result. The fields of an expanded composite share one column."""
    return tuple(_wire_types(columns, types))


def _wire_types(columns: tuple[ResultColumn, ...], types: Mapping[int, TypeInfo]) -> Iterator[int]:
    for position, neighbours in groupby(columns, key=lambda column: column.position):
        if position is None:
            yield from (_cast(column) or wire_type(column.column.type_oid, types) for column in neighbours)
        else:
            group = next(neighbours).group
            yield ANY if group is None else wire_type(group.type_oid, types)


def of_any_user_type(shape: ResultShape) -> ResultShape:
    """Return the shape with `ANY` in place of types that users have created, because another database has other oids
    for them."""
    type_oids = (
        None if shape.type_oids is None else tuple(oid if oid < FIRST_USER_OID else ANY for oid in shape.type_oids)
    )
    parts = tuple(replace(part, shape=of_any_user_type(part.shape)) for part in shape.parts)
    return replace(shape, type_oids=type_oids, parts=parts)


def cast_type(expression: str) -> int:
    """Return the oid of the type if the expression ends in a cast to text or to an array of text; otherwise `ANY`."""
    return next((oid for end, oid in _CASTS.items() if expression.endswith(end)), ANY)


def _cast(column: ResultColumn) -> int:
    return cast_type(column.expression)


def column_names(columns: tuple[ResultColumn, ...]) -> tuple[bytes, ...] | None:
    """Return the names of the result columns of a file. None: there are no columns, or the service itself has named
    them in its SQL.

    The SQL of a file cannot be changed, and may give other columns later (`select *`), so that names have to be
    compared.
    """
    if not columns or any(column.expression for column in columns):
        return None
    names: list[bytes] = []
    for position, neighbours in groupby(columns, key=lambda column: column.position):
        if position is None:
            names += (column.column.name.encode() for column in neighbours)
        else:
            first = next(neighbours)
            names.append((first.group or first.column).name.encode())
    return tuple(names)
