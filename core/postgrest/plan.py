"""The plan of a read, from a query tree and the schema: relationship, filters, order and range of each level.

Source: PostgREST's documentation, Tables and Views; Resource Embedding.

Names are resolved here and errors of the schema are raised here. Columns are not checked: PostgreSQL refuses unknown
ones (42703).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count, islice

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.request.tree import (
    LogicNode,
    OrderTerm,
    Path,
    Query,
    Range,
    SelectColumn,
    SelectEmbed,
    SelectItem,
)
from rowcall.core.postgrest.schema import Cardinality, Relation, Relationship, Schema

SIMILAR = 0.75
"""Lowest similarity, from 0 to 1, of a name that is proposed in place of an unknown one."""
MANY_RELATIONS = 500
"""Number of relations from which a schema gets no proposals, as each request with an unknown name would compare them
all."""
LONGEST_IDENTIFIER = 63
"""Bytes of an identifier. PostgreSQL ignores what exceeds them."""


@dataclass(slots=True)
class Node:
    """One level of a read: a relation, and how it is joined to the level above.

    relation: empty until the relationship is known. name: the key in the result. item: the embed of the query; None at
    the top level. alias, junction_alias: of the relation and of the junction within the SELECT of the level.
    join_alias: of this SELECT within the level above. PostgreSQL's messages show the aliases, which are PostgREST's.
    """

    relation: tuple[str, str]
    columns: list[SelectColumn]
    name: str
    depth: int
    item: SelectEmbed | None = None
    relationship: Relationship | None = None
    alias: str = ""
    junction_alias: str = ""
    join_alias: str = ""
    children: list[Node] = field(default_factory=list)
    by_name: dict[str, Node] = field(default_factory=dict, repr=False, compare=False)
    """First embed with each key in the result."""
    by_reference: dict[str, Node] = field(default_factory=dict, repr=False, compare=False)
    """First embed with each key in the result or target."""
    filters: list[LogicNode] = field(default_factory=list)
    order: tuple[OrderTerm, ...] = ()
    range: Range = field(default_factory=Range)

    @property
    def spread(self) -> bool:
        """Whether the columns of this level become columns of the level above."""
        return self.item is not None and self.item.spread

    @property
    def inner(self) -> bool:
        """Whether rows of the level above without rows of this level are left out."""
        return self.item is not None and self.item.inner

    @property
    def single(self) -> bool:
        """Whether each row of the level above has at most one row of this level."""
        return self.relationship is None or self.relationship.single

    @property
    def empty(self) -> bool:
        """Whether the level adds nothing to the result: it selects nothing, or only embeds that add nothing."""
        return not self.columns and all(child.empty for child in self.children)

    @property
    def hoisted(self) -> dict[str, SelectColumn]:
        """Aggregates by key that the level above computes: those of a spread, and of the spreads within the spread."""
        if not self.spread:
            return {}
        result = {column.output_name: column for column in self.columns if column.aggregate is not None}
        for child in self.children:
            result |= child.hoisted
        return result

    def child(self, name: str) -> Node | None:
        """Return the embed with this key in the result; None: there is none."""
        return self.by_name.get(name)

    def embed(self, child: Node, target: str) -> None:
        """Add an embed. target: its name in the query."""
        self.children.append(child)
        self.by_name.setdefault(child.name, child)
        for name in (child.name, target):
            self.by_reference.setdefault(name, child)


@dataclass(frozen=True, slots=True)
class Plan:
    """A read that can be rendered as SQL.

    renamed: targets that a query has addressed by their name although they have an alias (`Warning: 299`).
    """

    root: Node
    renamed: tuple[str, ...] = ()


def read_plan(
    schema: Schema,
    relation: tuple[str, str],
    query: Query,
    *,
    aggregates: bool = False,
    legacy_names: bool = True,
    max_rows: int | None = None,
) -> Plan:
    """Return the plan of a query.

    relation: schema and name of the top level, which is not looked up (`find_relation`). aggregates: aggregate
    functions are allowed. max_rows: limit of each level. legacy_names: embeds with an alias may be addressed by their
    target. Raises `ApiError` for paths that name no embed, missing or ambiguous relationships, an order by an embed of
    several rows, and aggregates that are not allowed or not supported: of several errors the one that PostgREST
    reports.
    """
    root = Node(relation, _columns(query.select), relation[1], 0, alias=relation[1])
    _embed(root, query.select)
    plan = Plan(root, tuple(dict.fromkeys(_apply(root, query, legacy_names))))
    _relate(schema, root)
    for node in nodes(root):
        for term in node.order:
            if term.relation is not None:
                _check_related_order(node, term.relation)
        if max_rows is not None:
            limit = max_rows if node.range.limit is None else min(node.range.limit, max_rows)
            node.range = replace(node.range, limit=limit)
    _check_aggregates(root, aggregates)
    return plan


def _apply(root: Node, query: Query, legacy_names: bool) -> list[str]:
    """Add filters, orders and ranges of a query to the levels that they address. Return the targets that the query has
    addressed by their name although they have an alias.

    Raises `ApiError` as `_addressed_embed` does. If several filters, orders or logic trees are wrong, the error is that
    of the last one, as in PostgREST.
    """
    renamed: list[str] = []
    for path, condition in reversed(query.filters):
        _level(root, path, legacy_names, renamed).filters.insert(0, condition)
    for path, terms in reversed(query.order):
        _level(root, path, legacy_names, renamed).order = terms
    for path, rows in query.ranges:
        _level(root, path, legacy_names, renamed).range = rows
    for path, group in reversed(query.logic):
        _level(root, path, legacy_names, renamed).filters.insert(0, group)
    return renamed


def nodes(node: Node) -> Iterator[Node]:
    """Yield a level and all levels below it, the upper ones first."""
    yield node
    for child in node.children:
        yield from nodes(child)


def _columns(items: Iterable[SelectItem]) -> list[SelectColumn]:
    """Return the items that are columns, without the embeds."""
    return [item for item in items if isinstance(item, SelectColumn)]


def _embed(parent: Node, items: Iterable[SelectItem]) -> None:
    """Add the embeds among the items to a level, with all levels below."""
    for item in items:
        if isinstance(item, SelectEmbed):
            name = item.target if item.alias is None else item.alias
            child = Node(("", ""), _columns(item.items), name, parent.depth + 1, item)
            parent.embed(child, item.target)
            _embed(child, item.items)


def _relate(schema: Schema, parent: Node, above: str = "") -> None:
    """Set relations, relationships and aliases of all levels below a level. above: the alias of the level above it.
    Raises `ApiError` as `find_relationship` does.

    The SELECT of a level also refers to the level above, whose alias must not be hidden by another one.
    """
    join_aliases = _Identifiers((above, parent.alias, parent.junction_alias))
    for child in parent.children:
        if child.item is None:
            continue
        relationship = find_relationship(schema, parent.relation, child.item.target, child.item.hint)
        child.relation, child.relationship = relationship.target, relationship
        many_to_many = relationship.junction is not None
        aliases = _Identifiers((parent.alias,))
        child.alias = aliases.add(child.relation[1], "" if many_to_many else f"_{child.depth}")
        if many_to_many:
            child.junction_alias = aliases.add(child.alias, "_junction")
        child.join_alias = join_aliases.add(f"{parent.relation[1]}_{child.name}", f"_{child.depth}")
        _relate(schema, child, parent.alias)


class _Identifiers:
    """Different identifiers. A stem that is too long is shortened, and the lowest free number from 2 on is added to an
    identifier that is taken."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._numbers: dict[tuple[str, int], int] = {}
        """Next number of an identifier, by the identifier without number and the digits of the number."""

    def add(self, stem: str, end: str) -> str:
        """Take and return an identifier of a stem and an end.

        A query may have thousands of embeds with the same stem: a number that was taken is not tried again.
        """
        name = _shorten(stem, end)
        if name not in self._taken:
            self._taken.add(name)
            return name
        for digits in count(1):
            base = _shorten(stem, end, digits + 1)
            start = self._numbers.get((base, digits), max(2, 10 ** (digits - 1)))
            for number in range(start, 10**digits):
                name = f"{base}_{number}"
                if name not in self._taken:
                    self._taken.add(name)
                    self._numbers[base, digits] = number + 1
                    return name
            self._numbers[base, digits] = 10**digits
        raise AssertionError


