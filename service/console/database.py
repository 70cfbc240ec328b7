"""What the main database does: sessions, locks, replicas, statements, and the tables of jobs, schedules and webhooks.

Each report opens one maintenance connection, reads in read-only transactions with a time limit, and closes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from rowcall.core.errors.problems import Problem
from rowcall.service.console.sources import Sources

_TIMEOUT = "5s"
_SESSIONS = """
select pid, usename::text as "user", application_name as application, client_addr::text as address, state,
       wait_event_type as "waitType", wait_event as "waitEvent",
       extract(epoch from clock_timestamp() - xact_start)::float8 as "transactionSeconds",
       extract(epoch from clock_timestamp() - query_start)::float8 as "querySeconds",
       pg_catalog.pg_blocking_pids(pid) as "blockedBy", left(query, 500) as query
from pg_catalog.pg_stat_activity
where datname = pg_catalog.current_database() and pid <> pg_catalog.pg_backend_pid()
order by state = 'active' desc, query_start desc limit 300
"""
_LOCKS = """
select l.pid, l.locktype as type, l.mode, l.relation::regclass::text as relation,
       pg_catalog.pg_blocking_pids(l.pid) as "blockedBy",
       extract(epoch from clock_timestamp() - l.waitstart)::float8 as "waitSeconds"
from pg_catalog.pg_locks l join pg_catalog.pg_stat_activity a on a.pid = l.pid
where not l.granted and a.datname = pg_catalog.current_database() order by l.waitstart limit 300
"""
_REPLICAS = """
select application_name as application, client_addr::text as address, state, sync_state as sync,
       extract(epoch from replay_lag)::float8 as "lagSeconds"
from pg_catalog.pg_stat_replication order by 1, 2
"""
_EXTENSION = """
select n.nspname::text as schema from pg_catalog.pg_extension e
join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_stat_statements'
"""
_STATEMENTS = """
select left(query, 1000) as query, calls, total_exec_time / 1000 as seconds, mean_exec_time / 1000 as "meanSeconds",
       rows from {}.pg_stat_statements
where dbid = (select oid from pg_catalog.pg_database where datname = pg_catalog.current_database())
order by total_exec_time desc limit 50
"""
_JOBS = """
select id::text, endpoint, queue, state, priority, attempts, created, run_at as "runAt", started, finished, error
from rowcall.job order by coalesce(finished, started, created) desc limit 200
"""
_SCHEDULES = "select endpoint, due, state from rowcall.schedules() where isfinite(due) order by endpoint limit 500"
_DELIVERIES = """
select message::text, subscriber, state, attempts, status, error, since, run_at as "runAt", finished
from rowcall.webhook_delivery order by coalesce(finished, run_at) desc limit 200
"""
_SUBSCRIBERS = "select name, topics, active from rowcall.webhook_subscriber order by name limit 500"
_TARGETS = 'select subscriber, failures, paused_until as "pausedUntil" from rowcall.webhook_target'
_DEFINITION = """
select pg_catalog.pg_get_functiondef(p.oid) as sql from pg_catalog.pg_proc p
where p.oid = %s and p.prokind in ('f', 'p')
"""

Rows = list[dict[str, Any]]
Connection = psycopg.AsyncConnection[tuple[object, ...]]


class Database:
    """Reads the main database, and changes it by `change`. Methods are called in threads, and raise `Problem` 503 if
    the database cannot be reached; `definition`, which may read another database, returns None instead."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def report(self) -> dict[str, Any]:
        """Return sessions, waiting locks, replicas, and statements by time. A part that cannot be read has its reason
        in `unavailable`."""
        return self._read({"sessions": _SESSIONS, "locks": _LOCKS, "replicas": _REPLICAS}, statements=True)

    def queues(self) -> dict[str, Any]:
        """Return jobs, schedules and webhooks, without their arguments and payloads. A part that is not installed or
        cannot be read has its reason in `unavailable`."""
        queries = {
            "jobs": _JOBS,
            "schedules": _SCHEDULES,
            "deliveries": _DELIVERIES,
            "subscribers": _SUBSCRIBERS,
            "targets": _TARGETS,
        }
        report = self._read(queries, statements=False)
        targets = {row.pop("subscriber"): row for row in report.pop("targets", ())}
        report["unavailable"].pop("targets", None)
        if "subscribers" in report:
            none = {"failures": 0, "pausedUntil": None}
            subscribers = (*self._configured_subscribers(), *report["subscribers"])
            report["subscribers"] = [{**item, **targets.get(item["name"], none)} for item in subscribers]
        return report

    def _configured_subscribers(self) -> Rows:
        """Return the subscribers of `Webhooks:Subscribers`, which are not in the database."""
        options = self._sources.options.deliveries
        configured = () if options is None else options.subscribers
        return [{"name": item.name, "topics": list(item.topics), "active": True} for item in configured]

    def definition(self, oid: int, source: str | None) -> str | None:
        """Return the SQL of a function or procedure; None if it does not exist or cannot be read. Raises `Problem` 503
        if there is no result in time (`Sources.run`).

        source: `Endpoint.catalogue_connection`; oids of another database name other routines.
        """

        async def read() -> str | None:
            async with self._sources.source_connector(source).maintenance_connection() as connection:
                rows = await _rows(connection, _DEFINITION, (oid,))
            return rows[0]["sql"] if rows else None

        try:
            return self._sources.run(read())
        except psycopg.Error:
            return None

    def about(self, subject: str, queries: Mapping[str, str]) -> dict[str, Any]:
        """Return the rows of queries about a user, by name of the query. A query that cannot be read has its reason in
        `unavailable`. subject: the only parameter of each."""
        return self._read(queries, statements=False, parameters=(subject,))

    def change(self, query: str, *parameters: object) -> Any:
        """Run a statement in a transaction of its own, and return its first value; None without a row.

        Raises `Problem`: 409 if PostgreSQL refuses it, with the reason, 503 if the database cannot be reached.
        """

        async def run() -> Any:
            async with self._sources.connector.maintenance_connection() as connection:
                async with connection.transaction(), connection.cursor() as cursor:
                    await _limit(cursor)
                    await cursor.execute(query.encode(), parameters)
                    row = await cursor.fetchone()
                return None if row is None else row[0]

        try:
            return self._sources.run(run())
        except psycopg.OperationalError as error:
            raise Problem(503, f"the database cannot be reached, or was too slow: {_reason(error)}") from None
        except psycopg.Error as error:
            raise Problem(409, f"the database refuses this: {_reason(error)}{_remedy(error)}") from None

    def _read(
        self, queries: Mapping[str, str], *, statements: bool, parameters: tuple[object, ...] = ()
    ) -> dict[str, Any]:
        """Return the rows of each query by its name, and in `unavailable` why queries could not be read.

        statements: also read the statements that took most time, from the extension pg_stat_statements. parameters: the
        same for each query. Raises `Problem` 503 if the database cannot be reached.
        """

        async def read() -> dict[str, Any]:
            report: dict[str, Any] = {}
            unavailable: dict[str, str] = {}
            async with self._sources.connector.maintenance_connection() as connection:
                for name, query in queries.items():
                    await _add(report, unavailable, name, connection, query, parameters)
                if statements:
                    await _add_statements(report, unavailable, connection)
            return {**report, "unavailable": unavailable}

        try:
            return self._sources.run(read())
        except psycopg.Error as error:
            raise Problem(503, f"the database cannot be read: {_reason(error)}") from None


