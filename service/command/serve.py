"""Serve: load the configuration and run the service. This is what `rowcall` does without a switch."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rowcall.core.cache.options import CacheOptions
from rowcall.core.config import ConfigError, Settings
from rowcall.core.config.checks import configuration_warnings, invalid_settings
from rowcall.core.config.sections.watch import WatchOptions
from rowcall.service.command.about import version
from rowcall.service.command.configuration_files import Configuration, configuration_files, load
from rowcall.service.command.configuration_watch import ConfigurationWatch
from rowcall.service.command.switches import Arguments
from rowcall.service.log import configure_logging
from rowcall.service.options.application_name import application_name
from rowcall.service.options.connection_string import ConnectionInfo, EmbeddedServerPath, connection_for
from rowcall.service.options.connections import Connections, connection_plan
from rowcall.service.startup_error import START_AGAIN, StartupError
from rowcall.service.supervisor.processes.prefork import Template, forked_template


def serve(arguments: Arguments) -> int:
    """Serve until a signal ends the process, and return the exit code; start again if a watched configuration changes.
    Raises ConfigError or StartupError.
    """
    code = _start(arguments)
    while code == START_AGAIN:
        logging.getLogger("rowcall.client").info("the configuration has changed")
        code = _start_again(arguments)
    return code


def _start_again(arguments: Arguments) -> int:
    """Do what `_start` does, with a changed configuration. If the start fails, report the error, wait for the next
    change, and return `START_AGAIN`.
    """
    watch = _watch(arguments)
    try:
        return _start(arguments)
    except (ConfigError, StartupError) as error:
        print(f"rowcall: {error}", file=sys.stderr, flush=True)
    with _termination_as_exit():
        asyncio.run(watch.wait_for_change())
    return START_AGAIN


def _watch(arguments: Arguments) -> ConfigurationWatch:
    """Return the watch of the configuration files; it begins with their present contents."""
    return ConfigurationWatch(configuration_files(arguments), lambda: _check(load(arguments)))


def _check(configuration: Configuration) -> None:
    """Raise ConfigError for invalid values, and for unknown keys if `Config:ValidateConfigKeys` is Error."""
    require_readable(configuration.settings)
    if configuration.validation_mode == "Error" and configuration.unknown:
        raise ConfigError(f"unknown configuration key {configuration.unknown[0]}")


def _start(arguments: Arguments) -> int:
    """Load the configuration and serve. Return the exit code, or `START_AGAIN` if a watched configuration has changed.
    Raises ConfigError, StartupError; without any configuration, the error says how to get one.
    """
    watch = _watch(arguments)
    with _termination_as_exit():
        try:
            return _serve(arguments, load(arguments), watch)
        except (ConfigError, StartupError) as error:
            if not _has_no_configuration(arguments):
                raise
            raise StartupError(f"{error}\n  {_NO_CONFIGURATION.format(folder=Path.cwd())}") from None


_NO_CONFIGURATION = (
    "there is no configuration here: {folder} has neither rowcall.json nor rowcall.local.json; `rowcall --init` writes "
    "one, `rowcall FILE` reads another, and `rowcall --demo` needs none"
)


def _has_no_configuration(arguments: Arguments) -> bool:
    """Return whether only defaults and the environment configure the service."""
    explicit = arguments.files or arguments.overrides or arguments.has("--demo") or arguments.has("--postgrest")
    return not explicit and not any(file.is_file() for file in configuration_files(arguments))


_SHARED = (
    "rowcall.service.supervisor.channel",
    "rowcall.service.snapshot.schema_snapshot",
    "rowcall.service.events.batches",
    "rowcall.service.pipeline.services",
    "rowcall.service.sockets.listeners",
)
"""Modules that supervisor and workers both need. They are imported before the process is forked, so that all processes
share their memory. Modules that read the database and build endpoints are not listed: they need as much memory as all
these together, and workers do not use them.
"""

_REDIS = "rowcall.service.shared_state.redis_link"
_BY_KEY = {
    "Auth:Lockout:RedisConfiguration": _REDIS,
    "RateLimiterOptions:RedisConfiguration": _REDIS,
    "Service:ServerSentEvents:RedisConfiguration": _REDIS,
    "Auth:CookieAuth": "rowcall.service.protection.ciphers",
    "Auth:BearerTokenAuth": "rowcall.service.protection.ciphers",
    "Auth:JwtAuth": "rowcall.service.identity.signed_tokens",
    "Auth:PasskeyAuth:Enabled": "rowcall.service.auth.passkeys.verification",
    "PostgRest:Enabled": "rowcall.service.postgrest.interface",
    "Service:OpenApiOptions:Enabled": "rowcall.service.codegen.documents",
    "Service:McpOptions:Enabled": "rowcall.service.mcp.server",
}


def libraries(settings: Settings) -> Iterator[str]:
    """Yield the names of the modules to import for optional capabilities that are on (the client of Redis costs 0.25 s
    of processor time and 9 MB).

    The template process imports them once, for all workers and their replacements.
    """
    if settings.is_enabled(CacheOptions):
        place = settings.value_of("CacheOptions:Type")
        if place == "Redis" or (place == "Hybrid" and settings.value_of("CacheOptions:HybridCacheUseRedisBackend")):
            yield _REDIS
    yield from (module for key, module in _BY_KEY.items() if settings.value_of(key))


def _serve(arguments: Arguments, configuration: Configuration, watch: ConfigurationWatch) -> int:
    """Fork the template process, if workers use one, and serve; return the exit code. watch: of the configuration
    files. Raises ConfigError, StartupError.
    """
    require_readable(configuration.settings)
    # Fork before this process has threads, connections or log files, which the copy would share.
    for module in _SHARED:
        importlib.import_module(module)
    with contextlib.ExitStack() as until_stopped:
        template = forked_template("rowcall.service.worker.worker", *libraries(configuration.settings))
        if template is not None:
            until_stopped.enter_context(contextlib.closing(template))
        return _serve_with(template, arguments, configuration, watch)


def _serve_with(
    template: Template | None, arguments: Arguments, configuration: Configuration, watch: ConfigurationWatch
) -> int:
    """Configure the log, open the connections, and run the supervisor; return the exit code. template: None: workers
    are not forked from one. watch: of the configuration files. Raises ConfigError, StartupError.
    """
    demo = arguments.has("--demo")
    settings = configuration.settings
    log = configure_logging(settings)
    client = logging.getLogger("rowcall.client")
    client.info("rowcall %s, pid %d", version(), os.getpid())
    if _has_no_configuration(arguments):
        client.info("No configuration file in %s: defaults and the environment are used", Path.cwd())
    report_and_check(configuration)
    from rowcall.service.supervisor import run as server

    with connections(settings, demo=demo) as opened:
        until = watch.wait_for_change if settings.is_enabled(WatchOptions) else None
        # As in PostgREST, signals and notifications make the service read that file again.
        reread = (lambda: load(arguments).settings) if arguments.has("--postgrest") else None
        return server.run(settings, opened, log, _example_printer(demo=demo), until, template, reread)


def require_readable(settings: Settings) -> None:
    """Raise ConfigError with all invalid values at once. Values of disabled features may be invalid."""
    mistakes = [str(mistake) for mistake in invalid_settings(settings) if mistake.in_use]
    if mistakes:
        raise ConfigError("\n  ".join(mistakes))


def report_and_check(configuration: Configuration) -> None:
    """Log notes and warnings about the configuration. Raises ConfigError if it has unknown keys, and
    `Config:ValidateConfigKeys` is `Error`."""
    client = logging.getLogger("rowcall.client")
    for note in configuration.notes:
        client.log(note.level, "%s", note.message)
    _report_unknown_keys(configuration, client)
    for warning in configuration_warnings(configuration.settings):
        client.warning("%s", warning)


def _report_unknown_keys(configuration: Configuration, client: logging.Logger) -> None:
    """Log unknown keys as `Config:ValidateConfigKeys` demands. Raises ConfigError if they prevent the start."""
    mode = configuration.validation_mode
    if mode == "Ignore":
        return
    level = logging.ERROR if mode == "Error" else logging.WARNING
    for unknown in configuration.unknown:
        client.log(level, "Unknown configuration key: %s", unknown)
    if mode == "Error" and configuration.unknown:
        unknown_keys = "\n  ".join(str(unknown) for unknown in configuration.unknown)
        raise ConfigError(
            f"unknown configuration keys, which Config:ValidateConfigKeys does not permit:\n  {unknown_keys}"
        )


@contextlib.contextmanager
def connections(settings: Settings, *, demo: bool) -> Iterator[Connections]:
    """Return a context with the database connections to serve; embedded servers run while it is open. demo: the main
    one is that of the demo. Raises StartupError.
    """
    plan = connection_plan(settings)
    application = application_name(settings)
    with contextlib.ExitStack() as stack:
        opened: dict[str, ConnectionInfo] = {}
        for name in (plan.main, *plan.others):
            target = connection_for(settings, name, Path.cwd().name)
            running = _open_target(target, application, demo=demo and name == plan.main)
            opened[name] = stack.enter_context(running)
            logging.getLogger("rowcall.client").debug("Connection %s: %s", name, opened[name].masked_text())
        yield Connections(plan, opened.pop(plan.main), opened)


@contextlib.contextmanager
def _open_target(
    target: ConnectionInfo | EmbeddedServerPath, application: str, *, demo: bool
) -> Iterator[ConnectionInfo]:
    """Return a context with the connection to a target; an embedded server runs while it is open. application: name of
    the connection to an embedded server. demo: with the schema of the demo, in a database that is not stored.
    """
    if isinstance(target, ConnectionInfo):
        yield target
        return
    from psycopg.conninfo import make_conninfo

    from rowcall.service.embedded.postgres import EmbeddedServer

    with EmbeddedServer(target.path, throw_away=demo) as server:
        connection = server.connection().with_parameters(application_name=application)
        logging.getLogger("rowcall.client").info(
            "PostgreSQL of embedded:%s is running: psql '%s'",
            target.path,
            make_conninfo(**server.connection().parameters),
        )
        if demo:
            from rowcall.service.embedded.demo import install

            install(connection)
        yield connection


def _example_printer(*, demo: bool) -> Callable[[list[str]], None] | None:
    """Return the function that prints example requests of the demo when the service listens; None without `--demo`."""
    if not demo:
        return None
    from rowcall.service.embedded.demo import print_examples

    return print_examples


@contextlib.contextmanager
def _termination_as_exit() -> Iterator[None]:
    """Convert SIGTERM to SystemExit until the server installs its own handlers, so that cleanup runs."""

    def leave(_signal: int, _frame: object) -> None:
        raise SystemExit(0)

    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN:  # the process ends with its exit code
            signal.signal(signal.SIGTERM, previous)
