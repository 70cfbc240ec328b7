"""`rowcall --test`: run the tests, from the configuration to the exit code (testing-1)."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import psycopg
import uvloop

from rowcall.core.config import ConfigError, Settings
from rowcall.core.config.sections.watch import WatchOptions
from rowcall.core.testing.coverage import Calls, coverage_of
from rowcall.core.testing.options import TestOptions
from rowcall.core.testing.outcome import ExitCode
from rowcall.core.testing.report import Style, head
from rowcall.core.testing.watching import Reaction, delta, reaction
from rowcall.core.text.globs import base_folder
from rowcall.service.command.configuration_files import Configuration, load
from rowcall.service.command.serve import connections, report_and_check, require_readable
from rowcall.service.command.switches import Arguments
from rowcall.service.command.testing.application import TestApplication, for_tests
from rowcall.service.command.testing.results import Results
from rowcall.service.database.connector import ConnectionTarget, Connector
from rowcall.service.database.first_connection import OpeningRetries
from rowcall.service.discovery.fingerprint import Fingerprint, catalogue_fingerprint
from rowcall.service.log import configure_logging
from rowcall.service.log.options import names_channel
from rowcall.service.options.capabilities.testing import test_options
from rowcall.service.options.connection_string import EmbeddedServerPath, connection_for, connection_names
from rowcall.service.options.connections import Connections, with_target_session_attrs
from rowcall.service.options.from_settings import worker_options
from rowcall.service.options.sql_files import sql_file_options
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.protection.key_encryption import PlaintextSecrets
from rowcall.service.protection.key_rotation import KeyRotation, Renewal
from rowcall.service.protection.key_storage import Memory
from rowcall.service.shared_state.state_folder import StateFolder
from rowcall.service.snapshot.exposure import exposure
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from rowcall.service.snapshot.snapshot_reader import SnapshotReader
from rowcall.service.startup_error import StartupError
from rowcall.service.testing.file_runner import RunContext
from rowcall.service.testing.files import TestFile, connection_key, find_tests, isolation_of, read_test, select_files
from rowcall.service.testing.preparation import Preparation, PreparationError, error_text
from rowcall.service.testing.responses import DebugTable
from rowcall.service.testing.runner import Progress, Runner
from rowcall.service.testing.templates import Templates
from rowcall.service.testing.watch import Watch, is_folder

_FORCED = (
    ("Service:WrapInTransaction", "false"),
    ("Service:LogConnectionNoticeEvents", "false"),
)
_QUIET = (("rowcall", "Warning"), ("rowcall.client", "Warning"), ("rowcall.database", "Error"))
"""Default levels of channels during tests, which may provoke what a service would warn of. Configured levels take
precedence."""
_DAY = 86_400.0
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)


def test(arguments: Arguments) -> int:
    """Run the tests and return the exit code. If the configuration is invalid, or the database cannot be opened or
    read, or must not be served, the reason is printed, and the exit code is `SETUP`."""
    try:
        return _run_tests(arguments)
    except (ConfigError, StartupError) as error:
        return _stop(str(error))


def _run_tests(arguments: Arguments) -> int:
    """Run the tests and return the exit code. Raises ConfigError, StartupError."""
    configuration = _load(arguments)
    options = test_options(configuration.settings)
    settings = configuration.settings
    # The log goes to stderr, because stdout contains only the report.
    configure_logging(settings, sys.stderr)
    report_and_check(configuration)
    for warning in options.warnings:
        logging.getLogger(options.channel).warning("%s", warning)
    with connections(settings, demo=arguments.has("--demo")) as opened:
        run = Run(settings, options, opened, update=arguments.has("--update"))
        return uvloop.run(run.until_interrupted())


test.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for one of its own


def _load(arguments: Arguments) -> Configuration:
    """Load the configuration, with the connection of the tests as the main one. Raises ConfigError, StartupError."""
    arguments = replace(arguments, overrides=(*arguments.overrides, *_FORCED))
    configuration = load(arguments)
    require_readable(configuration.settings)
    settings = configuration.settings
    levels = (*_QUIET, (settings.read(TestOptions).channel, "Warning"))
    quiet = tuple(
        (f"Log:MinimalLevels:{channel}", level) for channel, level in levels if not names_channel(settings, channel)
    )
    arguments = replace(arguments, overrides=(*quiet, *arguments.overrides))
    configuration = load(arguments)
    name = configuration.settings.read(TestOptions).connection
    if not name:
        return configuration
    names = connection_names(configuration.settings)
    if name.casefold() not in {known_name.casefold() for known_name in names}:
        raise StartupError(f"TestRunner:ConnectionName is {name!r}, but ConnectionStrings has {', '.join(names)}")
    return load(replace(arguments, overrides=(*arguments.overrides, ("Service:ConnectionName", name))))


def _stop(message: str) -> int:
    """Print why the run cannot begin, and return the exit code for that."""
    print(f"rowcall: {message}", file=sys.stderr)
    return ExitCode.SETUP


class Run:
    """A test run: setup, discovery, the files, teardown.

    opened: the connections of the service. update: write the responses that tests compare with as snapshots.
    """

    def __init__(self, settings: Settings, options: TestOptions, opened: Connections, *, update: bool) -> None:
        self._settings = settings
        self._options = options
        self._opened = opened
        self._update = update
        worker = worker_options(settings, opened)
        # Tables and settings of a test belong to its session, which a transaction pooler does not preserve.
        self._worker = replace(worker, target=replace(worker.target, pooler=False))
        self._preparation = Preparation(self._connect, options.channel)
        self._calls: dict[str, Calls] = {}
        self._style = Style(options.detailed, sys.stdout.isatty())
        self._settings_of_files = sql_file_options(settings)
        self._watching = settings.is_enabled(WatchOptions)
        self._snapshot_number = 1

    async def until_interrupted(self) -> int:
        """Run the tests, and return the exit code. With watching, run them again after changes until a signal arrives.

        A signal ends the run early; the exit code is then `PASSED` with watching, `ERRORS` without it. The teardown
        always runs once, unless the option `keep` is set. A second signal ends the process. Raises StartupError if the
        database cannot be read.
        """
        loop = asyncio.get_running_loop()
        work = asyncio.ensure_future(self._work())

        def interrupt() -> None:
            for number in ENDING_SIGNALS:
                loop.remove_signal_handler(number)
            work.cancel()

        for number in ENDING_SIGNALS:
            loop.add_signal_handler(number, interrupt)
        try:
            return await work
        except asyncio.CancelledError:
            if self._watching:
                return ExitCode.PASSED
            print("interrupted", file=sys.stderr)
            return ExitCode.ERRORS
        finally:
            if not self._options.keep:
                await self._preparation.try_all(self._options.teardown)

    async def _work(self) -> int:
        """Run the setup and the tests; return the exit code. Raises StartupError if the database cannot be read."""
        if self._watching and not is_folder(base_folder(self._options.pattern)):
            return _stop(f"the folder of TestRunner:FilePattern {self._options.pattern!r} does not exist")
        try:
            await self._preparation.run_all(self._options.setup)
        except PreparationError as error:
            return _stop(f"the setup has failed: {error}")
        store = StateFolder()
        try:
            return await self._discover_and_run(for_tests(self._worker, str(store.path)))
        finally:
            store.remove()

    async def _discover_and_run(self, options: WorkerOptions) -> int:
        """Read the database, find the test files and run them; with watching, run them again after changes. Return the
        exit code of the first run. Raises StartupError.
        """
        reader = self._reader(options)
        snapshot = await reader.first()
        files = self._files()
        if not files and not self._watching:
            return self._report_no_tests()
        count = self._options.parallel if self._watching else min(self._options.parallel, len(files))
        try:
            debug = await self._debug_table()
        except (psycopg.Error, StartupError) as error:
            return _stop(f"TestRunner:ResponseTempTable:DebugTable {self._options.table.debug!r}: {error_text(error)}")
        applications = await self._applications(options, snapshot, count)
        templates = Templates(self._options.channel)
        means = RunContext(
            self._options,
            self._connect,
            templates,
            self._preparation,
            None if debug is None else debug.add,
            self._update,
        )
        runner = Runner(means, applications)
        try:
            code = await self._round(runner, templates, files, applications[0])
            if self._watching:
                await self._watch(reader, runner, templates, applications)
        finally:
            if debug is not None:
                await debug.finish()
            for application in applications:
                await application.close()
        return code

    async def _round(
        self,
        runner: Runner,
        templates: Templates,
        files: Sequence[TestFile],
        application: TestApplication,
        *,
        partly: bool = False,
        behind: Callable[[], Awaitable[None]] | None = None,
    ) -> int:
        """Run files and report the results; return the exit code.

        templates: copies the databases of isolated files before. application: the endpoints of which the coverage is
        measured. partly: only some files run, so that coverage is not measured. behind: runs after the files, before
        the report.
        """
        print(head(len(files)), flush=True)
        began = time.monotonic()
        async with templates.prepare_copies(self._connections_to_copy(files)):
            results = await runner.run(files, Progress([file.path for file in files], self._style))
        if behind is not None:
            await behind()
        report = Results(self._options, results, time.monotonic() - began)
        if partly:
            return report.report(None)
        host = self._worker.outbound.proxy.host
        return report.report(partial(coverage_of, application.routes, self._calls, host, gaps=self._options.detailed))

    async def _watch(
        self,
        reader: SnapshotReader,
        runner: Runner,
        templates: Templates,
        applications: Sequence[TestApplication],
    ) -> None:
        """Run tests again after each change, until a signal ends the process (testing-15). Raises StartupError if their
        folders can no longer be watched. applications: those of `runner`, whose endpoints are replaced if the change
        concerns them.
        """
        source = self._settings_of_files
        folders = [base_folder(self._options.pattern), *([] if source is None else [source.folder])]
        look = partial(_fingerprint, next(iter(reader.sources())))
        every = self._settings.read(WatchOptions).polling
        watch = Watch(folders, look, every, self._options.channel)
        pattern, skip = (None, "") if source is None else (source.pattern, source.skip)
        async with watch:
            print("\nwatching; Ctrl-C ends it", flush=True)
            while True:
                try:
                    changes = await watch.next()
                except (OSError, RuntimeError) as error:
                    raise StartupError(f"the tests can no longer be watched: {error}") from error
                if changes is None:
                    message, action = "the database has changed", Reaction(rebuild=True, everything=True)
                else:
                    message = f"{', '.join(change.path for change in changes)} changed"
                    action = reaction(changes, self._options.pattern, pattern, skip)
                if not action:
                    continue
                print(f"\n— {time.strftime('%H:%M:%S')} {message}", flush=True)
                if action.rebuild and not await self._rebuild(reader, applications):
                    continue
                files = [file for file in self._files() if action.everything or file.path in action.files]
                if files:
                    self._calls.clear()
                    await self._round(
                        runner, templates, files, applications[0], partly=not action.everything, behind=watch.rebase
                    )
                sys.stdout.flush()

    async def _rebuild(self, reader: SnapshotReader, applications: Sequence[TestApplication]) -> bool:
        """Read the database again, replace the endpoints of the applications, and print which ones that adds and
        removes. If the database cannot be read, print why and return False: the endpoints stay unchanged.
        """
        before = [route.primary.name for route in applications[0].routes]
        self._snapshot_number += 1
        try:
            snapshot = await reader.read(self._snapshot_number)
        except (StartupError, psycopg.Error) as error:
            print(f"the endpoints stay as they were: {str(error).strip()}", flush=True)
            return False
        for application in applications:
            application.prepare(snapshot)
        for line in delta(before, (route.primary.name for route in applications[0].routes)):
            print(line)
        return True

    def _files(self) -> list[TestFile]:
        """Return the test files that the options select."""
        return select_files((read_test(path) for path in find_tests(self._options)), self._options)

    def _connections_to_copy(self, files: Sequence[TestFile]) -> list[tuple[str, Connector]]:
        """Return key (`connection_key`) and connector of each connection whose database has to be copied: those of
        files isolated by `template`. Raises StartupError.

        An unknown connection is skipped here, and reported when the file runs.
        """
        requested = {connection_key(file) for file in files if isolation_of(file, self._options) == "template"}
        valid_keys = {"", *(name.casefold() for name in connection_names(self._settings))}
        return [(key, self._connect(key or None)) for key in sorted(requested & valid_keys)]

    def _reader(self, options: WorkerOptions) -> SnapshotReader:
        """Return the reader of the schema snapshots of the run. options: from `for_tests`."""
        # Cache profiles must be valid names, although nothing is cached.
        with_profiles = replace(options, cache=self._worker.cache)
        plan = self._opened.plan
        exposed = exposure(self._settings, with_profiles, plan)
        return SnapshotReader(self._settings, with_profiles, plan, exposed)

    async def _applications(
        self, options: WorkerOptions, snapshot: SchemaSnapshot, count: int
    ) -> list[TestApplication]:
        """Return `count` applications that serve the snapshot, with one key ring for all. options: from `for_tests`."""
        opening = OpeningRetries(self._settings)
        applications = [
            TestApplication(replace(options, store=_create_state_folder(options.store, number)), self._calls, opening)
            for number in range(count)
        ]
        # A key ring in memory, so that the run does not change that of the service.
        rotation = KeyRotation(Memory(), PlaintextSecrets(), Renewal(90 * _DAY), lambda ring: None)
        await rotation.start()
        for application in applications:
            application.keys.ring = rotation.ring
            application.prepare(snapshot)
        return applications

    async def _debug_table(self) -> DebugTable | None:
        """Start the debug table, or return None if none is configured. Raises StartupError, and `psycopg.Error`."""
        table = self._options.table
        if table.debug is None:
            return None
        print(f"!!! Every response is written to the table {table.debug}, which is not dropped. !!!", file=sys.stderr)
        debug = DebugTable(table, self._connect(None), self._options.channel)
        await debug.start()
        return debug

    def _report_no_tests(self) -> int:
        """Report that there are no tests, and return the exit code: PASSED if the options allow a run without tests;
        otherwise NOTHING, after printing why there are none."""
        if self._options.allow_empty:
            print(head(0))
            return ExitCode.PASSED
        pattern = self._options.pattern
        why = f"TestRunner:FilePattern {pattern!r} matches no files" if pattern else "TestRunner:FilePattern is empty"
        if self._options.narrowed and pattern:
            why = f"Filter, Tag and ExcludeTag exclude all files that TestRunner:FilePattern {pattern!r} matches"
        print(f"rowcall: there are no tests: {why}", file=sys.stderr)
        return ExitCode.NOTHING

    def _connect(self, name: str | None) -> Connector:
        """Return a connector to an entry of ConnectionStrings; None: the main one. Raises StartupError."""
        main = self._opened.plan.main
        if name is None or name.casefold() == main.casefold():
            return Connector(self._worker.target)
        names = {entry.casefold(): entry for entry in connection_names(self._settings)}
        spelled = names.get(name.casefold())
        if spelled is None:
            raise StartupError(f"ConnectionStrings has no entry {name!r}")
        info = self._opened.others.get(spelled) or connection_for(self._settings, spelled, Path.cwd().name)
        if isinstance(info, EmbeddedServerPath):
            raise StartupError(f"ConnectionStrings:{spelled} is an embedded database, which only the service opens")
        return Connector(
            ConnectionTarget(
                with_target_session_attrs(self._settings, spelled, info).parameters, timeout=self._worker.target.timeout
            )
        )


def _create_state_folder(store: str, number: int) -> str:
    """Create the shared state folder of the application with this number in the folder `store`, and return its path: a
    process may open an LMDB environment only once.
    """
    folder = Path(store) / f"{Path(store).name}-{number}"
    folder.mkdir(mode=0o700)
    return str(folder)


async def _fingerprint(connector: Connector) -> Fingerprint:
    """Return the fingerprint of the catalogue. Raises `psycopg.Error`."""
    async with await connector.open_plain() as connection:
        return await catalogue_fingerprint(connection)