async def _add_statements(report: dict[str, Any], unavailable: dict[str, str], connection: Connection) -> None:
    """Add the statements that took most time to the report, or the reason to `unavailable`."""
    found = await _rows(connection, _EXTENSION)
    if not found:
        unavailable["statements"] = "the extension pg_stat_statements is not installed in this database"
        return
    query = sql.SQL(_STATEMENTS).format(sql.Identifier(found[0]["schema"]))
    await _add(report, unavailable, "statements", connection, query)


async def _add(
    report: dict[str, Any],
    unavailable: dict[str, str],
    name: str,
    connection: Connection,
    query: str | sql.Composed,
    parameters: tuple[object, ...] = (),
) -> None:
    """Add the rows of a query to the report, or the reason to `unavailable`, under `name`. Raises
    `psycopg.OperationalError` if the connection is lost or the query too slow.
    """
    try:
        report[name] = await _rows(connection, query, parameters)
    except psycopg.OperationalError:
        raise
    except psycopg.Error as error:
        unavailable[name] = f"{_reason(error)}{_remedy(error)}"


async def _rows(connection: Connection, query: str | sql.Composed, parameters: tuple[object, ...] = ()) -> Rows:
    """Run a query in a read-only transaction of its own with a time limit, and return its rows as values by column."""
    async with connection.transaction(), connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute("set transaction read only")
        await _limit(cursor)
        await cursor.execute(query.encode() if isinstance(query, str) else query, parameters or None)
        return await cursor.fetchall()


async def _limit(cursor: psycopg.AsyncCursor[Any]) -> None:
    await cursor.execute("select pg_catalog.set_config('statement_timeout', %s, true)", (_TIMEOUT,))


def _remedy(error: psycopg.Error) -> str:
    """Return the end of an error message that names the remedy: the schema `rowcall` has to be updated if a function or
    table is missing, or a right has to be granted. Empty for other errors."""
    if isinstance(error, psycopg.errors.UndefinedFunction | psycopg.errors.UndefinedTable):
        return "; rowcall --install updates the schema rowcall"
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return "; grant that to the role of the service"
    return ""


def _reason(error: psycopg.Error) -> str:
    return str(error).strip().splitlines()[0]
