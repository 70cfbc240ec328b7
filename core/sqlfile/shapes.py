"""Result shape of a file (sql-files-21 to sql-files-28): the rows of its only statement, or an object with a key for
each statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from rowcall.core.catalogue.casting import base_of
from rowcall.core.catalogue.catalog import Column, TypeInfo, TypeKind
from rowcall.core.endpoint.endpoint import ResultColumn, ResultPart, ResultPath, ResultShape
from rowcall.core.endpoint.result_shape import BYTES, JSON, VOID
from rowcall.core.endpoint.result_types import wire_types
from rowcall.core.sqlfile.source import FileResult, FileSource
from rowcall.core.text.naming import api_name

_UNNAMED = "?column?"


def file_shape(
    source: FileSource, types: Mapping[int, TypeInfo], camel: bool, *, nested: bool, single: bool
) -> ResultShape:
    """Return the result shape of a file. types: of the database, by oid. camel: keys are in camel case. nested:
    composite columns stay objects; otherwise their fields become columns (`Options.nested`). single: of a file with one
    statement, only the first row is sent (`Options.single`)."""
    shapes = _Shapes(types, camel, nested, source.unnamed)
    if not source.several:
        return shapes.single_result(replace(source.statements[0].result, single=single))
    parts = tuple(shapes.part(statement.result) for statement in source.statements)
    return ResultShape(ResultPath.OBJECT, is_set=False, named=True, parts=parts)


@dataclass(frozen=True, slots=True)
class _Shapes:
    """Creates the shapes of the results of one file. types, camel, nested: as in `file_shape`. unnamed: a set with one
    column is an array of values."""

    types: Mapping[int, TypeInfo]
    camel: bool
    nested: bool
    unnamed: bool

    def single_result(self, result: FileResult) -> ResultShape:
        """Return the shape of the only result of a file; `VOID` if the result is not in the response. A single column
        of type bytea gives raw bytes."""
        if result.key is None:
            return VOID
        shape = self._rows(result)
        return replace(shape, content_type=BYTES) if self._is_bytes(result) else shape

    def part(self, result: FileResult) -> ResultPart:
        """Return the part of the response that one of several results becomes."""
        key = None if result.key is None else result.key.encode()
        return ResultPart(key, self._rows(result), result.single)

    def _rows(self, result: FileResult) -> ResultShape:
        if not result.columns or result.dropped:
            return VOID
        columns = tuple(self._columns(result.columns))
        plain = len(columns) == 1 and columns[0].group is None and not self._is_composite(result.columns[0])
        bare = plain and (self.unnamed or result.single)
        return ResultShape(
            ResultPath.ROWS,
            is_set=True,
            named=not bare,
            columns=columns,
            content_type=JSON,
            first_only=result.first_only,
            type_oids=None if result.declared else wire_types(columns, self.types),
        )

    def _columns(self, columns: tuple[Column, ...]) -> Iterator[ResultColumn]:
        taken: set[str] = set()
        for position, column in enumerate(columns, 1):
            key = api_name(column.name, self.camel)
            if column.name == _UNNAMED or key in taken:
                key = f"column{position}"
            taken.add(key)
            yield from self._column(column, key, position)

    def _column(self, column: Column, key: str, position: int) -> Iterator[ResultColumn]:
        info = base_of(column.type_oid, self.types)
        if info is None or info.kind is not TypeKind.COMPOSITE or self.nested or not info.attributes:
            yield ResultColumn("", key.encode(), column)
            return
        for attribute in info.attributes:
            field = Column(attribute.name, attribute.type_oid, attribute.type_name)
            yield ResultColumn("", api_name(attribute.name, self.camel).encode(), field, column, position)

    def _is_composite(self, column: Column) -> bool:
        info = base_of(column.type_oid, self.types)
        return info is not None and info.kind is TypeKind.COMPOSITE

    def _is_bytes(self, result: FileResult) -> bool:
        info = base_of(result.columns[0].type_oid, self.types) if len(result.columns) == 1 else None
        return info is not None and info.schema == "pg_catalog" and info.name == "bytea" and not result.dropped