def _shorten(stem: str, end: str, reserved: int = 0) -> str:
    """Return the stem and the end, with so much of the stem that `reserved` further bytes fit an identifier."""
    return stem.encode()[: LONGEST_IDENTIFIER - len(end) - reserved].decode(errors="ignore") + end


def find_relationship(schema: Schema, origin: tuple[str, str], target: str, hint: str | None) -> Relationship:
    """Return the one relationship that a target and a hint name. origin: schema and name of a relation. hint: None: the
    request has none. Raises `ApiError` (`PGRST200`: none, `PGRST201`: several)."""
    candidates = [item for item in _relationships_in_schema(schema, origin) if _matches(item, target, hint)]
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        raise errors.no_relationship(origin[1], target, origin[0], hint, _proposal(schema, origin, target))
    raise errors.ambiguous_relationship(
        origin[1],
        target,
        [_candidate_details(item) for item in candidates],
        [f"{item.target[1]}!{_hint_of(item)}" for item in candidates],
    )


def _relationships_in_schema(schema: Schema, origin: tuple[str, str]) -> list[Relationship]:
    """Return the relationships of a relation to relations of its own schema, and those of functions of this schema."""
    return [item for item in schema.relationships.get(origin, ()) if (item.function or item.target)[0] == origin[0]]


