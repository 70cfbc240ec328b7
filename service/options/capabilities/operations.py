"""Read `Stats`: statistics of the database (operations-6 to operations-8)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from rowcall.core.config import Settings
from rowcall.core.config.sections.connections import ConnectionOfSection
from rowcall.core.operations.options import StatisticsKeys
from rowcall.core.operations.statistics import ACTIVITY, INDEXES, ROUTINES, TABLES, Report
from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.options.connection_string import ConnectionInfo
from rowcall.service.options.connections import Connections

log = logging.getLogger("rowcall")

TargetOf = Callable[[str, ConnectionInfo], ConnectionTarget]
"""Returns the target of a connection. Its first parameter is the name of the connection string."""


@dataclass(frozen=True, slots=True)
class StatisticsOptions(StatisticsKeys):
    """Options of statistics, with the connection on which they are read."""

    target: ConnectionTarget = field(kw_only=True)

    @property
    def paths(self) -> tuple[tuple[str, Report], ...]:
        """Path and report, for each of the four reports."""
        return ((self.routines, ROUTINES), (self.tables, TABLES), (self.indexes, INDEXES), (self.activity, ACTIVITY))


def statistics_options(settings: Settings, connections: Connections, target_of: TargetOf) -> StatisticsOptions | None:
    """Return the options of statistics; None: they are off. target_of: as for endpoints on the same connection."""
    if not settings.is_enabled(StatisticsKeys):
        return None
    options = settings.read(StatisticsOptions, target=_target(settings, connections, target_of))
    if options.guarded.access.anonymous:
        log.warning(
            "Stats are open to anonymous callers, including the text of running queries: "
            "set Stats:RequireAuthorization or Stats:AuthorizedRoles to protect them"
        )
    return options


def _target(settings: Settings, connections: Connections, target_of: TargetOf) -> ConnectionTarget:
    """Return the target of statistics: that of the main connection, unless they have a connection of their own.

    `connection_plan` guarantees that it exists, also if endpoints may not use it.
    """
    name = settings.read(ConnectionOfSection, "Stats").name
    plan = connections.plan
    if name is None or name.casefold() in plan.main_names:
        return target_of(plan.main, connections.main)
    return next(target_of(key, info) for key, info in connections.others.items() if key.casefold() == name.casefold())
