"""Read `HealthChecks` and `Stats`: health checks and statistics of the database (operations-3 to operations-8)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from rowcall.core.config import Settings
from rowcall.core.endpoint.access import ANYONE, Access
from rowcall.core.operations.statistics import ACTIVITY, INDEXES, ROUTINES, TABLES, Report
from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.options.connections import Connections
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")


@dataclass(frozen=True, slots=True)
class PathOptions:
    """Access and caching of such a path. keep: seconds for which a response is reused; None: it is not reused."""

    keep: float | None
    access: Access
    rate_limiter: str | None


@dataclass(frozen=True, slots=True)
class HealthOptions:
    guarded: PathOptions
    path: str
    ready: str
    live: str
    check: str | None
    """Name of the database check in the log; None: the database is not checked."""
    within: float
    """Timeout of each check in seconds."""
    redis_check: str | None
    """Name of the Redis check; None: Redis is not checked."""
    needs_redis: bool
    """If Redis fails, the service is not ready; False: it is ready and reported as degraded."""


@dataclass(frozen=True, slots=True)
class StatisticsOptions:
    guarded: PathOptions
    target: ConnectionTarget
    paths: tuple[tuple[str, Report], ...]
    html: bool
    schemas: str | None
    """Pattern of schema names (SIMILAR TO); None: all schemas."""


def health_options(settings: Settings) -> HealthOptions | None:
    if not settings.flag("HealthChecks:Enabled"):
        return None
    asks = settings.flag("HealthChecks:IncludeDatabaseCheck")
    within = settings.seconds("HealthChecks:Timeout")
    if within <= 0:
        raise StartupError(
            "HealthChecks:Timeout: 0 leaves no time for a check to finish, so that the service is never healthy"
        )
    asks_redis = settings.flag("HealthChecks:IncludeRedisCheck")
    return HealthOptions(
        guarded=_guarded(settings, "HealthChecks", frozenset()),
        path=_path(settings, "HealthChecks:Path"),
        ready=_path(settings, "HealthChecks:ReadyPath"),
        live=_path(settings, "HealthChecks:LivePath"),
        check=settings.text("HealthChecks:DatabaseCheckName") if asks else None,
        within=within,
        redis_check=settings.text("HealthChecks:RedisCheckName") if asks_redis else None,
        needs_redis=settings.choice("HealthChecks:RedisFailure") == "Unhealthy",
    )


def statistics_options(
    settings: Settings, main: ConnectionTarget, connections: Connections
) -> StatisticsOptions | None:
    if not settings.flag("Stats:Enabled"):
        return None
    roles = frozenset(role for role in settings.texts("Stats:AuthorizedRoles") or () if role)
    guarded = _guarded(settings, "Stats", roles)
    if guarded.access.anonymous:
        log.warning(
            "Stats are open to anonymous callers, including the text of running queries: "
            "set Stats:RequireAuthorization or Stats:AuthorizedRoles to protect them"
        )
    reports = {"Routines": ROUTINES, "Tables": TABLES, "Indexes": INDEXES}
    paths = [(_path(settings, f"Stats:{name}StatsPath"), report) for name, report in reports.items()]
    return StatisticsOptions(
        guarded=guarded,
        target=_target(settings, main, connections),
        paths=(*paths, (_path(settings, "Stats:ActivityPath"), ACTIVITY)),
        html=settings.choice("Stats:OutputFormat").casefold() == "html",
        schemas=settings.text_or_none("Stats:SchemaSimilarTo"),
    )


def _guarded(settings: Settings, section: str, roles: frozenset[str]) -> PathOptions:
    keep = settings.seconds_or_none(f"{section}:CacheDuration")
    closed = settings.flag(f"{section}:RequireAuthorization") or bool(roles)
    return PathOptions(
        keep=keep or None,
        access=Access(roles=tuple(sorted(roles))) if closed else ANYONE,
        rate_limiter=settings.text_or_none(f"{section}:RateLimiterPolicy"),
    )


def _path(settings: Settings, key: str) -> str:
    path = settings.text(key)
    if not path.startswith("/") or any(letter in path for letter in "{}?# "):
        raise StartupError(f"{key}: {path!r} is no path such as /health")
    return path


def _target(settings: Settings, main: ConnectionTarget, connections: Connections) -> ConnectionTarget:
    """Return the connection of statistics.

    `connection_plan` guarantees that it exists, also if endpoints may not use it.
    """
    name = settings.text_or_none("Stats:ConnectionName")
    if name is None or name.casefold() in connections.plan.main_names:
        return main
    info = next(info for key, info in connections.others.items() if key.casefold() == name.casefold())
    return ConnectionTarget(info.parameters, timeout=main.timeout)
