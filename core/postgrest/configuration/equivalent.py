"""The configuration of this service that is equivalent to one of PostgREST."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rowcall.core.postgrest.configuration.keys import APP_SETTINGS, INTERFACE_KEYS
from rowcall.core.postgrest.options import InvalidOptionError, url_host

_DEFAULT_PORT = "3000"
_ANY_HOST = {"!4": "0.0.0.0", "*4": "0.0.0.0", "*": "0.0.0.0", "!6": "::", "*6": "*"}  # noqa: S104 (PostgREST's)
"""Host of `Urls` for each name of PostgREST that stands for several addresses."""
_POOL = "ConnectionSettings:Pool:"
_LEVELS = {"crit": "Fatal", "error": "Error", "warn": "Warning", "info": "Information", "debug": "Debug"}
_APPLICATION_NAME = re.compile(r"(?:^|[?&\s])application_name\s*=")
_BOOLEANS = {"on": "true", "off": "false"}


def equivalent(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return pairs of a key's path in this service and its text.

    texts: by key of PostgREST. Ordinary endpoints are switched off, because the file describes all that is served.
    Raises `InvalidOptionError` for values with which PostgREST does not start.
    """
    return [
        ("Service:RoutineOptions:Enabled", "false"),
        ("Service:CrudSource:Enabled", "false"),
        ("Service:SqlFileSource:Enabled", "false"),
        ("Service:RequiresAuthorization", "false"),
        ("DataProtection:Enabled", "false"),
        # This engine accepts unencoded quotes and arrows in URLs, which many clients of PostgREST send.
        ("HttpServer:Engine", "Auto"),
        *_connection(texts),
        *_listener(texts),
        *_pool(texts),
        *_log(texts),
        ("PostgRest:Enabled", "true"),
        *_interface(texts),
    ]


def _connection(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the connection string and, if it sets `application_name`, the setting with which this service does not
    replace it."""
    uri = texts.get("db-uri") or "postgresql://"
    yield "ConnectionStrings:Default", uri
    if _APPLICATION_NAME.search(uri):
        yield "ConnectionSettings:SetApplicationNameInConnection", "false"


def _listener(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the address at which the service listens: a socket, or host and port."""
    socket = texts.get("server-unix-socket")
    if socket:
        yield "Urls", f"http://unix:{socket}"
        yield "HttpServer:UnixSocketPermissions", _socket_mode(texts.get("server-unix-socket-mode") or "660")
        return
    yield "Urls", f"http://{_host(texts, 'server-host')}:{texts.get('server-port') or _DEFAULT_PORT}"


def _socket_mode(text: str) -> str:
    """Return the permissions of a socket. Raises `InvalidOptionError` unless they are octal, from 600 to 777."""
    if re.fullmatch("0*[67][0-7]{2}", text) is None:
        raise InvalidOptionError(f"server-unix-socket-mode: {text!r} is not an octal number between 600 and 777")
    return text


def _host(texts: Mapping[str, str], *keys: str) -> str:
    """Return the host of the first of these keys that has a value, as a URL has it; by default every IPv4 address."""
    host = next((text for key in keys if (text := texts.get(key))), "!4")
    return url_host(_ANY_HOST.get(host, host))


def _pool(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the settings of the connection pool. Times of PostgREST are in seconds. A lifetime or idle time that is 0
    or missing is left out, so that the default of this service applies."""
    yield _POOL + "ExclusiveConnections", texts.get("db-pool") or "10"
    yield _POOL + "QueueTimeout", f"{texts.get('db-pool-acquisition-timeout') or '10'} seconds"
    # PostgREST lets each request wait that long, also in a long overload.
    yield _POOL + "QueueTarget", ""
    for key, name in (("db-pool-max-lifetime", "ConnectionLifetime"), ("db-pool-max-idletime", "IdleTimeout")):
        if (texts.get(key) or "0") != "0":
            yield _POOL + name, f"{texts[key]} seconds"


def _log(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the levels of the log. PostgREST's level is that of requests; messages of a start are always logged. Raises
    `InvalidOptionError` for an unknown level.
    """
    level = texts.get("log-level") or "error"
    if level not in _LEVELS:
        raise InvalidOptionError(f"log-level: {level!r} is not one of {', '.join(_LEVELS)}")
    yield "Log:MinimalLevels:rowcall", "Information"
    yield "Log:MinimalLevels:rowcall.client", "Information"
    yield "Log:MinimalLevels:rowcall.http", _LEVELS[level]


def _interface(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the keys of the section `PostgRest`, as far as `texts` has them, and with an admin port also the host of
    the admin server. Raises `InvalidOptionError` for an admin port that is that of the service."""
    for key in INTERFACE_KEYS:
        text = texts.get(key.postgrest)
        if text is not None and key.postgrest != "admin-server-host":
            yield f"PostgRest:{key.name}", _BOOLEANS.get(text.lower(), text) if key.is_flag else text
    admin_port = texts.get("admin-server-port")
    if admin_port:
        if admin_port == (texts.get("server-port") or _DEFAULT_PORT):
            raise InvalidOptionError("admin-server-port cannot be the same as server-port")
        yield "PostgRest:AdminServerHost", _host(texts, "admin-server-host", "server-host")
    for name, text in texts.items():
        if name.startswith(APP_SETTINGS):
            yield f"PostgRest:AppSettings:{name.removeprefix(APP_SETTINGS)}", text
