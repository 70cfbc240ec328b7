"""Options of the cache (caching-1 to caching-3)."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Place(enum.Enum):
    """Where responses are stored (caching-1, `Type`)."""

    MEMORY = "Memory"
    """In the shared state of the host, for all its workers."""
    REDIS = "Redis"
    HYBRID = "Hybrid"
    """In the shared state of the host and, if configured, also in Redis."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One `When` rule (caching-34 to caching-36)."""

    parameter: str
    values: tuple[str | None, ...]
    """Values of which any may match, regardless of case; None matches NULL and an absent parameter."""
    seconds: float | None
    """Lifetime of an entry that is written. None: neither read nor write."""

    def fits(self, text: str | None) -> bool:
        return (None if text is None else text.casefold()) in self.values


@dataclass(frozen=True, slots=True)
class Profile:
    """`CacheOptions:Profiles:<name>` (caching-6, caching-33)."""

    name: str
    place: Place
    seconds: float | None = None
    """Lifetime. None: not specified."""
    parameters: tuple[str, ...] | None = None
    """Names in the database or in requests. None: all parameters; empty: none."""
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class HybridOptions:
    uses_redis: bool = False
    longest_key: int = 1024
    largest_answer: int = 1_048_576
    seconds: float | None = None
    """Lifetime if no other is specified."""
    local_seconds: float | None = None
    """The same for copies in the shared state of the host. None: as `seconds`."""


@dataclass(frozen=True, slots=True)
class CacheOptions:
    enabled: bool = False
    place: Place = Place.MEMORY
    memory: int = 268_435_456
    """Bytes that cached responses in the shared state of a host may take."""
    prune_seconds: float = 60.0
    redis: str = ""
    max_rows: int | None = 1000
    """Maximum number of rows of a set. 0: no set is cached; None: no limit."""
    hash_from: int | None = None
    """Keys with more characters are replaced by their hash. None: no key is."""
    suffix: str | None = None
    """Suffix of invalidation paths. None: there are no such paths."""
    invalidate_by_endpoint_method: bool = False
    """Whether invalidation paths have the method of the cached endpoint, even if it is a safe one. False: POST replaces
    GET and QUERY.
    """
    status_header: str | None = None
    tags_path: str | None = None
    tags_roles: frozenset[str] = frozenset()
    hybrid: HybridOptions = HybridOptions()
    profiles: tuple[Profile, ...] = ()
    operator_tags: bool = False
    """Whether responses have tags by which operators invalidate those of an endpoint or of a profile."""

    def profile(self, name: str | None) -> Profile:
        """Return the profile of this name; None: that of endpoints without a profile. Unknown names stop the start."""
        named = (item for item in self.profiles if item.name == name)
        return next(named, Profile(name or "", self.place))

    @property
    def every_operator_tag(self) -> tuple[str, ...]:
        """Tags of which each response has one."""
        return tuple(profile_tag(name) for name in ("", *sorted(self.names)))

    @property
    def names(self) -> frozenset[str]:
        return frozenset(item.name for item in self.profiles)

    @property
    def places(self) -> frozenset[Place]:
        """Backends that an endpoint may use."""
        return frozenset((self.place, *(item.place for item in self.profiles))) if self.enabled else frozenset()


def profile_tag(name: str) -> str:
    """Return the operator tag of responses of a profile. name: empty for endpoints without a profile."""
    return f"operator profile {name}"


def endpoint_tag(name: str) -> str:
    """Return the operator tag of responses of an endpoint. name: method and path."""
    return f"operator endpoint {name}"


NO_CACHE = CacheOptions()
