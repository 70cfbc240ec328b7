"""Options of the cache (caching-1 to caching-3)."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from rowcall.core.sections.declaration import (
    any_value,
    choice,
    flag,
    if_set,
    integer,
    interval,
    lenient,
    object_map,
    objects,
    part,
    section,
    text,
    texts,
)
from rowcall.core.sections.keys import JsonValue
from rowcall.core.sections.values import as_set, bytes_of_megabytes, header_name, strip_or_empty


class Place(enum.Enum):
    """Where responses are stored (caching-1, `Type`)."""

    MEMORY = "Memory"
    """In the shared state of the host, for all its workers."""
    REDIS = "Redis"
    HYBRID = "Hybrid"
    """In the shared state of the host and, if configured, also in Redis."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One `When` rule: a lifetime, or no caching, for certain values of a parameter (caching-34 to caching-36)."""

    parameter: str
    values: tuple[str | None, ...]
    """Values of which any may match, case-folded (`str.casefold`); None matches NULL and an absent parameter."""
    seconds: float | None
    """Lifetime of an entry that is written. None: the cache is neither read nor written."""

    def fits(self, text: str | None) -> bool:
        """Return whether the text of a parameter is one of the values, regardless of case. None: NULL or absent."""
        return (None if text is None else text.casefold()) in self.values


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of cache options, `CacheOptions:Profiles:<name>` (caching-6, caching-33)."""

    name: str
    place: Place
    seconds: float | None = None
    """Lifetime. None: not specified."""
    parameters: tuple[str, ...] | None = None
    """Names in the database or in requests. None: all parameters; empty: none."""
    rules: tuple[Rule, ...] = ()


@section("CacheOptions:Profiles:<name>:When:[]")
class RuleKeys:
    """The keys of one `When` rule in the configuration."""

    parameter = text("Parameter", None, "Parameter whose value is compared.")
    value = any_value("Value", "Value, list of values, or null that matches.")
    then = text("Then", None, "`skip`, or a lifetime.")


@section("CacheOptions:Profiles:<name>")
class ProfileKeys:
    """The keys of one profile in the configuration."""

    enabled = flag("Enabled", False, "Offer the profile.")
    type: str | None = lenient(choice("Type", Place, None, "Storage of cached responses. Required if enabled."))
    expiration: str | None = lenient(interval("Expiration", None, "Lifetime, if the endpoint sets none."))
    parameters: tuple[str, ...] | None = if_set(
        texts("Parameters", None, "Parameters in the cache key. null: all; an empty list: none.")
    )
    when: JsonValue = objects("When", None, "Rules by parameter value; the first match decides.", elements=RuleKeys)


@section("CacheOptions")
class HybridOptions:
    """Options of the place `Hybrid`. Times in seconds."""

    uses_redis: bool = flag("HybridCacheUseRedisBackend", False, "Hybrid: Redis behind the memory of the host.")
    longest_key: int = integer("HybridCacheMaximumKeyLength", 1024, "Hybrid: maximum length of a key.")
    largest_answer: int = integer(
        "HybridCacheMaximumPayloadBytes", 1_048_576, "Hybrid: maximum size of a cached response in bytes."
    )
    seconds: float | None = interval("HybridCacheDefaultExpiration", None, "Hybrid: lifetime of responses without one.")
    local_seconds: float | None = interval(
        "HybridCacheLocalCacheExpiration", None, "Hybrid: lifetime on the host. null: HybridCacheDefaultExpiration."
    )


_NO_SEGMENTS = re.compile(r"[{}?#%\\\x00-\x1f]")
"""Characters that a requested path cannot contain, or that have another meaning in it."""


def _suffix(text: str | None) -> str | None:
    """Return the suffix without slashes at its ends; None if it is empty. Raises ValueError if no path can end with
    it."""
    suffix = strip_or_empty(text).strip("/")
    if suffix and (_NO_SEGMENTS.search(suffix) or {"", ".", ".."} & set(suffix.split("/"))):
        raise ValueError(f"{suffix!r} cannot be the end of a path; a word such as purge can")
    return suffix or None


def _status_header(text: str | None) -> str | None:
    """Return the name of the header in lower case; None if it is empty. Raises ValueError if it is not valid."""
    return (header_name(strip_or_empty(text) or None) or "").lower() or None


def _tags_path(text: str | None) -> str | None:
    """Return the path; None if it is empty. Raises ValueError if it is no path of a route."""
    path = strip_or_empty(text)
    if path and (not path.startswith("/") or _NO_SEGMENTS.search(path)):
        raise ValueError(f"{path!r} is no path such as /api/invalidate")
    return path or None


def _no_profiles(_value: object) -> tuple[Profile, ...]:
    """Return an empty tuple: the service reads the profiles one by one, and sets them afterwards."""
    return ()


@section("CacheOptions")
class RedisKeys:
    address: str | None = text(
        "RedisConfiguration",
        "localhost:6379,abortConnect=false,ssl=false,connectTimeout=10000,syncTimeout=5000,connectRetry=3",
        "Address of Redis and its options, separated by commas.",
        secret=True,
        empty=True,
    )

    @property
    def usable(self) -> str:
        """The address; the default if it is blank."""
        return self.address if self.address and self.address.strip() else str(RedisKeys().address)


@section("CacheOptions", "Cached responses.")
class CacheOptions:
    """Options of the cache. Times in seconds, `memory` in bytes."""

    enabled: bool = flag("Enabled", False, "Cache responses of endpoints with a cache annotation.")
    place: Place = choice("Type", Place, "Memory", "Storage of cached responses: on this host, in Redis, or in both.")
    memory: int = integer(
        "MemoryCacheMaximumMegabytes",
        256,
        "Memory for cached responses on this host, for all workers together. If it is full, the oldest are removed.",
        minimum=1,
        convert=bytes_of_megabytes,
    )
    prune_seconds: float = integer(
        "MemoryCachePruneIntervalSeconds",
        60,
        "Seconds between removals of expired responses.",
        minimum=1,
        convert=float,
    )
    redis_keys = part(RedisKeys)
    max_rows: int | None = integer(
        "MaxCacheableRows",
        1000,
        "Maximum number of rows of a cached set. 0: sets are not cached, null: no limit.",
        nullable=True,
    )
    hashed: bool = flag("UseHashedCacheKeys", False, "Replace long keys by their SHA-256.")
    hash_threshold: int = integer("HashKeyThreshold", 256, "Keys with more characters are hashed.")
    suffix: str | None = text(
        "InvalidateCacheSuffix",
        None,
        "Suffix of a second path of each cached endpoint, which invalidates the response. null: no such path.",
        convert=_suffix,
    )
    invalidate_by_endpoint_method: bool = flag(
        "InvalidateCacheUseEndpointMethod",
        False,
        "Serve invalidation paths with the method of the cached endpoint, also GET and QUERY. false: POST "
        "instead of these two.",
    )
    status_header: str | None = text(
        "StatusHeader",
        None,
        "Response header that reports the outcome of the lookup: `hit`, `miss`, `stale`, or `bypass`. null: none.",
        convert=_status_header,
    )
    tags_path: str | None = text(
        "TagsPath", None, "Path at which signed-in users invalidate responses by tag. null: none.", convert=_tags_path
    )
    tags_roles: frozenset[str] = texts(
        "TagsRoles", None, "Roles that may use TagsPath. null: all signed-in users.", convert=as_set
    )
    hybrid: HybridOptions = part(HybridOptions)
    profiles: tuple[Profile, ...] = object_map(
        "Profiles",
        None,
        "Named sets of options, for the annotation `cache_profile`.",
        convert=_no_profiles,
        elements=ProfileKeys,
    )
    redis: str = ""
    """Address of Redis."""
    operator_tags: bool = False
    """Whether responses have tags by which operators invalidate those of an endpoint or of a profile."""

    @property
    def hash_from(self) -> int | None:
        """Keys with more characters than this are replaced by their hash. None: no key is."""
        return self.hash_threshold if self.hashed else None

    def profile(self, name: str | None) -> Profile:
        """Return the profile of this name; None: that of endpoints without a profile. An unknown name gives an empty
        profile."""
        named = (item for item in self.profiles if item.name == name)
        return next(named, Profile(name or "", self.place))

    @property
    def every_operator_tag(self) -> tuple[str, ...]:
        """The tags by which operators invalidate the responses of a profile. Each response has exactly one of them."""
        return tuple(profile_tag(name) for name in ("", *sorted(self.names)))

    @property
    def names(self) -> frozenset[str]:
        """Names of the profiles."""
        return frozenset(item.name for item in self.profiles)

    @property
    def places(self) -> frozenset[Place]:
        """Backends that an endpoint may use; none if the cache is not enabled."""
        return frozenset((self.place, *(item.place for item in self.profiles))) if self.enabled else frozenset()


TAGGED = "any tag"
"""Tag of every response that has tags of a comment, which contain no blanks."""


def profile_tag(name: str) -> str:
    """Return the tag by which operators invalidate the responses of a profile. name: empty for endpoints without a
    profile."""
    return _collapse_blanks(f"operator profile {name}")


def endpoint_tag(name: str) -> str:
    """Return the tag by which operators invalidate the responses of an endpoint. name: method and path."""
    return _collapse_blanks(f"operator endpoint {name}")


def _collapse_blanks(text: str) -> str:
    """Return the text with single blanks in place of white space: line ends separate the tags of a cached response."""
    return " ".join(text.split())


NO_CACHE = CacheOptions()
