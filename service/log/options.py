"""The `Log` section as options of each sink."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rowcall.core.config import Settings
from rowcall.core.config.sections.application import ApplicationNames
from rowcall.core.config.sections.log import ConsoleLog, FileLog, Log, PostgresLog, TelemetryLog
from rowcall.core.config.tree import Section, find
from rowcall.service.log.entry import LEVELS, OFF
from rowcall.service.log.request_line import CHANNEL
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
class LogOptions:
    """Options of the log. A sink that is None is off.

    levels: lowest level of a channel by its name. template: of the lines of the console and of files.
    """

    levels: Mapping[str, int]
    template: str
    console: ConsoleLog | None = None
    file: FileLog | None = None
    postgres: PostgresLog | None = None
    telemetry: TelemetryLog | None = None
    client_name: str | None = None
    """Name under which `rowcall.client` is shown."""

    @property
    def floors(self) -> dict[str, int]:
        """The lowest level that reaches a sink, by name of the sink; only sinks in use."""
        sinks = {"Console": self.console, "File": self.file, "Postgres": self.postgres, "OTLP": self.telemetry}
        return {name: LEVELS[sink.least.casefold()] for name, sink in sinks.items() if sink is not None}

    @property
    def floor(self) -> int:
        """The lowest level that reaches any sink; `OFF` if there is no sink."""
        return min(self.floors.values(), default=OFF)

    def effective(self, channel: str) -> int:
        """Return the level from which entries of `channel` reach a sink. A channel without a level has that of the
        nearest one above it.
        """
        name = channel
        while name and name not in self.levels:
            name = name.rpartition(".")[0]
        return max(self.levels.get(name, 0), self.floor)


def log_options(settings: Settings) -> LogOptions:
    """Return the options of the section `Log`. Raises `ConfigError` for an invalid value, and `StartupError` for an
    unusable address of OpenTelemetry.
    """
    keys = settings.read(Log)
    return LogOptions(
        levels={**PLATFORM, **CHANNELS, **_configured_levels(settings, keys)},
        template=keys.output_template,
        console=settings.read_enabled(ConsoleLog),
        file=settings.read_enabled(FileLog),
        postgres=settings.read_enabled(PostgresLog),
        telemetry=_telemetry(settings),
        client_name=settings.read(ApplicationNames).application,
    )


def logs_requests(settings: Settings) -> bool:
    """Return whether an entry for each request would reach a sink. Raises as `log_options`."""
    return log_options(settings).effective(CHANNEL) <= logging.INFO


def correlation_header(settings: Settings) -> str | None:
    """Return the name of the header with the correlation id; None if requests carry none. Raises `StartupError` for an
    invalid name.
    """
    name = settings.read(Log).correlation_id_header
    if name is not None and not HEADER_NAME.fullmatch(name):
        raise StartupError(f"Log:CorrelationIdHeader: {name!r} is not the name of a header")
    return name


def names_channel(settings: Settings, channel: str) -> bool:
    """Return whether `MinimalLevels` has an entry for a channel, under any of its names. Default entries do not
    count."""
    entries = find(settings.root, "Log:MinimalLevels")
    test_channel = _test_channel(settings)
    names = (child.name for child in entries) if isinstance(entries, Section) else ()
    return _channel(channel, test_channel) in {_channel(name, test_channel) for name in names}


def _configured_levels(settings: Settings, keys: Log) -> dict[str, int]:
    """Return the levels that `MinimalLevels` sets, by name of the logger. Entries with an unknown level are left
    out."""
    words = keys.minimal_levels.items()
    test_channel = _test_channel(settings)
    return {
        _channel(name, test_channel): LEVELS[word.casefold()]
        for name, word in words
        if word and word.casefold() in LEVELS
    }


def _test_channel(settings: Settings) -> str:
    """Return the channel of the test runner."""
    return settings.text("TestRunner:LoggerName")


def _channel(name: str, test_channel: str) -> str:
    """Return the name of the logger for a name in the configuration. Blanks around it are removed. test_channel: that
    of the test runner, which NpgsqlRest calls `NpgsqlRestTest`.

    The names of `OTHER_NAMES`, `CHANNELS` and `PLATFORM` are recognized in any case. After a name of `CHANNELS` or
    `PLATFORM` and a dot, further parts may follow, which become lower case. Any other name is returned as written,
    since names of loggers depend on case.
    """
    by_folded_name = {channel.casefold(): channel for channel in (*CHANNELS, *PLATFORM)}
    folded = name.strip().casefold()
    other_names = {**OTHER_NAMES, "npgsqlresttest": test_channel}
    if folded in other_names or folded in by_folded_name:
        return other_names.get(folded) or by_folded_name[folded]
    top, dot, rest = name.strip().partition(".")
    return f"{by_folded_name[top.casefold()]}{dot}{rest.lower()}" if top.casefold() in by_folded_name else name.strip()


_URL = re.compile("https?://[^/]", re.IGNORECASE)
_ADDRESS = re.compile(r"[^/\s]+:\d+")
"""`collector:4317`, which is sufficient for gRPC."""


def _telemetry(settings: Settings) -> TelemetryLog | None:
    """Return the options of OpenTelemetry with the attributes of this application; None: it is not enabled. Raises
    `StartupError` for an unusable address.
    """
    options = settings.read_enabled(TelemetryLog)
    if options is None:
        return None
    address = options.endpoint
    if not (_URL.match(address) or (_ADDRESS.fullmatch(address) and options.protocol != "HttpProtobuf")):
        raise StartupError(f"Log:OTLPEndpoint: {address!r} is no address such as http://localhost:4317")
    names = settings.read(ApplicationNames)
    application = names.application or Path.cwd().name
    attributes = {
        name: text.replace("{application}", application).replace("{environment}", names.environment)
        for name, text in options.resource.items()
    }
    return replace(options, resource=attributes)
