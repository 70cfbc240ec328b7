"""Reserved paths of the service and paths of streams. An endpoint at such a path is unreachable and gives a diagnostic,
as do two streams at one path, and a reserved path at the path of a stream."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence

from rowcall.core.auth.schemes import CookieScheme
from rowcall.core.building.service import ServiceOptions
from rowcall.core.config import Settings
from rowcall.core.config.sections.auth import NamedCookie, NamedScheme
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.events.stream_path import stream_path, with_parameters
from rowcall.core.operations.static_files import StaticFileOptions

log = logging.getLogger("rowcall")

_ANY = None
_SCHEMAS = "Service:McpOptions:ToolSchemas:"
_HEALTH, _STATS, _PASSKEYS = "HealthChecks:", "Stats:", "Auth:PasskeyAuth:"
_AT: tuple[tuple[str | tuple[str, ...], str | None, tuple[str, ...]], ...] = (
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
    (
        ("Auth:PasskeyAuth:Enabled", "Auth:PasskeyAuth:EnableRegister"),
        "POST",
        tuple(_PASSKEYS + name for name in ("RegistrationOptionsPath", "RegistrationPath")),
    ),
    ("Auth:SecondFactor:Enabled", "GET", ("Auth:SecondFactor:Path",)),
    ("Antiforgery:Enabled", "GET", ("Antiforgery:TokenPath",)),
    ("CacheOptions:Enabled", "POST", ("CacheOptions:TagsPath",)),
    ("Service:OpenApiOptions:Enabled", "GET", ("Service:OpenApiOptions:UrlPath",)),
    ("Docs:Enabled", "GET", ("Docs:Path",)),
    ("Batch:Enabled", "POST", ("Batch:Path",)),
    ("Jobs:Enabled", None, ("Jobs:Path",)),
    ("Service:McpOptions:Enabled", "GET", ("Service:McpOptions:UrlPath",)),
    ("Service:McpOptions:Enabled", "POST", ("Service:McpOptions:UrlPath",)),
    (
        "Service:McpOptions:ToolSchemas:Enabled",
        "GET",
        tuple(f"{_SCHEMAS}{name}UrlPath" for name in ("OpenAi", "Anthropic", "LlmsTxt")),
    ),
)
"""Switches that together enable paths, the method of these (None: any), and the keys of the paths."""

_REFRESHED = {"BearerToken": "BearerTokenRefreshPath", "Jwt": "JwtRefreshPath"}
"""Types of schemes, and the key of the refresh path of each."""


_SIGNING = ("Service:AuthenticationOptions:LoginPath", "Service:AuthenticationOptions:LogoutPath")
"""Keys of paths at which endpoints have to be."""


class ReservedPaths:
    """The reserved paths of one configuration."""

    def __init__(self, settings: Settings) -> None:
        self._keys: Mapping[tuple[str | None, str], str] = _keys(settings)
        self._paths = {key: str(settings.value_of(key)) for key in self._keys.values()}
        self._cookies = dict(_cookie_paths(settings))
        self._signing = {key: path for key in _SIGNING if (path := settings.value_of(key))}
        self._level = settings.read(ServiceOptions).event_level

    def diagnose_conflicts(self, endpoints: Sequence[Endpoint]) -> Iterator[Diagnostic]:
        """Yield a diagnostic for each endpoint that is unreachable because a reserved path or a stream has its path,
        for each stream at the path of another one with other events or other recipients, and for each stream at a
        reserved path. endpoints: public ones.
        """
        streams: dict[str, Endpoint] = {}
        for endpoint in endpoints:
            if endpoint.options.events is not None and (path := stream_path(endpoint, self._level)) is not None:
                first = streams.setdefault(path, endpoint)
                if _stream_terms(first) != _stream_terms(endpoint):
                    message = (
                        f"the stream at {path} is also that of {first.routine.identity}, which has other events or "
                        "other recipients; give one of them another path"
                    )
                    yield Diagnostic(endpoint.routine.identity, None, message)
        if not self._keys and not streams:
            return
        patterns = with_parameters(streams)
        for key, path in self._paths.items():
            if (stream := _stream_at(path, streams, patterns)) is not None:
                message = f"{key} is not reached: the stream of {stream.name} is at {path}"
                yield Diagnostic(stream.routine.identity, None, f"{message}; give one of them another path")
        for endpoint in endpoints:
            if (stream := _stream_at(endpoint.path, streams, patterns)) is not None:
                message = f"{endpoint.name} is not reached: the stream of {stream.name} is there"
                yield Diagnostic(endpoint.routine.identity, None, f"{message}; give one of them another path")
            path = _bare(endpoint.path)
            reserved = self._keys.get((_ANY, path)) or self._keys.get((endpoint.method, path))
            if reserved is not None:
                message = f"{endpoint.name} is not reached: {reserved} answers there; give one of them another path"
                yield Diagnostic(endpoint.routine.identity, None, message)

    def diagnose_unsent_cookies(self, endpoints: Sequence[Endpoint]) -> Iterator[Diagnostic]:
        """Yield a diagnostic for each session cookie whose path covers no endpoint (RFC 6265, 5.1.4): users who have
        signed in would be anonymous. Yields none if there are no endpoints, or if static files are served, because the
        cookie may be meant for these."""
        for key, path in self._cookies.items():
            if endpoints and not any(_covers(path, endpoint.path) for endpoint in endpoints):
                message = f"no endpoint is at {path} or below, so browsers send the cookie to none"
                yield Diagnostic(key, None, message)

    def diagnose_missing_paths(self, endpoints: Sequence[Endpoint]) -> Iterator[Diagnostic]:
        """Yield a diagnostic for each configured login or logout path without an endpoint; none if there are no
        endpoints at all."""
        there = {endpoint.path.lower() for endpoint in endpoints} if self._signing else set()
        for key, path in self._signing.items():
            if endpoints and path.lower() not in there:
                yield Diagnostic(key, None, f"no endpoint is at {path}, so the setting has no effect")


def _cookie_paths(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield configuration key and path of each session cookie; none if static files are served."""
    if settings.is_enabled(StaticFileOptions):
        return  # The cookie may be for static pages.
    if settings.is_enabled(CookieScheme):
        yield "Auth:CookiePath", settings.read(CookieScheme).path
    for name in settings.names_of(NamedScheme):
        scheme = settings.read_enabled(NamedScheme, name)
        if scheme is not None and scheme.type == "Cookies":
            yield f"Auth:Schemes:{name}:CookiePath", settings.read(NamedCookie, name).path or "/"


