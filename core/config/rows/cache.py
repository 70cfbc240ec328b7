"""Keys of cached responses (caching-1 to caching-7)."""

from rowcall.core.config.keys import (
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
    section("CacheOptions", "Answers that are kept and given again."),
    flag(_P + "Enabled", False, "Keep answers of endpoints that are annotated so."),
    choice(_P + "Type", _BACKENDS, "Memory", "Where: on this host, in Redis, or in both."),
    integer(
        _P + "MemoryCacheMaximumMegabytes",
        256,
        "Memory that answers may take on this host, for all workers together. The oldest make room for new ones.",
    ),
    integer(_P + "MemoryCachePruneIntervalSeconds", 60, "Seconds between removals of what has expired."),
    text(
        _P + "RedisConfiguration",
        "localhost:6379,abortConnect=false,ssl=false,connectTimeout=10000,syncTimeout=5000,connectRetry=3",
        "Where Redis is, and its options, separated by commas.",
        secret=True,
    ),
    integer(
        _P + "MaxCacheableRows",
        1000,
        "Most rows of a set that is kept. 0 keeps no set, null sets no limit.",
        nullable=True,
    ),
    flag(_P + "UseHashedCacheKeys", False, "Replace long keys by their SHA-256."),
    integer(_P + "HashKeyThreshold", 256, "Length from which on a key is long."),
    text(
        _P + "InvalidateCacheSuffix",
        None,
        "Each cached endpoint gets a second path with this end, which forgets the answer. null makes none.",
    ),
    flag(
        _P + "InvalidateCacheUseEndpointMethod",
        False,
        "Serve invalidation paths by the method of the cached endpoint, also by GET and QUERY. false: by POST instead "
        "of these two.",
    ),
    text(
        _P + "StatusHeader",
        None,
        "Response header that says where an answer comes from: `hit`, `miss`, `stale`, or `bypass`. null: none.",
    ),
    text(_P + "TagsPath", None, "Path at which signed-in users forget answers by their tags. null: there is none."),
    texts(_P + "TagsRoles", None, "Roles that may. null: all signed-in users."),
    flag(_P + "HybridCacheUseRedisBackend", False, "Hybrid: Redis behind the memory of the host."),
    integer(_P + "HybridCacheMaximumKeyLength", 1024, "Hybrid: longest key that is accepted."),
    integer(_P + "HybridCacheMaximumPayloadBytes", 1_048_576, "Hybrid: largest answer that is kept."),
    interval(_P + "HybridCacheDefaultExpiration", None, "Hybrid: lifetime where none is given."),
    interval(_P + "HybridCacheLocalCacheExpiration", None, "Hybrid: lifetime on the host. null is the one above."),
    object_map(_P + "Profiles", None, "Named sets of options, for the annotation `cache_profile`."),
    flag(_PROFILE + "Enabled", False, "Offer the profile."),
    choice(_PROFILE + "Type", _BACKENDS, None, "Where. Needed when enabled."),
    interval(_PROFILE + "Expiration", None, "Lifetime where the endpoint gives none."),
    texts(_PROFILE + "Parameters", None, "Parameters that tell answers apart. null: all of them; an empty list: none."),
    objects(_PROFILE + "When", None, "Rules by parameter value; the first that fits decides."),
    text(_PROFILE + "When:[]:Parameter", None, "Parameter that is looked at."),
    Key(_PROFILE + "When:[]:Value", KeyType.ANY, None, "Value, list of values, or null that fits.", nullable=True),
    text(_PROFILE + "When:[]:Then", None, "`skip`, or a lifetime."),
)
