"""The database as data: frozen values that discovery reads from the catalogue.

This module makes no decisions. Discovery (`service.discovery.catalogue`) creates these values with a handful of
queries; `core.building.endpoint_builder` builds an `Endpoint` from a `Routine` and its comment.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rowcall.core.catalogue.installation import NOT_INSTALLED, Installation
from rowcall.core.catalogue.source import Source
from rowcall.core.catalogue.value_constraints import NO_CONSTRAINTS, ValueConstraints
from rowcall.core.data.record import Record
from rowcall.core.errors.diagnostics import Diagnostic

FIRST_USER_OID = 16384
"""First oid of objects that users have created. Another database may have another oid for a type of the same name."""
VOID_TYPE = 2278
"""Oid of the pseudo-type `void`, the same in every database."""


class TypeKind(enum.Enum):
    """`pg_type.typtype`, with arrays as a separate kind."""

    BASE = "b"
    ARRAY = "a"
    COMPOSITE = "c"
    DOMAIN = "d"
    ENUM = "e"
    PSEUDO = "p"
    RANGE = "r"
    MULTIRANGE = "m"


@dataclass(frozen=True, slots=True)
class Attribute(Record):
    """An attribute of a composite or table type. Attributes are in declaration order, without dropped ones."""

    name: str
    type_oid: int
    type_name: str
    """`format_type` text, with the type modifier, ready for a cast."""
    constraints: ValueConstraints = NO_CONSTRAINTS


@dataclass(frozen=True, slots=True)
class TypeInfo(Record):
    """A type of the database: one row of `pg_type`."""

    oid: int
    schema: str
    name: str
    """Bare `typname`."""
    display: str
    """`regtype` text under the search path of discovery, for display: `integer`, `text[]`, `shop."Box"`."""
    kind: TypeKind
    element: int = 0
    """Element type of an array, else 0."""
    delimiter: str = ","
    """Separator between the elements of an array *of this type*: `;` for `box`."""
    base: int = 0
    """Base type of a domain (one level), else 0."""
    attributes: tuple[Attribute, ...] = ()
    """Attributes of a composite."""
    comment: str | None = None


def types_below(roots: Iterable[int], types: Mapping[int, TypeInfo]) -> dict[int, TypeInfo]:
    """Return the types to which `roots` refer, by oid: themselves, and recursively their elements, bases and
    attributes."""
    reachable: dict[int, TypeInfo] = {}
    pending = list(roots)
    while pending:
        info = types.get(pending.pop())
        if info is None or info.oid in reachable:
            continue
        reachable[info.oid] = info
        pending += [oid for oid in (info.element, info.base) if oid]
        pending += [attribute.type_oid for attribute in info.attributes]
    return reachable


class RoutineKind(enum.Enum):
    """Kind of the object behind an endpoint."""

    FUNCTION = "function"
    PROCEDURE = "procedure"
    TABLE = "table"
    VIEW = "view"
    FILE = "file"


class Volatility(enum.Enum):
    """`pg_proc.provolatile`."""

    IMMUTABLE = "i"
    STABLE = "s"
    VOLATILE = "v"


class ParameterMode(enum.Enum):
    """`pg_proc.proargmodes`."""

    IN = "i"
    INOUT = "b"
    VARIADIC = "v"
    OUT = "o"
    """Pure OUT: has no value, but a CALL (PostgreSQL 14 and newer) must contain it."""


@dataclass(frozen=True, slots=True)
class Parameter(Record):
    """A parameter of a routine. `Routine.parameters` has those with input (IN, INOUT, VARIADIC), in declaration order;
    `Routine.out_parameters` has pure OUT parameters."""

    name: str | None
    """As in the catalogue, unquoted; None for a parameter without name."""
    type_oid: int
    type_name: str
    """`regtype` text, for display. For SQL use `core.catalogue.casting.cast_text`: this text depends on the search
    path, and `character` and `bit` would cut values to one character."""
    mode: ParameterMode
    has_default: bool
    argument: int = 0
    """0-based position in the whole argument list, including pure OUT arguments."""
    exact: bool = False
    """See `core.endpoint.endpoint.EndpointParameter.exact`."""
    virtual: bool = False
    """See `core.endpoint.endpoint.EndpointParameter.virtual`."""
    placeholder: bool = False
    """Named by SQL text that rowcall reads. There, upper case does not mean that the name was quoted: `:UserId`."""
    record: int = 0
    """Oid of the declared composite type of a file's parameter, which is sent as text; else 0."""


@dataclass(frozen=True, slots=True)
class Column(Record):
    """An output column (OUT, INOUT, TABLE) or an attribute of the returned composite."""

    name: str
    type_oid: int
    type_name: str
    constraints: ValueConstraints = NO_CONSTRAINTS
    origin: tuple[int, int] = (0, 0)
    """For a file's column that is a column of a table or view without changes: the oid of the relation and the number
    of the column."""
    table_column: str = ""
    """`schema.table.column` if the values are known to be those of a column of a table; else empty."""


@dataclass(frozen=True, slots=True)
class Owner(Record):
    """The role that owns an object.

    powerful: whether the role is a superuser, the owner of the database, or the service's own role. If it is, its
    comments are trusted: publishing an object gives it no power that it does not have.
    """

    name: str
    powerful: bool = True


