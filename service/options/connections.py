"""Which databases there are besides the main one, and what each is for (execution-15, configuration-18)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from rowcall.core.config import ConfigError, Settings
from rowcall.core.text.globs import matches
from rowcall.service.options.connection_string import ConnectionInfo, main_connection_name
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall.client")

MAIN_ALIAS = "_default"
"""The main connection, whatever its name is."""

STATISTICS = "Stats:ConnectionName"
PASSKEYS = "Auth:PasskeyAuth:ConnectionName"
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
    """Names in the spelling of the configuration."""

    main: str
    others: tuple[str, ...] = ()
    """Databases that are needed besides the main one."""
    routable: bool = False
    """Endpoints may run on them."""
    sources: tuple[str, ...] = ()
    """Where routines are looked for."""
    replicas: tuple[str, ...] = ()
    """Those of the others that are replicas of the main one."""
    runs_at_home: bool = False
    """Routines run where they were found. False: on the main connection, wherever that was."""

    @property
    def main_names(self) -> frozenset[str]:
        """Names of the main connection in annotations, case-folded."""
        return frozenset((self.main.casefold(), MAIN_ALIAS))


@dataclass(frozen=True, slots=True)
class Connections:
    """The databases of a plan. others: by the names of `plan.others`."""

    plan: ConnectionPlan
    main: ConnectionInfo
    others: Mapping[str, ConnectionInfo]


def connection_plan(settings: Settings) -> ConnectionPlan:
    """Raises `StartupError` for a connection to read routines from that does not exist."""
    main = main_connection_name(settings)
    names = settings.names("ConnectionStrings")
    asked = tuple(_asked(settings, names))
    known = {name.casefold() for name in names}
    for name in settings.text_map(f"{_TARGETS}:ByConnectionName"):
        if name.casefold() not in known:
            log.warning("%s:ByConnectionName names %r, but ConnectionStrings has %s", _TARGETS, name, ", ".join(names))
    replicas = _replicas(settings, _without(names, main))
    listed = settings.texts("Service:RoutineOptions:ReadMetadataFromConnections") or ()
    multiple = settings.flag("Service:UseMultipleConnections")
    if listed:
        if not multiple:
            log.info("Service:RoutineOptions:ReadMetadataFromConnections makes all connections usable by endpoints")
        found = [_known(names, name, "Service:RoutineOptions:ReadMetadataFromConnections") for name in listed]
        sources = tuple(dict.fromkeys(found))
        return ConnectionPlan(main, _without(names, main), True, sources, replicas, True)
    metadata = settings.text_or_none("ConnectionSettings:MetadataQueryConnectionName")
    source = _known(names, metadata, "ConnectionSettings:MetadataQueryConnectionName") if metadata else main
    others = _without(names if multiple else dict.fromkeys((source, *asked, *replicas)), main)
    return ConnectionPlan(main, others, multiple, (source,), replicas)


def _asked(settings: Settings, names: Iterable[str]) -> Iterator[str]:
    """Databases that parts of the service ask themselves."""
    for enabled, key in (("Stats:Enabled", STATISTICS), ("Auth:PasskeyAuth:Enabled", PASSKEYS)):
        wanted = settings.text_or_none(key) if settings.flag(enabled) else None
        if wanted:
            yield _known(names, wanted, key)


def _replicas(settings: Settings, names: tuple[str, ...]) -> tuple[str, ...]:
    if not settings.flag("ConnectionSettings:Replicas:Enabled"):
        return ()
    patterns = settings.texts("ConnectionSettings:Replicas:ConnectionNames") or ()
    found = tuple(name for name in names if any(matches(name, pattern) for pattern in patterns))
    if not found:
        wanted = ", ".join(patterns) or "nothing"
        raise StartupError(
            f"ConnectionSettings:Replicas:ConnectionNames: none of the ConnectionStrings besides the main one is named "
            f"{wanted}; add one, or set ConnectionSettings:Replicas:Enabled to false"
        )
    return found


def _known(names: Iterable[str], wanted: str, key: str) -> str:
    for name in names:
        if name.casefold() == wanted.casefold():
            return name
    raise StartupError(f"{key} names {wanted!r}, but ConnectionStrings has {', '.join(names)}")


def _without(names: Iterable[str], main: str) -> tuple[str, ...]:
    return tuple(name for name in names if name.casefold() != main.casefold())


def with_role(settings: Settings, name: str, info: ConnectionInfo) -> ConnectionInfo:
    """The server of several that `MultiHostConnectionTargets` asks for. Any leaves what the string says."""
    if "," not in info.parameters.get("host", ""):
        return info
    by_name = {key.casefold(): role for key, role in settings.text_map(f"{_TARGETS}:ByConnectionName").items()}
    wanted = by_name.get(name.casefold()) or _default_role(settings)
    attributes = next((value for role, value in _ROLES.items() if role.casefold() == wanted.casefold()), None)
    if attributes is None:
        return info
    return replace(info, parameters={**info.parameters, "target_session_attrs": attributes})


def _default_role(settings: Settings) -> str:
    """A word that is no role means Any (configuration-21)."""
    try:
        return settings.choice(f"{_TARGETS}:Default")
    except ConfigError:
        return "Any"
