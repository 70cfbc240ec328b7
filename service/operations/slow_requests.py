"""Requests that took long: told in the log, with where their time went, and with the plan of their statement.

The plan is asked for afterwards, on a session that no request uses, by EXPLAIN of the same prepared statement without
its values: nothing is run, and nothing of a request can stand in it.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import psycopg

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.ext.driver.execution import Execution, Script, Statement
from rowcall.service.background import Background
from rowcall.service.options.server.slow_requests import SlowRequestOptions
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.trace import trace_of

if TYPE_CHECKING:
    from rowcall.service.database.database import Database

log = logging.getLogger("rowcall.slow")

_MOST_WAITING = 4
"""Plans that a worker asks for at a time; of more slow endpoints the plan is told the next time."""


def note_slow(endpoint: Endpoint, services: Services) -> Step | None:
    """In front of everything. None where nobody looks for slow requests."""
    options = services.options.slow_requests
    if options is None or not log.isEnabledFor(logging.WARNING):
        return None
    plans = services.host.once("slow requests", lambda: Plans(options.plan_every)) if options.plan else None
    return _Watch(endpoint, options, plans, services.database)


class _Watch:
    def __init__(
        self, endpoint: Endpoint, options: SlowRequestOptions, plans: Plans | None, database: Database
    ) -> None:
        self._name = f"{endpoint.name} {endpoint.routine.schema}.{endpoint.routine.name}"
        self._threshold = options.threshold
        self._plans = plans
        self._database = database

    def __call__(self, context: RequestContext) -> None:
        began = time.monotonic()

        def end(context: RequestContext, _error: Exception | None) -> None:
            seconds = time.monotonic() - began
            if seconds >= self._threshold:
                self._tell(context, seconds)

        context.at_end(end)

    def _tell(self, context: RequestContext, seconds: float) -> None:
        request = context.execution
        trace = trace_of(context.protocol)
        text = f"slow request: {self._name} took {seconds:.3f} s{_where(request)}"
        if trace is not None:
            text += f", traceparent {trace.traceparent}"
        if self._plans is None or request is None or not request.began or not self._plans.wants(self._name):
            log.warning("%s", text)
            return
        # What several statements do has no one plan.
        if isinstance(request.statement, Script):
            log.warning("%s; a file with several statements has no plan of its own", text)
            return
        self._plans.tell(text, request.statement, self._database)


def _where(request: Execution | None) -> str:
    if request is None or not request.began:
        return ", none of it in the database"
    return f", {request.seconds:.3f} s of it in the database, {request.rows} rows"


class Plans:
    """Of one worker: which endpoints have had theirs told, and those being asked for."""

    def __init__(self, every: float) -> None:
        self._every = every
        self._told: dict[str, float] = {}
        self._asking = Background()
        self._running = 0

    def wants(self, name: str) -> bool:
        """Whether the plan is due. It then counts as told."""
        now = time.monotonic()
        if self._running >= _MOST_WAITING or now - self._told.get(name, -self._every) < self._every:
            return False
        self._told[name] = now
        return True

    def tell(self, text: str, statement: Statement, database: Database) -> None:
        self._running += 1
        self._asking.start(self._tell(text, statement, database))

    async def _tell(self, text: str, statement: Statement, database: Database) -> None:
        try:
            plan = await _plan_of(statement, database)
        except (psycopg.Error, OSError, TimeoutError) as error:
            # The message may quote what a value would be; a class does not.
            why = getattr(error, "sqlstate", None) or type(error).__name__
            log.warning("%s; its plan cannot be had (%s)", text, why)
        else:
            log.warning("%s\n%s", text, plan)
        finally:
            self._running -= 1

    def close(self) -> None:
        self._asking.cancel()


async def _plan_of(statement: Statement, database: Database) -> str:
    """With `$1` where a value would stand. Nothing is run: planning may call STABLE functions to estimate, which is why
    nothing can be written meanwhile."""
    async with database.maintenance_connection() as session, session.transaction(force_rollback=True):
        await session.execute("set transaction read only")
        await session.execute(
            "select set_config('statement_timeout', '5s', true),"
            " set_config('plan_cache_mode', 'force_generic_plan', true)"
        )
        types = await _types_of(statement, session)
        values = ", ".join(["null"] * statement.count)
        await session.execute(b"prepare rowcall_slow" + types.encode() + b" as " + statement.sql)
        try:
            asked = f"explain execute rowcall_slow{f'({values})' if values else ''}"
            rows = await (await session.execute(asked.encode())).fetchall()
        finally:
            if session.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS:
                await session.execute("deallocate rowcall_slow")
    return "\n".join(f"  {line}" for (line,) in rows)


async def _types_of(statement: Statement, session: psycopg.AsyncConnection[tuple[object, ...]]) -> str:
    """As PREPARE takes them, where they are given."""
    oids = statement.types
    if not oids or not any(oids):
        return ""
    cursor = await session.execute(
        "select string_agg(case when t = 0 then 'unknown' else format_type(t, null) end, ', ' order by n)"
        " from unnest(%s::oid[]) with ordinality u(t, n)",
        [list(oids)],
    )
    row = await cursor.fetchone()
    return f" ({row[0]})" if row else ""