def _matches(item: Relationship, target: str, hint: str | None) -> bool:
    """Return whether a target and a hint, or None, name a relationship."""
    if item.function is not None:
        return item.function[1] == target
    related = item.target[1]
    single_column = item.columns[0][0] if len(item.columns) == 1 else None
    if item.self_reference:
        if item.junction is not None:
            return False
        if hint is not None:
            foreign = item.columns[0][1] if len(item.columns) == 1 else None
            return target == related and item.cardinality is Cardinality.ONE_TO_MANY and hint == foreign
        if item.cardinality is Cardinality.ONE_TO_MANY:
            return target == related
        return target == single_column
    if hint is None:
        if target == related:
            return True
        if item.target_is_view or item.junction is not None:
            return False
        return target in (item.constraint, single_column)
    if target != related:
        return False
    if item.junction is not None:
        return hint == item.junction.name
    return hint == item.constraint or (len(item.columns) == 1 and hint in item.columns[0])


def _hint_of(item: Relationship) -> str:
    """Return the hint that names a relationship."""
    return item.junction.name if item.junction is not None else item.constraint


def _candidate_details(item: Relationship) -> dict[str, str]:
    """Return the object in `details` of the error for several relationships."""
    origin, target = item.origin[1], item.target[1]
    if item.junction is not None:
        first = ", ".join(inner for _, inner in item.junction.columns)
        second = ", ".join(inner for inner, _ in item.junction.target_columns)
        text = f"{item.junction.name} using {item.junction.first}({first}) and {item.junction.second}({second})"
    else:
        first = ", ".join(column for column, _ in item.columns)
        second = ", ".join(column for _, column in item.columns)
        text = f"{item.constraint} using {origin}({first}) and {target}({second})"
    return {"cardinality": item.cardinality.value, "embedding": f"{origin} with {target}", "relationship": text}


def similar(name: str, names: Iterable[str], least: float = SIMILAR) -> str | None:
    """Return the most similar of some names, without regard to case; None: none is similar enough. least: from 0 to 1.

    Similarity is 1 minus the Levenshtein distance divided by the length of the longer name, as in PostgREST.
    """
    best: tuple[float, str] | None = None
    wanted = name.lower()
    places: dict[str, int] = {}
    for place, character in enumerate(wanted):
        places[character] = places.get(character, 0) | 1 << place
    for candidate in names:
        longest = max(len(wanted), len(candidate)) or 1
        if abs(len(wanted) - len(candidate)) > longest * (1 - least):
            continue
        ratio = 1 - _distance(len(wanted), places, candidate.lower()) / longest
        if ratio >= least and (best is None or ratio > best[0]):
            best = (ratio, candidate)
    return best[1] if best is not None else None


