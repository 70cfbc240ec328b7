"""Runs the work of requests: settings, pre-request function and main statement, in one transaction.

Where nothing depends on the result, all of it is one segment, which is one implicit transaction and one round trip. An
explicit transaction with a second round trip is needed if the result decides between COMMIT and ROLLBACK, if the
transaction ends with ROLLBACK, or if its isolation level is not the default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.core.postgrest.sql.output import Statement as Sql
from rowcall.core.text.naming import quote_identifier
from rowcall.ext.driver.execution import Execution, Loss
from rowcall.service.database.call import NoticeListener
from rowcall.service.database.execution.plain_runs import COMMIT, ROLLBACK, PlainRuns
from rowcall.service.database.preamble import PrecedingStatements, Values, preceding_settings
from rowcall.service.database.statements import statement_for
from rowcall.service.postgrest.planning.work import Work
from rowcall.service.postgrest.request import ApiRequest
from rowcall.service.postgrest.result import Result, read_result
from rowcall.service.postgrest.settings import RequestSettings
from rowcall.service.postgrest.statement_cache import StatementCache, values_of

CHECK_CONSTRAINTS = statement_for("set constraints all immediate", 0)
LEVELS = ("read uncommitted", "read committed", "repeatable read", "serializable")
DEFAULT_LEVEL = "read committed"

ErrorOf = Callable[[Execution, ApiRequest], Exception]


class TransactionLostError(Exception):
    """The connection of an explicit transaction was lost before COMMIT was sent. execution: the failed one. error: for
    the client, if the transaction is not repeated."""

    def __init__(self, execution: Execution, error: Exception) -> None:
        super().__init__(str(error))
        self.execution = execution
        self.error = error


class Transactions:
    """Runs work for one schema snapshot. error_of: the error for a failed execution."""

    def __init__(
        self,
        runs: PlainRuns,
        statements: StatementCache,
        settings: RequestSettings,
        options: PostgRestOptions,
        error_of: ErrorOf,
    ) -> None:
        self._runs = runs
        self._statements = statements
        self._settings = settings
        self._options = options
        self._error_of = error_of
        self._may_roll_back = options.rolls_back or options.end_may_be_overridden
        self._before: Sql | None = None
        if options.pre_request is not None:
            name = ".".join(map(quote_identifier, options.pre_request.split(".", 1)))
            self._before = Sql(f"select {name}()", ())

    def begin(
        self, request: ApiRequest, work: Work, listener: NoticeListener | None = None, *, alone: bool = False
    ) -> Execution | None:
        """Start work that is one segment; `finish` has to follow. None: the work is more than one segment, so `run` has
        to run it.

        listener: gets the notices of the work; requires an object of runs that does not pipeline statements. alone: on
        a connection that no other request uses at the same time. Raises `ApiError` for values that cannot be sent, and
        `Problem` if the queue of the pool is full.
        """
        if not self.is_one_segment(request, work):
            return None
        cached = self._statements.find(work.statement, request.user.role, work.options.repeatable)
        execution = Execution(cached.statement, values_of(work.statement), self._preceding_statements(request, work))
        execution.label = request.scope.path
        execution.notice_listener = listener
        work.pace = cached.pace
        try:
            return self._runs.begin(execution, request.disconnected, None if alone else cached.pace)
        except ValueError:
            raise _unsendable() from None

    def is_one_segment(self, request: ApiRequest, work: Work) -> bool:
        """Whether work may be one segment: nothing of its transaction depends on a result."""
        if not self._runs.one_segment or work.estimate is not None:
            return False
        if (self._may_roll_back and self._rolls_back(request)) or self._level(request, work) is not None:
            return False
        options = work.options
        return options.check is None or options.read_only

    def shared_settings(self, request: ApiRequest, work: Work) -> Values:
        """Return the settings of a request without headers and cookies."""
        return self._settings.values_without_headers(request, work.options.read_only, work.options.hoisted)

    def finish(self, request: ApiRequest, work: Work, execution: Execution) -> Result | None:
        """Return the result of an execution that `begin` has started; None: it has to run again, alone.

        Raises `ApiError` if the execution has failed or the check of `work` refuses the result, `Problem` if there was
        no connection, and `ClientDisconnectedError` if the client has disconnected.
        """
        try:
            if self._runs.settle(execution, work.pace):
                return None
        except ValueError:
            raise _unsendable() from None
        result = self._result(request, work, execution)
        if work.options.check is not None:
            work.options.check(result)
        return result

    async def run(self, request: ApiRequest, work: Work, listener: NoticeListener | None = None) -> Result:
        """Run work in an explicit transaction, and return its result. listener: gets the notices and the end of the
        transaction.

        Raises `ApiError` if the work fails or its check refuses the result, `Problem` if there was no connection,
        `ClientDisconnectedError` if the client has disconnected, and `TransactionLostError` if the connection was lost
        before the end of the transaction was sent.
        """
        level = self._level(request, work) or DEFAULT_LEVEL
        mode = "read only" if work.options.read_only else "read write"
        start = (
            (statement_for(f"begin isolation level {level} {mode}", 0), []),
            *self._preceding_statements(request, work),
        )
        async with self._runs.transaction(request.disconnected, listener) as transaction:
            estimate = None
            try:
                if work.estimate is not None:
                    statement, values = self._setting_values(request, work.estimate)
                    execution = await transaction.run(statement, values, start)
                    self._raise_if_lost(request, execution)
                    estimate = self._result_of_plan(request, execution)
                    start = ()
                statement, values = self._setting_values(request, work.statement)
                execution = await transaction.run(statement, values, start)
            except ValueError:
                raise _unsendable() from None
            self._raise_if_lost(request, execution)
            result = self._result(request, work, execution)._replace(estimate=estimate)
            if work.options.check is not None:
                work.options.check(result)
            if self._rolls_back(request):
                # COMMIT would check deferred constraints, so the response must contain their errors here too.
                checked = await transaction.run(CHECK_CONSTRAINTS, [], ())
                self._raise_if_lost(request, checked)
                self._raise_if_failed(request, checked)
                await transaction.end(ROLLBACK)
            else:
                self._raise_if_failed(request, await transaction.end(COMMIT))
        return result

    def _setting_values(self, request: ApiRequest, sql: Sql) -> tuple[Any, Values]:
        return self._statements.find(sql, request.user.role, repeatable=False).statement, values_of(sql)

    def _preceding_statements(self, request: ApiRequest, work: Work) -> PrecedingStatements:
        """Return the settings of a request, and the call of the pre-request function."""
        options = work.options
        settings = preceding_settings(self._settings.values(request, options.read_only, options.hoisted))
        return settings if self._before is None else (*settings, self._setting_values(request, self._before))

    def _level(self, request: ApiRequest, work: Work) -> str | None:
        """Return the isolation level as SQL; None: it is the default. An unknown level counts as the default."""
        chosen = work.options.isolation or self._settings.isolation.get(request.user.role)
        if chosen is None:
            return None
        level = chosen.lower()
        return level if level in LEVELS and level != DEFAULT_LEVEL else None

    def _rolls_back(self, request: ApiRequest) -> bool:
        """Return whether the transaction ends with ROLLBACK, as options and request say."""
        options, requested = self._options, request.preferences.transaction
        if options.end_may_be_overridden and requested is not None:
            return requested == "rollback"
        return options.rolls_back

    def _result(self, request: ApiRequest, work: Work, execution: Execution) -> Result:
        """Return the result of the execution. If it failed, raises `ApiError`, `Problem` or, for a disconnected client,
        `ClientDisconnectedError`."""
        if not execution.succeeded:
            raise self._error_of(execution, request)
        if not work.options.raw:
            return read_result(execution.body)
        return Result(None, execution.rows, execution.body or b"", None, None, None, None)

    def _result_of_plan(self, request: ApiRequest, execution: Execution) -> int:
        """Return the row estimate that the execution of `Work.estimate` gives. Raises as `_result` does."""
        self._raise_if_failed(request, execution)
        return estimated_rows(execution.body or b"")

    def _raise_if_lost(self, request: ApiRequest, execution: Execution) -> None:
        """Raise `TransactionLostError` if the connection of an execution was lost, other than because it was given up.
        execution: not that of COMMIT, behind which the transaction may be permanent."""
        if execution.loss != Loss.NOT_LOST and execution.failure is None:
            raise TransactionLostError(execution, self._error_of(execution, request))

    def _raise_if_failed(self, request: ApiRequest, execution: Execution) -> None:
        if not execution.succeeded:
            raise self._error_of(execution, request)


def estimated_rows(plan: bytes) -> int:
    """Return the row estimate of a plan that `EXPLAIN (FORMAT JSON)` printed."""
    return int(orjson.loads(plan)[0]["Plan"]["Plan Rows"])


def _unsendable() -> ApiError:
    """Return the error for values that contain a NUL, which PostgreSQL cannot store."""
    return errors.invalid_utf8(b"\0")
