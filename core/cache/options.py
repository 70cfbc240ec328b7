"""What the configuration says about answers that are kept (caching-1 to 2.3)."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Place(enum.Enum):
    """Where answers are kept (caching-1, `Type`)."""

    MEMORY = "Memory"
    """In the store of the host, for all workers."""
    REDIS = "Redis"
    HYBRID = "Hybrid"
    """In the store of the host, and where it is asked for in Redis behind it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One `When` rule (caching-34 to caching-36)."""

    parameter: str
    values: tuple[str | None, ...]
    """Any one fits, whatever its case; None fits NULL and what was not sent."""
    seconds: float | None
    """Lifetime of what is written. None: neither read nor written."""

    def fits(self, text: str | None) -> bool:
        return (None if text is None else text.casefold()) in self.values


@dataclass(frozen=True, slots=True)
class Profile:
    """`CacheOptions:Profiles:<name>` (caching-6, caching-33)."""

    name: str
    place: Place
    seconds: float | None = None
    """Lifetime. None: not said."""
    parameters: tuple[str, ...] | None = None
    """Actual or converted names. None: all; empty: none."""
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class HybridOptions:
    uses_redis: bool = False
    longest_key: int = 1024
    largest_answer: int = 1_048_576
    seconds: float | None = None
    """Lifetime where none is given."""
    local_seconds: float | None = None
    """The same in the store of the host. None: the one above."""


@dataclass(frozen=True, slots=True)
class CacheOptions:
    enabled: bool = False
    place: Place = Place.MEMORY
    memory: int = 268_435_456
    """Bytes that the answers in the store of a host may take."""
    prune_seconds: float = 60.0
    redis: str = ""
    max_rows: int | None = 1000
    """Of a set. 0: none is kept; None: no limit."""
    hash_from: int | None = None
    """Keys with more characters are replaced by their hash. None: none is."""
    suffix: str | None = None
    """Of the paths that forget answers. None: there are none."""
    invalidate_by_endpoint_method: bool = False
    """Invalidation paths have the method of the cached endpoint, also a safe one. False: POST in place of GET and
    QUERY."""
    status_header: str | None = None
    tags_path: str | None = None
    tags_roles: frozenset[str] = frozenset()
    hybrid: HybridOptions = HybridOptions()
    profiles: tuple[Profile, ...] = ()

    def profile(self, name: str | None) -> Profile:
        """Without a name, the cache of endpoints that name none. A name that is unknown stops the start."""
        named = (item for item in self.profiles if item.name == name)
        return next(named, Profile(name or "", self.place))

    @property
    def names(self) -> frozenset[str]:
        return frozenset(item.name for item in self.profiles)

    @property
    def places(self) -> frozenset[Place]:
        """Those that some endpoint may use."""
        return frozenset((self.place, *(item.place for item in self.profiles))) if self.enabled else frozenset()


NO_CACHE = CacheOptions()
