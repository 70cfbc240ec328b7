"""Constraints of the values of endpoints (`Service:ExactTypes`), for documents and generated clients.

Declarations of a routine are trusted: rows of `returns setof depot` are rows of that table, and a set of a NOT NULL
domain contains no NULL. A value may be NULL unless a declaration or a constraint excludes NULL.
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
    """Return the types with constraints of their composite attributes. A composite value itself may be NULL."""
    reader = _ConstraintReader(types, constraints)
    return {oid: reader.composite(info) for oid, info in types.items()}


def exact_endpoint(endpoint: Endpoint, types: Mapping[int, TypeInfo], constraints: ColumnConstraints) -> Endpoint:
    """Return the endpoint with constraints of its parameters and of the columns of its result."""
    reader = _ConstraintReader(types, constraints)
    parameters = tuple(
        replace(parameter, constraints=reader.parameter(endpoint, parameter)) for parameter in endpoint.parameters
    )
    return replace(endpoint, parameters=parameters, shape=reader.shape(endpoint, endpoint.shape))


@dataclass(frozen=True, slots=True)
class _ConstraintReader:
    """Finds the constraints of values in types and columns of the catalogue. types: by oid."""

    types: Mapping[int, TypeInfo]
    constraints: ColumnConstraints

    def type(self, oid: int) -> ValueConstraints:
        """Return the constraints of an enum, a domain, or an array of these."""
        constraints = NO_CONSTRAINTS
        info = self.types.get(oid)
        while info is not None:
            constraints = constraints.combine(self.constraints.types.get(info.oid, NO_CONSTRAINTS))
            if info.kind is TypeKind.ARRAY:
                element = self.type(info.element)
                return ValueConstraints(constraints.never_null, element.choices)
            info = self.types.get(info.base) if info.kind is TypeKind.DOMAIN else None
        return constraints

    def composite(self, info: TypeInfo) -> TypeInfo:
        """Return a composite type with the constraints of its attributes, except `never_null`: if the composite
        itself is NULL, so are they. Another type is returned as it is."""
        if info.kind is not TypeKind.COMPOSITE:
            return info
        attributes = []
        for attribute in info.attributes:
            constraints = self.constraints.attributes.get((info.oid, attribute.name), NO_CONSTRAINTS).combine(
                self.type(attribute.type_oid)
            )
            attributes.append(replace(attribute, constraints=replace(constraints, never_null=False)))
        return replace(info, attributes=tuple(attributes))

    # --- parameters ------------------------------------------------------------------------------------------------

    def parameter(self, endpoint: Endpoint, parameter: EndpointParameter) -> ValueConstraints:
        """Return the constraints of a parameter. A parameter that only filters a table may be NULL; one of a STRICT
        function may not, because NULL prevents the call."""
        routine = endpoint.routine
        source = routine.source
        if isinstance(source, TableOperation):
            if parameter.position >= len(source.columns):
                return NO_CONSTRAINTS
            column = source.columns[parameter.position]
            own = self.constraints.attributes.get((source.table.row_type_oid, column.name), NO_CONSTRAINTS)
            constraints = own.combine(self.type(column.type_oid))
            return constraints if source.operation.command in _WRITES else replace(constraints, never_null=False)
        if parameter.position >= len(routine.parameters):
            return NO_CONSTRAINTS
        whole = routine.parameters[parameter.position]
        if parameter.attribute is not None:
            info = self.types.get(whole.type_oid)
            fields = () if info is None else self.composite(info).attributes
            return next(
                (attribute.constraints for attribute in fields if attribute.name == parameter.attribute), NO_CONSTRAINTS
            )
        constraints = self.type(whole.type_oid)
        # For NULL, PostgreSQL does not call a STRICT function, so NULL is not a useful value.
        strict = routine.strict and routine.kind is RoutineKind.FUNCTION
        return replace(constraints, never_null=True) if strict else constraints

    # --- results ---------------------------------------------------------------------------------------------------

    def shape(self, endpoint: Endpoint, shape: ResultShape) -> ResultShape:
        """Return a shape of the endpoint with the constraints of its columns and parts. The value of a result without
        columns may be NULL."""
        columns = tuple(
            replace(column, column=replace(column.column, constraints=self._column(endpoint, shape, column)))
            for column in shape.columns
        )
        parts = tuple(replace(part, shape=self.shape(endpoint, part.shape)) for part in shape.parts)
        constraints = self.type(endpoint.routine.return_type_oid)
        return replace(shape, columns=columns, parts=parts, constraints=replace(constraints, never_null=False))

    def _column(self, endpoint: Endpoint, shape: ResultShape, column: ResultColumn) -> ValueConstraints:
        """Return the constraints of a result column. It may be NULL if its row may be missing, if it belongs to a
        composite column, if its row is written through a view, or if a statement of the file may replace values by NULL
        (`keeps_nulls_out`)."""
        routine = endpoint.routine
        type_constraints, row_constraints = self.type(column.column.type_oid), NO_CONSTRAINTS
        rows = shape.is_set
        if column.group is not None:
            return replace(self._of_row(column.group.type_oid, column).combine(type_constraints), never_null=False)
        source = routine.source
        if isinstance(source, TableOperation):
            row_constraints = self._of_row(source.table.row_type_oid, column)
            # A trigger may change the row of a view after it was written.
            rows = routine.kind is RoutineKind.TABLE or source.operation.command is Command.SELECT
        elif isinstance(source, FileSource):
            row_constraints = self.constraints.columns.get(column.column.origin, NO_CONSTRAINTS)
            rows = all(keeps_nulls_out(statement.text) for statement in source.statements)
        elif routine.returns_composite:
            row_constraints = self._of_row(routine.return_type_oid, column)
        constraints = row_constraints.combine(type_constraints)
        return constraints if rows else replace(constraints, never_null=False)

    def _of_row(self, oid: int, column: ResultColumn) -> ValueConstraints:
        """Return the constraints of a column of a row type; if the row type is a domain, those of its base type. oid:
        of the row type. column: its name is the one in the row type."""
        for type_oid in self._type_and_bases(oid):
            constraints = self.constraints.attributes.get((type_oid, column.column.name))
            if constraints is not None:
                return constraints
        return NO_CONSTRAINTS

    def _type_and_bases(self, oid: int) -> Iterator[int]:
        """Yield the oid of the type and, if it is a domain, those of its base types."""
        info = self.types.get(oid)
        while info is not None:
            yield info.oid
            info = self.types.get(info.base) if info.kind is TypeKind.DOMAIN else None
