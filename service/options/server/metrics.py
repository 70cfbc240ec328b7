"""Read `Admin`, `Metrics`, `Console` and `Profiling`: the listener for operators and what it serves."""

from __future__ import annotations

import ipaddress
import logging
from dataclasses import dataclass

from rowcall.core.config import Settings
from rowcall.core.endpoint.access import ANYONE, Access
from rowcall.core.operations.console import ConsoleOptions
from rowcall.core.operations.metrics import Admin, MetricsOptions
from rowcall.service.sockets.listeners import Address
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")


@dataclass(frozen=True, slots=True)
class AdminOptions:
    """Options of the admin listener, which the supervisor runs. token: that callers must send; None: none is required.
    metrics_path: None: there are no metrics. console: None: it is not served.
    """

    address: Address
    token: str | None
    metrics_path: str | None
    console: ConsoleOptions | None = None

    @property
    def access(self) -> Access:
        """Who may call the pages of the listener: callers with the token; anyone if there is none."""
        return ANYONE if self.token is None else Access(credential_key="Admin:BearerToken")

    @property
    def pages(self) -> tuple[tuple[str, str], ...]:
        """Method and path of each page besides those of the console."""
        metrics = () if self.metrics_path is None else (("GET", self.metrics_path),)
        return (("POST", "/profile"), *metrics)


def metrics_options(settings: Settings) -> MetricsOptions | None:
    """Return the options of metrics, or None if neither metrics nor the console are enabled.

    Raises StartupError if there is no admin listener to read them from.
    """
    if not (settings.is_enabled(MetricsOptions) or settings.is_enabled(ConsoleOptions)):
        return None
    if not _url(settings)[1]:
        raise StartupError("Metrics:Enabled needs an address to be read at: Admin:Url, such as http://127.0.0.1:9464")
    return settings.read(MetricsOptions)


def admin_options(settings: Settings) -> AdminOptions | None:
    """Return the options of the admin listener; None if neither `Admin:Url` nor the console is configured.

    Raises StartupError for an invalid or https address, a bearer token that is too short, an invalid `Metrics:Path`,
    and an address that other machines reach: `Admin:Url` without a token (unless `Admin:AllowAnonymous` permits it),
    and always `Console:Url`.
    """
    key, url = _url(settings)
    if not url:
        return None
    address = Address.parse(url, key)
    if key == "Console:Url" and not is_local(address):
        raise StartupError(
            f"Console:Url: {url} can be reached from other machines: bind it to 127.0.0.1 or to a Unix socket, or "
            "configure the admin listener by Admin:Url"
        )
    if address.secure:
        raise StartupError(f"{key}: the admin listener speaks http; put a proxy in front of it for https")
    admin = settings.read(Admin)
    token = admin.bearer_token
    if token is not None and len(token) < SHORTEST_TOKEN:
        message = f"Admin:BearerToken is shorter than {SHORTEST_TOKEN} characters, and could be guessed"
        raise StartupError(f"{message}; set a longer random text")
    if token is None and not is_local(address):
        if not admin.allow_anonymous:
            raise StartupError(
                f"Admin:Url: {url} can be reached from other machines: give it Admin:BearerToken, bind it to 127.0.0.1 "
                "or to a Unix socket, or set Admin:AllowAnonymous"
            )
        log.warning(
            "Admin:Url: %s is open to every client that can reach it, and reports paths, routines and load", url
        )
    path = _path(settings) if settings.is_enabled(MetricsOptions) else None
    return AdminOptions(address, token, path, settings.read_enabled(ConsoleOptions))


def _url(settings: Settings) -> tuple[str, str]:
    """Return the key and the address of the admin listener; the address is empty if there is no listener."""
    url = settings.read(Admin).url
    console = None if url else settings.read_enabled(ConsoleOptions)
    return ("Admin:Url", url or "") if console is None else ("Console:Url", console.url)


SHORTEST_TOKEN = 16
"""Minimum length of a bearer token in characters."""


def is_local(address: Address) -> bool:
    """Return whether the address can be reached only from this machine (Unix socket or loopback)."""
    if address.unix or address.host == "localhost":
        return True
    try:
        return ipaddress.ip_address(address.host).is_loopback
    except ValueError:
        return False


def _path(settings: Settings) -> str:
    path = settings.read(MetricsOptions).path
    if not path.startswith("/") or any(letter in path for letter in "?# "):
        raise StartupError(f"Metrics:Path: {path!r} is no path such as /metrics")
    return path
