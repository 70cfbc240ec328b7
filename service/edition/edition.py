"""What the workers serve: one reading of the database, numbered, made by the supervisor and the same for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rowcall.core.catalogue.catalog import TypeInfo
from rowcall.core.endpoint.endpoint import Endpoint, ResultShape
from rowcall.core.errors.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class Edition:
    """types: every type that a result column of these endpoints leads to, by oid, on the main database."""

    number: int
    endpoints: tuple[Endpoint, ...]
    types: Mapping[int, TypeInfo]
    other_types: Mapping[str, Mapping[int, TypeInfo]] = field(default_factory=dict)
    """The same for endpoints that run on another database than the main one, by case-folded name of its connection."""
    left_out: tuple[Diagnostic, ...] = ()
    """What asks to be served and is not, with the reason."""
    looked_at: tuple[str, ...] = ()
    """Where endpoints were looked for, in words."""
    example_requests: tuple[tuple[str, str], ...] = ()
    """Names and texts of the `.http` files that are served: what they show of routines only the database knows."""

    @property
    def left_out_count(self) -> int:
        return sum(one.left_out for one in self.left_out)

    def types_of(self, endpoint: Endpoint) -> Mapping[int, TypeInfo]:
        """Those of the database that the endpoint runs on."""
        return self.other_types.get((endpoint.options.connection or "").casefold(), self.types)


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed between two editions, as endpoint names."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    @classmethod
    def between(cls, old: Edition, new: Edition) -> Difference:
        before = _by_name(old)
        after = _by_name(new)
        return cls(
            added=tuple(sorted(after.keys() - before.keys())),
            changed=tuple(sorted(name for name in before.keys() & after.keys() if before[name] != after[name])),
            removed=tuple(sorted(before.keys() - after.keys())),
        )

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def _by_name(edition: Edition) -> dict[str, list[Endpoint]]:
    endpoints: dict[str, list[Endpoint]] = {}
    for endpoint in edition.endpoints:
        endpoints.setdefault(endpoint.name, []).append(endpoint)
    return endpoints


def _shapes(shape: ResultShape) -> Iterator[ResultShape]:
    yield shape
    for part in shape.parts:
        yield part.shape


def reachable_types(endpoints: tuple[Endpoint, ...], types: Mapping[int, TypeInfo]) -> dict[int, TypeInfo]:
    """The types that the results of `endpoints` lead to: elements, bases and attributes included."""
    found: dict[int, TypeInfo] = {}
    columns = [column for endpoint in endpoints for shape in _shapes(endpoint.shape) for column in shape.columns]
    pending = [column.column.type_oid for column in columns]
    pending += [column.group.type_oid for column in columns if column.group is not None]
    pending += [endpoint.routine.return_type_oid for endpoint in endpoints]
    while pending:
        info = types.get(pending.pop())
        if info is None or info.oid in found:
            continue
        found[info.oid] = info
        pending += [oid for oid in (info.element, info.base) if oid]
        pending += [attribute.type_oid for attribute in info.attributes]
    return found
