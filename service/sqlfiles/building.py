"""Makes a routine of a parsed SQL file and of what the server has said about its types and statements. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from rowcall.core.catalogue.catalog import (
    VOID_TYPE,
    Column,
    Parameter,
    ParameterMode,
    Routine,
    RoutineKind,
    TypeInfo,
    TypeKind,
    Volatility,
    names_response,
)
from rowcall.core.catalogue.source import Transport
from rowcall.core.config.sections.sqlfiles import SqlFileOptions
from rowcall.core.sqlfile.commands import Effect, Suspects, effect, execution_plans, is_hidden, leaves_open, may_commit
from rowcall.core.sqlfile.reading import SqlFile
from rowcall.core.sqlfile.source import FileResult, FileSource, FileStatement
from rowcall.core.sqlfile.statement_comments import StatementNotes, VirtualParameter
from rowcall.core.text.naming import default_path
from rowcall.service.sqlfiles.describing import StatementDescription
from rowcall.service.sqlfiles.parsing import ParsedFile

_RECORD = 2249
"""Oid of the pseudo-type `record`."""
VOID = "void"
"""What `returns` names if the rows of a statement are dropped."""
_LEFT_OPEN = "a transaction is begun and not ended, so nothing that is done in it stays; end it with commit"


@dataclass(frozen=True, slots=True)
class Naming:
    """How paths are made from names. prefix: of every path; None: there is none. kebab: names become `kebab-case`."""

    prefix: str | None
    kebab: bool


def is_void(type_name: str) -> bool:
    """Return whether the name is `void`, in any case."""
    return type_name.lower() == VOID


@dataclass(frozen=True, slots=True)
class NamedTypes:
    """The types that comments name: their oids by name, and what is known of them by oid."""

    oids: Mapping[str, int]
    types: Mapping[int, TypeInfo]

    def parameter_types(self, file: SqlFile, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return the oids of the types to send for parameters; 0 for a type that the server infers. numbers: of the
        parameters, from 0.
        """
        return tuple(self.parameter_type(file, number) for number in numbers)

    def parameter_type(self, file: SqlFile, number: int) -> int:
        """Return the oid of the type of a parameter; 0: the server infers it, as for a composite, which is sent as text
        that the statement casts. number: of the parameter, from 0.
        """
        oid = self._declared_type(file, number)
        return 0 if self._is_composite(oid) else oid

    def record_type(self, file: SqlFile, number: int) -> int:
        """Return the oid of the composite type that the comment declares for a parameter; 0: it declares none. number:
        of the parameter, from 0.
        """
        oid = self._declared_type(file, number)
        return oid if self._is_composite(oid) else 0

    def virtual_type(self, virtual: VirtualParameter) -> str | None:
        """Return the name of the type of a parameter that no statement uses; None: its line names no known type."""
        return next((name for name in virtual.readings if name in self.oids), None)

    def virtual_warnings(self, file: SqlFile) -> Iterator[str]:
        """Yield a message for each `define_param` line with an unknown type, or with words behind the type."""
        for virtual in file.notes.virtual:
            type_name = self.virtual_type(virtual)
            if type_name is None:
                yield f"{virtual.line!r}: {virtual.type_name!r} is no type, so the parameter is text"
            elif type_name != virtual.type_name:
                yield f"{virtual.line!r}: what follows the type {type_name} is ignored"

    def is_result_type(self, name: str) -> bool:
        """Return whether `returns` may name this type: `void`, or a type that a column can have."""
        oid = self.oids.get(name, 0)
        return is_void(name) or (oid in self.types and self.types[oid].kind is not TypeKind.PSEUDO)

    def _declared_type(self, file: SqlFile, number: int) -> int:
        """Return the oid of the type that the comment declares for a parameter; 0: it declares no known type. number:
        of the parameter, from 0.
        """
        hint = file.notes.hints.get(number)
        readings = () if hint is None else hint.readings
        oid = next((self.oids[name] for name in readings if name in self.oids), 0)
        return oid if oid in self.types else 0

    def _is_composite(self, oid: int) -> bool:
        return oid != 0 and self.types[oid].kind is TypeKind.COMPOSITE


