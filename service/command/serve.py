"""Serving: from the configuration to the running service; what `rowcall` does unless a switch asks otherwise."""

from __future__ import annotations

import contextlib
import logging
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from rowcall.core.config import ConfigError, Settings
from rowcall.core.config.checks import mistakes, without_effect
from rowcall.service.command.about import version
from rowcall.service.command.switches import Arguments
from rowcall.service.configuration import Configuration, load
from rowcall.service.connection_string import ConnectionInfo, Embedded, connection_for
from rowcall.service.connections import Connections, connection_plan
from rowcall.service.log import configure_logging


def serve(arguments: Arguments) -> int:
    """Serves until a signal ends it. Raises ConfigError or StartupError."""
    with _termination_as_exit():
        return _start(arguments)


def _start(arguments: Arguments) -> int:
    demo = arguments.has("--demo")
    configuration = load(arguments)
    settings = configuration.settings
    require_readable(settings)
    log = configure_logging(settings)
    client = logging.getLogger("rowcall.client")
    client.info("rowcall %s", version())
    for note in configuration.notes:
        client.log(note.level, "%s", note.message)
    if not _keys_are_acceptable(configuration, client):
        return 1
    for key in without_effect(settings):
        client.warning("Configuration key %s has no effect yet", key)
    with connections(settings, demo=demo) as opened:
        from rowcall.service import server

        return server.run(settings, opened, log, on_listening=_listening(demo=demo))


def require_readable(settings: Settings) -> None:
    """Raise ConfigError that lists every wrong value at once. What is switched off may be wrong."""
    found = [str(mistake) for mistake in mistakes(settings) if mistake.in_use]
    if found:
        raise ConfigError("\n  ".join(found))


def _keys_are_acceptable(configuration: Configuration, client: logging.Logger) -> bool:
    """Report unknown keys as `Config:ValidateConfigKeys` asks; False when the start must end here."""
    mode = configuration.validation_mode
    if mode == "Ignore":
        return True
    level = logging.ERROR if mode == "Error" else logging.WARNING
    for unknown in configuration.unknown:
        client.log(level, "Unknown configuration key: %s", unknown)
    return mode != "Error" or not configuration.unknown


@contextlib.contextmanager
def connections(settings: Settings, *, demo: bool) -> Iterator[Connections]:
    """The databases to serve; private servers are started for them and stopped after them."""
    plan = connection_plan(settings)
    application = settings.text_or_none("ApplicationName") or Path.cwd().name
    with contextlib.ExitStack() as stack:
        opened: dict[str, ConnectionInfo] = {}
        for name in (plan.main, *plan.others):
            target = connection_for(settings, name, Path.cwd().name)
            running = _running(target, application, demo=demo and name == plan.main)
            opened[name] = stack.enter_context(running)
            logging.getLogger("rowcall.client").debug("Connection %s: %s", name, opened[name].masked())
        yield Connections(plan, opened.pop(plan.main), opened)


@contextlib.contextmanager
def _running(target: ConnectionInfo | Embedded, application: str, *, demo: bool) -> Iterator[ConnectionInfo]:
    if isinstance(target, ConnectionInfo):
        yield target
        return
    from rowcall.service.embedded import EmbeddedServer

    with EmbeddedServer(target.path, throw_away=demo) as server:
        connection = server.connection().with_parameters(application_name=application)
        if demo:
            from rowcall.service.demo import install

            install(connection)
        yield connection


def _listening(*, demo: bool) -> Callable[[list[str]], None] | None:
    if not demo:
        return None
    from rowcall.service.demo import print_examples

    return print_examples


@contextlib.contextmanager
def _termination_as_exit() -> Iterator[None]:
    """Until the server installs its own handlers, SIGTERM ends the start in order, so that cleanup runs."""

    def leave(_signal: int, _frame: object) -> None:
        raise SystemExit(0)

    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)
