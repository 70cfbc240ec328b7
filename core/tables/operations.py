"""The operations on tables that can be exposed, as data (tables-3, tables-12)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from rowcall.core.catalogue.source import Transport
from rowcall.core.data.record import Record


class Command(enum.Enum):
    SELECT = "select"
    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


class Conflict(enum.Enum):
    """Action of an insert if the primary key exists already."""

    NOTHING = "on conflict do nothing"
    UPDATE = "on conflict do update"


@dataclass(frozen=True, slots=True)
class Operation(Record):
    """One operation on a table. conflict: None: an existing key is an error. returning: rows are returned."""

    name: str
    """Name in `CrudTypes` of the configuration."""
    command: Command
    method: str
    tags: frozenset[str]
    conflict: Conflict | None = None
    returning: bool = False

    @property
    def transport(self) -> Transport:
        return Transport.QUERY if self.method in ("GET", "DELETE") else Transport.BODY

    @property
    def methods(self) -> frozenset[str]:
        """The method of the operation, and methods with the same meaning (RFC 9110 and RFC 10008)."""
        others = {Command.SELECT: ("QUERY",), Command.UPDATE: ("PATCH",)}.get(self.command, ())
        return frozenset((self.method, *others))

    def head(self, table: str) -> str:
        """Return the beginning of the statement on a table, for display: `insert into public.depot on conflict do
        nothing returning`. table: `schema.name`."""
        words = (_HEADS[self.command], table, *self.label.split()[1:])
        return " ".join(words)

    @property
    def label(self) -> str:
        """`insert on conflict do nothing returning`, for messages."""
        words = (
            self.command.value,
            self.conflict.value if self.conflict else "",
            "returning" if self.returning else "",
        )
        return " ".join(word for word in words if word)


_HEADS = {
    Command.SELECT: "select",
    Command.UPDATE: "update",
    Command.DELETE: "delete from",
    Command.INSERT: "insert into",
}


def _tags(*words: str) -> frozenset[str]:
    return frozenset(words)


_INSERT = ("insert", "put", "create")
_NOTHING = (*_INSERT, "on_conflict", "on_conflict_do_nothing")
_UPDATE = (*_INSERT, "on_conflict", "on_conflict_do_update")

OPERATIONS: tuple[Operation, ...] = (
    Operation("Select", Command.SELECT, "GET", _tags("select", "read", "get")),
    Operation("Update", Command.UPDATE, "POST", _tags("update", "post")),
    Operation(
        "UpdateReturning",
        Command.UPDATE,
        "POST",
        _tags("update", "post", "update_returning", "returning"),
        returning=True,
    ),
    Operation("Insert", Command.INSERT, "PUT", _tags(*_INSERT)),
    Operation(
        "InsertReturning", Command.INSERT, "PUT", _tags(*_INSERT, "insert_returning", "returning"), returning=True
    ),
    Operation(
        "InsertOnConflictDoNothing",
        Command.INSERT,
        "PUT",
        _tags(*_NOTHING, "insert_on_conflict_do_nothing"),
        Conflict.NOTHING,
    ),
    Operation(
        "InsertOnConflictDoNothingReturning",
        Command.INSERT,
        "PUT",
        _tags(*_NOTHING, "insert_on_conflict_do_nothing_returning", "returning"),
        Conflict.NOTHING,
        returning=True,
    ),
    Operation(
        "InsertOnConflictDoUpdate",
        Command.INSERT,
        "PUT",
        _tags(*_UPDATE, "insert_on_conflict_do_update"),
        Conflict.UPDATE,
    ),
    Operation(
        "InsertOnConflictDoUpdateReturning",
        Command.INSERT,
        "PUT",
        _tags(*_UPDATE, "insert_on_conflict_do_update_returning", "returning"),
        Conflict.UPDATE,
        returning=True,
    ),
    Operation("Delete", Command.DELETE, "DELETE", _tags("delete")),
    Operation(
        "DeleteReturning",
        Command.DELETE,
        "DELETE",
        _tags("delete", "delete_returning", "returning"),
        returning=True,
    ),
)
"""All operations. Those that only read come first: if a comment gives several operations the same method and path, the
first one is served."""

NAMES: tuple[str, ...] = tuple(operation.name for operation in OPERATIONS)

Variant = tuple[Conflict | None, bool]
"""Action on a conflict, and whether rows are returned."""

PATTERNS: Mapping[Variant, str] = {
    (None, True): "{0}/returning",
    (Conflict.NOTHING, False): "{0}/on-conflict-do-nothing",
    (Conflict.NOTHING, True): "{0}/on-conflict-do-nothing/returning",
    (Conflict.UPDATE, False): "{0}/on-conflict-do-update",
    (Conflict.UPDATE, True): "{0}/on-conflict-do-update/returning",
}
"""Paths of variants. `{0}` is the path of the table. The variant without conflict and rows has this path itself."""
