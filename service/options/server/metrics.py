"""`Admin` and `Metrics` → a listener for operators, and what is counted for it."""

from __future__ import annotations

import ipaddress
import logging
from dataclasses import dataclass
from pathlib import Path

from rowcall.core.config import Settings
from rowcall.service.sockets.listeners import Address
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")


@dataclass(frozen=True, slots=True)
class MetricsOptions:
    """What workers count."""

    most: int
    """Endpoints that are told apart."""
    rendering: bool


@dataclass(frozen=True, slots=True)
class AdminOptions:
    """Of the supervisor."""

    address: Address
    token: str | None
    metrics_path: str | None


@dataclass(frozen=True, slots=True)
class ProfilingOptions:
    """folder: where profiles are written; None: each into a new one among the temporary files."""

    folder: Path | None
    py_spy: bool
    """Where it is installed and may."""


def profiling_options(settings: Settings) -> ProfilingOptions:
    folder = settings.text_or_none("Profiling:Folder")
    return ProfilingOptions(Path(folder) if folder else None, settings.choice("Profiling:Sampler") == "Auto")


def metrics_options(settings: Settings) -> MetricsOptions | None:
    """None: nothing is counted."""
    if not settings.flag("Metrics:Enabled"):
        return None
    if not settings.text_or_none("Admin:Url"):
        raise StartupError("Metrics:Enabled needs an address to be read at: Admin:Url, such as http://127.0.0.1:9464")
    return MetricsOptions(
        settings.integer("Metrics:MaxEndpoints", minimum=2), settings.flag("Metrics:MeasureRendering")
    )


def admin_options(settings: Settings) -> AdminOptions | None:
    """None: there is no such listener."""
    url = settings.text_or_none("Admin:Url")
    if not url:
        return None
    address = Address.parse(url, "Admin:Url")
    if address.secure:
        raise StartupError("Admin:Url: the admin listener speaks http; put a proxy in front of it for https")
    token = settings.text_or_none("Admin:BearerToken") or None
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise StartupError(f"Admin:BearerToken is shorter than {SHORTEST_TOKEN} characters, and could be guessed")
    if token is None and not is_local(address):
        if not settings.flag("Admin:AllowAnonymous"):
            raise StartupError(
                f"Admin:Url: {url} can be reached from other machines: give it Admin:BearerToken, bind it to 127.0.0.1 "
                "or to a Unix socket, or say Admin:AllowAnonymous"
            )
        log.warning("Admin:Url: %s is open to everybody who can reach it: it tells paths, routines and load", url)
    path = _path(settings) if settings.flag("Metrics:Enabled") else None
    return AdminOptions(address, token, path)


SHORTEST_TOKEN = 16


def is_local(address: Address) -> bool:
    """Only this machine reaches it."""
    if address.unix or address.host == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.host).is_loopback
    except ValueError:
        return False


def _path(settings: Settings) -> str:
    path = settings.text("Metrics:Path")
    if not path.startswith("/") or any(letter in path for letter in "?# "):
        raise StartupError(f"Metrics:Path: {path!r} is no path such as /metrics")
    return path
