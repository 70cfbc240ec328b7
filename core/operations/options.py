"""Options of health checks and of statistics of the database."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.endpoint.access import ANYONE, Access
from rowcall.core.sections.declaration import choice, flag, interval, section, text, texts
from rowcall.core.sections.values import as_set, none_for_zero, path_like

_path = path_like("/health")


def _is_unhealthy(word: str) -> bool:
    return word == "Unhealthy"


def _is_html(word: str) -> bool:
    return word == "html"


def _positive(seconds: float) -> float:
    if seconds <= 0:
        raise ValueError("0 leaves no time for a check to finish, so that the service is never healthy")
    return seconds


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """Access to and caching of the paths of health checks or statistics.

    keep: seconds for which a response is reused; None: it is not reused. rate_limiter: name of a policy; None: there is
    no limit.
    """

    keep: float | None
    access: Access
    rate_limiter: str | None


@section("HealthChecks", "Health checks of the service.")
class HealthOptions:
    """Options of health checks. Times in seconds."""

    enabled: bool = flag("Enabled", False, "Offer health checks.")
    keep: float | None = interval(
        "CacheDuration",
        "5 seconds",
        "Time for which a response is cached. null: not cached.",
        nullable=True,
        convert=none_for_zero,
    )
    path: str = text("Path", "/health", "Path of the check of everything.", convert=_path)
    ready: str = text("ReadyPath", "/health/ready", "Path of the check whether requests can be served.", convert=_path)
    live: str = text("LivePath", "/health/live", "Path of the check whether the process responds.", convert=_path)
    checks_database: bool = flag("IncludeDatabaseCheck", True, "Check the database.")
    database_check: str = text("DatabaseCheckName", "postgresql", "Name of that check in the log and in reports.")
    checks_redis: bool = flag(
        "IncludeRedisCheck", True, "Check Redis, if the cache, rate limits, events or passkeys use it."
    )
    redis_check_name: str = text(
        "RedisCheckName", "redis", "Name of that check; with several servers a number follows."
    )
    needs_redis: bool = choice(
        "RedisFailure",
        "Degraded Unhealthy",
        "Degraded",
        "Status if Redis is unavailable. Degraded: 200, since requests are served without it; Unhealthy: 503, "
        "also at ReadyPath.",
        convert=_is_unhealthy,
    )
    within: float = interval("Timeout", "5 seconds", "Time after which a check counts as failed.", convert=_positive)
    closed: bool = flag("RequireAuthorization", False, "Respond to signed-in users only.")
    rate_limiter: str | None = text("RateLimiterPolicy", None, "Rate limit of these paths.")

    @property
    def check(self) -> str | None:
        """Name of the check of the database, such as `postgresql`; None: the database is not checked."""
        return self.database_check if self.checks_database else None

    @property
    def redis_check(self) -> str | None:
        """Name of the Redis check; None: Redis is not checked."""
        return self.redis_check_name if self.checks_redis else None

    @property
    def guarded(self) -> GuardOptions:
        """Access to and caching of the paths of health checks."""
        return GuardOptions(self.keep, Access() if self.closed else ANYONE, self.rate_limiter)


@section("Stats", "Statistics of the database.")
class StatisticsKeys:
    """Options of statistics of the database. Times in seconds."""

    enabled: bool = flag("Enabled", False, "Offer statistics.")
    keep: float | None = interval(
        "CacheDuration",
        "5 seconds",
        "Time for which a response is cached; the query string is ignored. null: not cached.",
        nullable=True,
        convert=none_for_zero,
    )
    rate_limiter: str | None = text("RateLimiterPolicy", None, "Rate limit of these paths.")
    connection_name = text("ConnectionName", None, "Connection whose statistics are read. null: the main one.")
    closed: bool = flag("RequireAuthorization", False, "Respond to signed-in users only.")
    roles: frozenset[str] = texts(
        "AuthorizedRoles",
        (),
        "Respond only to users with one of these roles. Empty: no role is required.",
        convert=as_set,
    )
    html: bool = choice(
        "OutputFormat",
        "html json",
        "html",
        "Format of responses, unless `?format=` sets another one.",
        convert=_is_html,
    )
    schemas: str | None = text(
        "SchemaSimilarTo", None, "Only schemas SIMILAR TO this pattern; sessions are not filtered."
    )
    routines: str = text("RoutinesStatsPath", "/stats/routines", "Calls and times of routines.", convert=_path)
    tables: str = text("TablesStatsPath", "/stats/tables", "Sizes and use of tables.", convert=_path)
    indexes: str = text("IndexesStatsPath", "/stats/indexes", "Use of indexes.", convert=_path)
    activity: str = text("ActivityPath", "/stats/activity", "Sessions and what they do.", convert=_path)

    @property
    def guarded(self) -> GuardOptions:
        closed = self.closed or self.roles
        access = Access(roles=tuple(sorted(self.roles))) if closed else ANYONE
        return GuardOptions(self.keep, access, self.rate_limiter)