def _covers(cookie: str, path: str) -> bool:
    """Return whether browsers can send a cookie to an endpoint. cookie: path of the cookie. path: of the endpoint, with
    its parameters as `{name}`, which can have any value.

    Case is ignored: endpoints ignore the case of paths, so a request can have the case of the cookie's path.
    """
    ours, theirs = cookie.lower().rstrip("/").split("/"), path.lower().split("/")
    return len(ours) <= len(theirs) and all(
        segment == other or other.startswith("{") for segment, other in zip(ours, theirs, strict=False)
    )


def _stream_at(
    path: str, streams: Mapping[str, Endpoint], patterns: tuple[re.Pattern[str], Sequence[str]] | None
) -> Endpoint | None:
    """Return the endpoint of the stream that answers all requests to a path; None: there is none. streams: by path.
    patterns: as `with_parameters` returns them.
    """
    if path not in streams and patterns is not None and (result := patterns[0].fullmatch(path)) is not None:
        path = patterns[1][(result.lastindex or 1) - 1]
    return streams.get(path)


def _stream_terms(endpoint: Endpoint) -> object:
    """Return a value that is equal for streams with the same events and recipients. It is None for all streams of
    notices.
    """
    events = endpoint.options.events
    if events is None or events.channel is None:
        return None
    return events.channel, events.filters, endpoint.options.connection, endpoint.access


def _keys(settings: Settings) -> dict[tuple[str | None, str], str]:
    """Return the configuration key of each reserved path, by method (None: any) and path, as `_bare` returns it. Of two
    keys with the same method and path, the first one is used, which is logged."""
    keys: dict[tuple[str | None, str], str] = {}
    for method, key in _enabled_paths(settings):
        path = settings.value_of(key)
        if path:
            other = keys.setdefault((method, _bare(path)), key)
            if other != key:
                log.warning("%s and %s are both %s; only one of them answers there", other, key, path)
    return keys


def _enabled_paths(settings: Settings) -> Iterator[tuple[str | None, str]]:
    """Yield the method (None: any) and the configuration key of each enabled path."""
    for switches, method, keys in _AT:
        if all(settings.value_of(switch) for switch in ((switches,) if isinstance(switches, str) else switches)):
            yield from ((method, key) for key in keys)
    for name in settings.names_of(NamedScheme):
        scheme = settings.read_enabled(NamedScheme, name)
        refreshed = None if scheme is None else _REFRESHED.get(scheme.type or "")
        if refreshed is not None:
            yield "POST", f"Auth:Schemes:{name}:{refreshed}"


def _bare(path: str) -> str:
    """Return the path as reserved paths are compared: in lower case and without a slash at the end."""
    return path.lower().rstrip("/")
