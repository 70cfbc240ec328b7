"""Keys of rate limiting."""

from rowcall.core.sections.keys import (
    Key,
    KeyType,
    choice,
    flag,
    integer,
    object_map,
    objects,
    only_for,
    section,
    text,
)

_P = "RateLimiterOptions:"
_POLICY = "RateLimiterOptions:Policies:<name>:"
_SOURCE = _POLICY + "Partition:Sources:[]:"

ROWS: tuple[Key, ...] = (
    section("RateLimiterOptions", "Rate limiting of callers."),
    flag(_P + "Enabled", False, "Enable rate limiting."),
    integer(_P + "StatusCode", 429, "Status of refused requests.", minimum=400, maximum=599),
    text(
        _P + "StatusMessage",
        "Too many requests. Please try again later.",
        "Message of refused requests. null or an empty text: none.",
        nullable=True,
    ),
    text(
        _P + "RedisConfiguration",
        None,
        "Redis that counts for several hosts together, in the format of CacheOptions. null: each host counts "
        "separately.",
        secret=True,
    ),
    text(_P + "DefaultPolicy", None, "Policy of endpoints that name none."),
    object_map(_P + "Policies", {}, "Named policies."),
    choice(
        _POLICY + "Type",
        "FixedWindow SlidingWindow TokenBucket Concurrency",
        None,
        "Algorithm. A policy without it is left out.",
    ),
    flag(_POLICY + "Enabled", False, "Offer the policy."),
    *only_for(
        "FixedWindow SlidingWindow Concurrency",
        integer(
            _POLICY + "PermitLimit",
            100,
            "Requests in a window; with Concurrency: concurrent requests, by default 10.",
            minimum=1,
        ),
    ),
    *only_for(
        "FixedWindow SlidingWindow",
        integer(_POLICY + "WindowSeconds", 60, "Length of a window in seconds.", minimum=1),
    ),
    *only_for(
        "SlidingWindow",
        integer(
            _POLICY + "SegmentsPerWindow", 6, "Number of segments by which a window moves.", maximum=10_000, minimum=1
        ),
    ),
    *only_for(
        "TokenBucket",
        integer(_POLICY + "TokenLimit", 100, "Tokens in a full bucket.", minimum=1),
        integer(_POLICY + "TokensPerPeriod", 10, "Tokens that are added in a period.", minimum=1),
        integer(_POLICY + "ReplenishmentPeriodSeconds", 10, "Length of a period in seconds.", minimum=1),
    ),
    integer(_POLICY + "QueueLimit", 10, "Requests that may wait; with Concurrency by default 5."),
    *only_for(
        "FixedWindow SlidingWindow TokenBucket",
        flag(
            _POLICY + "AutoReplenishment",
            True,
            "Permits are replenished as time passes. false has no effect, and leads to a warning.",
        ),
    ),
    *only_for("Concurrency", flag(_POLICY + "OldestFirst", True, "Serve the longest waiting request first.")),
    integer(
        _POLICY + "StatusCode",
        None,
        "Status of refused requests. null: RateLimiterOptions:StatusCode.",
        minimum=400,
        maximum=599,
    ),
    text(_POLICY + "StatusMessage", None, "Message of refused requests. null: RateLimiterOptions:StatusMessage."),
    Key(
        _POLICY + "Partition",
        KeyType.SECTION,
        None,
        "Count callers separately. null: all callers share one limit.",
        nullable=True,
    ),
    objects(
        _POLICY + "Partition:Sources",
        (),
        "Sources of the text that identifies a caller; the first one that is not empty is used.",
    ),
    choice(_SOURCE + "Type", "Claim IpAddress Header Static", None, "Kind of the source."),
    text(_SOURCE + "Name", None, "Name of the claim or header."),
    text(_SOURCE + "Value", None, "The text itself, for Static."),
    flag(_POLICY + "Partition:BypassAuthenticated", False, "Do not limit signed-in users."),
)
