"""Schema snapshots: a numbered reading of the database, made by the supervisor and the same for all workers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rowcall.core.catalogue.catalog import TypeInfo, types_below
from rowcall.core.endpoint.endpoint import Endpoint, Options, ResultShape
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.postgrest.catalogue import CatalogueChange, PostgRestCatalogue


@dataclass(frozen=True, slots=True)
class SchemaSnapshot:
    """What was read from the databases at one time: the endpoints, and what their responses and documents need.

    types: by oid on the main database, the types of the results of these endpoints, with those of their elements,
    attributes and bases of domains.
    """

    number: int
    endpoints: tuple[Endpoint, ...]
    types: Mapping[int, TypeInfo]
    other_types: Mapping[str, Mapping[int, TypeInfo]] = field(default_factory=dict)
    """The same for endpoints that run on another database than the main one, by case-folded name of its connection."""
    left_out: tuple[Diagnostic, ...] = ()
    """Objects that should be served and are not, with the reason."""
    looked_at: tuple[str, ...] = ()
    """Descriptions of where endpoints were searched, for the log."""
    example_requests: tuple[tuple[str, str], ...] = ()
    """Names and texts of the `.http` files that are served. The supervisor makes them, because definitions of routines
    in them are read from the database."""
    postgrest: PostgRestCatalogue | None = None
    """None: PostgREST's interface is not served."""

    @property
    def left_out_count(self) -> int:
        """Number of objects that should be served and are not."""
        return sum(diagnostic.left_out for diagnostic in self.left_out)

    @property
    def options(self) -> Collection[Options]:
        """The distinct options of all endpoints; many endpoints share one object."""
        return {id(endpoint.options): endpoint.options for endpoint in self.endpoints}.values()

    def connections(self, names: Iterable[str]) -> frozenset[str]:
        """Return the case-folded names of the connections on which endpoints run; the main one is empty. names: of all
        connections, as the configuration spells them, among which those of tenants are searched.
        """
        used = {(item.connection or "").casefold() for item in self.options}
        tenants = {item.tenant for item in self.options if item.tenant is not None and item.tenant.connection}
        of_tenants = (name.casefold() for tenant in tenants for name in tenant.connections(names).values())
        return frozenset(used.union(of_tenants))

    def has_types_of(self, other: SchemaSnapshot) -> bool:
        """Return whether the types in results are those of another snapshot, on all databases. An endpoint refers to
        types by oid, so it can be unchanged although an attribute of a nested type is new.
        """
        return self.types == other.types and self.other_types == other.other_types

    def types_of(self, endpoint: Endpoint) -> Mapping[int, TypeInfo]:
        """Return the types of the database on which the endpoint runs."""
        return self.other_types.get((endpoint.options.connection or "").casefold(), self.types)


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two schema snapshots, as names of endpoints."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    @classmethod
    def from_snapshots(cls, old: SchemaSnapshot, new: SchemaSnapshot) -> Difference:
        """Compare the endpoints of two snapshots by name."""
        names = {endpoint.name for moved in moved_endpoints(old, new) for endpoint in moved}
        before = endpoints_by_name(old, names)
        after = endpoints_by_name(new, names)
        return cls(
            added=tuple(sorted(after.keys() - before.keys())),
            changed=tuple(sorted(name for name in before.keys() & after.keys() if before[name] != after[name])),
            removed=tuple(sorted(before.keys() - after.keys())),
        )

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def moved_endpoints(old: SchemaSnapshot, new: SchemaSnapshot) -> tuple[list[Endpoint], list[Endpoint]]:
    """Return the endpoints that are only in the old snapshot, and those that are only in the new one. They are compared
    by identity, so a changed endpoint is in both results.
    """
    before, after = set(map(id, old.endpoints)), set(map(id, new.endpoints))
    return [endpoint for endpoint in old.endpoints if id(endpoint) not in after], [
        endpoint for endpoint in new.endpoints if id(endpoint) not in before
    ]


