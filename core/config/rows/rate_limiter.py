"""Keys of rate limiting."""

from rowcall.core.config.keys import (
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
    section("RateLimiterOptions", "How often callers may ask."),
    flag(_P + "Enabled", False, "Limit."),
    integer(_P + "StatusCode", 429, "Status of a refusal.", maximum=599),
    text(
        _P + "StatusMessage",
        "Too many requests. Please try again later.",
        "What a refused caller reads. null or an empty text sends none.",
        nullable=True,
    ),
    text(
        _P + "RedisConfiguration",
        None,
        "Redis that counts for several hosts together, written as that of the cache. null: this host counts.",
        secret=True,
    ),
    text(_P + "DefaultPolicy", None, "Policy of endpoints that name none."),
    object_map(_P + "Policies", {}, "Named policies."),
    choice(
        _POLICY + "Type",
        "FixedWindow SlidingWindow TokenBucket Concurrency",
        None,
        "How it counts. A policy without it is left out.",
    ),
    flag(_POLICY + "Enabled", False, "Offer the policy."),
    *only_for(
        "FixedWindow SlidingWindow Concurrency",
        integer(
            _POLICY + "PermitLimit", 100, "Requests in a window; with Concurrency those at one time, 10 unless given."
        ),
    ),
    *only_for(
        "FixedWindow SlidingWindow",
        integer(_POLICY + "WindowSeconds", 60, "Seconds of a window."),
    ),
    *only_for(
        "SlidingWindow", integer(_POLICY + "SegmentsPerWindow", 6, "Parts a window moves on by.", maximum=10_000)
    ),
    *only_for(
        "TokenBucket",
        integer(_POLICY + "TokenLimit", 100, "Tokens in a full bucket."),
        integer(_POLICY + "TokensPerPeriod", 10, "Tokens that arrive in a period."),
        integer(_POLICY + "ReplenishmentPeriodSeconds", 10, "Seconds of a period."),
    ),
    integer(_POLICY + "QueueLimit", 10, "Requests that may wait; 5 with Concurrency unless given."),
    *only_for(
        "FixedWindow SlidingWindow TokenBucket",
        flag(_POLICY + "AutoReplenishment", True, "Refill as time passes. False has no effect, and a warning."),
    ),
    *only_for("Concurrency", flag(_POLICY + "OldestFirst", True, "Whoever waits longest goes first.")),
    integer(_POLICY + "StatusCode", None, "Status of a refusal. null takes the one above.", maximum=599),
    text(_POLICY + "StatusMessage", None, "What a refused caller reads. null takes the one above."),
    Key(_POLICY + "Partition", KeyType.SECTION, None, "Count callers apart. null counts all together.", nullable=True),
    objects(_POLICY + "Partition:Sources", (), "What tells callers apart; the first that is not empty counts."),
    choice(_SOURCE + "Type", "Claim IpAddress Header Static", None, "Where the text comes from."),
    text(_SOURCE + "Name", None, "Claim or header."),
    text(_SOURCE + "Value", None, "The text itself, for Static."),
    flag(_POLICY + "Partition:BypassAuthenticated", False, "Do not limit signed-in users."),
)
