"""Endpoints with what is proven about their values (`Service:ExactTypes`): descriptions and clients tell it.

What a routine declares is taken at its word: the rows of `returns setof depot` are rows of that table, and a set of a
NOT NULL domain has no NULL. What nobody declares and nothing proves may be NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from rowcall.core.catalogue.catalog import RoutineKind, TypeInfo, TypeKind
from rowcall.core.catalogue.value_constraints import (
    NO_CONSTRAINTS,
    ColumnConstraints,
    ValueConstraints,
    keeps_nulls_out,
)
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ResultColumn, ResultShape
from rowcall.core.sqlfile.source import FileSource
from rowcall.core.tables.operations import Command
from rowcall.core.tables.routines import TableOperation

_WRITES = (Command.INSERT, Command.UPDATE)


def exact_types(types: Mapping[int, TypeInfo], constraints: ColumnConstraints) -> dict[int, TypeInfo]:
    """Attributes of composites with what is known of them; a composite itself may be NULL as a whole."""
    known = _Known(types, constraints)
    return {oid: known.composite(info) for oid, info in types.items()}


def exact_endpoint(endpoint: Endpoint, types: Mapping[int, TypeInfo], constraints: ColumnConstraints) -> Endpoint:
    known = _Known(types, constraints)
    parameters = tuple(replace(one, constraints=known.parameter(endpoint, one)) for one in endpoint.parameters)
    return replace(endpoint, parameters=parameters, shape=known.shape(endpoint, endpoint.shape))


@dataclass(frozen=True, slots=True)
class _Known:
    types: Mapping[int, TypeInfo]
    constraints: ColumnConstraints

    def type(self, oid: int) -> ValueConstraints:
        """Of an enum, a domain, or an array of such."""
        found = NO_CONSTRAINTS
        info = self.types.get(oid)
        while info is not None:
            found = found.besides(self.constraints.types.get(info.oid, NO_CONSTRAINTS))
            if info.kind is TypeKind.ARRAY:
                element = self.type(info.element)
                return ValueConstraints(found.never_null, element.choices)
            info = self.types.get(info.base) if info.kind is TypeKind.DOMAIN else None
        return found

    def composite(self, info: TypeInfo) -> TypeInfo:
        if info.kind is not TypeKind.COMPOSITE:
            return info
        attributes = []
        for one in info.attributes:
            told = self.constraints.attributes.get((info.oid, one.name), NO_CONSTRAINTS).besides(
                self.type(one.type_oid)
            )
            attributes.append(replace(one, constraints=replace(told, never_null=False)))
        return replace(info, attributes=tuple(attributes))

    # --- what comes in ---------------------------------------------------------------------------------------------

    def parameter(self, endpoint: Endpoint, parameter: EndpointParameter) -> ValueConstraints:
        routine = endpoint.routine
        source = routine.source
        if isinstance(source, TableOperation):
            if parameter.position >= len(source.columns):
                return NO_CONSTRAINTS
            column = source.columns[parameter.position]
            own = self.constraints.attributes.get((source.table.row_type_oid, column.name), NO_CONSTRAINTS)
            told = own.besides(self.type(column.type_oid))
            return told if source.operation.command in _WRITES else replace(told, never_null=False)
        if parameter.position >= len(routine.parameters):
            return NO_CONSTRAINTS
        whole = routine.parameters[parameter.position]
        if parameter.attribute is not None:
            info = self.types.get(whole.type_oid)
            fields = () if info is None else self.composite(info).attributes
            return next((one.constraints for one in fields if one.name == parameter.attribute), NO_CONSTRAINTS)
        told = self.type(whole.type_oid)
        # A null makes PostgreSQL leave out the call of a STRICT function: it has no use.
        strict = routine.strict and routine.kind is RoutineKind.FUNCTION
        return replace(told, never_null=True) if strict else told

    # --- what comes out --------------------------------------------------------------------------------------------

    def shape(self, endpoint: Endpoint, shape: ResultShape) -> ResultShape:
        columns = tuple(
            replace(one, column=replace(one.column, constraints=self._column(endpoint, shape, one)))
            for one in shape.columns
        )
        parts = tuple(replace(part, shape=self.shape(endpoint, part.shape)) for part in shape.parts)
        constraints = self.type(endpoint.routine.return_type_oid)
        return replace(shape, columns=columns, parts=parts, constraints=replace(constraints, never_null=False))

    def _column(self, endpoint: Endpoint, shape: ResultShape, column: ResultColumn) -> ValueConstraints:
        routine = endpoint.routine
        found, told = self.type(column.column.type_oid), NO_CONSTRAINTS
        rows = shape.is_set
        if column.group is not None:
            return replace(self._of_row(column.group.type_oid, column).besides(found), never_null=False)
        source = routine.source
        if isinstance(source, TableOperation):
            told = self._of_row(source.table.row_type_oid, column)
            # A trigger may say what a view's row is after it has been written.
            rows = routine.kind is RoutineKind.TABLE or source.operation.command is Command.SELECT
        elif isinstance(source, FileSource):
            told = self.constraints.columns.get(column.column.origin, NO_CONSTRAINTS)
            rows = all(keeps_nulls_out(one.text) for one in source.statements)
        elif routine.returns_composite:
            told = self._of_row(routine.return_type_oid, column)
        both = told.besides(found)
        return both if rows else replace(both, never_null=False)

    def _of_row(self, oid: int, column: ResultColumn) -> ValueConstraints:
        for one in self._below(oid):
            found = self.constraints.attributes.get((one, column.column.name))
            if found is not None:
                return found
        return NO_CONSTRAINTS

    def _below(self, oid: int) -> Iterator[int]:
        """The type, and what it is a domain over."""
        info = self.types.get(oid)
        while info is not None:
            yield info.oid
            info = self.types.get(info.base) if info.kind is TypeKind.DOMAIN else None
