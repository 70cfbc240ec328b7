"""Parse connection strings into libpq parameters.

Four forms are read (configuration-19): a libpq URI, libpq keywords, `Host=…;Database=…` as drivers such as Npgsql write
it, and `embedded:PATH`. No message of this module contains a password.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg
from psycopg import conninfo, pq

from rowcall.core.building.service import ServiceConnections
from rowcall.core.config import Settings
from rowcall.core.config.output.masking import MASK, SECRET_WORDS
from rowcall.core.config.sections.application import ApplicationNames
from rowcall.core.config.sections.connections import ConnectionSettings
from rowcall.service.startup_error import StartupError

_STRINGS = "ConnectionStrings"


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """A parsed connection string: one database server (or several hosts of one cluster) and options of its use."""

    parameters: Mapping[str, str] = field(default_factory=dict)
    """libpq keywords and values; `conninfo()` formats them for psycopg."""
    command_timeout: float | None = None
    """Default timeout of routines in seconds; 0: no limit, None: the configuration decides."""
    maximum_pool_size: int | None = None
    """Largest number of connections in a pool; None: the configuration decides."""

    def conninfo(self) -> str:
        return conninfo.make_conninfo("", **self.parameters)

    def masked_text(self) -> str:
        """Return the connection string of libpq for logs, with passwords, keys and other secrets masked."""
        shown = {
            name: MASK if any(word in name for word in SECRET_WORDS) else text for name, text in self.parameters.items()
        }
        return conninfo.make_conninfo("", **shown)

    def __repr__(self) -> str:
        return f"ConnectionInfo({self.masked_text()!r})"

    def with_parameters(self, **parameters: str) -> ConnectionInfo:
        return replace(self, parameters={**self.parameters, **parameters})


@dataclass(frozen=True, slots=True)
class EmbeddedServerPath:
    """The form `embedded:PATH`: a private PostgreSQL server in a folder (see `service.embedded.postgres`)."""

    path: Path


def connection_names(settings: Settings) -> tuple[str, ...]:
    """Return the names of all connection strings without reading these, as their placeholders may be unset."""
    return settings.names(_STRINGS)


def main_connection_name(settings: Settings) -> str:
    """Return the name of the main connection: `Service:ConnectionName`, else `Default`, else the first in sorted order.

    Raises StartupError if `Service:ConnectionName` names a connection that does not exist.
    """
    names = connection_names(settings)
    requested = settings.read(ServiceConnections).connection_name
    for name in names:
        if name.casefold() == (requested or "Default").casefold():
            return name
    if requested:
        raise StartupError(f"Service:ConnectionName is {requested!r}, but ConnectionStrings has {', '.join(names)}")
    return names[0]


def connection_for(settings: Settings, name: str, default_application_name: str) -> ConnectionInfo | EmbeddedServerPath:
    """Parse the connection string `name`, with placeholders resolved. Raises StartupError.

    With `ConnectionSettings:SetApplicationNameInConnection`, its application name is replaced by the configured one, or
    by `default_application_name` if none is configured. Without it, the connection is returned as the string states it.
    """
    text = settings.map_text(_STRINGS, name)
    if not text or not text.strip():
        raise StartupError(f"ConnectionStrings:{name} is empty: say where the database is")
    try:
        parsed = parse_connection_string(text)
    except StartupError as error:
        raise StartupError(f"ConnectionStrings:{name}: {error}") from None
    if isinstance(parsed, EmbeddedServerPath):
        return parsed
    if not settings.read(ConnectionSettings).names_application:
        return parsed
    application = settings.read(ApplicationNames).application or default_application_name
    return parsed.with_parameters(application_name=application)


def parse_connection_string(text: str) -> ConnectionInfo | EmbeddedServerPath:
    """Return the connection of a libpq URI, libpq keywords, `Host=…;Database=…` or `embedded:PATH`. Raises StartupError
    that names the offending keyword, never a value.
    """
    text = text.strip()
    scheme, colon, rest = text.partition(":")
    if colon and scheme.casefold() == "embedded":
        return _parse_embedded(rest)
    if rest.startswith("//") and re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) is not None:
        # Not as pairs: everything in front of the first `=` would count as a keyword, the password too.
        if scheme.casefold() not in ("postgresql", "postgres"):
            raise StartupError(f"the scheme {scheme!r} is unknown: write postgresql://…")
        return ConnectionInfo(_parse_with_libpq(f"{scheme.casefold()}:{rest}"))
    if _looks_like_libpq_keywords(text):
        return ConnectionInfo(_parse_with_libpq(text))
    return _from_pairs(_split_pairs(text))


def _parse_embedded(path: str) -> EmbeddedServerPath:
    if not path.strip():
        raise StartupError("`embedded:` needs the folder of the database, for example embedded:./data")
    try:
        return EmbeddedServerPath(Path(path.strip()).expanduser())
    except RuntimeError:
        raise StartupError("`embedded:` names the home folder of a user that is not known") from None


_NUMBERS = ("connect_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout")


def _check_numbers(parameters: dict[str, str]) -> dict[str, str]:
    """Check the numbers among libpq parameters, and return the parameters unchanged. Raises `StartupError` for an
    invalid number.

    libpq reports it only when it connects, and again at each attempt.
    """
    for name in _NUMBERS:
        if name in parameters and re.fullmatch(r"\s*-?\d{1,9}\s*", parameters[name], re.ASCII) is None:
            raise StartupError(f"{name} needs a whole number")
    if not all(map(_is_port, parameters.get("port", "").split(","))):
        raise StartupError("port needs a number from 1 to 65535")
    return parameters


def _is_port(text: str) -> bool:
    text = text.strip()
    return not text or (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) <= 65_535)


def _parse_with_libpq(text: str) -> dict[str, str]:
    try:
        parsed = conninfo.conninfo_to_dict(text)
    except psycopg.ProgrammingError as error:
        raise StartupError(f"not a valid libpq connection string: {_without_secrets(str(error), text)}") from None
    return _check_numbers({name: str(value) for name, value in parsed.items() if value is not None})


def _without_secrets(message: str, text: str) -> str:
    """Return a message of libpq without values of the connection string. Texts in quotes are masked, except keywords:
    words that stand before a `=` in `text`.

    text: the connection string; where the message contains it as a whole, it is masked too.
    """
    keywords = set(re.findall(r"([A-Za-z_]+)\s*=", text))
    result, rest = "", message
    while '"' in rest:
        before, _, rest = rest.partition('"')
        # libpq does not escape quotes: a part ends at the last one up to which `text` has it.
        ends = [match.start() for match in re.finditer('"', rest)] or [len(rest)]
        end = next((end for end in reversed(ends) if rest[:end] in text), ends[-1])
        part, rest = rest[:end], rest[end + 1 :]
        result += f'{before}"{part if part in keywords or not part else "…"}"'
    return (result + rest).replace(text, "…").strip()


_LIBPQ_FIRST = re.compile(r"\s*([a-z_]+)\s*=")


def _libpq_keywords() -> frozenset[str]:
    return frozenset(option.keyword.decode() for option in pq.Conninfo.get_defaults())


def _looks_like_libpq_keywords(text: str) -> bool:
    """Return whether the text begins with a lower-case libpq keyword and has no `;` outside single quotes."""
    first = _LIBPQ_FIRST.match(text)
    unquoted = re.sub(r"'(?:[^'\\]|\\.)*'", "", text)
    return first is not None and first[1] in _libpq_keywords() and ";" not in unquoted


_PAIR = re.compile(
    r"""\s*(?P<name>[^=;]*?)\s*=\s*
    (?: "(?P<double>(?:[^"]|"")*)" | '(?P<single>(?:[^']|'')*)' | (?P<plain>[^;]*?) )
    \s*(?:;|$)""",
    re.VERBOSE,
)


def _split_pairs(text: str) -> list[tuple[str, str, bool]]:
    """Return the keyword and the value of each pair, and whether the value is in quotes. Raises StartupError."""
    pairs, at = [], 0
    while at < len(text.rstrip("; \t\r\n")):
        if text[at] in "; \t\r\n":
            at += 1
            continue
        match = _PAIR.match(text, at)
        if match is None or not match["name"]:
            raise StartupError(f"expected Keyword=value; at position {at + 1}")
        pairs.append((match["name"], _unquote(match), match["plain"] is None))
        at = match.end()
    return pairs


def _unquote(match: re.Match[str]) -> str:
    if match["double"] is not None:
        return match["double"].replace('""', '"')
    if match["single"] is not None:
        return match["single"].replace("''", "'")
    return match["plain"]


_SAME = {
    "host": "host server",
    "port": "port",
    "dbname": "database db dbname",
    "user": "username userid uid user",
    "password": "password psw pwd",
    "passfile": "passfile",
    "sslrootcert": "rootcertificate sslrootcert",
    "sslcert": "sslcertificate sslcert clientcertificate",
    "sslkey": "sslkey clientcertificatekey",
    "krbsrvname": "kerberosservicename krbsrvname",
    "sslpassword": "sslpassword",
    "application_name": "applicationname",
    "client_encoding": "clientencoding encoding",
    "options": "options",
    "connect_timeout": "timeout connectiontimeout connecttimeout",
    "keepalives_idle": "keepalive tcpkeepalivetime keepalivesidle",
    "keepalives_interval": "tcpkeepaliveinterval keepalivesinterval",
}
"""libpq keywords, and the keywords of other drivers that mean the same: in lower case, without blanks and underscores.
"""
_LIBPQ_NAME = {alias: name for name, aliases in _SAME.items() for alias in aliases.split()}
_SESSION_SETTING = {"searchpath": "search_path", "timezone": "TimeZone"}
_SSL_MODES = {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}
_SESSION_TARGETS = {"any", "primary", "standby", "prefer-primary", "prefer-standby", "read-write", "read-only"}
_ACCEPTED = """trustservercertificate includeerrordetail includefailedbatchedcommand persistsecurityinfo logparameters
    cancellationtimeout pooling minimumpoolsize minpoolsize connectionidlelifetime connectionpruninginterval
    connectionlifetime loadbalancetimeout maxautoprepare autoprepareminusages noresetonclose enlist multiplexing
    writecoalescingbufferthresholdbytes readbuffersize writebuffersize socketreceivebuffersize socketsendbuffersize
    internalcommandtimeout hostrecheckseconds servercompatibilitymode arraynullabilitymode
    includerealm checkcertificaterevocation replicationmode loadtablecomposites convertinfinitydatetime
    integratedsecurity useperfcounters backendtimeouts usesslstream continuousprocessing entitytemplatedatabase
    entityadmindatabase eftemplatedatabase efadmindatabase"""
_NO_EFFECT = frozenset(_ACCEPTED.split())
"""Keywords of Npgsql that are accepted and have no effect."""

_WORDS = re.compile(r"[A-Za-z][A-Za-z0-9_ ]*")
_PASSWORD = re.compile(r"(?:password|psw|pwd)\s*=", re.IGNORECASE)
"""A password in another value, where libpq keywords are mixed with `;`."""


def _from_pairs(pairs: list[tuple[str, str, bool]]) -> ConnectionInfo:
    """Map `Keyword=value` pairs to libpq parameters; case, spaces and underscores in a keyword are ignored. Raises
    StartupError. pairs: as `_split_pairs` returns them.
    """
    parameters: dict[str, str] = {}
    settings: dict[str, str] = {}
    command_timeout = maximum_pool_size = None
    libpq = {name.replace("_", ""): name for name in _libpq_keywords()}
    before = ""
    holds_password = False
    for name_as_written, value, _ in pairs:
        keyword = name_as_written.casefold().replace(" ", "").replace("_", "")
        if keyword == "commandtimeout":
            command_timeout = float(_number(name_as_written, value))
        elif keyword in ("maximumpoolsize", "maxpoolsize"):
            maximum_pool_size = _number(name_as_written, value)
        elif keyword in _SESSION_SETTING:
            settings[_SESSION_SETTING[keyword]] = value
        elif keyword in _SPELLED:
            name, convert = _SPELLED[keyword]
            parameters[name] = convert(name_as_written, value)
        elif keyword in _LIBPQ_NAME:
            parameters[_LIBPQ_NAME[keyword]] = value
        elif keyword in libpq:
            parameters[libpq[keyword]] = value
        elif keyword not in _NO_EFFECT and (holds_password or _LIBPQ_NAME.get(before) in ("password", "sslpassword")):
            # May be a part of the password.
            raise StartupError("no keyword follows the `;` behind the password: write a password with `;` in quotes")
        elif keyword not in _NO_EFFECT and _WORDS.fullmatch(name_as_written) is None:
            # May be the begin of an address, with a password.
            raise StartupError(
                "no keyword is in front of a `=`: write postgresql://… without anything in front of it, or "
                "Host=…;Database=…"
            )
        elif keyword not in _NO_EFFECT:
            raise StartupError(f"unknown keyword {name_as_written!r} in the connection string")
        before = keyword
        holds_password = holds_password or _PASSWORD.search(value) is not None
    _refuse_keywords_in_values(pairs)
    _spread_hosts(parameters)
    _add_session_settings(parameters, settings)
    present = {name: value for name, value in parameters.items() if value != ""}
    return ConnectionInfo(_check_numbers(present), command_timeout, maximum_pool_size)


def _refuse_keywords_in_values(pairs: list[tuple[str, str, bool]]) -> None:
    """Raise StartupError if a value without quotes contains a keyword and `=` behind a blank: blanks are mixed with
    `;` as separators, and a password would be part of the host. `options` may have such values. pairs: as
    `_split_pairs` returns them.
    """
    keywords = _libpq_keywords() | _LIBPQ_NAME.keys()
    for name, value, quoted in pairs:
        within = () if quoted or name.casefold() == "options" else _KEYWORD_IN_VALUE.findall(value)
        endings = (ending for words in within for ending in _endings(words))
        mixed = next((ending for ending in endings if ending.casefold().replace(" ", "") in keywords), None)
        if mixed is not None:
            raise StartupError(
                f"`;` has to be in front of {mixed}=, as `;` separates pairs here: write either host=… dbname=… or "
                "Host=…;Database=…, and a value that contains `=` behind a blank in quotes"
            )


_KEYWORD_IN_VALUE = re.compile(r"\s([A-Za-z_]+(?: [A-Za-z_]+)*)\s*=")


def _endings(words: str) -> Iterator[str]:
    """Return the last word, the last two words, and so on: keywords of Npgsql may have several, such as `User Id`."""
    parts = words.split(" ")
    return (" ".join(parts[start:]) for start in reversed(range(len(parts))))


def _number(keyword: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 10):
        raise StartupError(f"{keyword} needs a whole number of at most ten digits")
    return int(value)


def _ssl_mode(keyword: str, value: str) -> str:
    mode = value.casefold().replace("-", "").replace("verify", "verify-")
    return _check_choice(keyword, mode, _SSL_MODES)


def _session_target(keyword: str, value: str) -> str:
    return _check_choice(keyword, value.casefold(), _SESSION_TARGETS)


def _lower(_keyword: str, value: str) -> str:
    return value.casefold()


def _switch(keyword: str, value: str) -> str:
    words = {"true": "1", "yes": "1", "1": "1", "false": "0", "no": "0", "0": "0"}
    return words[_check_choice(keyword, value.casefold(), set(words))]


def _load_balancing(keyword: str, value: str) -> str:
    words = {"true": "random", "random": "random", "false": "disable", "disable": "disable"}
    return words[_check_choice(keyword, value.casefold(), set(words))]


def _methods(_keyword: str, value: str) -> str:
    """Return authentication methods, separated by commas, in the spelling of libpq: in lower case, and `ScramSHA256` as
    `scram-sha-256`. libpq checks them when it connects."""
    return value.casefold().replace("scramsha256", "scram-sha-256")


def _check_choice(keyword: str, value: str, allowed: set[str]) -> str:
    if value not in allowed:
        raise StartupError(f"{keyword} must be one of {', '.join(sorted(allowed))}")
    return value


_SPELLED: Mapping[str, tuple[str, Callable[[str, str], str]]] = {
    "sslmode": ("sslmode", _ssl_mode),
    "targetsessionattributes": ("target_session_attrs", _session_target),
    "tcpkeepalive": ("keepalives", _switch),
    "gssencryptionmode": ("gssencmode", _lower),
    "channelbinding": ("channel_binding", _lower),
    "requireauth": ("require_auth", _methods),
    "loadbalancehosts": ("load_balance_hosts", _load_balancing),
}
"""Keywords whose values are spelled in another way by libpq: the keyword of libpq, and the conversion."""


def _spread_hosts(parameters: dict[str, str]) -> None:
    """Split hosts with ports in place: `a:5433,b` becomes two hosts and two ports. Does nothing if no host has a port.

    A host without a port gets the parameter `port` (5432 if it is missing), or the item at the same position if `port`
    is a list. Raises `StartupError` if this list is not as long as that of the hosts.
    """
    hosts = [_host_and_port(host.strip()) for host in parameters.get("host", "").split(",")]
    if not any(port for _, port in hosts):
        return
    ports = (parameters.get("port") or "5432").split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    if len(ports) != len(hosts):
        raise StartupError(f"Port has {len(ports)} values in the connection string, and Host has {len(hosts)}")
    parameters["host"] = ",".join(host for host, _ in hosts)
    parameters["port"] = ",".join(own or port.strip() for (_, own), port in zip(hosts, ports, strict=True))


def _host_and_port(host: str) -> tuple[str, str]:
    """Split `[::1]:5432` and `name:5432` into host and port; leave a bare IPv6 address or a socket folder unchanged."""
    match = re.fullmatch(r"(?:\[([^\]]+)\]|([^:/]+))(?::(\d+))?", host)
    if match is None:
        return host, ""
    return match[1] or match[2], match[3] or ""


def _add_session_settings(parameters: dict[str, str], settings: Mapping[str, str]) -> None:
    """Add session settings to the libpq parameter `options` in place, with spaces and backslashes escaped.

    parameters: of libpq. settings: values by name of the setting.
    """
    escaped = {name: value.replace("\\", r"\\").replace(" ", r"\ ") for name, value in settings.items()}
    switches = [f"-c {name}={value}" for name, value in escaped.items()]
    options = [parameters["options"]] if parameters.get("options") else []
    if switches:
        parameters["options"] = " ".join([*options, *switches])
