"""The `Log` section as options of each sink."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rowcall.core.config import Settings
from rowcall.service.log.entry import LEVELS, OFF
from rowcall.service.log.request_line import CHANNEL
from rowcall.service.log.telemetry import TelemetryOptions
from rowcall.service.startup_error import StartupError

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.1

CHANNELS: Mapping[str, int] = {"rowcall": logging.INFO, "rowcall.client": logging.INFO, "rowcall.http": logging.INFO}
"""Channels of the service with their levels; channels below them inherit."""

PLATFORM: Mapping[str, int] = {"asyncio": logging.WARNING, "psycopg": logging.WARNING, "granian": logging.WARNING}
"""Libraries whose warnings are logged."""


OTHER_NAMES: Mapping[str, str] = {
    "npgsqlrest": "rowcall",
    "npgsqlrestclient": "rowcall.client",
    "serilog.aspnetcore.requestloggingmiddleware": "rowcall.http",
}
"""Names of these channels in configurations of NpgsqlRest, case-folded."""


@dataclass(frozen=True, slots=True)
class FileOptions:
    """Options of the file sink: bytes of a file, number of files, and whether a full file is followed by another."""

    path: Path
    limit: int | None
    keep: int | None
    roll: bool


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Options of the log. A floor is the lowest level that reaches a sink; a sink that is None is off.

    levels: lowest level of a channel by its name. template: of the lines of the console and of files. postgres: SQL
    command of the sink.
    """

    levels: Mapping[str, int]
    template: str
    json_console: bool = False
    json_file: bool = False
    floors: Mapping[str, int] = field(default_factory=dict)
    """By name of the sink; only sinks in use."""
    file: FileOptions | None = None
    postgres: str | None = None
    telemetry: TelemetryOptions | None = None
    client_name: str | None = None
    """Name under which `rowcall.client` is shown."""

    @property
    def floor(self) -> int:
        """The lowest level that reaches any sink."""
        return min(self.floors.values(), default=OFF)

    def effective(self, channel: str) -> int:
        """Return the level from which entries of `channel` reach a sink."""
        name = channel
        while name and name not in self.levels:
            name = name.rpartition(".")[0]
        return max(self.levels.get(name, 0), self.floor)


def log_options(settings: Settings) -> LogOptions:
    """Return the options of the section `Log`. Raises `ConfigError` for an invalid value."""
    application = settings.text_or_none("ApplicationName")
    floors = {
        sink: LEVELS[settings.choice(f"Log:{sink}MinimumLevel").casefold()]
        for sink, switch in (
            ("Console", "Console"),
            ("File", "File"),
            ("Postgres", "Postgres"),
            ("OTLP", "OpenTelemetry"),
        )
        if settings.flag(f"Log:To{switch}")
    }
    return LogOptions(
        levels={**PLATFORM, **CHANNELS, **_configured_levels(settings)},
        template=settings.text("Log:OutputTemplate"),
        json_console=settings.choice("Log:ConsoleFormat") == "Json",
        json_file=settings.choice("Log:FileFormat") == "Json",
        floors=floors,
        file=_file(settings) if "File" in floors else None,
        postgres=settings.text("Log:PostgresCommand") if "Postgres" in floors else None,
        telemetry=_telemetry(settings, application or Path.cwd().name) if "OTLP" in floors else None,
        client_name=application,
    )


def logs_requests(settings: Settings) -> bool:
    """Return whether an entry for each request would reach a sink."""
    return log_options(settings).effective(CHANNEL) <= logging.INFO


def correlation_header(settings: Settings) -> str | None:
    """Return the name of the header with the correlation id; None if requests carry none. Raises `StartupError` for an
    invalid name.
    """
    name = settings.text_or_none("Log:CorrelationIdHeader") or None
    if name is not None and not HEADER_NAME.fullmatch(name):
        raise StartupError(f"Log:CorrelationIdHeader: {name!r} is not the name of a header")
    return name


def _configured_levels(settings: Settings) -> dict[str, int]:
    words = settings.text_map("Log:MinimalLevels").items()
    return {_channel(name): LEVELS[word.casefold()] for name, word in words if word and word.casefold() in LEVELS}


def _channel(name: str) -> str:
    """Return the name of the logger. Keys ignore case, names of loggers do not."""
    by_folded_name = {channel.casefold(): channel for channel in (*CHANNELS, *PLATFORM)}
    folded = name.strip().casefold()
    if folded in OTHER_NAMES or folded in by_folded_name:
        return OTHER_NAMES.get(folded) or by_folded_name[folded]
    top, dot, rest = name.strip().partition(".")
    return f"{by_folded_name[top.casefold()]}{dot}{rest.lower()}" if top.casefold() in by_folded_name else name.strip()


def _file(settings: Settings) -> FileOptions:
    return FileOptions(
        Path(settings.text("Log:FilePath")).absolute(),
        settings.integer_or_none("Log:FileSizeLimitBytes") or None,
        settings.integer_or_none("Log:RetainedFileCountLimit") or None,
        settings.flag("Log:RollOnFileSizeLimit"),
    )


_URL = re.compile("https?://[^/]", re.IGNORECASE)
_ADDRESS = re.compile(r"[^/\s]+:\d+")
"""`collector:4317`, which is sufficient for gRPC."""


def _telemetry(settings: Settings, application: str) -> TelemetryOptions:
    names = {"{application}": application, "{environment}": settings.text_or_none("EnvironmentName") or ""}
    attributes = settings.text_map("Log:OTLResourceAttributes")
    endpoint = settings.text("Log:OTLPEndpoint")
    over_http = settings.choice("Log:OTLPProtocol") == "HttpProtobuf"
    if not (_URL.match(endpoint) or (_ADDRESS.fullmatch(endpoint) and not over_http)):
        raise StartupError(f"Log:OTLPEndpoint: {endpoint!r} is no address such as http://localhost:4317")
    return TelemetryOptions(
        endpoint,
        over_http,
        {name: _filled(text, names) for name, text in attributes.items() if text},
        {name: text for name, text in settings.text_map("Log:OTLPHeaders").items() if text},
    )


def _filled(text: str, names: Mapping[str, str]) -> str:
    for name, value in names.items():
        text = text.replace(name, value)
    return text
