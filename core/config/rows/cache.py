"""Keys of cached responses (caching-1 to caching-7)."""

from rowcall.core.sections.keys import (
    Key,
    KeyType,
    choice,
    flag,
    integer,
    interval,
    object_map,
    objects,
    section,
    text,
    texts,
)

_P = "CacheOptions:"
_PROFILE = "CacheOptions:Profiles:<name>:"
_BACKENDS = "Memory Redis Hybrid"

ROWS: tuple[Key, ...] = (
    section("CacheOptions", "Cached responses."),
    flag(_P + "Enabled", False, "Cache responses of endpoints with a cache annotation."),
    choice(_P + "Type", _BACKENDS, "Memory", "Storage of cached responses: on this host, in Redis, or in both."),
    integer(
        _P + "MemoryCacheMaximumMegabytes",
        256,
        "Memory for cached responses on this host, for all workers together. If it is full, the oldest are removed.",
        minimum=1,
    ),
    integer(_P + "MemoryCachePruneIntervalSeconds", 60, "Seconds between removals of expired responses.", minimum=1),
    text(
        _P + "RedisConfiguration",
        "localhost:6379,abortConnect=false,ssl=false,connectTimeout=10000,syncTimeout=5000,connectRetry=3",
        "Address of Redis and its options, separated by commas.",
        secret=True,
    ),
    integer(
        _P + "MaxCacheableRows",
        1000,
        "Maximum number of rows of a cached set. 0: sets are not cached, null: no limit.",
        nullable=True,
    ),
    flag(_P + "UseHashedCacheKeys", False, "Replace long keys by their SHA-256."),
    integer(_P + "HashKeyThreshold", 256, "Length in characters from which a key is hashed."),
    text(
        _P + "InvalidateCacheSuffix",
        None,
        "Suffix of a second path of each cached endpoint, which invalidates the response. null: no such path.",
    ),
    flag(
        _P + "InvalidateCacheUseEndpointMethod",
        False,
        "Serve invalidation paths with the method of the cached endpoint, also GET and QUERY. false: POST instead of "
        "these two.",
    ),
    text(
        _P + "StatusHeader",
        None,
        "Response header that reports the outcome of the lookup: `hit`, `miss`, `stale`, or `bypass`. null: none.",
    ),
    text(_P + "TagsPath", None, "Path at which signed-in users invalidate responses by tag. null: none."),
    texts(_P + "TagsRoles", None, "Roles that may use TagsPath. null: all signed-in users."),
    flag(_P + "HybridCacheUseRedisBackend", False, "Hybrid: Redis behind the memory of the host."),
    integer(_P + "HybridCacheMaximumKeyLength", 1024, "Hybrid: maximum length of a key."),
    integer(_P + "HybridCacheMaximumPayloadBytes", 1_048_576, "Hybrid: maximum size of a cached response in bytes."),
    interval(_P + "HybridCacheDefaultExpiration", None, "Hybrid: lifetime of responses without one."),
    interval(
        _P + "HybridCacheLocalCacheExpiration",
        None,
        "Hybrid: lifetime on the host. null: HybridCacheDefaultExpiration.",
    ),
    object_map(_P + "Profiles", None, "Named sets of options, for the annotation `cache_profile`."),
    flag(_PROFILE + "Enabled", False, "Offer the profile."),
    choice(_PROFILE + "Type", _BACKENDS, None, "Storage of cached responses. Required if enabled."),
    interval(_PROFILE + "Expiration", None, "Lifetime, if the endpoint sets none."),
    texts(_PROFILE + "Parameters", None, "Parameters in the cache key. null: all; an empty list: none."),
    objects(_PROFILE + "When", None, "Rules by parameter value; the first match decides."),
    text(_PROFILE + "When:[]:Parameter", None, "Parameter whose value is compared."),
    Key(_PROFILE + "When:[]:Value", KeyType.ANY, None, "Value, list of values, or null that matches.", nullable=True),
    text(_PROFILE + "When:[]:Then", None, "`skip`, or a lifetime."),
)
