"""Endpoints with what is proven about their values (`Service:ExactTypes`): descriptions and clients tell it.

What a routine declares is taken at its word: the rows of `returns setof depot` are rows of that table, and a set of a
NOT NULL domain has no NULL. What nobody declares and nothing proves may be NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from rowcall.core.catalogue.catalog import RoutineKind, TypeInfo, TypeKind
from rowcall.core.catalogue.facts import NOTHING_KNOWN, Proofs, ValueFacts, keeps_nulls_out
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ResultColumn, ResultShape
from rowcall.core.sqlfile.source import FileSource
from rowcall.core.tables.operations import Command
from rowcall.core.tables.routines import TableOperation

_WRITES = (Command.INSERT, Command.UPDATE)


def exact_types(types: Mapping[int, TypeInfo], proofs: Proofs) -> dict[int, TypeInfo]:
    """Attributes of composites with what is known of them; a composite itself may be NULL as a whole."""
    known = _Known(types, proofs)
    return {oid: known.composite(info) for oid, info in types.items()}


def exact_endpoint(endpoint: Endpoint, types: Mapping[int, TypeInfo], proofs: Proofs) -> Endpoint:
    known = _Known(types, proofs)
    parameters = tuple(replace(one, facts=known.parameter(endpoint, one)) for one in endpoint.parameters)
    return replace(endpoint, parameters=parameters, shape=known.shape(endpoint, endpoint.shape))


@dataclass(frozen=True, slots=True)
class _Known:
    types: Mapping[int, TypeInfo]
    proofs: Proofs

    def type(self, oid: int) -> ValueFacts:
        """Of an enum, a domain, or an array of such."""
        found = NOTHING_KNOWN
        info = self.types.get(oid)
        while info is not None:
            found = found.besides(self.proofs.types.get(info.oid, NOTHING_KNOWN))
            if info.kind is TypeKind.ARRAY:
                element = self.type(info.element)
                return ValueFacts(found.never_null, element.choices)
            info = self.types.get(info.base) if info.kind is TypeKind.DOMAIN else None
        return found

    def composite(self, info: TypeInfo) -> TypeInfo:
        if info.kind is not TypeKind.COMPOSITE:
            return info
        attributes = []
        for one in info.attributes:
            told = self.proofs.attributes.get((info.oid, one.name), NOTHING_KNOWN).besides(self.type(one.type_oid))
            attributes.append(replace(one, facts=replace(told, never_null=False)))
        return replace(info, attributes=tuple(attributes))

    # --- what comes in ---------------------------------------------------------------------------------------------

    def parameter(self, endpoint: Endpoint, parameter: EndpointParameter) -> ValueFacts:
        routine = endpoint.routine
        source = routine.source
        if isinstance(source, TableOperation):
            if parameter.position >= len(source.columns):
                return NOTHING_KNOWN
            column = source.columns[parameter.position]
            own = self.proofs.attributes.get((source.table.row_type_oid, column.name), NOTHING_KNOWN)
            told = own.besides(self.type(column.type_oid))
            return told if source.operation.command in _WRITES else replace(told, never_null=False)
        if parameter.position >= len(routine.parameters):
            return NOTHING_KNOWN
        whole = routine.parameters[parameter.position]
        if parameter.attribute is not None:
            info = self.types.get(whole.type_oid)
            fields = () if info is None else self.composite(info).attributes
            return next((one.facts for one in fields if one.name == parameter.attribute), NOTHING_KNOWN)
        told = self.type(whole.type_oid)
        # A null makes PostgreSQL leave out the call of a STRICT function: it has no use.
        strict = routine.strict and routine.kind is RoutineKind.FUNCTION
        return replace(told, never_null=True) if strict else told

    # --- what comes out --------------------------------------------------------------------------------------------

    def shape(self, endpoint: Endpoint, shape: ResultShape) -> ResultShape:
        columns = tuple(
            replace(one, column=replace(one.column, facts=self._column(endpoint, shape, one))) for one in shape.columns
        )
        parts = tuple(replace(part, shape=self.shape(endpoint, part.shape)) for part in shape.parts)
        facts = self.type(endpoint.routine.return_type_oid)
        return replace(shape, columns=columns, parts=parts, facts=replace(facts, never_null=False))

    def _column(self, endpoint: Endpoint, shape: ResultShape, column: ResultColumn) -> ValueFacts:
        routine = endpoint.routine
        found, told = self.type(column.column.type_oid), NOTHING_KNOWN
        rows = shape.is_set
        if column.group is not None:
            return replace(self._of_row(column.group.type_oid, column).besides(found), never_null=False)
        source = routine.source
        if isinstance(source, TableOperation):
            told = self._of_row(source.table.row_type_oid, column)
            # A trigger may say what a view's row is after it has been written.
            rows = routine.kind is RoutineKind.TABLE or source.operation.command is Command.SELECT
        elif isinstance(source, FileSource):
            told = self.proofs.columns.get(column.column.origin, NOTHING_KNOWN)
            rows = all(keeps_nulls_out(one.text) for one in source.statements)
        elif routine.returns_composite:
            told = self._of_row(routine.return_type_oid, column)
        both = told.besides(found)
        return both if rows else replace(both, never_null=False)

    def _of_row(self, oid: int, column: ResultColumn) -> ValueFacts:
        for one in self._below(oid):
            found = self.proofs.attributes.get((one, column.column.name))
            if found is not None:
                return found
        return NOTHING_KNOWN

    def _below(self, oid: int) -> Iterator[int]:
        """The type, and what it is a domain over."""
        info = self.types.get(oid)
        while info is not None:
            yield info.oid
            info = self.types.get(info.base) if info.kind is TypeKind.DOMAIN else None
