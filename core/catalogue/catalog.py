"""The database as data: what discovery read from the catalogue, frozen.

Nothing here decides anything. Discovery (`service.discovery.catalogue`) fills these values in a handful of
queries; `core.endpoint.endpoint` turns a `Routine` and its comment into an `Endpoint`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rowcall.core.catalogue.source import Source
from rowcall.core.catalogue.value_constraints import NO_CONSTRAINTS, ValueConstraints
from rowcall.core.data.record import Record
from rowcall.core.errors.diagnostics import Diagnostic

VOID_TYPE = 2278
"""Oid of the pseudo-type `void`, the same in every database."""


class TypeKind(enum.Enum):
    """`pg_type.typtype`, with arrays told apart."""

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
    """A live attribute (not dropped) of a composite or table type, in attribute order."""

    name: str
    type_oid: int
    type_name: str
    """`format_type` text, with the type modifier, ready for a cast."""
    constraints: ValueConstraints = NO_CONSTRAINTS


@dataclass(frozen=True, slots=True)
class TypeInfo(Record):
    """One row of `pg_type`."""

    oid: int
    schema: str
    name: str
    """Bare `typname`."""
    display: str
    """`regtype` text under the discovery search path, for people: `integer`, `text[]`, `shop."Box"`."""
    kind: TypeKind
    element: int = 0
    """Element type of an array, else 0."""
    delimiter: str = ","
    """How elements of an array *of this type* are separated: `;` for `box`."""
    base: int = 0
    """Base type of a domain (one level), else 0."""
    attributes: tuple[Attribute, ...] = ()
    """Attributes of a composite."""
    comment: str | None = None


def types_below(roots: Iterable[int], types: Mapping[int, TypeInfo]) -> dict[int, TypeInfo]:
    """Of `types`, those that these lead to: elements, bases and attributes included."""
    found: dict[int, TypeInfo] = {}
    pending = list(roots)
    while pending:
        info = types.get(pending.pop())
        if info is None or info.oid in found:
            continue
        found[info.oid] = info
        pending += [oid for oid in (info.element, info.base) if oid]
        pending += [attribute.type_oid for attribute in info.attributes]
    return found


class RoutineKind(enum.Enum):
    FUNCTION = "function"
    PROCEDURE = "procedure"
    TABLE = "table"
    VIEW = "view"
    FILE = "file"


class Volatility(enum.Enum):
    IMMUTABLE = "i"
    STABLE = "s"
    VOLATILE = "v"


class ParameterMode(enum.Enum):
    IN = "i"
    INOUT = "b"
    VARIADIC = "v"
    OUT = "o"
    """Pure OUT: takes no value, but a CALL (PostgreSQL 14 and newer) has to mention it."""


@dataclass(frozen=True, slots=True)
class Parameter(Record):
    """An input parameter (IN, INOUT, VARIADIC), in declaration order."""

    name: str | None
    """As the catalogue has it, unquoted; None when the parameter has no name."""
    type_oid: int
    type_name: str
    """`regtype` text, for people. For SQL use `core.catalogue.casting.cast_text`: this one depends on the search path,
    and `character` and `bit` would cut values to one character."""
    mode: ParameterMode
    has_default: bool
    argument: int = 0
    """0-based position in the whole argument list, pure OUT arguments included."""
    exact: bool = False
    """See `core.endpoint.endpoint.EndpointParameter.exact`."""
    virtual: bool = False
    """See `core.endpoint.endpoint.EndpointParameter.virtual`."""
    placeholder: bool = False
    """Named by SQL text that rowcall reads, where capitals are no sign of quotes: `:UserId`."""
    record: int = 0
    """Oid of the composite that a file's parameter is said to be, which travels as text; else 0."""


@dataclass(frozen=True, slots=True)
class Column(Record):
    """An output column (OUT, INOUT, TABLE) or an attribute of the returned composite."""

    name: str
    type_oid: int
    type_name: str
    constraints: ValueConstraints = NO_CONSTRAINTS
    origin: tuple[int, int] = (0, 0)
    """Of a file's column that is one of a table or view as it is: that relation's oid, and the column's number."""
    table_column: str = ""
    """`schema.table.column` if the values are known to be those of a table's column; else empty."""


@dataclass(frozen=True, slots=True)
class Owner(Record):
    """The role that an object belongs to.

    powerful: what it publishes it could do anyway: a superuser, the owner of the database, the service's own role.
    """

    name: str
    powerful: bool = True


