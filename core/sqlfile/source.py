"""What an endpoint made of a file carries: its statements, ready to be prepared, and what each of them gives."""

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
    """What one statement gives."""

    key: str | None
    """Its name in the answer of a file with several statements; None: the result is dropped."""
    columns: tuple[Column, ...]
    """Empty: it gives no rows."""
    single: bool = False
    dropped: bool = False
    """`returns void`: its rows, if any, are dropped."""
    first_only: bool = False
    """`returns TYPE`: only the first column of each row counts, whatever it is called."""
    declared: bool = False
    """`returns TYPE`: the columns are what the comment says, whatever the statement gives."""


@dataclass(frozen=True, slots=True)
class FileStatement(Record):
    text: str
    numbers: tuple[int, ...]
    """0-based: which parameter of the file is `$1`, `$2` …"""
    types: tuple[int, ...]
    """Oids for `$1`, `$2` …; 0 leaves it to the server."""
    execution: ExecutionPlan
    result: FileResult


@dataclass(frozen=True, slots=True)
class FileSource(Record):
    """See `core.catalogue.source.Source`."""

    file: str
    """As it was found: `sql/orders.sql`."""
    method: str
    transport: Transport
    path: str
    statements: tuple[FileStatement, ...]
    compared: frozenset[str] = frozenset()
    claimed: frozenset[str] = frozenset()
    """Comment lines that mean something to the file alone."""
    module: str | None = None
    """The folder that its module of generated client code is named after."""
    unnamed: bool = True
    """A set of one column is told as an array of values."""
    fingerprint: str = ""
    """Of the text it was made from."""
    warnings: tuple[str, ...] = ()
    """What stands in it and hardly was meant like that."""

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
        """Its answer is one object with a key for each statement."""
        return len(self.statements) > 1

    def first_alone(self) -> FileSource:
        """The file as if it ended behind its first statement."""
        first = self.statements[0]
        alone = replace(first, execution=replace(first.execution, last=True))
        return replace(self, statements=(alone,))

    def sql(self, endpoint: Endpoint, present: int) -> str:
        return ";\n".join(statement.text for statement in self.statements)
