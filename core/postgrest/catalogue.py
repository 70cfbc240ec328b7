"""The reading of the database for PostgREST's interface, and the change between two readings. The supervisor sends them
to the workers with the schema snapshot."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.schema import Function, Relation, Relationship, Schema

Value = TypeVar("Value")
Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PostgRestCatalogue:
    """One reading of the database. options: with the configuration of the database.

    roles: role → settings of `ALTER ROLE … SET`.
    """

    options: PostgRestOptions
    schema: Schema
    roles: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    timeout: str = "0"
    """`statement_timeout` of requests whose role and function set none: that of the login role; 0: no limit."""
    load_seconds: float = field(default=0.0, compare=False)
    """Time of the reading, in seconds."""

    def object_at(self, path: str) -> str | None:
        """Return the relation or function that a path addresses, as `api.item`, in the first exposed schema that has
        it; None: the path addresses none. path: as routed, not percent-encoded."""
        base = self.options.path.rstrip("/")
        if not path.startswith(f"{base}/"):
            return None
        name = path[len(base) + 1 :]
        known: Container[tuple[str, str]] = self.schema.relations
        if name.startswith("rpc/"):
            name, known = name.removeprefix("rpc/"), self.schema.functions
        schema = next((schema for schema in self.options.schemas if (schema, name) in known), None)
        return None if schema is None else f"{schema}.{name}"


@dataclass(frozen=True, slots=True)
class MappingChange(Generic[Value]):
    """New and changed members of a mapping, and the names of members that are gone."""

    changed: dict[Name, Value]
    removed: frozenset[Name]

    @classmethod
    def from_snapshots(cls, old: Mapping[Name, Value], new: Mapping[Name, Value]) -> MappingChange[Value]:
        """Return the change from `old` to `new`."""
        changed = {name: value for name, value in new.items() if old.get(name) != value}
        return cls(changed, frozenset(old.keys() - new.keys()))

    def apply_to(self, old: Mapping[Name, Value]) -> dict[Name, Value]:
        """Return a copy of `old` with the change."""
        # `dict` is the fastest copy of many members, during which a worker serves no requests.
        result = dict(old)
        for name in self.removed:
            del result[name]
        result.update(self.changed)
        return result


@dataclass(frozen=True, slots=True)
class CatalogueChange:
    """The change from one reading to the next, for processes that have the previous one.

    Sending 60,000 tables again would stop a worker for most of a second. rest: the next reading without relations,
    relationships and functions.
    """

    rest: PostgRestCatalogue
    relations: MappingChange[Relation]
    relationships: MappingChange[tuple[Relationship, ...]]
    functions: MappingChange[tuple[Function, ...]]

    @classmethod
    def from_snapshots(cls, old: PostgRestCatalogue | None, new: PostgRestCatalogue) -> CatalogueChange:
        """Return the change from `old` to `new`. old: None: there is no previous reading, so that the change contains
        everything."""
        former = _NO_SCHEMA if old is None else old.schema
        schema = new.schema
        return cls(
            replace(new, schema=replace(schema, relations={}, relationships={}, functions={})),
            MappingChange.from_snapshots(former.relations, schema.relations),
            MappingChange.from_snapshots(former.relationships, schema.relationships),
            MappingChange.from_snapshots(former.functions, schema.functions),
        )

    def apply_to(self, old: PostgRestCatalogue | None) -> PostgRestCatalogue:
        """Return the next reading. old: the reading on which this change is based; None: there is none."""
        former = _NO_SCHEMA if old is None else old.schema
        schema = replace(
            self.rest.schema,
            relations=self.relations.apply_to(former.relations),
            relationships=self.relationships.apply_to(former.relationships),
            functions=self.functions.apply_to(former.functions),
        )
        return replace(self.rest, schema=schema)


_NO_SCHEMA = Schema({}, {})
