"""`--validate`: check the configuration, the database and the start without serving (command-6)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from rowcall.core.config import ConfigError
from rowcall.core.config.checks import configuration_warnings, invalid_settings
from rowcall.core.errors.diagnostics import Diagnostic, merge_diagnostics
from rowcall.service.command.about import banner, print_json
from rowcall.service.command.configuration_files import Configuration, load
from rowcall.service.command.dry_run import dry_run
from rowcall.service.command.switches import Arguments
from rowcall.service.database.connector import for_libpq
from rowcall.service.options.connection_string import (
    ConnectionInfo,
    EmbeddedServerPath,
    connection_for,
    connection_names,
)
from rowcall.service.startup_error import StartupError

_OK = "ok"
_TESTED = "Default"
_CONNECT_TIMEOUT = "15"
"""Timeout of connecting in seconds, if the connection string sets none."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `--validate`."""

    mode: str
    """Value of `Config:ValidateConfigKeys`."""
    unknown: tuple[str, ...]
    """Paths of unknown keys; empty in mode Ignore."""
    explained: tuple[str, ...]
    """Unknown keys with place and suggestion."""
    errors: tuple[str, ...]
    """Invalid values, or why the configuration cannot be loaded."""
    connection: str
    """`ok`, or why the database cannot be reached."""
    start_errors: tuple[str, ...] = ()
    """Other errors that would prevent a start."""
    start_warnings: tuple[str, ...] = ()
    """Warnings of a start."""
    endpoints: int | None = None
    """Number of endpoints; None: the database was not read."""
    left_out: tuple[Diagnostic, ...] = ()
    """Objects that are annotated and would not be served, with the reason."""
    looked_at: tuple[str, ...] = ()
    """Where endpoints were searched, in words."""
    has_default: bool = True
    """Whether there is a connection to test."""
    strict: bool = False
    """Warnings count as errors."""

    @property
    def fatal(self) -> bool:
        """Whether an unknown key, if there is one, prevents a start: `Config:ValidateConfigKeys` is Error."""
        return self.mode == "Error"

    @property
    def config_valid(self) -> bool:
        """Whether neither an invalid value nor an unknown key prevents a start."""
        return not self.errors and not (self.fatal and self.unknown)

    @property
    def valid(self) -> bool:
        """Whether nothing would prevent a start and, with `strict`, there are no warnings."""
        has_strict_warnings = self.strict and (self.unknown or self.start_warnings or self.left_out)
        return self.config_valid and self.connection == _OK and not self.start_errors and not has_strict_warnings


def validate(arguments: Arguments) -> int:
    """Print the report, with `--json` as JSON. Return 1 unless it is valid."""
    report = _report(arguments)
    if arguments.has("--json"):
        print_json(_as_json(report))
    else:
        banner()
        for line in _as_text(report):
            print(line)
    return int(not report.valid)


def _report(arguments: Arguments) -> Report:
    """Load and check the configuration, test the connection, and run a start without serving. A configuration that
    cannot be loaded is reported as an error.
    """
    try:
        configuration = load(arguments)
    except ConfigError as error:
        return Report("Warning", (), (), (str(error),), "not tested: there is no configuration")
    unknown = () if configuration.validation_mode == "Ignore" else configuration.unknown
    errors = tuple(str(mistake) for mistake in invalid_settings(configuration.settings) if mistake.in_use)
    connection = _connection_test(configuration)
    rehearsal = dry_run(configuration.settings, reads_database=connection == _OK)
    notes = [note.message for note in configuration.notes if note.level >= logging.WARNING]
    return Report(
        configuration.validation_mode,
        tuple(key.path for key in unknown),
        tuple(str(key) for key in unknown),
        errors,
        connection,
        # Report each error once: the dry run also finds invalid values.
        tuple(error for error in rehearsal.errors if error not in (*errors, connection)),
        (*notes, *configuration_warnings(configuration.settings), *rehearsal.warnings),
        rehearsal.endpoints,
        rehearsal.left_out,
        rehearsal.looked_at,
        _has_default(configuration),
        arguments.has("--strict"),
    )


def _connection_test(configuration: Configuration) -> str:
    """Connect to `ConnectionStrings:Default` once; return `ok` or the error.

    Without this connection, or if its PostgreSQL is embedded, nothing is connected to, and the result is `ok`.
    """
    settings = configuration.settings
    if not _has_default(configuration):
        return _OK
    try:
        target = connection_for(settings, _TESTED, Path.cwd().name)
        if isinstance(target, EmbeddedServerPath):
            return _OK  # the embedded server does not run before rowcall starts it
        psycopg.connect(_conninfo(target)).close()
    except (ConfigError, StartupError, psycopg.Error) as error:
        return str(error).strip()
    return _OK


def _conninfo(target: ConnectionInfo) -> str:
    """Return the connection string for libpq. If the target sets no timeout for connecting, it is `_CONNECT_TIMEOUT`
    seconds."""
    return make_conninfo(**for_libpq({"connect_timeout": _CONNECT_TIMEOUT, **target.parameters}))


def _has_default(configuration: Configuration) -> bool:
    """Return whether the configuration has the connection `ConnectionStrings:Default`, in any case of letters. True
    also if its PostgreSQL is embedded, so that nothing is tested."""
    names = connection_names(configuration.settings)
    return any(name.casefold() == _TESTED.casefold() for name in names)


def _as_json(report: Report) -> dict[str, object]:
    return {
        "valid": report.valid,
        "configValid": report.config_valid,
        "validationMode": report.mode,
        "warningsAreFatal": report.fatal,
        "warnings": report.unknown,
        "connectionTest": report.connection,
        "errors": report.errors,
        "startErrors": report.start_errors,
        "startWarnings": report.start_warnings,
        "endpoints": report.endpoints,
        "leftOut": [str(diagnostic) for diagnostic in report.left_out],
    }


def _as_text(report: Report) -> Iterator[str]:
    good, bad, doubtful = ("\x1b[32m", "\x1b[31m", "\x1b[33m") if sys.stdout.isatty() else ("", "", "")
    end = "\x1b[0m" if good else ""
    if report.start_errors:
        yield f"{bad}Start: FAILED{end}"
        yield from (f"  - {error}" for error in report.start_errors)
    left_out_messages = set(map(str, (*report.left_out, *merge_diagnostics(report.left_out))))
    if warnings := [warning for warning in report.start_warnings if warning not in left_out_messages]:
        yield f"{doubtful}Warnings of a start:{end}"
        yield from (f"  - {warning}" for warning in warnings)
    if report.endpoints is not None:
        yield f"Endpoints: {report.endpoints}" + (f", left out: {len(report.left_out)}" if report.left_out else "")
        yield from (f"  - {reason}" for reason in report.left_out)
        if not report.endpoints:
            yield f"Looked at: {'; '.join(report.looked_at)}"
    if report.config_valid and not report.unknown:
        yield f"Config validation: {good}OK{end}"
    if report.unknown:
        shade = bad if report.fatal else doubtful
        yield f"{shade}Config validation: {len(report.unknown)} unknown, ValidateConfigKeys is {report.mode}{end}"
        yield from (f"  - {key}" for key in report.explained)
    if report.errors:
        yield f"{bad}Config validation: FAILED{end}"
        yield from (f"  - {error}" for error in report.errors)
    if not report.has_default:
        yield f"Connection test: ConnectionStrings has no {_TESTED}; what a start would serve is read instead"
    elif report.connection == _OK:
        yield f"Connection test: {good}OK{end}"
    else:
        yield f"Connection test: {bad}FAILED{end} - {report.connection}"