@dataclass(frozen=True, slots=True)
class Routine(Record):
    """What an endpoint stands for: a function or procedure the connected role may call, or something that is exposed
    like one and has SQL of its own (`source`): one operation on a table, a file."""

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
    """Named output columns in order. Empty for a plain scalar, `setof scalar`, anonymous record, void, procedure.
    For a routine that returns a composite or table type directly, its attributes."""
    returns_composite: bool = False
    """True when `columns` are the attributes of one directly returned composite (not OUT/TABLE names)."""
    out_parameters: tuple[Parameter, ...] = ()
    """Pure OUT parameters of a procedure."""
    source: Source | None = None
    """None: a function or procedure, which is called."""
    sets_response: bool = False
    """Its text names the settings `response.status` or `response.headers`."""
    owner: Owner | None = None
    """None: nobody in the database; a file is the operator's own."""
    may_commit: bool = False
    """A procedure whose source says so, or cannot be read."""
    of_extension: bool = False
    """It belongs to an extension, whose author wrote the comment."""
    version: str = ""
    """Of a function or procedure: another one whenever it has been replaced or altered."""

    @property
    def identity(self) -> str:
        """`schema.name(type, type)`, for messages and for a stable order."""
        if self.source is not None:
            return self.source.identity
        types = ", ".join(parameter.type_name for parameter in self.parameters)
        return f"{self.schema}.{self.name}({types})"


def names_response(text: str) -> bool:
    """SQL that sets what an answer says, as `service.discovery.queries` looks for it in routines."""
    return "response.status" in text or "response.headers" in text


class Identity(enum.Enum):
    """`pg_attribute.attidentity`."""

    NONE = ""
    ALWAYS = "a"
    BY_DEFAULT = "d"


@dataclass(frozen=True, slots=True)
class TableColumn(Record):
    """A column that the connected role may read or write, with what it may do."""

    name: str
    type_oid: int
    type_name: str
    """`format_type` text with the type modifier, for people."""
    required: bool
    """NOT NULL, and nothing fills it: no default, identity or generation."""
    identity: Identity
    readable: bool
    """SELECT."""
    filterable: bool
    """Readable, and of a type that the role can name in SQL."""
    insertable: bool
    """INSERT, and not generated."""
    updatable: bool
    """UPDATE, and neither generated nor always an identity."""
    equality: str | None
    """The operator as SQL, `=` or `operator("ext".=)`; None: the type has none that compares values."""


@dataclass(frozen=True, slots=True)
class Table(Record):
    """A table or anything that is read like one: view, partitioned or foreign table, materialized view."""

    oid: int
    kind: RoutineKind
    """TABLE or VIEW."""
    schema: str
    name: str
    comment: str | None
    row_type_oid: int
    columns: tuple[TableColumn, ...]
    """In their order."""
    key: tuple[str, ...]
    """Columns of the primary key; empty without one, and where the role may not read all of them."""
    key_decides: bool
    """Conflicts with the key can be named in ON CONFLICT: it is not deferrable."""
    deletable: bool
    """Rows can be deleted, by the kind of relation and by the role's privilege."""
    of_extension: bool = False
    """It belongs to an extension, whose author wrote the comment."""
    owner: Owner | None = None
    silent: int = 0
    """Commands whose rules give no rows back: 4 UPDATE, 8 INSERT, 16 DELETE."""
    ruled: bool = False
    """It has rules for UPDATE or INSERT, beside which PostgreSQL knows no ON CONFLICT."""


@dataclass(frozen=True, slots=True)
class Catalog(Record):
    """Everything discovery found, for one connection."""

    server_version: int
    """As `server_version_num`: 150018."""
    routines: tuple[Routine, ...] = ()
    """Sorted by schema, name, oid."""
    types: Mapping[int, TypeInfo] = field(default_factory=dict)
    """Every type that a parameter, a column, an attribute or an element refers to, by oid."""
    tables: tuple[Table, ...] = ()
    """Sorted by schema and name."""
    files: tuple[Routine, ...] = ()
    """Made of files, in the order of their paths."""
    left_out: tuple[Diagnostic, ...] = ()
    """What would be published but for its owner, a missing privilege or a switch."""
    broken: tuple[Diagnostic, ...] = ()
    """Files that are not served, as the log has told already."""
