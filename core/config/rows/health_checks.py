"""Keys of health endpoints (operations-3 to operations-5)."""

from rowcall.core.sections.keys import Key, choice, flag, interval, section, text

_P = "HealthChecks:"

ROWS: tuple[Key, ...] = (
    section("HealthChecks", "Health checks of the service."),
    flag(_P + "Enabled", False, "Offer health checks."),
    interval(
        _P + "CacheDuration", "5 seconds", "Time for which a response is cached. null: not cached.", nullable=True
    ),
    text(_P + "Path", "/health", "Path of the check of everything."),
    text(_P + "ReadyPath", "/health/ready", "Path of the check whether requests can be served."),
    text(_P + "LivePath", "/health/live", "Path of the check whether the process responds."),
    flag(_P + "IncludeDatabaseCheck", True, "Check the database."),
    text(_P + "DatabaseCheckName", "postgresql", "Name of that check in the log and in reports."),
    flag(_P + "IncludeRedisCheck", True, "Check Redis, if the cache, rate limits, events or passkeys use it."),
    text(_P + "RedisCheckName", "redis", "Name of that check; with several servers a number follows."),
    choice(
        _P + "RedisFailure",
        "Degraded Unhealthy",
        "Degraded",
        "Status if Redis is unavailable. Degraded: 200, since requests are served without it; Unhealthy: 503, also at "
        "ReadyPath.",
    ),
    interval(_P + "Timeout", "5 seconds", "Time after which a check counts as failed."),
    flag(_P + "RequireAuthorization", False, "Respond to signed-in users only."),
    text(_P + "RateLimiterPolicy", None, "Rate limit of these paths."),
)