class RoutineBuilder:
    """Builds the routines of files that one database has described.

    types: those that comments name, and those of the described columns. described: by path and index of the statement.
    table_columns: `schema.table.column` by oid of the relation and number of the column. suspects: the functions and
    views of the database that may have side effects.
    """

    def __init__(
        self,
        options: SqlFileOptions,
        naming: Naming,
        types: NamedTypes,
        described: Mapping[tuple[str, int], StatementDescription],
        table_columns: Mapping[tuple[int, int], str],
        suspects: Suspects,
    ) -> None:
        self._options = options
        self._naming = naming
        self._types = types
        self._described = described
        self._table_columns = table_columns
        self._suspects = suspects

    def build(self, parsed: ParsedFile) -> Routine | None:
        """Return the routine; None for a file without a statement."""
        file = parsed.file
        if not file.statements:
            return None
        effects = [effect(statement, self._suspects) for statement in file.statements]
        ways = execution_plans(file.statements, effects, wrapped=self._options.wrapped)
        results = self._results(parsed)
        statements = tuple(
            FileStatement(
                numbered.text, numbered.numbers, self._types.parameter_types(file, numbered.numbers), way, result
            )
            for numbered, way, result in zip(file.parameters.statements, ways, results, strict=True)
        )
        name = PurePosixPath(parsed.path).stem
        reads = all(what is Effect.READ for what in effects)
        in_query = file.method in ("GET", "DELETE")
        source = FileSource(
            file=parsed.path,
            method=file.method,
            transport=Transport.QUERY if in_query else Transport.BODY,
            path=default_path("public", name, self._naming.prefix, self._naming.kebab),
            statements=statements,
            claimed=frozenset(file.notes.claimed),
            module=self._module(parsed.path),
            unnamed=self._options.unnamed,
            fingerprint=hashlib.sha256(file.text.encode()).hexdigest()[:16],
            warnings=(
                *file.notes.warnings,
                *self._types.virtual_warnings(file),
                *((_LEFT_OPEN,) if leaves_open(effects) else ()),
            ),
        )
        columns = statements[0].result.columns
        return Routine(
            oid=0,
            kind=RoutineKind.FILE,
            schema="public",
            name=name,
            comment=file.comment,
            language="sql",
            strict=False,
            volatility=Volatility.STABLE if reads else Volatility.VOLATILE,
            returns_set=bool(columns),
            return_type_oid=_RECORD if columns else VOID_TYPE,
            return_type_name="record" if columns else "void",
            parameters=tuple(self._parameters(file)),
            columns=columns,
            source=source,
            sets_response=any(names_response(statement.text) for statement in source.statements),
            may_commit=may_commit(effects),
        )

    def _parameters(self, file: SqlFile) -> list[Parameter]:
        """Return the parameters of the statements in order, and behind them the virtual ones of the comment."""
        parameters = []
        for number, name in enumerate(file.parameters.names):
            oid = self._types.parameter_type(file, number)
            type_name = self._types.types[oid].display if oid else "text"
            own = None if name.startswith("$") else name
            parameters.append(
                Parameter(
                    own,
                    oid,
                    type_name,
                    ParameterMode.IN,
                    has_default=False,
                    argument=number,
                    placeholder=own is not None,
                    record=self._types.record_type(file, number),
                )
            )
        for virtual in file.notes.virtual:
            declared = self._types.virtual_type(virtual)
            oid = self._types.oids.get(declared or "", 0)
            argument = len(parameters)
            parameters.append(
                Parameter(
                    virtual.name, oid, declared or "text", ParameterMode.IN, has_default=True, argument=argument,
                    virtual=True,
                )
            )  # fmt: skip
        return parameters

    def _results(self, parsed: ParsedFile) -> list[FileResult]:
        """Return the result of each statement; that of a hidden one has no key."""
        results = []
        several = len(parsed.file.statements) > 1
        visible = 0
        for index, (statement, about) in enumerate(
            zip(parsed.file.statements, parsed.file.notes.statements, strict=True)
        ):
            hidden = about.skip or (several and self._options.hide and is_hidden(statement))
            visible += not hidden
            key = None if hidden else about.name or f"{self._options.prefix}{visible}"
            results.append(self._result(about, key, self._described.get((parsed.path, index))))
        return results

    def _result(self, about: StatementNotes, key: str | None, described: StatementDescription | None) -> FileResult:
        """Return the result of a statement. about: what its comment says; a type that it declares takes precedence.
        key: name of the result in the response; None: it is hidden. described: None: the server was not asked.
        """
        if about.returns == VOID:
            return FileResult(key, (), about.single, dropped=True)
        if about.returns is not None:
            info = self._types.types[self._types.oids[about.returns]]
            if info.kind is TypeKind.COMPOSITE and info.attributes:
                columns = tuple(Column(item.name, item.type_oid, item.type_name) for item in info.attributes)
                return FileResult(key, columns, about.single, declared=True)
            column = Column(about.returns, info.oid, info.display)
            return FileResult(key, (column,), about.single, first_only=True, declared=True)
        if described is None:
            return FileResult(key, (), about.single)
        columns = tuple(
            Column(
                name,
                oid,
                self._types.types[oid].display,
                origin=origin,
                table_column=self._table_columns.get(origin, ""),
            )
            for (name, oid), origin in zip(described.columns, described.origins, strict=True)
        )
        return FileResult(key, columns, about.single)

    def _module(self, path: str) -> str:
        """Return the module of a file: the first folder of its path below the folder of the pattern.

        For a file directly in the folder of the pattern, this is the name of that folder.
        """
        base = PurePosixPath(self._options.folder)
        inner = PurePosixPath(path)
        below = inner.relative_to(base).parts if inner.is_relative_to(base) else inner.parts
        return below[0] if len(below) > 1 else PurePosixPath(base).name
