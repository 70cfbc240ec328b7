"""Keys of health endpoints (operations-3 to operations-5)."""

from rowcall.core.config.keys import Key, choice, flag, interval, section, text

_P = "HealthChecks:"

ROWS: tuple[Key, ...] = (
    section("HealthChecks", "Endpoints that say whether the service is well."),
    flag(_P + "Enabled", False, "Offer them."),
    interval(_P + "CacheDuration", "5 seconds", "How long an answer is kept. null keeps none.", nullable=True),
    text(_P + "Path", "/health", "Everything together."),
    text(_P + "ReadyPath", "/health/ready", "Tells whether requests can be served."),
    text(_P + "LivePath", "/health/live", "Tells whether the process answers."),
    flag(_P + "IncludeDatabaseCheck", True, "Ask the database too."),
    text(_P + "DatabaseCheckName", "postgresql", "Name of that check in the log and in reports."),
    flag(_P + "IncludeRedisCheck", True, "Ask Redis too, where the cache, rate limits, events or passkeys use it."),
    text(_P + "RedisCheckName", "redis", "Name of that check; with several servers a number follows."),
    choice(
        _P + "RedisFailure",
        "Degraded Unhealthy",
        "Degraded",
        "What a Redis that is away makes of the whole. Degraded answers 200, as requests are served without it; "
        "Unhealthy answers 503, and counts for ReadyPath too.",
    ),
    interval(_P + "Timeout", "5 seconds", "How long a check may take before it counts as failed."),
    flag(_P + "RequireAuthorization", False, "Answer signed-in users only."),
    text(_P + "RateLimiterPolicy", None, "Rate limit of these paths."),
)
