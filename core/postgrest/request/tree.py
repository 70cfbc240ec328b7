"""The tree that a query string means: output columns, filters, logic trees, order and ranges of each level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class JsonStep:
    """One arrow of a JSON path. text: `->>` instead of `->`. key: of an object, or the index of an array as digits."""

    key: str
    index: bool
    text: bool


@dataclass(frozen=True, slots=True)
class Field:
    """A column and the JSON path below it."""

    name: str
    path: tuple[JsonStep, ...] = ()


@dataclass(frozen=True, slots=True)
class SelectColumn:
    """`alias:field::cast.aggregate()::aggregate_cast`: a column of the result.

    The name `*` without a path stands for all columns. An empty name with the aggregate `count` counts rows.
    """

    field: Field
    alias: str | None = None
    cast: str | None = None
    aggregate: str | None = None
    aggregate_cast: str | None = None

    @property
    def output_name(self) -> str:
        """The key in the result."""
        if self.alias is not None:
            return self.alias
        if self.aggregate is not None:
            return self.aggregate
        for step in reversed(self.field.path):
            if not step.index:
                return step.key
        return self.field.name


@dataclass(frozen=True, slots=True)
class SelectEmbed:
    """`alias:target!hint!inner(items)`, or a spread: `...target(items)`."""

    target: str
    items: tuple[SelectItem, ...]
    alias: str | None = None
    hint: str | None = None
    inner: bool = False
    spread: bool = False


SelectItem: TypeAlias = SelectColumn | SelectEmbed


@dataclass(frozen=True, slots=True)
class Operation:
    """The part of a filter after the column.

    operator: as in the URL. quantifier: `any`, `all` or None. configuration: of a full-text search.
    value: text, or the elements of `in`.
    """

    operator: str
    value: str | tuple[str, ...]
    negated: bool = False
    quantifier: str | None = None
    configuration: str | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """A field compared with a value."""

    field: Field
    operation: Operation


@dataclass(frozen=True, slots=True)
class Group:
    """Conditions joined by `and` or `or`."""

    operator: str
    members: tuple[LogicNode, ...]
    negated: bool = False


LogicNode: TypeAlias = Condition | Group


@dataclass(frozen=True, slots=True)
class OrderTerm:
    """One term of `order`. relation: the embed to which the column belongs; None: the level itself.

    direction, nulls: words of SQL; None: not set.
    """

    field: Field
    relation: str | None = None
    direction: str | None = None
    nulls: str | None = None


Path: TypeAlias = tuple[str, ...]
"""Names of embeds that lead from the top level to an embed; `()` is the top level."""


@dataclass(frozen=True, slots=True)
class Range:
    """The rows of a level that are returned. limit: None: all."""

    offset: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query string.

    arguments: of a function call: the parameters whose values have no operator. In other queries, such a value is an
    error. filter_keys: decoded keys of the filters and arguments, in order. has_ranges: `limit` or `offset` is set for
    the top level. canonical: the parameters sorted and encoded again, for `Content-Location`.
    """

    select: tuple[SelectItem, ...] = (SelectColumn(Field("*")),)
    filters: tuple[tuple[Path, Condition], ...] = ()
    logic: tuple[tuple[Path, LogicNode], ...] = ()
    order: tuple[tuple[Path, tuple[OrderTerm, ...]], ...] = ()
    ranges: tuple[tuple[Path, Range], ...] = ()
    columns: tuple[str, ...] | None = None
    on_conflict: tuple[str, ...] | None = None
    arguments: tuple[tuple[str, str], ...] = ()
    filter_keys: tuple[str, ...] = ()
    has_ranges: bool = False
    canonical: str = ""