def _distance(length: int, places: Mapping[str, int], other: str) -> int:
    """Return the Levenshtein distance between a text and `other`: the least number of insertions, deletions and
    substitutions.

    length, places: of the text; places has for each character its positions as bits. The columns of the matrix of
    distances are the bits of integers (Myers 1999), so that the names of a large schema are compared within
    milliseconds.
    """
    every = (1 << length) - 1
    last = 1 << length >> 1
    up, down, distance = every, 0, length
    for character in other:
        equal = places.get(character, 0)
        vertical = equal | down
        horizontal = (((equal & up) + up) ^ up) | equal
        plus = down | ~(horizontal | up)
        minus = up & horizontal
        distance += bool(plus & last) - bool(minus & last)
        plus = plus << 1 | 1
        up = (minus << 1 | ~(vertical | plus)) & every
        down = plus & vertical & every
    return distance


def _proposal(schema: Schema, origin: tuple[str, str], target: str) -> tuple[str, str] | None:
    """Return a similar name and the name that it should replace; None: no name is similar.

    If the origin has relationships, the name of a related relation replaces the target, unless the target is related
    already. Otherwise, the name of another relation with relationships replaces the origin, unless the schema has
    `MANY_RELATIONS` such relations or more.
    """
    present = _relationships_in_schema(schema, origin)
    if present:
        names = [item.target[1] for item in present]
        known = target.lower() in map(str.lower, names)
        name = None if known else similar(target, names)
        return None if name is None else (name, target)
    others = (
        other for other in schema.relationships if other[0] == origin[0] and _relationships_in_schema(schema, other)
    )
    origins = [name for _, name in islice(others, MANY_RELATIONS)]
    name = similar(origin[1], origins) if len(origins) < MANY_RELATIONS else None
    return None if name is None else (name, origin[1])


def find_relation(schema: Schema, name: tuple[str, str]) -> Relation:
    """Return the relation of this name (schema, name). Raises `ApiError` (`PGRST205`) if there is none."""
    relation = schema.relations.get(name)
    if relation is not None:
        return relation
    names = [*islice((other for namespace, other in schema.relations if namespace == name[0]), MANY_RELATIONS)]
    raise errors.no_table(*name, similar(name[1], names) if len(names) < MANY_RELATIONS else None)


def _level(root: Node, path: Path, legacy_names: bool, renamed: list[str]) -> Node:
    """Return the level at a path. Adds to `renamed` each name of the path that is the target of an embed with an
    alias, rather than the alias. Raises `ApiError` as `_addressed_embed` does."""
    node = root
    for name in path:
        child = _addressed_embed(node, name, legacy_names)
        if child.name != name:
            renamed.append(name)
        node = child
    return node


def _addressed_embed(node: Node, name: str, legacy_names: bool) -> Node:
    """Return the embed that a part of a path names. With legacy names, it is the first one with this key or target.

    Raises `ApiError` if there is none (`PGRST108`), or, without legacy names, if the name is that of a target with an
    alias.
    """
    child = None if legacy_names else node.child(name)
    if child is not None:
        return child
    child = node.by_reference.get(name)
    if child is None:
        raise errors.not_embedded(name)
    if not legacy_names:
        raise errors.target_has_alias(name, child.name)
    return child


def _check_related_order(node: Node, relation: str) -> None:
    """Raise `ApiError` unless `relation` is an embed of at most one row, by which the level can be sorted."""
    child = node.child(relation)
    if child is None:
        raise errors.not_embedded(relation)
    if not child.single:
        raise errors.related_order(node.relation[1], relation)


def _check_aggregates(node: Node, enabled: bool) -> None:
    """Raise `ApiError` if a level has aggregates and they are not enabled, or if a spread of several rows, or a spread
    within it, has aggregates, which is not supported."""
    for level in nodes(node):
        if not enabled and any(column.aggregate is not None for column in level.columns):
            raise errors.aggregates_disabled()
    if any(level.hoisted for level in nodes(node) if not level.single):
        raise errors.not_implemented("Aggregates are not implemented for one-to-many or many-to-many spreads.")
