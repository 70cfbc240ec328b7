"""Keys of rate limiting."""

from __future__ import annotations

from rowcall.core.limits.policy import Kind
from rowcall.core.sections.declaration import (
    choice,
    flag,
    if_set,
    integer,
    lenient,
    object_map,
    objects,
    only_for,
    part,
    section,
    text,
)


@section("RateLimiterOptions:Policies:<name>:Partition:Sources:[]")
class RateLimitSource:
    type: str | None = lenient(choice("Type", "Claim IpAddress Header Static", None, "Kind of the source."))
    name: str | None = text("Name", None, "Name of the claim or header.")
    value: str | None = text("Value", None, "The text itself, for Static.")


@section(
    "RateLimiterOptions:Policies:<name>:Partition",
    "Count callers separately. null: all callers share one limit.",
    nullable=True,
)
class RateLimitPartition:
    sources = objects(
        "Sources",
        (),
        "Sources of the text that identifies a caller; the first one that is not empty is used.",
        elements=RateLimitSource,
    )
    bypass_authenticated: bool = flag("BypassAuthenticated", False, "Do not limit signed-in users.")


@section("RateLimiterOptions:Policies:<name>")
class RateLimitPolicy:
    type: str | None = lenient(choice("Type", Kind, None, "Algorithm. A policy without it is left out."))
    enabled = flag("Enabled", False, "Offer the policy.")
    permit_limit: int | None = only_for(
        "FixedWindow SlidingWindow Concurrency",
        if_set(
            integer(
                "PermitLimit",
                100,
                "Requests in a window; with Concurrency: concurrent requests, by default 10.",
                minimum=1,
            )
        ),
    )
    window_seconds: int = only_for(
        "FixedWindow SlidingWindow", integer("WindowSeconds", 60, "Length of a window in seconds.", minimum=1)
    )
    segments_per_window: int = only_for(
        "SlidingWindow",
        integer("SegmentsPerWindow", 6, "Number of segments by which a window moves.", minimum=1, maximum=10_000),
    )
    token_limit: int = only_for("TokenBucket", integer("TokenLimit", 100, "Tokens in a full bucket.", minimum=1))
    tokens_per_period: int = only_for(
        "TokenBucket", integer("TokensPerPeriod", 10, "Tokens that are added in a period.", minimum=1)
    )
    replenishment_period_seconds: int = only_for(
        "TokenBucket", integer("ReplenishmentPeriodSeconds", 10, "Length of a period in seconds.", minimum=1)
    )
    queue_limit: int | None = if_set(
        integer("QueueLimit", 10, "Requests that may wait; with Concurrency by default 5.")
    )
    auto_replenishment: bool = only_for(
        "FixedWindow SlidingWindow TokenBucket",
        flag(
            "AutoReplenishment",
            True,
            "Permits are replenished as time passes. false has no effect, and leads to a warning.",
        ),
    )
    oldest_first: bool = only_for("Concurrency", flag("OldestFirst", True, "Serve the longest waiting request first."))
    status: int | None = integer(
        "StatusCode", None, "Status of refused requests. null: RateLimiterOptions:StatusCode.", minimum=400, maximum=599
    )
    message: str | None = text(
        "StatusMessage",
        None,
        "Message of refused requests. null: RateLimiterOptions:StatusMessage.",
        empty=True,
    )
    partition = part(RateLimitPartition)


@section("RateLimiterOptions", "Rate limiting of callers.")
class RateLimiter:
    enabled = flag("Enabled", False, "Enable rate limiting.")
    status: int = integer("StatusCode", 429, "Status of refused requests.", minimum=400, maximum=599)
    message: str | None = text(
        "StatusMessage",
        "Too many requests. Please try again later.",
        "Message of refused requests. null or an empty text: none.",
        nullable=True,
        empty=True,
    )
    redis: str | None = text(
        "RedisConfiguration",
        None,
        "Redis that counts for several hosts together, in the format of CacheOptions. null: each host counts "
        "separately.",
        secret=True,
    )
    default_policy: str | None = text("DefaultPolicy", None, "Policy of endpoints that name none.")
    policies = object_map("Policies", {}, "Named policies.", elements=RateLimitPolicy)


@section("<section>")
class ReservedPathLimit:
    """The key `RateLimiterPolicy`, to read it in any section with reserved paths. The sections declare the key
    themselves, so that it is not declared twice."""

    policy: str | None = text("RateLimiterPolicy", None, "Rate limit of all these paths.")
