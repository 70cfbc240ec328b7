"""Plan of the database connections: the main one, the others, and their use (execution-15, configuration-18)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from rowcall.core.building.service import RoutineOptions, ServiceConnections
from rowcall.core.config import Settings
from rowcall.core.config.sections.connections import (
    ConnectionOfSection,
    ConnectionSettings,
    MultiHostTargets,
    ReplicaKeys,
)
from rowcall.core.text.globs import matches
from rowcall.service.options.connection_string import ConnectionInfo, connection_names, main_connection_name
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall.client")

MAIN_ALIAS = "_default"
"""Name under which annotations can select the main connection, in addition to its own name."""

_TARGETS = "ConnectionSettings:MultiHostConnectionTargets"
_ROLES = {
    "Primary": "primary",
    "Standby": "standby",
    "PreferPrimary": "prefer-primary",
    "PreferStandby": "prefer-standby",
    "ReadWrite": "read-write",
    "ReadOnly": "read-only",
}


@dataclass(frozen=True, slots=True)
class ConnectionPlan:
    """The connections that are needed and their use; names in the spelling of the configuration."""

    main: str
    others: tuple[str, ...] = ()
    """Names of the needed connections besides the main one."""
    routable: bool = False
    """Whether endpoints may run on `others`."""
    sources: tuple[str, ...] = ()
    """Connections from which routines are read."""
    replicas: tuple[str, ...] = ()
    """Connections among `others` that are replicas of the main database."""
    runs_at_home: bool = False
    """Whether a routine runs on the connection from which it was read. False: it runs on the main connection."""

    @property
    def main_names(self) -> frozenset[str]:
        """Case-folded names that select the main connection in annotations."""
        return frozenset((self.main.casefold(), MAIN_ALIAS))


@dataclass(frozen=True, slots=True)
class Connections:
    """The connections of a plan. others: by the names in `plan.others`."""

    plan: ConnectionPlan
    main: ConnectionInfo
    others: Mapping[str, ConnectionInfo]


def connection_plan(settings: Settings) -> ConnectionPlan:
    """Return the plan. Raises `StartupError` if a setting names a connection that does not exist, or if replicas are
    enabled and none is configured. An unknown name in `MultiHostConnectionTargets:ByConnectionName` is only logged.
    """
    main = main_connection_name(settings)
    names = connection_names(settings)
    service_connections = tuple(_connections_of_sections(settings, names))
    folded_names = {name.casefold() for name in names}
    for name in settings.read(MultiHostTargets).by_connection:
        if name.casefold() not in folded_names:
            log.warning("%s:ByConnectionName names %r, but ConnectionStrings has %s", _TARGETS, name, ", ".join(names))
    replicas = _replicas(settings, _without(names, main))
    listed = settings.read(RoutineOptions).sources or ()
    multiple = settings.read(ServiceConnections).use_multiple_connections
    if listed:
        if not multiple:
            log.info("Service:RoutineOptions:ReadMetadataFromConnections makes all connections usable by endpoints")
        source_names = [
            _require_name(names, name, "Service:RoutineOptions:ReadMetadataFromConnections") for name in listed
        ]
        sources = tuple(dict.fromkeys(source_names))
        return ConnectionPlan(main, _without(names, main), True, sources, replicas, True)
    metadata = settings.read(ConnectionSettings).metadata_connection
    source = _require_name(names, metadata, "ConnectionSettings:MetadataQueryConnectionName") if metadata else main
    others = _without(names if multiple else dict.fromkeys((source, *service_connections, *replicas)), main)
    return ConnectionPlan(main, others, multiple, (source,), replicas)


def _connections_of_sections(settings: Settings, names: Iterable[str]) -> Iterator[str]:
    """Yield the connections that statistics and passkeys are configured to use, as `names` spells them.

    names: of all connection strings. Raises `StartupError` for a connection that is not among them.
    """
    for section in ("Stats", "Auth:PasskeyAuth"):
        connection = settings.read_enabled(ConnectionOfSection, section)
        if connection is not None and connection.name is not None:
            yield _require_name(names, connection.name, f"{section}:ConnectionName")


def _replicas(settings: Settings, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the names that are configured as replicas; empty if replicas are disabled. Raises `StartupError`
    if they are enabled and none of the names is configured.
    """
    if not settings.is_enabled(ReplicaKeys):
        return ()
    patterns = settings.read(ReplicaKeys).names
    replicas = tuple(name for name in names if any(matches(name, pattern) for pattern in patterns))
    if not replicas:
        requested = ", ".join(patterns) or "nothing"
        raise StartupError(
            f"ConnectionSettings:Replicas:ConnectionNames: none of the ConnectionStrings besides the main one is named "
            f"{requested}; add one, or set ConnectionSettings:Replicas:Enabled to false"
        )
    return replicas


def _require_name(names: Iterable[str], requested: str, key: str) -> str:
    """Return the requested name as `names` spells it. Raises `StartupError` that names `key` if it is not among
    them.
    """
    for name in names:
        if name.casefold() == requested.casefold():
            return name
    raise StartupError(f"{key} names {requested!r}, but ConnectionStrings has {', '.join(names)}")


def _without(names: Iterable[str], main: str) -> tuple[str, ...]:
    return tuple(name for name in names if name.casefold() != main.casefold())


def with_target_session_attrs(settings: Settings, name: str, info: ConnectionInfo) -> ConnectionInfo:
    """Return the connection with the `target_session_attrs` (primary, standby, …) that `MultiHostConnectionTargets`
    sets for the connection of this name.

    A connection with one host is returned unchanged. `Any` leaves the value of the connection string.
    """
    if "," not in info.parameters.get("host", ""):
        return info
    targets = settings.read(MultiHostTargets)
    by_name = {key.casefold(): role for key, role in targets.by_connection.items()}
    target = by_name.get(name.casefold()) or targets.default
    attributes = next((value for role, value in _ROLES.items() if role.casefold() == target.casefold()), None)
    if attributes is None:
        return info
    return replace(info, parameters={**info.parameters, "target_session_attrs": attributes})
