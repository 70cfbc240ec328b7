"""The source of an endpoint that a `.sql` file defines: its statements, ready to be prepared, and their results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rowcall.core.catalogue.catalog import Column
from rowcall.core.data.record import Record
from rowcall.core.sqlfile.execution import ExecutionPlan

if TYPE_CHECKING:
    from rowcall.core.catalogue.source import Transport
    from rowcall.core.endpoint.endpoint import Endpoint


@dataclass(frozen=True, slots=True)
class FileResult(Record):
    """The result of one statement. single: the comment says that it has one row, which is sent without an array."""

    key: str | None
    """Key of the result in the response of a file with several statements; None: the result is not in the response."""
    columns: tuple[Column, ...]
    """Empty: the statement returns no rows."""
    single: bool = False
    dropped: bool = False
    """`returns void`: the rows of the statement, if any, are dropped."""
    first_only: bool = False
    """`returns TYPE`: only the first column of each row is used, regardless of its name."""
    declared: bool = False
    """`returns TYPE`: the columns are those of the comment, regardless of what the statement returns."""


@dataclass(frozen=True, slots=True)
class FileStatement(Record):
    """One statement of a file, ready to be prepared."""

    text: str
    numbers: tuple[int, ...]
    """For `$1`, `$2` …: 0-based index of the parameter of the file."""
    types: tuple[int, ...]
    """Oids of the types of `$1`, `$2` …; 0: PostgreSQL infers the type."""
    execution: ExecutionPlan
    result: FileResult


@dataclass(frozen=True, slots=True)
class FileSource(Record):
    """The `core.catalogue.source.Source` of a routine that is an SQL file."""

    file: str
    """Path as discovered: `sql/orders.sql`."""
    method: str
    transport: Transport
    path: str
    statements: tuple[FileStatement, ...]
    compared: frozenset[str] = frozenset()
    """Always empty: names of parameters with which the source compares columns."""
    claimed: frozenset[str] = frozenset()
    """Comment lines that are annotations of files only; ordinary annotations ignore them."""
    module: str | None = None
    """The folder after which the module of generated client code is named."""
    unnamed: bool = True
    """A set with one column is sent as an array of values."""
    fingerprint: str = ""
    """Fingerprint of the file's text."""
    warnings: tuple[str, ...] = ()
    """Warnings about probable mistakes in the file."""

    @property
    def identity(self) -> str:
        return self.file

    @property
    def methods(self) -> frozenset[str]:
        return frozenset()

    @property
    def writes(self) -> bool:
        return False

    @property
    def tags(self) -> frozenset[str]:
        return frozenset()

    @property
    def several(self) -> bool:
        """Whether the response is one object with a key for each statement: the file has more than one."""
        return len(self.statements) > 1

    @property
    def stands_alone(self) -> bool:
        """Whether a statement may have to be the only one of its transaction: a CALL that commits, VACUUM."""
        return any(statement.execution.alone for statement in self.statements)

    def first_alone(self) -> FileSource:
        """Return the file with its first statement only. The execution plan of this statement is changed to `last`."""
        first = self.statements[0]
        alone = replace(first, execution=replace(first.execution, last=True))
        return replace(self, statements=(alone,))

    def sql(self, endpoint: Endpoint, present: int) -> str:
        return ";\n".join(statement.text for statement in self.statements)
