"""Operations on tables as routines: one `Routine` for each operation (tables-3 to tables-5).

The operations depend on the table and on the privileges of the connected role. `core.tables.statements` has their SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rowcall.core.catalogue.catalog import (
    VOID_TYPE,
    Column,
    Parameter,
    ParameterMode,
    Routine,
    RoutineKind,
    Table,
    TableColumn,
    Volatility,
)
from rowcall.core.catalogue.source import Transport
from rowcall.core.data.record import Record
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.tables.operations import NAMES, OPERATIONS, PATTERNS, Command, Operation, Variant
from rowcall.core.tables.statements import statement
from rowcall.core.text.naming import default_path


@dataclass(frozen=True, slots=True)
class TableDefaults:
    """The settings of the configuration for endpoints of tables."""

    operations: frozenset[str] = frozenset(NAMES)
    patterns: Mapping[Variant, str] = field(default_factory=lambda: PATTERNS)
    """Paths of variants; `{0}` is the path of the table."""
    url_path_prefix: str | None = None
    """None: the default; empty: none."""
    kebab_case_urls: bool = True


@dataclass(frozen=True, slots=True)
class TableOperation(Record):
    """The `core.catalogue.source.Source` of an operation."""

    operation: Operation
    table: Table
    columns: tuple[TableColumn, ...]
    """The column of each parameter of the routine, in order."""
    path: str

    @property
    def identity(self) -> str:
        return f"{self.table.schema}.{self.table.name} ({self.operation.label})"

    @property
    def method(self) -> str:
        return self.operation.method

    @property
    def transport(self) -> Transport:
        return self.operation.transport

    @property
    def methods(self) -> frozenset[str]:
        return self.operation.methods

    @property
    def writes(self) -> bool:
        return self.operation.command is not Command.SELECT

    @property
    def compared(self) -> frozenset[str]:
        match self.operation.command:
            case Command.INSERT:
                return frozenset()
            case Command.UPDATE:
                return frozenset(self.table.key)
        return frozenset(column.name for column in self.columns)

    @property
    def claimed(self) -> frozenset[str]:
        return frozenset()

    @property
    def tags(self) -> frozenset[str]:
        return self.operation.tags

    def sql(self, endpoint: Endpoint, present: int) -> str:
        return statement(self.operation, self.table, self.columns, endpoint, present)


def table_routines(tables: Iterable[Table], defaults: TableDefaults) -> Iterator[Routine]:
    """Yield the configured operations that each table allows, table by table, in the order of `OPERATIONS`."""
    for table in tables:
        parts = _TableParts(table)
        for operation in OPERATIONS:
            if operation.name in defaults.operations and _is_possible(operation, table):
                yield _routine(operation, parts, defaults)


def _is_possible(operation: Operation, table: Table) -> bool:
    """Return whether the table and the privileges of the role allow the operation (tables-4)."""
    readable = any(column.readable for column in table.columns)
    if operation.returning and (not readable or table.silent & _BITS.get(operation.command, 0)):
        return False
    if operation.conflict is not None and not table.finds_conflicts:
        return False
    match operation.command:
        case Command.SELECT:
            return readable
        case Command.DELETE:
            return table.deletable and any(column.filterable for column in table.columns)
        case Command.UPDATE:
            return bool(table.key) and any(_is_settable(column, table) for column in table.columns)
        case Command.INSERT:
            return any(column.insertable for column in table.columns)


_BITS = {Command.UPDATE: 4, Command.INSERT: 8, Command.DELETE: 16}
"""The bits of `Table.silent`."""


def _is_settable(column: TableColumn, table: Table) -> bool:
    """Return whether an UPDATE may set the column."""
    return column.updatable and column.name not in table.key


_CHOICES: dict[Command, Callable[[TableColumn, Table], bool]] = {
    Command.SELECT: lambda column, _table: column.filterable,
    Command.DELETE: lambda column, _table: column.filterable,
    Command.UPDATE: lambda column, table: column.name in table.key or column.updatable,
    Command.INSERT: lambda column, _table: column.insertable,
}
"""Command → function that returns whether a column is a parameter."""


def table_column(table: Table, column: TableColumn) -> str:
    """Return `schema.table.column`; empty for a view, whose columns may be expressions or columns of other tables."""
    return f"{table.schema}.{table.name}.{column.name}" if table.kind is RoutineKind.TABLE else ""


class _TableParts:
    """The result columns of a table, and the parameters for each command; created once for all operations on the
    table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.results = tuple(
            Column(column.name, column.type_oid, column.type_name, table_column=table_column(table, column))
            for column in table.columns
            if column.readable
        )
        self._chosen: dict[Command, tuple[tuple[TableColumn, ...], tuple[Parameter, ...]]] = {}

    def columns_for(self, command: Command) -> tuple[tuple[TableColumn, ...], tuple[Parameter, ...]]:
        """Return the columns that are parameters of the endpoint for this command, and these parameters."""
        if command not in self._chosen:
            columns = tuple(column for column in self.table.columns if _CHOICES[command](column, self.table))
            parameters = tuple(_parameter(column, command, position) for position, column in enumerate(columns))
            self._chosen[command] = columns, parameters
        return self._chosen[command]


def _routine(operation: Operation, parts: _TableParts, defaults: TableDefaults) -> Routine:
    """Return the routine of an operation on the table of `parts`."""
    table = parts.table
    columns, parameters = parts.columns_for(operation.command)
    gives_rows = operation.returning or operation.command is Command.SELECT
    return Routine(
        oid=table.oid,
        kind=table.kind,
        schema=table.schema,
        name=table.name,
        comment=table.comment,
        language="sql",
        strict=False,
        volatility=Volatility.STABLE if operation.command is Command.SELECT else Volatility.VOLATILE,
        returns_set=gives_rows,
        return_type_oid=table.row_type_oid if gives_rows else VOID_TYPE,
        return_type_name=table.name if gives_rows else "void",
        parameters=parameters,
        columns=parts.results if gives_rows else (),
        returns_composite=gives_rows,
        owner=table.owner,
        of_extension=table.of_extension,
        source=TableOperation(operation, table, columns, _path(operation, table, defaults)),
    )


def _parameter(column: TableColumn, command: Command, position: int) -> Parameter:
    """Return the parameter for a column. position: its index in the parameters of the routine."""
    required = command is Command.INSERT and column.required
    return Parameter(
        column.name, column.type_oid, column.type_name, ParameterMode.IN, not required, position, exact=True
    )


def _path(operation: Operation, table: Table, defaults: TableDefaults) -> str:
    """Return the path of an operation: that of the table, in the pattern of its variant."""
    base = default_path(table.schema, table.name, defaults.url_path_prefix, defaults.kebab_case_urls)
    pattern = defaults.patterns.get((operation.conflict, operation.returning))
    return base if pattern is None else "/" + pattern.replace("{0}", base.strip("/")).lstrip("/")
