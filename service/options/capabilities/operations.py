"""`HealthChecks` and `Stats` → what is told about the service and its database (operations-3 to operations-8)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from rowcall.core.config import Settings
from rowcall.core.operations.statistics import ACTIVITY, INDEXES, ROUTINES, TABLES, Report
from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.options.connections import Connections
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")


@dataclass(frozen=True, slots=True)
class Guarded:
    """What both have in common. keep: seconds for which an answer is good; None: each is made anew."""

    keep: float | None
    closed: bool
    """For signed-in users only."""
    roles: frozenset[str]
    """Any one suffices; empty: no role is asked for."""
    rate_limiter: str | None


@dataclass(frozen=True, slots=True)
class HealthOptions:
    guarded: Guarded
    path: str
    ready: str
    live: str
    check: str | None
    """What the check of the database is called in the log; None: it is not asked."""
    within: float
    """Seconds, for each check."""
    redis_check: str | None
    """What checks of Redis are called; None: it is not asked."""
    needs_redis: bool
    """Without Redis the service is not ready; False: it is served from here, and called degraded."""


@dataclass(frozen=True, slots=True)
class StatisticsOptions:
    guarded: Guarded
    target: ConnectionTarget
    paths: tuple[tuple[str, Report], ...]
    html: bool
    schemas: str | None
    """SIMILAR TO."""


def health_options(settings: Settings) -> HealthOptions | None:
    if not settings.flag("HealthChecks:Enabled"):
        return None
    asks = settings.flag("HealthChecks:IncludeDatabaseCheck")
    within = settings.seconds("HealthChecks:Timeout")
    if within <= 0:
        raise StartupError(
            "HealthChecks:Timeout: 0 leaves no check the time to answer, so that nothing is ever healthy"
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
    if not guarded.closed:
        log.warning(
            "Stats are open to everybody, the text of running queries included: "
            "Stats:RequireAuthorization or Stats:AuthorizedRoles closes them"
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


def _guarded(settings: Settings, section: str, roles: frozenset[str]) -> Guarded:
    keep = settings.seconds_or_none(f"{section}:CacheDuration")
    return Guarded(
        keep=keep or None,
        closed=settings.flag(f"{section}:RequireAuthorization") or bool(roles),
        roles=roles,
        rate_limiter=settings.text_or_none(f"{section}:RateLimiterPolicy"),
    )


def _path(settings: Settings, key: str) -> str:
    path = settings.text(key)
    if not path.startswith("/") or any(letter in path for letter in "{}?# "):
        raise StartupError(f"{key}: {path!r} is no path such as /health")
    return path


def _target(settings: Settings, main: ConnectionTarget, connections: Connections) -> ConnectionTarget:
    """`connection_plan` has made sure that it is there, whether endpoints may use it or not."""
    name = settings.text_or_none("Stats:ConnectionName")
    if name is None or name.casefold() in connections.plan.main_names:
        return main
    info = next(info for known, info in connections.others.items() if known.casefold() == name.casefold())
    return ConnectionTarget(info.parameters, timeout=main.timeout)
