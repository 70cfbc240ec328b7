"""Log slow requests with the time they spent in the database, and with the query plan of their statement.

The plan is requested afterwards on a maintenance connection by EXPLAIN of the same prepared statement without values:
the statement is not run, and the plan contains no values of a request.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import psycopg

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.ext.driver.execution import Execution, Script, Statement
from rowcall.service.background import Background
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.trace import log_extra, trace_of

if TYPE_CHECKING:
    from rowcall.service.database.database import Database

log = logging.getLogger("rowcall.slow")

Session = psycopg.AsyncConnection[tuple[object, ...]]
Extra = Mapping[str, object]
"""The argument `extra` of a log entry (`log_extra`)."""

MOST_SHOWN = 200
"""Characters of a path that no endpoint has."""
_MOST_WAITING = 4
"""Maximum of concurrent plan requests of a worker; the plans of further slow endpoints are logged the next time."""


def record_slow_request(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that measures requests and logs slow ones. It precedes all steps that may refuse a request or
    wait. None: slow requests are not logged."""
    options = services.options.slow_requests
    if options is None or not log.isEnabledFor(logging.WARNING):
        return None
    plans = services.host.get_or_create("slow requests", lambda: Plans(options.plan_every)) if options.plan else None
    name = f"{endpoint.name} {endpoint.routine.schema}.{endpoint.routine.name}"
    return _Watch(name, options.threshold, plans, services.database)


def record_slow_path(method: str, services: Services) -> Step | None:
    """Return the step that measures requests without an endpoint and logs slow ones; None if slow requests are not
    logged. There are no plans, and no time of the database if a request ran several statements."""
    options = services.options.slow_requests
    if options is None or not log.isEnabledFor(logging.WARNING):
        return None
    threshold = options.threshold

    def watch(context: RequestContext) -> None:
        began = time.monotonic()

        def end(context: RequestContext, _error: Exception | None) -> None:
            seconds = time.monotonic() - began
            if seconds >= threshold:
                place = f"{method} {context.scope.path[:MOST_SHOWN]}"
                spent = "" if context.execution is None else _where(context.execution)
                extra = log_extra(context.protocol)
                log.warning("slow request: %s took %.3f s%s", place, seconds, spent, extra=extra)

        context.at_end(end)

    return watch


class _Watch:
    """Step that measures the requests of one endpoint, and logs slow ones."""

    def __init__(self, name: str, threshold: float, plans: Plans | None, database: Database) -> None:
        """name: of the endpoint, for the log. threshold: seconds from which a request is slow. plans: None: plans are
        not logged.
        """
        self._name = name
        self._threshold = threshold
        self._plans = plans
        self._database = database

    def __call__(self, context: RequestContext) -> None:
        began = time.monotonic()

        def end(context: RequestContext, _error: Exception | None) -> None:
            seconds = time.monotonic() - began
            if seconds >= self._threshold:
                self._log(context, seconds)

        context.at_end(end)

    def _log(self, context: RequestContext, seconds: float) -> None:
        request = context.execution
        trace, extra = trace_of(context.protocol), log_extra(context.protocol)
        text = f"slow request: {self._name} took {seconds:.3f} s{_where(request)}"
        if trace is not None:
            text += f", traceparent {trace.traceparent}"
        if self._plans is None or request is None or not request.began or not self._plans.wants(self._name):
            log.warning("%s", text, extra=extra)
            return
        # A script of several statements has no single plan.
        if isinstance(request.statement, Script):
            log.warning("%s; a file with several statements has no plan of its own", text, extra=extra)
            return
        self._plans.log_plan(text, request.statement, self._database, extra)


def _where(request: Execution | None) -> str:
    """Return how much time of a slow request was spent in the database, as the end of its log message. request: its
    execution; None: it had none."""
    if request is None or not request.began:
        return ", none of it in the database"
    return f", {request.seconds:.3f} s of it in the database, {request.rows} rows"


class Plans:
    """Logs the execution plans of slow requests of one worker, and limits how often.

    every: minimum time in seconds between two plans of an endpoint.
    """

    def __init__(self, every: float) -> None:
        self._every = every
        self._last_reports: dict[str, float] = {}
        self._asking = Background()
        self._running = 0

    def wants(self, name: str) -> bool:
        """Return whether the plan of an endpoint is due; if so, record it as logged. False also while `_MOST_WAITING`
        plans are being requested.
        """
        now = time.monotonic()
        if self._running >= _MOST_WAITING or now - self._last_reports.get(name, -self._every) < self._every:
            return False
        self._last_reports[name] = now
        return True

    def log_plan(self, text: str, statement: Statement, database: Database, extra: Extra) -> None:
        """Log `text` with the plan of the statement, in the background. extra: that of the entry."""
        self._running += 1
        self._asking.start(self._log_plan(text, statement, database, extra))

    async def _log_plan(self, text: str, statement: Statement, database: Database, extra: Extra) -> None:
        try:
            plan = await _plan_of(statement, database)
        except (psycopg.Error, OSError, TimeoutError) as error:
            # The message of the error may quote a value; its SQLSTATE or class does not.
            why = getattr(error, "sqlstate", None) or type(error).__name__
            log.warning("%s; its plan cannot be read (%s)", text, why, extra=extra)
        else:
            log.warning("%s\n%s", text, plan, extra=extra)
        finally:
            self._running -= 1

    def close(self) -> None:
        self._asking.cancel()


async def _plan_of(statement: Statement, database: Database) -> str:
    async with database.maintenance_connection() as session:
        return await plan_on(session, statement.sql, statement.count, statement.types or ())


async def plan_on(session: Session, sql: bytes, count: int, oids: Sequence[int] = ()) -> str:
    """Return the generic plan of a statement with `count` parameters, with `$1` in place of values.

    The statement is not run. Planning may call STABLE functions for estimates, so the transaction is read only. oids:
    the types of the parameters, empty if they follow from the statement. Raises `psycopg.Error`, also if planning takes
    longer than 5 s.
    """
    async with session.transaction(force_rollback=True):
        await session.execute("set transaction read only")
        await session.execute(
            "select set_config('statement_timeout', '5s', true),"
            " set_config('plan_cache_mode', 'force_generic_plan', true)"
        )
        types = await _types_of(oids, session)
        values = ", ".join(["null"] * count)
        await session.execute(b"prepare rowcall_slow" + types.encode() + b" as " + sql)
        try:
            explain = f"explain execute rowcall_slow{f'({values})' if values else ''}"
            rows = await (await session.execute(explain.encode())).fetchall()
        finally:
            if session.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS:
                await session.execute("deallocate rowcall_slow")
    return "\n".join(f"  {line}" for (line,) in rows)


async def _types_of(oids: Sequence[int], session: Session) -> str:
    """Return the parameter types in the syntax of PREPARE, as in ` (integer, text)`; empty if none of them is known.
    oids: 0 stands for an unknown type.
    """
    if not oids or not any(oids):
        return ""
    cursor = await session.execute(
        "select string_agg(case when t = 0 then 'unknown' else format_type(t, null) end, ', ' order by n)"
        " from unnest(%s::oid[]) with ordinality u(t, n)",
        [list(oids)],
    )
    row = await cursor.fetchone()
    return f" ({row[0]})" if row else ""
