"""What a routine returns → how it is selected and rendered: the return shape matrix (reference 02, section 2).

Decided from the catalogue alone. The same routine answers in the same shape for every value it returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rowcall.core.casting import base_of
from rowcall.core.catalog import Attribute, Column, Routine, RoutineKind, TypeInfo, TypeKind
from rowcall.core.endpoint import ResultColumn, ResultPath, ResultShape
from rowcall.core.naming import api_name, quote_identifier

JSON = "application/json"
TEXT = "text/plain"
BYTES = "application/octet-stream"

VOID = ResultShape(ResultPath.VOID, is_set=False, named=False, content_type=TEXT)


def result_shape(routine: Routine, types: Mapping[int, TypeInfo], camel: bool) -> ResultShape:
    returned = types.get(routine.return_type_oid)
    if routine.kind is RoutineKind.PROCEDURE or _is_pseudo(returned, "void"):
        return VOID
    columns = () if _is_bare(routine, returned) else tuple(_select_list(routine, types, camel))
    if not columns and not routine.returns_set and not _is_pseudo(returned, "record"):
        return _scalar(routine.return_type_oid, types)
    return ResultShape(
        ResultPath.ROWS,
        is_set=routine.returns_set,
        named=bool(columns),
        columns=columns,
        content_type=_rows_content_type(routine, columns, types),
    )


def _is_bare(routine: Routine, returned: TypeInfo | None) -> bool:
    """One value without a name on the wire: a plain scalar, `setof scalar`, one OUT scalar, an anonymous record.

    `returns table(x text)` keeps its name although it has one column (reference 02, pitfall 2).
    """
    if not routine.columns:
        return True
    if routine.returns_composite or len(routine.columns) > 1:
        return False
    if _is_pseudo(returned, "record"):
        return True
    composite = returned is not None and returned.kind is TypeKind.COMPOSITE and bool(returned.attributes)
    return not routine.returns_set and not composite


def _select_list(routine: Routine, types: Mapping[int, TypeInfo], camel: bool) -> Iterator[ResultColumn]:
    if routine.returns_composite:
        yield from (_plain(column, camel) for column in routine.columns)
        return
    only = len(routine.columns) == 1
    for column in routine.columns:
        info = types.get(column.type_oid)
        if info is None or info.kind is not TypeKind.COMPOSITE or not info.attributes:
            yield _plain(column, camel)
        elif only:
            # PostgreSQL itself takes a lone composite OUT column apart: FROM f() has its attributes, not its name.
            yield from (_plain(_as_column(attribute), camel) for attribute in info.attributes)
        else:
            yield from (_field(column, attribute, camel) for attribute in info.attributes)


def _plain(column: Column, camel: bool) -> ResultColumn:
    return ResultColumn(quote_identifier(column.name), api_name(column.name, camel).encode(), column)


def _field(column: Column, attribute: Attribute, camel: bool) -> ResultColumn:
    expression = f"({quote_identifier(column.name)}).{quote_identifier(attribute.name)}"
    return ResultColumn(expression, api_name(attribute.name, camel).encode(), _as_column(attribute), column)


def _as_column(attribute: Attribute) -> Column:
    return Column(attribute.name, attribute.type_oid, attribute.type_name)


def _scalar(oid: int, types: Mapping[int, TypeInfo]) -> ResultShape:
    info = base_of(oid, types)
    content_type = TEXT
    if info is not None and (info.kind is TypeKind.ARRAY or _is_built_in(info, "json", "jsonb")):
        content_type = JSON
    elif _is_built_in(info, "bytea"):
        content_type = BYTES
    return ResultShape(ResultPath.SCALAR, is_set=False, named=False, content_type=content_type)


def _rows_content_type(routine: Routine, columns: tuple[ResultColumn, ...], types: Mapping[int, TypeInfo]) -> str:
    """Bytes only where bytea is all there is, else JSON."""
    if len(columns) > 1:
        return JSON
    oid = columns[0].column.type_oid if columns else routine.return_type_oid
    return BYTES if _is_built_in(base_of(oid, types), "bytea") else JSON


def _is_built_in(info: TypeInfo | None, *names: str) -> bool:
    return info is not None and info.schema == "pg_catalog" and info.name in names


def _is_pseudo(info: TypeInfo | None, name: str) -> bool:
    return info is not None and info.kind is TypeKind.PSEUDO and info.name == name
