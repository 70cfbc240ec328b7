"""Read `StaticFiles`: served files, their protection and their placeholders (static-files-1 to static-files-6)."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rowcall.core.config import Settings
from rowcall.core.endpoint.access import ANYONE, SIGNED_IN, Access
from rowcall.core.text.globs import has_wildcard, matches
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_P = "StaticFiles:"
_PARSE = _P + "ParseContentOptions:"


@dataclass(frozen=True, slots=True)
class PageOptions:
    """Options of pages with placeholders. claims: for each claim type that has a placeholder, the text for callers
    without that claim; None: there is no such text.
    """

    patterns: tuple[str, ...]
    claims: Mapping[str, str | None]
    variables: Mapping[str, str | None]
    """Environment variables and their values, read once."""
    headers: tuple[tuple[str, str], ...]
    keep: bool


@dataclass(frozen=True, slots=True)
class StaticFileOptions:
    root: str
    """Absolute path without symbolic links."""
    closed: tuple[str, ...] = ()
    """Patterns of paths that only signed-in users may read."""
    redirect: str | None = None
    """Path to which anonymous callers are redirected; None: they get 401."""
    return_to: str | None = None
    cache_control: str | None = None
    pages: PageOptions | None = None
    names: tuple[str, str, str] = field(default=("user_id", "user_name", "user_roles"))
    """Claim types of user id, user name and roles."""

    def access(self, path: str) -> Access:
        """Return who may read the file at a path."""
        return SIGNED_IN if any(matches(path, pattern) for pattern in self.closed) else ANYONE


def _closed(settings: Settings, root: str) -> tuple[str, ...]:
    """Return the patterns of protected paths; report patterns that protect nothing.

    Raises StartupError for a pattern that fits no path, and warns about a folder without wildcard.
    """
    key = _P + "AuthorizePaths"
    patterns = tuple(pattern for pattern in settings.texts(key) or () if pattern)
    for pattern in patterns:
        if not pattern.startswith(("/", "*", "?")):
            raise StartupError(
                f"{key}: {pattern!r} matches no path: paths of files begin with a slash, such as /{pattern}"
            )
        if not has_wildcard(pattern) and Path(root, pattern.strip("/")).is_dir():
            path = pattern.rstrip("/")
            log.warning("%s: %s is a folder, and its files can be read without sign-in: write %s/*", key, pattern, path)
    return patterns


def static_file_options(settings: Settings) -> StaticFileOptions | None:
    if not settings.flag(_P + "Enabled"):
        return None
    folder = settings.text(_P + "RootPath")
    root = os.path.realpath(folder)
    if not Path(root).is_dir():
        raise StartupError(f"{_P}RootPath: there is no folder {root}")
    claims = "Service:AuthenticationOptions:Default"
    return StaticFileOptions(
        root=root,
        closed=_closed(settings, root),
        redirect=settings.text_or_none(_P + "UnauthorizedRedirectPath") or None,
        return_to=settings.text_or_none(_P + "UnauthorizedReturnToQueryParameter") or None,
        cache_control=settings.text_or_none(_P + "CacheControl") or None,
        pages=_pages(settings) if settings.flag(_PARSE + "Enabled") else None,
        names=(
            settings.text(claims + "UserIdClaimType"),
            settings.text(claims + "NameClaimType"),
            settings.text(claims + "RoleClaimType"),
        ),
    )


def _pages(settings: Settings) -> PageOptions:
    environment = {**os.environ, **settings.variables}
    variables = settings.name_defaults(_PARSE + "AvailableEnvVars")
    return PageOptions(
        patterns=tuple(settings.texts(_PARSE + "FilePaths") or ()),
        claims=settings.name_defaults(_PARSE + "AvailableClaims"),
        variables={name: environment.get(name, instead) for name, instead in variables.items()},
        headers=tuple(_headers(settings.texts(_PARSE + "Headers") or ())),
        keep=settings.flag(_PARSE + "CacheParsedFile"),
    )


def _headers(lines: tuple[str, ...]) -> list[tuple[str, str]]:
    """Parse lines `Name: value`; others are left out with a warning."""
    fields: list[tuple[str, str]] = []
    for line in lines:
        parts = line.split(":")
        if len(parts) == 2 and parts[0].strip():
            fields.append((parts[0].strip().lower(), parts[1].strip()))
        else:
            log.warning("%sHeaders: %r is left out; `Name: value` is expected", _PARSE, line)
    return fields