@dataclass(frozen=True, slots=True)
class Routine(Record):
    """The object behind an endpoint: a function or procedure that the connected role may call, or an object with SQL of
    its own (`source`): an operation on a table, or a file."""

    oid: int
    kind: RoutineKind
    schema: str
    name: str
    comment: str | None
    language: str
    strict: bool
    volatility: Volatility
    returns_set: bool
    return_type_oid: int
    return_type_name: str
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    """Named output columns in order. Empty for a plain scalar, `setof scalar`, anonymous record, void, procedure. For a
    routine that returns a composite or table type directly, the attributes of this type."""
    returns_composite: bool = False
    """True if `columns` are the attributes of a directly returned composite (not OUT/TABLE names)."""
    out_parameters: tuple[Parameter, ...] = ()
    """Pure OUT parameters of a procedure, which a CALL has to contain."""
    source: Source | None = None
    """None: a function or procedure, which is called."""
    sets_response: bool = False
    """The source text of the routine contains the settings `response.status` or `response.headers`."""
    owner: Owner | None = None
    """None for files, which belong to the operator."""
    may_commit: bool = False
    """The routine is a procedure whose source may commit, or cannot be read; or a file with a statement that may
    commit, or that PostgreSQL refuses in a transaction block."""
    of_extension: bool = False
    """The object belongs to an extension, whose author wrote the comment."""
    version: str = ""
    """Version of a function or procedure: changes if it is replaced or altered."""

    @property
    def precedence(self) -> tuple[bool, int]:
        """Sort key for routines that claim the same route or tool name; the routine with the lowest key gets it.
        Routines of a powerful owner and files precede others, then older routines precede newer ones."""
        return self.owner is not None and not self.owner.powerful, self.oid

    @property
    def identity(self) -> str:
        """`schema.name(type, type)`, for messages and for a stable order."""
        if self.source is not None:
            return self.source.identity
        types = ", ".join(parameter.type_name for parameter in self.parameters)
        return f"{self.schema}.{self.name}({types})"


def names_response(text: str) -> bool:
    """Return whether SQL contains the settings for status or headers of the response.

    `service.discovery.queries` has the same rule for routines.
    """
    return "response.status" in text or "response.headers" in text


class Identity(enum.Enum):
    """`pg_attribute.attidentity`."""

    NONE = ""
    ALWAYS = "a"
    BY_DEFAULT = "d"


@dataclass(frozen=True, slots=True)
class TableColumn(Record):
    """A column that the connected role may read or write, with its privileges."""

    name: str
    type_oid: int
    type_name: str
    """`format_type` text with the type modifier, for display."""
    required: bool
    """The column is NOT NULL and has neither a default nor an identity, and is not generated."""
    identity: Identity
    readable: bool
    """The role may SELECT it."""
    filterable: bool
    """Readable, and of a type that the role may use in SQL, so that a request may filter by the column."""
    insertable: bool
    """The role may INSERT it, and it is not generated."""
    updatable: bool
    """The role may UPDATE it, and it is neither generated nor GENERATED ALWAYS AS IDENTITY."""
    equality: str | None
    """The operator as SQL, `=` or `operator("ext".=)`; None: the type has no operator that compares values."""


@dataclass(frozen=True, slots=True)
class Table(Record):
    """A table or another relation that is read like a table: view, partitioned or foreign table, materialized view."""

    oid: int
    kind: RoutineKind
    """TABLE or VIEW."""
    schema: str
    name: str
    comment: str | None
    row_type_oid: int
    columns: tuple[TableColumn, ...]
    """In the order of the table."""
    key: tuple[str, ...]
    """Columns of the primary key; empty without a key, and if the role may not read all of them."""
    key_decides: bool
    """INSERT … ON CONFLICT can name the key, because the key is not deferrable."""
    deletable: bool
    """Rows can be deleted: the kind of relation and the privileges of the role allow it."""
    of_extension: bool = False
    """The object belongs to an extension, whose author wrote the comment."""
    owner: Owner | None = None
    silent: int = 0
    """Commands whose rules return no rows, as the sum of 4 (UPDATE), 8 (INSERT) and 16 (DELETE)."""
    ruled: bool = False
    """The table has rules for UPDATE or INSERT, with which PostgreSQL does not support ON CONFLICT."""

    @property
    def finds_conflicts(self) -> bool:
        """Whether an insert can find an existing row with the same key (ON CONFLICT)."""
        return bool(self.key) and self.key_decides and not self.ruled


@dataclass(frozen=True, slots=True)
class Catalog(Record):
    """The result of discovery for one connection."""

    server_version: int
    """As `server_version_num`: 150018."""
    routines: tuple[Routine, ...] = ()
    """Sorted by schema, name, oid."""
    types: Mapping[int, TypeInfo] = field(default_factory=dict)
    """All types of parameters, columns, attributes and elements, by oid."""
    tables: tuple[Table, ...] = ()
    """Sorted by schema and name."""
    files: tuple[Routine, ...] = ()
    """Routines of `.sql` files, in the order of their paths."""
    installation: Installation = NOT_INSTALLED
    """The schema `rowcall` (`rowcall --install`)."""
    left_out: tuple[Diagnostic, ...] = ()
    """Objects that are not published because of their owner, a missing privilege or a switch."""
    broken: tuple[Diagnostic, ...] = ()
    """Files that are not served, already reported in the log."""
