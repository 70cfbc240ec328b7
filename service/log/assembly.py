"""Set up channels, handlers and sinks, in the supervisor and in each worker."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rowcall.core.config import Settings
from rowcall.core.config.sections.log import FileLog
from rowcall.service.log.entry import VERBOSE, Entry, json_line, level_name
from rowcall.service.log.handlers import Forwarder, Send, SinkHandler
from rowcall.service.log.options import LogOptions, log_options
from rowcall.service.log.recent import RecentEntries
from rowcall.service.log.request_line import RequestRecord, request_entry
from rowcall.service.log.rotating_file import RotatingFile
from rowcall.service.log.sinks import ConsoleSink, Sink, SinkThread, say_on_stderr
from rowcall.service.log.telemetry import TelemetrySink
from rowcall.service.log.template import Template
from rowcall.service.startup_error import StartupError

if TYPE_CHECKING:
    from rowcall.service.log.postgres import PostgresSink

logging.addLevelName(VERBOSE, "Verbose")


class Log:
    """The sinks of this process."""

    def __init__(self, options: LogOptions, stream: TextIO | None = None) -> None:
        """Open the sinks. Raises `StartupError` for one that cannot work. stream: receives the lines of the console;
        None: standard output.
        """
        self.options = options
        self._console: SinkThread | None = None
        self._postgres: PostgresSink | None = None
        self._recent: RecentEntries | None = None
        sinks: list[SinkThread] = []
        for name, sink in self._sinks(options, stream):
            thread = SinkThread(sink, options.floors[name], say_on_stderr if name == "Console" else self._say)
            self._console = thread if name == "Console" else self._console
            sinks.append(thread)
        self.handler = SinkHandler(sinks, options.client_name)

    def _sinks(self, options: LogOptions, stream: TextIO | None) -> Iterable[tuple[str, Sink]]:
        """Yield name and sink for each sink that the options switch on. stream: as for `Log`. Raises `StartupError` for
        one that cannot work.
        """
        if options.console is not None:
            plain = Template(options.template, colour=(stream or sys.stdout).isatty())
            yield "Console", ConsoleSink(stream, json_line if options.console.format == "Json" else plain)
        if options.file is not None:
            yield "File", _file_sink(options.file, options.template)
        if options.postgres is not None:
            from rowcall.service.log.postgres import PostgresSink

            self._postgres = PostgresSink(options.postgres.command)
            yield "Postgres", self._postgres
        if options.telemetry is not None:
            yield "OTLP", TelemetrySink(options.telemetry)

    def connect_database(self, parameters: Mapping[str, str]) -> None:
        """Set the database of the PostgreSQL sink, if there is one. parameters: keywords of libpq."""
        if self._postgres is not None:
            self._postgres.connect_to(parameters)

    def keep_recent(self) -> RecentEntries:
        """Store the latest entries of all processes from now on, and return the sink that stores them; further calls
        return the same one. Its lowest level is that of the configured sinks; if no sink is configured, it gets no
        entries."""
        if self._recent is None:
            self._recent = RecentEntries()
            self.handler.add(SinkThread(self._recent, self.options.floor, self._say))
        return self._recent

    def submit(self, batch: Iterable[Entry | RequestRecord]) -> None:
        """Pass entries and requests of a worker to the sinks."""
        self.handler.submit([item if isinstance(item, Entry) else request_entry(item) for item in batch])

    @property
    def is_watched(self) -> bool:
        """Whether lines for people are written to a terminal."""
        console = self.options.console
        return console is not None and console.format != "Json" and sys.stdout.isatty()

    def flush(self) -> None:
        """Wait until everything is written, or until a sink takes too long."""
        self.handler.flush()

    def close(self) -> None:
        """Write the waiting entries at the end of the process, without waiting for an unavailable database."""
        self.handler.give_up()

    def _say(self, message: str) -> None:
        """Report a failure of the log itself, on the console only."""
        if self._console is None:
            say_on_stderr(message)
        else:
            self._console.submit((Entry(time.time(), logging.ERROR, "rowcall.log", message),))


def _file_sink(file: FileLog, template: str) -> RotatingFile:
    """Return the sink for files. Raises `StartupError` if the first file cannot be written."""
    form: Callable[[Entry], str] = json_line if file.format == "Json" else Template(template)
    path = Path(file.path).absolute()
    try:
        return RotatingFile(path, form, file.limit, file.keep, roll=file.roll)
    except OSError as error:
        raise StartupError(
            f"Log:FilePath: {error.filename or path} cannot be written: {error.strerror or error}"
        ) from None


_current: Log | None = None
"""The log of this process, once `configure_logging` has created it."""


def configure_logging(settings: Settings, stream: TextIO | None = None) -> logging.Logger:
    """Set up the channels of the supervisor, in place of a former set-up, and return the channel `rowcall`. stream: as
    for `Log`.

    Raises:
        ConfigError: a value of the section `Log` cannot be used.
        StartupError: a sink cannot work.
    """
    global _current
    if _current is not None:
        _current.handler.close()
    _current = Log(log_options(settings), stream)
    _connect_channels(_current.options, _current.handler)
    floors = (f"{name} from {level_name(floor)}" for name, floor in _current.options.floors.items())
    logging.getLogger("rowcall.client").debug("Log sinks: %s", ", ".join(floors))
    return logging.getLogger("rowcall")


def current_log() -> Log:
    """Return the log that `configure_logging` has created. Raises `RuntimeError` before that."""
    if _current is None:
        raise RuntimeError("logging has not been configured")
    return _current


def is_watched() -> bool:
    """Return whether lines for people are written to a terminal."""
    return _current is not None and _current.is_watched


def configure_worker_logging(settings: Settings, send: Send, backlog: Callable[[], int]) -> Forwarder:
    """Set up the channels of a worker, and return the handler that sends all entries to the supervisor. To be called in
    the running event loop. send, backlog: as for `Forwarder`. Raises as `log_options`.
    """
    options = log_options(settings)
    forwarder = Forwarder(send, backlog, options.client_name)
    _connect_channels(options, forwarder)
    return forwarder


# Export errors of OpenTelemetry are reported once by the sink itself.
logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
logging.getLogger("opentelemetry").propagate = False


def _connect_channels(options: LogOptions, handler: logging.Handler) -> None:
    """Set the levels of all channels, and make `handler` the only handler of the topmost ones."""
    handler.setLevel(options.floor)
    for channel, level in options.levels.items():
        logger = logging.getLogger(channel)
        # Entries that no sink accepts must not even be formatted.
        logger.setLevel(max(level, options.floor))
        if "." not in channel:
            logger.handlers.clear()
            logger.addHandler(handler)
            logger.propagate = False
