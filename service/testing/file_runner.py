"""Runs a test file: setup, its steps in order on one connection until the first failure, teardown (testing-7,
testing-8)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

import psycopg

from rowcall.core.testing.matching import differences, row_differences
from rowcall.core.testing.options import PreparationStep, TestOptions
from rowcall.core.testing.outcome import Assertion, FileResult, Notice, Verdict
from rowcall.core.testing.request import Expectation, HttpBlock, Stub
from rowcall.core.testing.script import HttpStep, InvalidBlock, JobsStep, SqlStep, Step, StubStep
from rowcall.core.text.lines import lines_of
from rowcall.service.database.connector import Connector
from rowcall.service.log.entry import VERBOSE
from rowcall.service.startup_error import StartupError
from rowcall.service.testing.calls import Caller, CallRefusedError, Reply
from rowcall.service.testing.files import TestFile, connection_key, isolation_of, runnable, warnings
from rowcall.service.testing.preparation import Connect, Preparation, PreparationError, error_text
from rowcall.service.testing.responses import ResponseTables
from rowcall.service.testing.session import Session
from rowcall.service.testing.snapshots import Snapshots
from rowcall.service.testing.templates import Templates

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

BOOLEAN = 16
"""Oid of the type boolean."""
ASSERT_FAILURE = "P0004"
"""SQLSTATE of a failed ASSERT in PL/pgSQL."""
_LEVELS = {"DEBUG": logging.DEBUG, "LOG": logging.DEBUG, "INFO": logging.INFO, "NOTICE": logging.INFO}
"""Log levels by severity of a notice; those of others are WARNING."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """The objects that all files of a run share."""

    options: TestOptions
    connect: Connect
    templates: Templates
    preparation: Preparation
    debug: Callable[[str, str, HttpBlock, Reply], object] | None = None
    """Called with each response, for the debug table: path of the file, name of the temporary table, request, response.
    None: there is no debug table."""
    update: bool = False
    """Write snapshots instead of comparing with them."""


class _Stop(Exception):
    """Ends the file: no further step runs."""


@dataclass(slots=True)
class _Report:
    """The results of one file so far: its assertions and notices, and the step that runs."""

    assertions: list[Assertion] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    raised: list[Notice] = field(default_factory=list)
    """Notices since the beginning of the last statement or request."""
    step: Step | None = None
    """The step that runs; None: none has begun, or all have ended."""


class FileRunner:
    """Runs one test file. Its HTTP requests are executed by a `Caller` that no other file uses at the same time."""

    def __init__(self, means: RunContext, caller: Caller, file: TestFile) -> None:
        self._means = means
        self._caller = caller
        self._file = file
        self._log = logging.getLogger(means.options.channel)
        self._report = _Report()
        self._steps = runnable(file)
        self._stubs: list[Stub] = []
        blocks = sum(isinstance(step, HttpStep) for step in self._steps)
        self._tables = ResponseTables(means.options.table, blocks)
        self._snapshots = Snapshots(file.path, update=means.update)

    async def run(self) -> FileResult:
        """Run the file and its teardown, and return the result. Failures and errors are in the result."""
        began = time.monotonic()
        try:
            await self._run_within(self._means.options.timeout)
        finally:
            # The run may have been interrupted.
            await self._tear_down()
        result = FileResult(
            self._file.path, tuple(self._report.assertions), time.monotonic() - began, tuple(self._report.notices)
        )
        self._log.debug("%s: %s", result.path, result.verdict.value)
        return result

    async def _run_within(self, limit: float) -> None:
        """Run setup and steps, and report errors. limit: seconds; 0: no limit."""
        try:
            async with asyncio.timeout(limit or None):
                await self._run()
        except _Stop:
            pass
        except TimeoutError:
            self._error(f"timed out after {limit:g}s")
        except (psycopg.Error, PreparationError, StartupError, OSError) as error:
            self._error(error_text(error))
        except Exception as error:
            self._log.exception("%s: the runner itself has failed", self._file.path)
            self._error(f"the runner itself has failed: {type(error).__name__}: {error}")

    async def _run(self) -> None:
        """Run setup and steps. Raises `_Stop` at the first failure, and the errors of setup and connections."""
        for warning in warnings(self._file):
            self._log.warning("%s:%d: %s", warning.file, warning.line, warning.message)
        broken = next((step for step in self._steps if isinstance(step, InvalidBlock)), None)
        if broken is not None:
            self._fail(Assertion(broken.message, Verdict.ERROR, broken.file, broken.line))
        header = self._file.header
        await self._means.preparation.run_all(self._steps_by_name(header.setup))
        isolation = isolation_of(self._file, self._means.options)
        if isolation not in ("none", "transaction", "template"):
            self._fail(
                Assertion(
                    f"@isolation {isolation}: it is one of none, transaction and template",
                    Verdict.ERROR, self._file.path, 1,
                )
            )  # fmt: skip
        connector = self._means.connect(header.connection)
        async with contextlib.AsyncExitStack() as stack:
            if isolation == "template":
                connector = await stack.enter_async_context(self._means.templates.copy(connection_key(self._file)))
            key = None if isolation == "template" else connection_key(self._file)
            session = await stack.enter_async_context(self._session(connector, key))
            if isolation == "transaction":
                await session.run("begin")
            for step in self._steps:
                self._report.step = step
                await self._take(step, session)
            self._report.step = None

    @contextlib.asynccontextmanager
    async def _session(self, connector: Connector, key: str | None) -> AsyncIterator[Session]:
        """Provide a session for the steps, and use it for the requests of the caller. key: as for
        `SessionPool.session`.
        """
        async with self._caller.sessions.session(connector, self._hear, key) as session:
            self._caller.database.session = session
            try:
                yield session
            finally:
                self._caller.database.session = None

    def _hear(self, notice: Notice) -> None:
        """Store and log a notice."""
        self._report.notices.append(notice)
        self._report.raised.append(notice)
        self._log.log(_LEVELS.get(notice.severity, logging.WARNING), "%s: %s", self._file.path, notice.message)

    # --- steps -----------------------------------------------------------------------------------------------------

    async def _take(self, step: Step, session: Session) -> None:
        """Run one step. Raises `_Stop` if it fails, and the errors of a lost connection and of the file of response
        snapshots."""
        if isinstance(step, SqlStep):
            self._log.log(VERBOSE, "%s:%d: %s", step.file, step.line, step.text)
            await self._statement(step, session)
        elif isinstance(step, HttpStep):
            self._log.log(VERBOSE, "%s:%d: %s %s", step.file, step.line, step.block.method, step.block.target)
            await self._request(step, session)
        elif isinstance(step, StubStep):
            self._stubs.append(step.stub)
        elif isinstance(step, JobsStep):
            await self._run_jobs(step, session)

    async def _statement(self, step: SqlStep, session: Session) -> None:
        """Run a statement, and judge its result or its error. Raises `_Stop` for a failure, and `psycopg.Error` as
        `_expect_error` does."""
        self._report.raised.clear()
        expected = step.expected
        if expected is not None and expected.kind == "ERROR":
            await self._expect_error(step, expected, session)
            return
        try:
            cursor = await session.run(step.text)
        except psycopg.Error as error:
            if session.lost:
                self._fail_step(step, Verdict.ERROR, f"the connection to the database was lost: {error_text(error)}")
            if step.do_block and error.sqlstate == ASSERT_FAILURE:
                self._fail_step(step, Verdict.FAIL, error.diag.message_primary or "")
            self._fail_step(step, Verdict.ERROR, error_text(error))
        result = cursor.pgresult
        if expected is not None:
            self._judge_expected(step, expected, result)
        elif step.do_block:
            self._pass(step.title, step)
        elif result is not None and result.nfields and result.ftype(0) == BOOLEAN:
            self._judge_boolean(step, result)

    def _judge_boolean(self, step: SqlStep, result: PGresult) -> None:
        """Judge the first row of a boolean result: true, and a result without rows, are successes; false and NULL are
        failures, which raise `_Stop`. A second column is the name of the assertion.
        """
        value = result.get_value(0, 0) if result.ntuples else b"t"
        named = result.get_value(0, 1) if result.ntuples and result.nfields > 1 else None
        name = step.title if named is None else bytes(named).decode("utf-8", "replace")
        if value == b"t":
            self._pass(name, step)
        else:
            self._fail_step(step, Verdict.FAIL, "the result is NULL" if value is None else "", name)

    def _judge_expected(self, step: SqlStep, expected: Expectation, result: PGresult | None) -> None:
        """Compare the result of a statement, or its notices, with the expected ones. result: None: it has none. Raises
        `_Stop` for a difference.
        """
        if expected.kind == "NOTICE":
            messages = [notice.message for notice in self._report.raised]
            if not any(expected.text.lower() in message.lower() for message in messages):
                message = f"expected the notice {expected.text!r}, raised: {'; '.join(messages) or 'none'}"
                self._fail_step(step, Verdict.FAIL, message)
            self._pass(step.title, step)
            return
        rows = _texts(result)
        columns = [] if result is None else [_name(result, index) for index in range(result.nfields)]
        lines = row_differences(expected.rows, columns, rows)
        if lines:
            self._fail_step(step, Verdict.FAIL, "\n".join(lines))
        self._pass(step.title, step)

    async def _expect_error(self, step: SqlStep, expectation: Expectation, session: Session) -> None:
        """Run a statement that has to fail, behind a savepoint if a transaction is open. expectation: SQLSTATE of the
        error, and a part of its message. Raises `_Stop` if the error is another one or missing, and `psycopg.Error` if
        the connection is lost.
        """
        inside = session.in_transaction
        if inside:
            await session.run("savepoint rowcall_expected")
        try:
            await session.run(step.text)
        except psycopg.Error as error:
            if session.lost:
                raise
            message = error.diag.message_primary or str(error)
            # A failed COMMIT has ended the transaction.
            if inside and session.in_transaction:
                await session.run("rollback to savepoint rowcall_expected")
            if error.sqlstate != expectation.code or expectation.text.lower() not in message.lower():
                expected = f"{expectation.code} {expectation.text}".strip()
                self._fail_step(
                    step, Verdict.FAIL, f"expected the error {expected}, actual {error.sqlstate}: {message}"
                )
            self._pass(step.title, step)
            return
        self._fail_step(step, Verdict.FAIL, f"expected the error {expectation.code}, and there was none")

    async def _request(self, step: HttpStep, session: Session) -> None:
        """Run a request, store its response in a temporary table, and judge it. Raises `_Stop` if it fails,
        `psycopg.Error` if the connection is lost while the response is stored, and as `Snapshots.differences` does."""
        self._report.raised.clear()
        block = step.block
        try:
            async with session.request():
                reply = await self._caller.call(block, self._stubs)
        except CallRefusedError as error:
            self._fail(Assertion(block.title, Verdict.ERROR, step.file, step.line, str(error)))
        except psycopg.OperationalError as error:
            message = f"the connection to the database was lost: {error_text(error)}"
            self._fail(Assertion(block.title, Verdict.ERROR, step.file, step.line, message))
        self._check_stubs(reply.unexpected, block.title, step)
        if not reply.found:
            self._log.warning("%s:%d: there is no endpoint %s", step.file, step.line, block.title)
        try:
            table = await self._tables.store(session, block, reply)
        except psycopg.Error as error:
            if session.lost:
                raise
            self._fail(Assertion(block.title, Verdict.ERROR, step.file, step.line, error_text(error)))
        if self._means.debug is not None:
            self._means.debug(self._file.path, table, block, reply)
        self._judge_reply(step, reply)

    async def _run_jobs(self, step: JobsStep, session: Session) -> None:
        """Run the jobs that are due. Raises `_Stop` if they cannot be run, or a request of theirs has no stub."""
        try:
            unexpected = await self._caller.run_jobs(session, self._stubs)
        except (CallRefusedError, psycopg.Error) as error:
            message = str(error) if isinstance(error, CallRefusedError) else error_text(error)
            self._fail(Assertion(step.title, Verdict.ERROR, step.file, step.line, message))
        self._check_stubs(unexpected, step.title, step)

    def _check_stubs(self, unexpected: Sequence[str], title: str, step: HttpStep | JobsStep) -> None:
        """Fail (`_Stop`) if a request to another service had no stub. unexpected: these requests. title: of the
        assertion.
        """
        if unexpected:
            message = "\n".join(f"no stub answers {request}" for request in unexpected)
            self._fail(Assertion(title, Verdict.ERROR, step.file, step.line, message))

    def _judge_reply(self, step: HttpStep, reply: Reply) -> None:
        """Compare a response with the expected one and with its snapshot, if the step has them. Raises `_Stop` for a
        difference.
        """
        block = step.block
        if block.expected is not None:
            self._settle_reply(step, differences(block.expected, reply.status, reply.headers, reply.body or ""))
        if block.snapshot:
            self._settle_reply(step, self._snapshots.differences(block, reply))

    def _settle_reply(self, step: HttpStep, lines: Sequence[str]) -> None:
        """Record that a response is as expected; with differences, fail (`_Stop`). lines: the differences."""
        block = step.block
        if lines:
            request = [f"{block.method} {block.target}", *(f"# @claim {name}={value}" for name, value in block.claims)]
            message = "\n".join((*request, *lines_of(block.body)[:5], *lines))
            self._fail(Assertion(block.title, Verdict.FAIL, step.file, step.line, message))
        self._report.assertions.append(Assertion(block.title, Verdict.PASS, step.file, step.line))

    # --- outcome ---------------------------------------------------------------------------------------------------

    def _pass(self, name: str, step: SqlStep) -> None:
        self._report.assertions.append(Assertion(name, Verdict.PASS, step.file, step.line))

    def _fail_step(self, step: SqlStep, verdict: Verdict, message: str, name: str | None = None) -> NoReturn:
        """Fail (`_Stop`) with the statement of a step. name: of the assertion; None: the title of the step."""
        self._fail(Assertion(name or step.title, verdict, step.file, step.line, message, step.text))

    def _fail(self, assertion: Assertion) -> NoReturn:
        """Record a failed assertion, and raise `_Stop`: the first failure ends the file."""
        self._report.assertions.append(assertion)
        raise _Stop

    def _error(self, message: str) -> None:
        """Report an error at the running step, or at the beginning of the file."""
        step = self._report.step
        name = message.partition("\n")[0]
        if isinstance(step, SqlStep | JobsStep):
            name = step.title
        elif isinstance(step, HttpStep):
            name = step.block.title
        file, line = (self._file.path, 1) if step is None else (step.file, step.line)
        sql = step.text if isinstance(step, SqlStep) else ""
        self._report.assertions.append(Assertion(name, Verdict.ERROR, file, line, message, sql))

    # --- setup and teardown ----------------------------------------------------------------------------------------

    def _steps_by_name(self, names: Sequence[str]) -> list[PreparationStep]:
        """Return the preparation steps with these names, in any case, without disabled ones. Raises PreparationError
        for an unknown name.
        """
        steps = self._means.options.steps
        unknown = [name for name in names if name.casefold() not in steps]
        if unknown:
            raise PreparationError(f"TestRunner:Steps has no step {unknown[0]!r}")
        return [step for name in names if (step := steps[name.casefold()]) is not None]

    async def _tear_down(self) -> None:
        """Run all teardown steps of the file, and only log failures."""
        for name in self._file.header.teardown:
            try:
                await self._means.preparation.try_all(self._steps_by_name((name,)))
            except PreparationError as error:
                self._log.warning("%s: teardown: %s", self._file.path, error)


def _texts(result: PGresult | None) -> list[list[str | None]]:
    """Return the rows of a result as texts; None for NULL. Empty without a result."""
    if result is None:
        return []
    return [[_text(result, row, column) for column in range(result.nfields)] for row in range(result.ntuples)]


def _text(result: PGresult, row: int, column: int) -> str | None:
    cell = result.get_value(row, column)
    return None if cell is None else bytes(cell).decode("utf-8", "replace")


def _name(result: PGresult, index: int) -> str:
    return (result.fname(index) or b"").decode("utf-8", "replace")
