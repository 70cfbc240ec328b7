"""The paths at which the service itself answers. An endpoint there is never reached, which its author is told."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from rowcall.core.config import Settings
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic

log = logging.getLogger("rowcall")

_ANY = None
_HEALTH, _STATS, _PASSKEYS = "HealthChecks:", "Stats:", "Auth:PasskeyAuth:"
_AT: tuple[tuple[str, str | None, tuple[str, ...]], ...] = (
    ("HealthChecks:Enabled", _ANY, tuple(_HEALTH + name for name in ("Path", "ReadyPath", "LivePath"))),
    (
        "Stats:Enabled",
        "GET",
        tuple(_STATS + name for name in ("RoutinesStatsPath", "TablesStatsPath", "IndexesStatsPath", "ActivityPath")),
    ),
    ("Auth:BearerTokenAuth", "POST", ("Auth:BearerTokenRefreshPath",)),
    ("Auth:JwtAuth", "POST", ("Auth:JwtRefreshPath",)),
    (
        "Auth:PasskeyAuth:Enabled",
        "POST",
        tuple(
            _PASSKEYS + name for name in ("AddPasskeyOptionsPath", "AddPasskeyPath", "LoginOptionsPath", "LoginPath")
        ),
    ),
    ("Service:OpenApiOptions:Enabled", "GET", ("Service:OpenApiOptions:UrlPath",)),
    ("Service:McpOptions:Enabled", "POST", ("Service:McpOptions:UrlPath",)),
)
"""What switches them on, their method, and the keys that hold them."""


class OwnPaths:
    def __init__(self, settings: Settings) -> None:
        self._keys: Mapping[tuple[str | None, str], str] = _keys(settings)

    def hidden(self, endpoints: Iterable[Endpoint]) -> Iterator[Diagnostic]:
        """Of endpoints that no request finds."""
        if not self._keys:
            return
        for endpoint in endpoints:
            path = _bare(endpoint.path)
            key = self._keys.get((_ANY, path)) or self._keys.get((endpoint.method, path))
            if key is not None and not endpoint.options.internal:
                message = f"{endpoint.name} is not reached: {key} answers there; give one of them another path"
                yield Diagnostic(endpoint.routine.identity, None, message)


def _keys(settings: Settings) -> dict[tuple[str | None, str], str]:
    found: dict[tuple[str | None, str], str] = {}
    for switch, method, keys in _AT:
        if not settings.flag(switch):
            continue
        for key in keys:
            path = settings.text_or_none(key)
            if path:
                other = found.setdefault((method, _bare(path)), key)
                if other != key:
                    log.warning("%s and %s are both %s; only one of them answers there", other, key, path)
    return found


def _bare(path: str) -> str:
    return path.lower().rstrip("/")
