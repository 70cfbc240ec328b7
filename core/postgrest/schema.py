"""The objects of the database that PostgREST's interface uses: relations, keys, functions, casts and media types.

These values are plain data from the catalogue; `relationships` derives the relationships. A `Schema` is part of the
schema snapshot and is sent to the workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation.

    type: as `format_type` prints it. base_type: after resolving domains; empty: not known. default: SQL text, or None.
    max_length: in characters; None: no limit. enum: values of its type, if that is an enum. domain: the qualified name
    of its domain, or None.
    """

    name: str
    type: str
    base_type: str = ""
    nullable: bool = True
    default: str | None = None
    generated: bool = False
    max_length: int | None = None
    enum: tuple[str, ...] = ()
    comment: str | None = None
    domain: str | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, view, materialized view, partitioned or foreign table.

    key: columns of the primary key, or for a view those of the key that it inherits.
    """

    schema: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    is_view: bool = False
    insertable: bool = True
    updatable: bool = True
    deletable: bool = True
    comment: str | None = None

    def column(self, name: str) -> Column | None:
        """Return a column by its name; None: there is none."""
        return next((column for column in self.columns if column.name == name), None)


class Cardinality(Enum):
    """How many rows of two relations belong together. The values are the words in error bodies."""

    MANY_TO_ONE = "many-to-one"
    ONE_TO_MANY = "one-to-many"
    ONE_TO_ONE = "one-to-one"
    MANY_TO_MANY = "many-to-many"


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key constraint. unique: its columns are a primary key or have a unique constraint."""

    name: str
    origin: tuple[str, str]
    columns: tuple[str, ...]
    target: tuple[str, str]
    target_columns: tuple[str, ...]
    unique: bool = False


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column of a view that is a plain column of another relation."""

    view: tuple[str, str]
    column: str
    relation: tuple[str, str]
    base_column: str


@dataclass(frozen=True, slots=True)
class Junction:
    """The relation between both sides of a many-to-many relationship. first, second: names of its two constraints."""

    schema: str
    name: str
    first: str
    second: str
    columns: tuple[tuple[str, str], ...]
    """Pairs: column of the origin, column of the junction."""
    target_columns: tuple[tuple[str, str], ...]
    """Pairs: column of the junction, column of the target."""


@dataclass(frozen=True, slots=True)
class Relationship:
    """A way from one relation to another.

    columns: pairs of a column of the origin and one of the target; empty with a junction or function. function:
    qualified name of the function of a computed relationship; None: it is not computed. single: at most one row.
    referenced: the foreign key is the target's, and refers to the origin.
    """

    origin: tuple[str, str]
    target: tuple[str, str]
    cardinality: Cardinality
    constraint: str
    columns: tuple[tuple[str, str], ...] = ()
    junction: Junction | None = None
    function: tuple[str, str] | None = None
    self_reference: bool = False
    target_is_view: bool = False
    referenced: bool = False

    @property
    def single(self) -> bool:
        """Whether a row of the origin has at most one row of the target."""
        return self.cardinality in (Cardinality.MANY_TO_ONE, Cardinality.ONE_TO_ONE)


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of a function. name: empty: unnamed."""

    name: str
    type: str
    required: bool = True
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function of an exposed schema.

    volatility: `v`, `s` or `i`. returns_set, returns_composite: kind of its result. relation: the relation whose row
    type it returns, or None. settings: its SET clauses. media_type: the domain that it returns, if that is named after
    a media type. binary: this domain is over bytea. outputs: its OUT parameters and the columns of its TABLE. oid: in
    the catalogue.
    """

    schema: str
    name: str
    arguments: tuple[Argument, ...]
    volatility: str = "v"
    returns_set: bool = False
    returns_composite: bool = False
    returns_void: bool = False
    return_type: str = ""
    relation: tuple[str, str] | None = None
    settings: tuple[tuple[str, str], ...] = ()
    media_type: str | None = None
    comment: str | None = None
    binary: bool = False
    outputs: tuple[Argument, ...] = ()
    row_type: str = ""
    oid: int = 0

    @property
    def result(self) -> tuple[str, str]:
        """The relation (schema, name) as which the result is read; it need not exist. As in PostgREST, it is found by
        the name of the row type in the schema of the function, where a view can stand for a table of another schema."""
        return self.schema, self.row_type or self.name


@dataclass(frozen=True, slots=True)
class Representation:
    """An implicit cast with a function, of a domain from or to json or text. function: qualified name."""

    source: str
    target: str
    function: tuple[str, str]


@dataclass(frozen=True, slots=True)
class MediaHandler:
    """An aggregate that renders rows as a media type. relation: None: rows of every relation. binary: it returns
    bytea."""

    media_type: str
    function: tuple[str, str]
    relation: tuple[str, str] | None
    binary: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """All exposed relations and functions, their relationships, and what renders their values. Relations, relationships
    (by their origin) and functions have keys (schema, name); representations have keys (source, target), which are
    names of types."""

    relations: Mapping[tuple[str, str], Relation]
    relationships: Mapping[tuple[str, str], tuple[Relationship, ...]]
    functions: Mapping[tuple[str, str], tuple[Function, ...]] = field(default_factory=dict)
    representations: Mapping[tuple[str, str], Representation] = field(default_factory=dict)
    handlers: tuple[MediaHandler, ...] = ()
