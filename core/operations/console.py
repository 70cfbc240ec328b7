"""Options of the console for operators."""

from __future__ import annotations

import enum

from rowcall.core.endpoint.access import ANYONE, Access
from rowcall.core.sections.declaration import choice, flag, interval, section, text, texts
from rowcall.core.sections.values import or_empty

OPEN_FILES = ("sign-in", "sign-in.js", "style.css", "icon.svg")
"""Files of the console that anonymous callers get: the page to sign in at, which contains no data."""


class HostDiscovery(enum.Enum):
    """The service through which the consoles of several hosts find each other."""

    NONE = "None"
    DATABASE = "Database"
    REDIS = "Redis"


@section("Console", "A page for operators that shows what the service does, on the admin listener.")
class ConsoleOptions:
    """Options of the console. Times in seconds."""

    enabled: bool = flag(
        "Enabled", False, "Serve the console; `rowcall --console` does the same. The start logs a link to it."
    )
    url: str = text(
        "Url",
        "http://127.0.0.1:9465",
        "Address of the admin listener if `Admin:Url` is not set; only this machine may reach it.",
    )
    allow_actions: bool = flag(
        "AllowActions",
        False,
        "Operators may invalidate cached responses, run jobs, schedules and deliveries again, and end sessions. "
        "Without it, the console is read-only.",
    )
    roles: frozenset[str] = texts(
        "Roles",
        None,
        "Users of the service with one of these roles may sign in too, by their session, token or API key.",
        convert=lambda roles: frozenset(roles or ()),
    )
    link_expires: float = interval(
        "LinkExpires", "15 minutes", "Time for which the sign-in link in the log is valid, for one use."
    )
    session_expires: float = interval("SessionExpires", "8 hours", "Time after which an operator has to sign in again.")

    hosts: HostDiscovery = choice(
        "Hosts",
        HostDiscovery,
        "Database",
        "List the services with a console that share the main database (by NOTIFY) or Redis, while a page is open. "
        "None: they are not asked, and are not answered.",
    )
    redis: str = text(
        "RedisConfiguration",
        None,
        "Connection string of Redis for `Hosts`. null: CacheOptions:RedisConfiguration.",
        secret=True,
        convert=or_empty,
    )

    @property
    def routes(self) -> tuple[tuple[str, str, Access], ...]:
        """Method, path and access of each route of the console. Without a session, only the files of the sign-in page
        are open."""
        return (
            *(("GET", f"/console/{name}", ANYONE) for name in OPEN_FILES),
            ("POST", "/console/api/session", Access(credential_key=self._credentials)),
            ("*", "/console/*", Access(credential_key="a session of the console")),
        )

    @property
    def _credentials(self) -> str:
        by_role = f", or a session of a user with a role of {', '.join(sorted(self.roles))}" if self.roles else ""
        return f"the sign-in link in the log{by_role}"
