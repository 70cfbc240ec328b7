"""The command `rowcall`: reads the command line, loads the configuration, finds the database and starts the server.

Everything here happens once, before the first request. Exit codes follow reference 06, 2.2.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import logging
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rowcall.core.config import ConfigError
from rowcall.service.configuration import ConfigFile, Configuration, load_configuration
from rowcall.service.connection_string import ConnectionInfo, Embedded, connection_for, main_connection_name
from rowcall.service.log import configure_logging
from rowcall.service.startup import StartupError

_TAGLINE = "PostgreSQL routines as HTTP endpoints"
_DEMO_FOLDER = ".demo"

_HELP = (
    ("rowcall", "Serve the database that rowcall.json and rowcall.local.json describe, where they exist."),
    ("rowcall FILE [FILE …]", "Read these configuration files instead, in order; a later one wins."),
    ("rowcall FILE -o FILE", "-o or --optional: the next file may be missing."),
    ("rowcall --Section:Key=value", "Override any configuration key; wins over files and environment."),
    ("", ""),
    ("rowcall --demo", "Serve a demo database from a private PostgreSQL in ./.demo (needs rowcall[embedded])."),
    ("rowcall -h, --help", "Show this text."),
    ("rowcall --annotations", "Print what comments can say, as JSON: name, aliases, syntax, description."),
    ("rowcall -v, --version", "Show the versions of rowcall and of what it runs on."),
)
_EXAMPLES = (
    ("rowcall base.json -o local.json", "Two files, of which the second may be missing."),
    (
        "rowcall --Urls=http://0.0.0.0:8080 --ConnectionStrings:Default=postgresql://me@db/shop",
        "No file at all: where to listen, and which database to serve.",
    ),
)


@dataclass(frozen=True, slots=True)
class Arguments:
    files: tuple[ConfigFile, ...] = ()
    overrides: tuple[tuple[str, str], ...] = ()
    switches: frozenset[str] = field(default_factory=frozenset)
    """`help`, `version`, `annotations`, `demo`."""
    unknown: str | None = None
    """The first token that means nothing."""


_SWITCHES = {
    "-h": "help",
    "--help": "help",
    "/?": "help",
    "-v": "version",
    "--version": "version",
    "/v": "version",
    "--annotations": "annotations",
    "--demo": "demo",
}


def parse_arguments(tokens: Sequence[str]) -> Arguments:
    """Sort the tokens of the command line (reference 06, 2.1). Switches may stand anywhere, in any case."""
    files: list[ConfigFile] = []
    overrides: list[tuple[str, str]] = []
    switches: set[str] = set()
    optional = False
    for token in tokens:
        if token.casefold() in _SWITCHES:
            switches.add(_SWITCHES[token.casefold()])
        elif token in ("-o", "--optional"):
            optional = True
        elif token.startswith("--") and "=" in token:
            key, _, value = token[2:].partition("=")
            overrides.append((key, value))
        elif token.startswith("-"):
            return Arguments(unknown=token)
        else:
            files.append(ConfigFile(token, optional))
            optional = False
    return Arguments(tuple(files), tuple(overrides), frozenset(switches))


def main(tokens: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 after a graceful stop, 1 when the start failed."""
    arguments = parse_arguments(sys.argv[1:] if tokens is None else tokens)
    if arguments.unknown is not None:
        return _report_unknown(arguments.unknown)
    if "help" in arguments.switches:
        return _print_help()
    if "version" in arguments.switches:
        return _print_versions()
    if "annotations" in arguments.switches:
        return _print_annotations()
    try:
        with _termination_as_exit():
            return _start(arguments)
    except (ConfigError, StartupError) as error:
        print(f"rowcall: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def _start(arguments: Arguments) -> int:
    demo = "demo" in arguments.switches
    overrides = arguments.overrides
    if demo:
        from rowcall.service.demo import SETTINGS

        overrides = (("ConnectionStrings:Default", f"embedded:{_DEMO_FOLDER}"), *SETTINGS, *overrides)
    configuration = load_configuration(arguments.files, overrides, os.environ, Path.cwd())
    log = configure_logging(configuration.settings)
    client = logging.getLogger("rowcall.client")
    client.info("rowcall %s", version())
    for note in configuration.notes:
        client.log(note.level, "%s", note.message)
    if not _keys_are_acceptable(configuration, client):
        return 1
    settings = configuration.settings
    name = main_connection_name(settings)
    target = connection_for(settings, name, Path.cwd().name)
    with _connection(target, settings.text_or_none("ApplicationName") or Path.cwd().name, demo=demo) as connection:
        client.debug("Connection %s: %s", name, connection.masked())
        from rowcall.service import server

        return server.run(settings, connection, log, on_listening=_listening(demo=demo))


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
def _connection(target: ConnectionInfo | Embedded, application_name: str, *, demo: bool) -> Iterator[ConnectionInfo]:
    """The connection to serve; a private server is started for it and stopped after it."""
    if isinstance(target, ConnectionInfo):
        yield target
        return
    from rowcall.service.embedded import EmbeddedServer

    with EmbeddedServer(target.path, throw_away=demo) as server:
        connection = server.connection().with_parameters(application_name=application_name)
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


def version() -> str:
    return importlib.metadata.version("rowcall")


def _banner() -> None:
    print(f"\nrowcall: {_TAGLINE}\n")


def _report_unknown(token: str) -> int:
    """Exit code 0, as the established system has it (reference 06, 2.2); the message goes to stderr."""
    _banner()
    print(f"Unknown parameter {token}\n\nTry: rowcall --help", file=sys.stderr)
    return 0


def _print_help() -> int:
    _banner()
    print("Usage:")
    _print_rows(_HELP)
    print("\nExamples:")
    _print_rows(_EXAMPLES)
    return 0


def _print_versions() -> int:
    import psycopg

    _banner()
    print("Versions:")
    libpq = psycopg.pq.version()
    rows = [
        ("rowcall", version()),
        (platform.python_implementation(), platform.python_version()),
        ("libpq", f"{libpq // 10000}.{libpq % 10000}"),
    ]
    rows += [(name, importlib.metadata.version(name)) for name in ("granian", "psycopg", "orjson")]
    rows += [("CurrentDirectory", str(Path.cwd())), ("BaseDirectory", str(Path(__file__).parent))]
    _print_rows(rows)
    return 0


def _print_annotations() -> int:
    """Nothing but JSON, for other programs to read."""
    from rowcall.core.annotations.listing import listing

    print(json.dumps(listing(), indent=2, ensure_ascii=False))
    return 0


def _print_rows(rows: Sequence[tuple[str, str]]) -> None:
    """Two columns in a terminal, tab-separated otherwise (reference 06, 2.4)."""
    terminal = sys.stdout.isatty()
    width = max(len(left) for left, _ in rows if len(left) <= 40)
    for left, right in rows:
        print(f"  {left:<{width}}  {right}".rstrip() if terminal else f"{left}\t{right}".strip())


if __name__ == "__main__":
    sys.exit(main())
