"""Result shapes: how the result of a routine is selected and rendered (rendering-9 to rendering-13).

Decided from the catalogue only. A routine has the same shape for all values that it returns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from rowcall.core.catalogue.casting import base_of, cast_text, is_any_array
from rowcall.core.catalogue.catalog import VOID_TYPE, Attribute, Column, Routine, RoutineKind, TypeInfo, TypeKind
from rowcall.core.data.interning import Same, memoize
from rowcall.core.endpoint.endpoint import ResultColumn, ResultPath, ResultShape
from rowcall.core.endpoint.result_types import cast_type, wire_type, wire_types
from rowcall.core.text.naming import api_name, quote_identifier

JSON = "application/json"
TEXT = "text/plain"
BYTES = "application/octet-stream"


class _ReturnProperties(NamedTuple):
    """The properties of a routine on which its shape depends: the same for many routines of a large schema."""

    kind: RoutineKind
    return_type_oid: int
    returns_set: bool
    returns_composite: bool
    shared: Same[tuple[Column, ...]]
    name: str
    """Name of the routine if the SQL needs it; otherwise empty."""

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.shared.value


VOID = ResultShape(ResultPath.VOID, is_set=False, named=False, content_type=TEXT)


def result_shape(
    routine: Routine,
    types: Mapping[int, TypeInfo],
    camel: bool,
    *,
    nested: bool = False,
    resolve_nested: bool = True,
) -> ResultShape:
    """Return the shape of a routine's result.

    nested: composite columns are not expanded (`Options.nested`). resolve_nested: composites inside them are rendered
    as objects, otherwise as the text of PostgreSQL (`ResolveNestedCompositeTypes`, rendering-20, rendering-21).
    """
    kind, oid, columns = routine.kind, routine.return_type_oid, routine.columns
    name = routine.name if nested and len(columns) == 1 else ""
    returned = _ReturnProperties(kind, oid, routine.returns_set, routine.returns_composite, Same(columns), name)
    return _shape(returned, Same(types), camel, nested, resolve_nested)


@memoize
def _shape(
    routine: _ReturnProperties, known: Same[Mapping[int, TypeInfo]], camel: bool, nested: bool, resolve_nested: bool
) -> ResultShape:
    """Return the shape of a result, cached for equal properties. Other arguments as in `result_shape`."""
    types = known.value
    returned = base_of(routine.return_type_oid, types)
    if routine.kind is RoutineKind.PROCEDURE or routine.return_type_oid == VOID_TYPE or _is_pseudo(returned, "void"):
        return VOID
    selection = _Selection(types, camel, nested, resolve_nested)
    if _is_bare(routine, returned, nested):
        columns: tuple[ResultColumn, ...] = ()
    elif routine.returns_composite:
        columns = _attributes(routine.shared, known, camel, resolve_nested)
    else:
        columns = tuple(selection.columns(routine))
    single_row = _is_pseudo(returned, "record") or _is_composite(returned)
    if not columns and not routine.returns_set and not single_row:
        return _scalar(routine.return_type_oid, types)
    return ResultShape(
        ResultPath.ROWS,
        is_set=routine.returns_set,
        named=bool(columns),
        columns=columns,
        content_type=_rows_content_type(routine, columns, types),
        blank_is_null=nested and not routine.returns_composite,
        type_oids=_wire(Same(columns), known) if columns else (wire_type(routine.return_type_oid, types),),
    )


def with_whole_composites(shape: ResultShape, camel: bool) -> ResultShape:
    """Return the shape of a result as a table: a composite that is expanded in the JSON of a file, whose SQL cannot be
    changed, is one column (formats-2). camel: keys in camel case."""
    columns: list[ResultColumn] = []
    for position, neighbours in groupby(shape.columns, key=lambda column: column.position):
        if position is None:
            columns += neighbours
        else:
            first = next(neighbours)
            whole = first.group or first.column
            columns.append(ResultColumn("", api_name(whole.name, camel).encode(), whole))
    return replace(shape, columns=tuple(columns))


def _is_bare(routine: _ReturnProperties, returned: TypeInfo | None, nested: bool) -> bool:
    """Return whether a row is a value without a name: a plain scalar, `setof scalar`, one OUT scalar, an anonymous
    record.

    `returns table(x text)` keeps its name although it has one column (rendering-10).
    """
    if not routine.columns:
        return True
    if routine.returns_composite or len(routine.columns) > 1:
        return False
    if _is_pseudo(returned, "record"):
        return True
    if returned is not None and _is_composite(returned):
        # A composite without attributes has no names that could be selected.
        return not returned.attributes and not nested
    return not routine.returns_set


@dataclass(frozen=True, slots=True)
class _Selection:
    """Builds the columns of a result with their SQL expressions, the list between `select` and `from`. The fields are
    the arguments of `result_shape` with these names."""

    types: Mapping[int, TypeInfo]
    camel: bool
    nested: bool
    resolve_nested: bool

    def columns(self, routine: _ReturnProperties) -> Iterator[ResultColumn]:
        """Yield the result columns of a routine that returns no composite directly. Composite columns are expanded,
        unless they are nested."""
        only = len(routine.columns) == 1
        for column in routine.columns:
            info = base_of(column.type_oid, self.types)
            if info is None or not _is_composite(info):
                yield self._whole(column, quote_identifier(column.name))
            elif only and self.nested:
                # PostgreSQL expands a lone composite OUT column: FROM f() has its attributes, not its name. `f.*` is
                # the whole row and cannot be the name of a column; the cast prevents its expansion.
                row = f"({quote_identifier(routine.name)}.*)::{cast_text(column.type_oid, self.types)}"
                yield self._whole(column, row)
            elif only:
                yield from (self.attribute(_as_column(attribute)) for attribute in info.attributes)
            elif self.nested or not info.attributes:
                yield self._whole(column, quote_identifier(column.name))
            else:
                yield from (self._field(column, attribute) for attribute in info.attributes)

    def _whole(self, column: Column, expression: str) -> ResultColumn:
        """Return a result column that is not expanded. expression: its SQL."""
        return ResultColumn(expression, api_name(column.name, self.camel).encode(), column)

    def attribute(self, column: Column) -> ResultColumn:
        """Return the column for an attribute of the returned row type."""
        return self._whole(column, self._inner(quote_identifier(column.name), column.type_oid))

    def _field(self, column: Column, attribute: Attribute) -> ResultColumn:
        """Return the result column for an attribute of a composite column."""
        expression = f"({quote_identifier(column.name)}).{quote_identifier(attribute.name)}"
        key = api_name(attribute.name, self.camel).encode()
        return ResultColumn(self._inner(expression, attribute.type_oid), key, _as_column(attribute), column)

    def _inner(self, expression: str, oid: int) -> str:
        """Return the expression for a part of a composite. Without `resolve_nested`, composites in it are selected as
        text."""
        info = base_of(oid, self.types)
        if self.resolve_nested or info is None:
            return expression
        if _is_composite(info):
            return f"{expression}::text"
        if _holds_composites(info, self.types):
            return f"{expression}::text[]"
        return expression


@memoize
def _attributes(
    columns: Same[tuple[Column, ...]],
    known: Same[Mapping[int, TypeInfo]],
    camel: bool,
    resolve_nested: bool,
) -> tuple[ResultColumn, ...]:
    """Return the columns of a row type. camel: keys in camel case. resolve_nested: as in `result_shape`."""
    selection = _Selection(known.value, camel, nested=False, resolve_nested=resolve_nested)
    return tuple(selection.attribute(column) for column in columns.value)


@memoize
def _wire(columns: Same[tuple[ResultColumn, ...]], known: Same[Mapping[int, TypeInfo]]) -> tuple[int, ...]:
    """Return the types of result columns in the protocol. Cached, because the operations on a table share their
    columns."""
    return wire_types(columns.value, known.value)


def _as_column(attribute: Attribute) -> Column:
    return Column(attribute.name, attribute.type_oid, attribute.type_name)


def _scalar(oid: int, types: Mapping[int, TypeInfo]) -> ResultShape:
    """Return the shape of a single value without a name. oid: of its type."""
    info = base_of(oid, types)
    content_type = TEXT
    if _is_array(info) or _is_built_in(info, "json", "jsonb"):
        content_type = JSON
    elif _is_built_in(info, "bytea"):
        content_type = BYTES
    # Composites become objects only in columns. A result that is a bare array of composites has their texts
    # (rendering-11).
    cast = "::text[]" if _holds_composites(info, types) else ""
    type_oids = (cast_type(cast) or wire_type(oid, types),)
    return ResultShape(
        ResultPath.SCALAR, is_set=False, named=False, content_type=content_type, cast=cast, type_oids=type_oids
    )


def _rows_content_type(
    routine: _ReturnProperties, columns: tuple[ResultColumn, ...], types: Mapping[int, TypeInfo]
) -> str:
    """Return the content type: octet stream if the only column is bytea, else JSON."""
    if len(columns) > 1:
        return JSON
    oid = columns[0].column.type_oid if columns else routine.return_type_oid
    return BYTES if _is_built_in(base_of(oid, types), "bytea") else JSON


def _is_built_in(info: TypeInfo | None, *names: str) -> bool:
    return info is not None and info.schema == "pg_catalog" and info.name in names


def _is_array(info: TypeInfo | None) -> bool:
    return info is not None and (info.kind is TypeKind.ARRAY or is_any_array(info))


def _is_composite(info: TypeInfo | None) -> bool:
    return info is not None and info.kind is TypeKind.COMPOSITE


def _holds_composites(info: TypeInfo | None, types: Mapping[int, TypeInfo]) -> bool:
    """Return whether the type is an array of composites."""
    return info is not None and info.kind is TypeKind.ARRAY and _is_composite(base_of(info.element, types))


def _is_pseudo(info: TypeInfo | None, name: str) -> bool:
    return info is not None and info.kind is TypeKind.PSEUDO and info.name == name
