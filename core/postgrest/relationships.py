"""Relationships between relations, from foreign keys and columns of views.

Source: PostgREST's documentation, Resource Embedding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from rowcall.core.postgrest.schema import (
    Cardinality,
    ForeignKey,
    Junction,
    Relation,
    Relationship,
    ViewColumn,
)

Name = tuple[str, str]
MAX_VARIANTS = 64
"""Maximum number of combinations of columns of a view that stand for one key. Further combinations are ignored."""


def relationships(
    relations: Mapping[Name, Relation],
    keys: Iterable[ForeignKey],
    view_columns: Iterable[ViewColumn] = (),
    computed: Iterable[Relationship] = (),
    exposed: Sequence[str] = (),
) -> dict[Name, tuple[Relationship, ...]]:
    """Return the relationships of each relation, in the order in which errors list them.

    computed: relationships of functions. If a function has the schema and name of a relation, it replaces the detected
    relationships of its origin to that relation. exposed: schemas whose relations can be junctions; empty: all.
    """
    direct = [*_direct(relations, [*_with_views(keys, view_columns)])]
    result: dict[Name, list[Relationship]] = defaultdict(list)
    for relationship in (*direct, *_many_to_many(relations, direct, exposed)):
        result[relationship.origin].append(relationship)
    for relationship in computed:
        present = result[relationship.origin]
        present[:] = [item for item in present if item.function is not None or item.target != relationship.function]
        present.append(relationship)
    return {name: tuple(sorted(items, key=_sort_key)) for name, items in result.items()}


_RANKS = {
    Cardinality.ONE_TO_MANY: 0,
    Cardinality.MANY_TO_ONE: 1,
    Cardinality.ONE_TO_ONE: 2,
    Cardinality.MANY_TO_MANY: 3,
}


def _sort_key(item: Relationship) -> tuple[object, ...]:
    """Return the sort key of a relationship among those of its origin: target, then kind, then constraints.
    Relationships of functions come last, by function and target."""
    if item.function is not None:
        return (1, item.function, item.target)
    junction = item.junction
    constraints = (
        (item.constraint,) if junction is None else (junction.schema, junction.name, junction.first, junction.second)
    )
    return (0, item.target, item.self_reference, _RANKS[item.cardinality], constraints, item.columns, item.referenced)


def _with_views(keys: Iterable[ForeignKey], view_columns: Iterable[ViewColumn]) -> Iterator[ForeignKey]:
    """Yield the keys, and those that views inherit at either end or at both."""
    shown: dict[Name, dict[Name, dict[str, list[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for item in view_columns:
        shown[item.relation][item.view][item.base_column].append(item.column)
    for key in keys:
        origins = [(key.origin, key.columns), *_variants(shown.get(key.origin), key.columns)]
        targets = [(key.target, key.target_columns), *_variants(shown.get(key.target), key.target_columns)]
        for (origin, columns), (target, target_columns) in product(origins, targets):
            yield ForeignKey(key.name, origin, columns, target, target_columns, key.unique)


def _variants(
    views: Mapping[Name, Mapping[str, list[str]]] | None, columns: tuple[str, ...]
) -> Iterator[tuple[Name, tuple[str, ...]]]:
    """Yield the views that have all of the columns, with the names of the columns there: at most `MAX_VARIANTS`
    choices for a view."""
    for view, shown in (views or {}).items():
        choices = [shown.get(column, []) for column in columns]
        if all(choices):
            for number, names in enumerate(product(*choices)):
                if number == MAX_VARIANTS:
                    break
                yield view, names


def _direct(relations: Mapping[Name, Relation], keys: Iterable[ForeignKey]) -> Iterator[Relationship]:
    """Yield two relationships for each foreign key between known relations: from its origin, and to it."""
    for key in keys:
        origin, target = relations.get(key.origin), relations.get(key.target)
        if origin is None or target is None:
            continue
        pairs = tuple(zip(key.columns, key.target_columns, strict=True))
        itself = key.origin == key.target
        one_to_one = Cardinality.ONE_TO_ONE
        yield Relationship(
            key.origin,
            key.target,
            one_to_one if key.unique else Cardinality.MANY_TO_ONE,
            key.name,
            pairs,
            self_reference=itself,
            target_is_view=target.is_view,
        )
        yield Relationship(
            key.target,
            key.origin,
            one_to_one if key.unique else Cardinality.ONE_TO_MANY,
            key.name,
            tuple((second, first) for first, second in pairs),
            self_reference=itself,
            target_is_view=origin.is_view,
            referenced=True,
        )


def _many_to_many(
    relations: Mapping[Name, Relation], direct: Iterable[Relationship], exposed: Sequence[str]
) -> Iterator[Relationship]:
    """Yield one relationship for each ordered pair of foreign keys within the primary key of a junction."""
    by_junction: dict[Name, list[Relationship]] = defaultdict(list)
    for relationship in direct:
        if relationship.cardinality is Cardinality.MANY_TO_ONE:
            by_junction[relationship.origin].append(relationship)
    for name, ends in by_junction.items():
        key = set(relations[name].key)
        if not key or (exposed and name[0] not in exposed):
            continue
        for first, second in product(ends, ends):
            if first is second or first.constraint == second.constraint:
                continue
            columns = {column for column, _ in (*first.columns, *second.columns)}
            if not columns <= key:
                continue
            yield Relationship(
                first.target,
                second.target,
                Cardinality.MANY_TO_MANY,
                name[1],
                junction=Junction(
                    *name,
                    first.constraint,
                    second.constraint,
                    tuple((outer, inner) for inner, outer in first.columns),
                    second.columns,
                ),
                self_reference=first.target == second.target,
                target_is_view=second.target_is_view,
            )
