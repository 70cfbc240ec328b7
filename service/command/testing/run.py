"""`rowcall --test`: from the configuration to the exit code (reference 03, 8; reference 06, 2.10)."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import psycopg
import uvloop

from rowcall.core.config import ConfigError, Settings
from rowcall.core.config.tree import find
from rowcall.core.testing.coverage import Calls, Coverage, coverage_of
from rowcall.core.testing.documents import junit, tap
from rowcall.core.testing.outcome import ExitCode, FileResult, exit_code
from rowcall.core.testing.report import Style, head, summary
from rowcall.service.command.configuration_files import Configuration, load
from rowcall.service.command.serve import connections, require_readable
from rowcall.service.command.switches import Arguments
from rowcall.service.command.testing.application import TestApplication, for_tests
from rowcall.service.database.connector import Connector, Target
from rowcall.service.edition.edition import Edition
from rowcall.service.edition.exposure_options import exposure
from rowcall.service.edition.reader import EndpointReader
from rowcall.service.log import configure_logging
from rowcall.service.options.capabilities.testing import TestOptions, test_options
from rowcall.service.options.connection_string import Embedded, connection_for
from rowcall.service.options.connections import Connections, with_role
from rowcall.service.options.from_settings import worker_options
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.protection.key_encryption import Unencrypted
from rowcall.service.protection.key_rotation import KeyRotation, Renewal
from rowcall.service.protection.key_storage import Memory
from rowcall.service.startup_error import StartupError
from rowcall.service.store.folder import StoreFolder
from rowcall.service.testing.file_runner import Means
from rowcall.service.testing.files import TestFile, connection_key, find_tests, isolation_of, read_test, selected
from rowcall.service.testing.preparation import Preparation, PreparationError
from rowcall.service.testing.responses import DebugTable
from rowcall.service.testing.runner import Progress, Runner
from rowcall.service.testing.templates import Templates

_FORCED = (
    ("Service:WrapInTransaction", "false"),
    ("Service:LogConnectionNoticeEvents", "false"),
)
_QUIET = (
    ("Log:MinimalLevels:rowcall", "Warning"),
    ("Log:MinimalLevels:rowcall.client", "Warning"),
    ("Log:MinimalLevels:rowcall.database", "Error"),
)
"""A test may provoke what the log of a service would warn of. Whoever sets these levels has them."""
_DAY = 86_400.0


def test(arguments: Arguments) -> int:
    """Raises StartupError when the database cannot be read or what it has must not be served."""
    try:
        configuration = _load(arguments)
        options = test_options(configuration.settings)
    except (ConfigError, StartupError) as error:
        return _stop(str(error))
    settings = configuration.settings
    # The report goes to stdout alone.
    configure_logging(settings, sys.stderr)
    if configuration.validation_mode == "Error" and configuration.unknown:
        return _stop(f"unknown configuration key {configuration.unknown[0]}")
    with connections(settings, demo=arguments.has("--demo")) as opened:
        run = Run(settings, options, opened, update=arguments.has("--update"))
        return uvloop.run(run.until_interrupted())


test.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for one of its own


def _load(arguments: Arguments) -> Configuration:
    """With the connection of the tests in place of the main one. Raises ConfigError, StartupError."""
    arguments = replace(arguments, overrides=(*arguments.overrides, *_FORCED))
    configuration = load(arguments)
    require_readable(configuration.settings)
    quiet = tuple((key, level) for key, level in _QUIET if find(configuration.settings.root, key) is None)
    arguments = replace(arguments, overrides=(*quiet, *arguments.overrides))
    configuration = load(arguments)
    name = configuration.settings.text_or_none("TestRunner:ConnectionName")
    if not name:
        return configuration
    known = configuration.settings.names("ConnectionStrings")
    if name.casefold() not in {one.casefold() for one in known}:
        raise StartupError(f"TestRunner:ConnectionName is {name!r}, but ConnectionStrings has {', '.join(known)}")
    return load(replace(arguments, overrides=(*arguments.overrides, ("Service:ConnectionName", name))))


def _stop(message: str) -> int:
    print(f"rowcall: {message}", file=sys.stderr)
    return ExitCode.SETUP


class Run:
    """One process: setup, discovery, the files, teardown."""

    def __init__(self, settings: Settings, options: TestOptions, opened: Connections, *, update: bool) -> None:
        self._settings = settings
        self._options = options
        self._opened = opened
        self._update = update
        self._worker = worker_options(settings, opened)
        self._preparation = Preparation(self._connect, options.channel)
        self._calls: dict[str, Calls] = {}
        self._style = Style(options.detailed, sys.stdout.isatty())

    async def until_interrupted(self) -> int:
        """Teardown follows once, whatever happens; a second signal ends the process."""
        loop = asyncio.get_running_loop()
        work = asyncio.ensure_future(self._work())

        def interrupt() -> None:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
            work.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupt)
        try:
            return await work
        except asyncio.CancelledError:
            print("interrupted", file=sys.stderr)
            return ExitCode.ERRORS
        finally:
            if not self._options.keep:
                await self._preparation.try_all(self._options.teardown)

    async def _work(self) -> int:
        try:
            await self._preparation.run_all(self._options.setup)
        except PreparationError as error:
            return _stop(f"the setup has failed: {error}")
        store = StoreFolder()
        try:
            return await self._discover_and_run(for_tests(self._worker, str(store.path)))
        finally:
            store.remove()

    async def _discover_and_run(self, options: WorkerOptions) -> int:
        reader = self._reader(options)
        edition = await reader.first()
        files = selected((read_test(path) for path in find_tests(self._options)), self._options)
        if not files:
            return self._nothing()
        applications = await self._applications(options, edition, len(files))
        debug = await self._debug_table()
        templates = Templates(self._options.channel)
        means = Means(
            self._options,
            self._connect,
            templates,
            self._preparation,
            None if debug is None else debug.add,
            self._update,
        )
        try:
            async with templates.prepared(self._copied(files)):
                return await self._run(Runner(means, applications), files, applications[0])
        finally:
            if debug is not None:
                await debug.finish()
            for application in applications:
                await application.close()

    def _copied(self, files: Sequence[TestFile]) -> list[tuple[str, Connector]]:
        """The databases that files want copies of. A name that nobody knows is told where the file runs."""
        wanted = {connection_key(file) for file in files if isolation_of(file, self._options) == "template"}
        known = {"", *(name.casefold() for name in self._settings.names("ConnectionStrings"))}
        return [(key, self._connect(key or None)) for key in sorted(wanted & known)]

    def _reader(self, options: WorkerOptions) -> EndpointReader:
        # Profiles of the cache are known, though nothing is cached.
        known = replace(options, cache=self._worker.cache)
        plan = self._opened.plan
        return EndpointReader(self._settings, known, plan, exposure(self._settings, known, plan))

    async def _applications(self, options: WorkerOptions, edition: Edition, files: int) -> list[TestApplication]:
        applications = [
            TestApplication(options, self._calls) for _ in range(max(1, min(self._options.parallel, files)))
        ]
        # Keys of this run alone: nothing of it stays where the service keeps its own.
        rotation = KeyRotation(Memory(), Unencrypted(), Renewal(90 * _DAY), lambda ring: None)
        await rotation.start()
        for application in applications:
            application.keys.ring = rotation.ring
            application.prepare(edition)
        return applications

    async def _debug_table(self) -> DebugTable | None:
        table = self._options.table
        if table.debug is None:
            return None
        print(f"!!! Every answer is written to the table {table.debug}, which stays. !!!", file=sys.stderr)
        debug = DebugTable(table, self._connect(None), self._options.channel)
        try:
            await debug.start()
        except psycopg.Error as error:
            raise StartupError(f"TestRunner:ResponseTempTable:DebugTable: {str(error).strip()}") from None
        return debug

    def _nothing(self) -> int:
        if self._options.allow_empty:
            print(head(0))
            return ExitCode.PASSED
        pattern = self._options.pattern
        why = f"TestRunner:FilePattern {pattern!r} finds none" if pattern else "TestRunner:FilePattern is empty"
        if self._options.narrowed and pattern:
            why = f"of those that TestRunner:FilePattern {pattern!r} finds, Filter, Tag and ExcludeTag leave none"
        print(f"rowcall: there are no tests: {why}", file=sys.stderr)
        return ExitCode.NOTHING

    async def _run(self, runner: Runner, files: Sequence[TestFile], application: TestApplication) -> int:
        print(head(len(files)), flush=True)
        began = time.monotonic()
        results = await runner.run(files, Progress([file.path for file in files], self._style))
        seconds = time.monotonic() - began
        print(f"\n{summary(results)}")
        code = exit_code(results)
        coverage = self._coverage(application)
        if coverage is not None:
            print()
            for line in coverage.lines():
                print(line)
            code = self._against_threshold(coverage, code)
        return self._write(results, seconds) or code

    def _coverage(self, application: TestApplication) -> Coverage | None:
        options = self._options
        wanted = not options.narrowed if options.coverage is None else options.coverage
        if not wanted and options.threshold is None:
            return None
        host = self._worker.outbound.proxy.host
        return coverage_of(application.routes, self._calls, host, gaps=options.detailed)

    def _against_threshold(self, coverage: Coverage, code: ExitCode) -> ExitCode:
        threshold = self._options.threshold
        if threshold is None or coverage.percent >= threshold:
            return code
        print(f"endpoint coverage {coverage.percent}% is below the threshold {threshold}%", file=sys.stderr)
        return ExitCode.ERRORS if code is ExitCode.PASSED else code

    def _write(self, results: Sequence[FileResult], seconds: float) -> ExitCode | None:
        """Reports for programs. None: written, or none are asked for."""
        texts = (
            (self._options.junit, "JUnitOutput", partial(junit, results, "rowcall", seconds)),
            (self._options.tap, "TapOutput", partial(tap, results)),
        )
        for place, key, text in texts:
            if place is None:
                continue
            try:
                Path(place).write_text(text(), encoding="utf-8")
            except OSError as error:
                print(f"rowcall: TestRunner:{key}: {place}: {error.strerror or error}", file=sys.stderr)
                return ExitCode.SETUP
        return None

    def _connect(self, name: str | None) -> Connector:
        """Raises StartupError. Any entry of ConnectionStrings can be named."""
        main = self._opened.plan.main
        if name is None or name.casefold() == main.casefold():
            return Connector(self._worker.target)
        known = {one.casefold(): one for one in self._settings.names("ConnectionStrings")}
        spelled = known.get(name.casefold())
        if spelled is None:
            raise StartupError(f"ConnectionStrings has no entry {name!r}")
        info = self._opened.others.get(spelled) or connection_for(self._settings, spelled, Path.cwd().name)
        if isinstance(info, Embedded):
            raise StartupError(f"ConnectionStrings:{spelled} is an embedded database, which only the service opens")
        return Connector(
            Target(with_role(self._settings, spelled, info).parameters, timeout=self._worker.target.timeout)
        )
