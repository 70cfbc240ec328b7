"""The operations that a table can be exposed with, as data (tables-3, tables-12)."""

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
    """What an insert does when the primary key exists already."""

    NOTHING = "on conflict do nothing"
    UPDATE = "on conflict do update"


@dataclass(frozen=True, slots=True)
class Operation(Record):
    """One of the things that can be done to a table."""

    name: str
    """As `CrudTypes` of the configuration spells it."""
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
        """Its own, and those that mean the same (RFC 9110 and RFC 10008)."""
        others = {Command.SELECT: ("QUERY",), Command.UPDATE: ("PATCH",)}.get(self.command, ())
        return frozenset((self.method, *others))

    def head(self, table: str) -> str:
        """`insert into public.depot on conflict do nothing returning`, for people."""
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
"""What only reads comes first: where a comment gives several of them one method and path, the first one has it."""

NAMES: tuple[str, ...] = tuple(operation.name for operation in OPERATIONS)

Variant = tuple[Conflict | None, bool]
"""What happens on a conflict, and whether rows come back."""

PATTERNS: Mapping[Variant, str] = {
    (None, True): "{0}/returning",
    (Conflict.NOTHING, False): "{0}/on-conflict-do-nothing",
    (Conflict.NOTHING, True): "{0}/on-conflict-do-nothing/returning",
    (Conflict.UPDATE, False): "{0}/on-conflict-do-update",
    (Conflict.UPDATE, True): "{0}/on-conflict-do-update/returning",
}
"""Paths, `{0}` standing for the table's own, which the variant without either has."""