def endpoints_by_name(snapshot: SchemaSnapshot, names: set[str]) -> dict[str, list[Endpoint]]:
    """Return the endpoints with these names, by name."""
    endpoints: dict[str, list[Endpoint]] = {}
    paths = {name.partition(" ")[2] for name in names}
    for endpoint in snapshot.endpoints if paths else ():
        # Tested before the name, because the name is composed at each access.
        if endpoint.path in paths and (name := endpoint.name) in names:
            endpoints.setdefault(name, []).append(endpoint)
    return endpoints


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """The change from one schema snapshot to the next, for workers that serve the former one.

    base: number of the former snapshot. base_count: number of its endpoints. number: of the next snapshot. parts: the
    endpoints in order: ranges of indexes (begin, end) in the former snapshot for unchanged ones, and lists of new ones.
    types, other_types, postgrest: None if unchanged. The other fields are those of the next snapshot.
    """

    base: int
    base_count: int
    number: int
    parts: tuple[tuple[int, int] | list[Endpoint], ...]
    types: Mapping[int, TypeInfo] | None
    other_types: Mapping[str, Mapping[int, TypeInfo]] | None
    left_out: tuple[Diagnostic, ...]
    looked_at: tuple[str, ...]
    example_requests: tuple[tuple[str, str], ...]
    postgrest: CatalogueChange | None

    @classmethod
    def from_snapshots(cls, old: SchemaSnapshot, new: SchemaSnapshot) -> SnapshotChange:
        """Compute the change from one snapshot to another; an endpoint is unchanged if it is the same object."""
        parts: list[tuple[int, int] | list[Endpoint]] = []
        places = dict(zip(map(id, old.endpoints), range(len(old.endpoints)), strict=True))
        # The run of former endpoints that is being extended; empty if both are equal.
        begin = end = 0
        for endpoint in new.endpoints:
            place = places.get(id(endpoint))
            if place == end > begin:
                end += 1
                continue
            if end > begin:
                parts.append((begin, end))
                begin = end = 0
            if place is not None:
                begin, end = place, place + 1
            elif parts and isinstance(last := parts[-1], list):
                last.append(endpoint)
            else:
                parts.append([endpoint])
        if end > begin:
            parts.append((begin, end))
        return cls(
            old.number,
            len(old.endpoints),
            new.number,
            tuple(parts),
            None if new.types == old.types else new.types,
            None if new.other_types == old.other_types else new.other_types,
            new.left_out,
            new.looked_at,
            new.example_requests,
            None
            if new.postgrest is None or new.postgrest == old.postgrest
            else CatalogueChange.from_snapshots(old.postgrest, new.postgrest),
        )

    @property
    def new_count(self) -> int:
        """Number of endpoints that are sent, as the former snapshot does not have them."""
        return sum(len(part) for part in self.parts if isinstance(part, list))

    def apply_to(self, old: SchemaSnapshot) -> SchemaSnapshot:
        """Return the next snapshot. old: the former one. Raises `ValueError` if that is not the base of this change."""
        if (old.number, len(old.endpoints)) != (self.base, self.base_count):
            raise ValueError(
                f"schema snapshot {self.number} is a change of {self.base}, but this process has {old.number}"
            )
        endpoints: list[Endpoint] = []
        for part in self.parts:
            endpoints += part if isinstance(part, list) else old.endpoints[part[0] : part[1]]
        return SchemaSnapshot(
            self.number,
            tuple(endpoints),
            old.types if self.types is None else self.types,
            old.other_types if self.other_types is None else self.other_types,
            self.left_out,
            self.looked_at,
            self.example_requests,
            old.postgrest if self.postgrest is None else self.postgrest.apply_to(old.postgrest),
        )


def _shapes(shape: ResultShape) -> Iterator[ResultShape]:
    """Yield a shape and the shapes of its parts."""
    yield shape
    for part in shape.parts:
        yield part.shape


def reachable_types(endpoints: tuple[Endpoint, ...], types: Mapping[int, TypeInfo]) -> dict[int, TypeInfo]:
    """Return the types of the results of these endpoints by oid, with the types of their elements, bases of domains and
    attributes. types: all of the catalogue, by oid.
    """
    pending = {endpoint.routine.return_type_oid for endpoint in endpoints}
    # Endpoints with the same signature share their shape.
    for whole in {id(endpoint.shape): endpoint.shape for endpoint in endpoints}.values():
        columns = [column for shape in _shapes(whole) for column in shape.columns]
        pending.update(column.column.type_oid for column in columns)
        pending.update(column.group.type_oid for column in columns if column.group is not None)
    return types_below(pending, types)
