"""The address of Redis, as the configuration states it: a list of options in the form of StackExchange.Redis, or a URL
(caching-28).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

PORT, TLS_PORT = 6379, 6380
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_UNUSED = frozenset(
    (
        *("abortconnect", "allowadmin", "channelprefix", "configchannel", "configcheckseconds", "heartbeatinterval"),
        *("checkcertificaterevocation", "highintegrity", "protocol", "proxy", "resolvedns", "responsetimeout"),
        *("setclientlibrary", "sslprotocols", "tiebreaker", "tunnel", "version", "writebuffer", "loadbalance"),
        *("heartbeatconsistencychecks", "includedetailinexceptions", "libname"),
    )
)
"""Options of StackExchange.Redis that have no effect here."""


class BadAddressError(ValueError):
    """The address is invalid. The message does not contain the password."""


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Address and options of Redis. Times are in seconds."""

    hosts: tuple[tuple[str, int], ...] = ()
    tls: bool = False
    tls_host: str | None = None
    """Name in the certificate of the server, if it is not the host name."""
    user: str | None = None
    password: str | None = None
    database: int = 0
    name: str | None = None
    """Name of the connection at the server."""
    service: str | None = None
    """Name of the master at the Sentinels; `hosts` are the Sentinels then."""
    connect_timeout: float = 5.0
    timeout: float = 5.0
    """For an answer to a command."""
    attempts: int = 3
    """Number of attempts to connect."""
    keep_alive: int = 60
    ca_file: str | None = None
    """Certificates of the authorities that sign the certificate of the server; None: those of the system."""
    certificate_file: str | None = None
    """Certificate of this client, if the server requires one."""
    key_file: str | None = None

    def __str__(self) -> str:
        """Return the hosts for messages, without secrets."""
        return ",".join(f"{host}:{port}" for host, port in self.hosts)


def parse_redis(text: str) -> RedisAddress:
    """Parse an address: a list of options, or a URL, whose host is `localhost` if it names none.

    Raises:
        BadAddressError: a list names no host, a URL cannot be read or has another scheme than `redis` and `rediss`, a
            port is not from 1 to 65535, or an option is unknown or has an invalid value.
    """
    text = text.strip()
    if "://" in text:
        return _from_url(text)
    address = RedisAddress()
    places: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            if part:
                places.append(part)
        else:
            address = _with_option(address, name.strip().lower(), value.strip())
    if not places:
        raise BadAddressError("no host is named")
    port = TLS_PORT if address.tls else PORT
    return replace(address, hosts=tuple(_place(place, port) for place in places))


def _place(text: str, port: int) -> tuple[str, int]:
    """Return host and port of `host`, `host:port` or `[address]:port`. port: for a text without one. Raises
    `BadAddressError`."""
    host, colon, number = text.rpartition(":")
    if not colon or "]" in number or (":" in host and not host.startswith("[")):
        return text.strip("[]"), port
    return host.strip("[]"), _port(number)


def _port(text: str) -> int:
    """Return a port from 1 to 65535. Raises `BadAddressError` for another text."""
    port = _number("port", text)
    if not 0 < port < 65536:
        raise BadAddressError(f"the port {port} is not from 1 to 65535")
    return port


def _number(name: str, text: str) -> int:
    """Return a number of at most nine digits. name: of the option, for the message. Raises `BadAddressError`."""
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise BadAddressError(f"{name} is not a number")
    return int(text)


def _seconds(name: str, text: str) -> float:
    """Return the seconds for a text in milliseconds. name: of the option. Raises `BadAddressError`."""
    return _number(name, text) / 1000


def _flag(name: str, text: str) -> bool:
    """Return the value of a flag. name: of the option. Raises `BadAddressError`."""
    if text.lower() not in _FLAGS:
        raise BadAddressError(f"{name} is neither true nor false")
    return _FLAGS[text.lower()]


def _as_it_is(_name: str, text: str) -> str:
    """Return the text of an option that needs no conversion."""
    return text


_OPTIONS: dict[str, tuple[str, Callable[[str, str], Any]]] = {
    "connectretry": ("attempts", _number),
    "connecttimeout": ("connect_timeout", _seconds),
    "synctimeout": ("timeout", _seconds),
    "asynctimeout": ("timeout", _seconds),
    "ssl": ("tls", _flag),
    "sslhost": ("tls_host", _as_it_is),
    "user": ("user", _as_it_is),
    "password": ("password", _as_it_is),
    "defaultdatabase": ("database", _number),
    "name": ("name", _as_it_is),
    "keepalive": ("keep_alive", _number),
    "servicename": ("service", _as_it_is),
    # Options beyond StackExchange.Redis, with the names of redis-py.
    "ssl_ca_certs": ("ca_file", _as_it_is),
    "ssl_certfile": ("certificate_file", _as_it_is),
    "ssl_keyfile": ("key_file", _as_it_is),
}


def _with_option(address: RedisAddress, name: str, value: str) -> RedisAddress:
    """Return the address with an option; unchanged for an option that has no effect here. name: in lower case. Raises
    `BadAddressError` if it is unknown, or for an invalid value."""
    if name in _OPTIONS:
        field, read = _OPTIONS[name]
        return replace(address, **{field: read(name, value)})
    if name in _UNUSED:
        return address
    raise BadAddressError(f"the option {name} is unknown")


def _from_url(text: str) -> RedisAddress:
    """Parse a URL `redis://` or `rediss://` (with TLS); its query has options. Raises `BadAddressError`."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise BadAddressError("the URL cannot be read") from error
    if parts.scheme not in ("redis", "rediss"):
        raise BadAddressError(f"{parts.scheme}:// is none of redis:// and rediss://")
    tls = parts.scheme == "rediss"
    address = RedisAddress(
        hosts=((parts.hostname or "localhost", PORT if port is None else _port(str(port))),),
        tls=tls,
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        database=_number("the database", parts.path.strip("/") or "0"),
    )
    for name, value in parse_qsl(parts.query):
        address = _with_option(address, name.lower(), value)
    return address
