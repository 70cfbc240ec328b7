"""Has the server describe statements without running them, and look up the names of types: pipelined, in two passes
over all files, whatever their number.

Each query is a segment of its own, so that a refused one does not disturb the others. Its setting (the search path)
ends with its segment, which a transaction pooler allows too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import psycopg
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.waiting import Ready, Wait, wait_async

from rowcall.core.sqlfile.commands import Suspects

_AT_ONCE = 64
"""Queries passed to libpq before results are read again."""

_SUSPECT_FUNCTIONS = """
select distinct lower(proname) from pg_catalog.pg_proc
where provolatile = 'v' and prokind in ('f', 'w') and prorettype <> 'pg_catalog.trigger'::regtype
  and pronamespace <> 'information_schema'::regnamespace
"""
_PLAIN_PROCEDURES = r"""
select lower(p.proname) from pg_catalog.pg_proc p join pg_catalog.pg_language l on l.oid = p.prolang
where p.prokind = 'p' group by 1
having bool_and(l.lanname = 'sql' or (l.lanname = 'plpgsql' and p.prosrc !~* '\m(commit|rollback|call)\M'))
"""
_TABLE_COLUMNS = """
select c.oid, a.attnum::integer, concat_ws('.', n.nspname, c.relname, a.attname)
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.oid = any(%s::oid[]) and c.relkind in ('r', 'p', 'f')
"""
_SUSPECT_VIEWS = """
with recursive suspect(oid) as (
    select w.ev_class
    from pg_catalog.pg_depend d
    join pg_catalog.pg_rewrite w on w.oid = d.objid
    join pg_catalog.pg_proc p on p.oid = d.refobjid
    where d.classid = 'pg_catalog.pg_rewrite'::regclass and d.refclassid = 'pg_catalog.pg_proc'::regclass
      and p.provolatile = 'v'
    union
    select w.ev_class
    from suspect
    join pg_catalog.pg_depend d on d.refobjid = suspect.oid and d.refclassid = 'pg_catalog.pg_class'::regclass
    join pg_catalog.pg_rewrite w on w.oid = d.objid and d.classid = 'pg_catalog.pg_rewrite'::regclass
    where w.ev_class <> suspect.oid
)
select lower(c.relname) from suspect join pg_catalog.pg_class c on c.oid = suspect.oid
"""


@dataclass(frozen=True, slots=True)
class Question:
    """A statement to be described, with the type oids of its parameters; 0 lets the server infer the type."""

    sql: str
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class StatementDescription:
    """Names and type oids of the columns; empty for a statement without rows."""

    columns: tuple[tuple[str, int], ...]
    origins: tuple[tuple[int, int], ...] = ()
    """For each column that comes unchanged from a table or view: the oid of the relation and the number of the column;
    else 0, 0.
    """


@dataclass(frozen=True, slots=True)
class RefusedStatement:
    """The error of the server about a statement."""

    sqlstate: str
    message: str
    position: int | None
    """From 1, in characters of the statement."""
    detail: str | None
    hint: str | None


Connection = psycopg.AsyncConnection[Any]
_Send = Callable[[PGconn], None]
"""Sends one query in pipeline mode."""


async def describe(
    connection: Connection, questions: Sequence[Question], search_path: str
) -> list[StatementDescription | RefusedStatement]:
    """Return the description, or the error, of each statement, in their order.

    search_path: one schema, in which the statements find their objects. Raises `psycopg.Error` if the connection is
    lost. Then, and if the caller is cancelled, the connection is closed.
    """
    answers = await _ask(
        connection, (_description_sender(question) for question in questions), len(questions), search_path
    )
    return [_description(results) for results in answers]


async def find_types(connection: Connection, names: Sequence[str], search_path: str) -> dict[str, int]:
    """Return the oids of the types with these names, by name. Names that are not those of types are left out.
    search_path: as for `describe`. Raises `psycopg.Error` as `describe` does."""
    answers = await _ask(connection, (_lookup_sender(name) for name in names), len(names), search_path)
    result: dict[str, int] = {}
    for name, results in zip(names, answers, strict=True):
        value = results[-1].get_value(0, 0) if results and results[-1].status == ExecStatus.TUPLES_OK else None
        if value is not None:
            result[name] = int(value)
    return result


async def find_table_columns(connection: Connection, relations: Sequence[int]) -> dict[tuple[int, int], str]:
    """Return `schema.table.column` by oid of the table and number of the column; nothing for views. relations: oids.
    Raises `psycopg.Error`.
    """
    rows = await (await connection.execute(_TABLE_COLUMNS, (relations,))).fetchall()
    return {(relation, number): name for relation, number, name in rows}


async def find_suspects(connection: Connection) -> Suspects:
    """Return the functions and views that may have side effects even if they are only read, and the procedures that
    cannot commit. Raises `psycopg.Error`."""
    functions = await (await connection.execute(_SUSPECT_FUNCTIONS)).fetchall()
    views = await (await connection.execute(_SUSPECT_VIEWS)).fetchall()
    procedures = await (await connection.execute(_PLAIN_PROCEDURES)).fetchall()
    names = (frozenset(row[0] for row in rows) for rows in (functions, views, procedures))
    return Suspects(*names)


def _description_sender(question: Question) -> _Send:
    """Return the function that sends a statement to be described."""

    def send(pgconn: PGconn) -> None:
        pgconn.send_prepare(b"", question.sql.encode(), question.types)
        pgconn.send_describe_prepared(b"")

    return send


def _lookup_sender(name: str) -> _Send:
    """Return the function that sends a query for the oid of a type."""

    def send(pgconn: PGconn) -> None:
        pgconn.send_query_params(b"select pg_catalog.to_regtype($1)::oid", [name.encode()])

    return send


async def _ask(
    connection: Connection, questions: Iterable[_Send], count: int, search_path: str
) -> list[list[PGresult]]:
    """Send queries in pipeline mode, and return the results of each.

    Each query is sent behind a statement that sets the search path, whose result is removed. count: number of the
    queries. search_path: one schema. On any error the connection is closed.
    """
    pgconn = connection.pgconn
    path = search_path.encode()

    def send(question: _Send) -> None:
        pgconn.send_query_params(
            b"select pg_catalog.set_config('search_path', pg_catalog.quote_ident($1), true)", [path]
        )
        question(pgconn)
        pgconn.pipeline_sync()

    pgconn.enter_pipeline_mode()
    try:
        # Not `connection.wait`, which does not return before everything in progress has been answered.
        answers = await wait_async(_send_and_receive(pgconn, send, iter(questions), count), pgconn.socket, interval=0.1)
    except BaseException:
        # Results are still to come that nothing would read, so the connection is closed.
        pgconn.finish()
        raise
    pgconn.exit_pipeline_mode()
    return [results[1:] if len(results) > 1 else results for results in answers]


def _send_and_receive(
    pgconn: PGconn, send: Callable[[_Send], None], questions: Iterator[_Send], count: int
) -> Generator[Wait, Ready | int, list[list[PGresult]]]:
    """Send queries, and return the results of each, as a generator that yields what to wait for (`psycopg.waiting`).

    It sends and receives at the same time: a server that cannot send its results accepts no more queries. send: sends a
    query as a segment of its own. count: number of the queries.
    """
    answers: list[list[PGresult]] = []
    results: list[PGresult] = []
    requested = 0
    unsent = True
    while len(answers) < count:
        ready = yield Wait.RW if unsent or requested < count else Wait.R
        if ready & Ready.R:
            pgconn.consume_input()
            while len(answers) < count and not pgconn.is_busy():
                result = pgconn.get_result()
                if result is None:
                    # This ends the results of one message; if nothing was sent, there are no more.
                    if requested == len(answers):
                        break
                elif result.status == ExecStatus.PIPELINE_SYNC:
                    answers.append(results)
                    results = []
                else:
                    results.append(result)
        if ready & Ready.W:
            unsent = pgconn.flush() != 0
            for question in islice(questions, 0 if unsent else _AT_ONCE):
                send(question)
                requested += 1
                unsent = True
    return answers


def _description(results: Sequence[PGresult]) -> StatementDescription | RefusedStatement:
    """Return the description of a statement, or its error, from the results of preparing and describing it."""
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            return _refusal(result)
    last = results[-1]
    return StatementDescription(
        tuple(
            ((last.fname(index) or b"").decode("utf-8", "replace"), last.ftype(index)) for index in range(last.nfields)
        ),
        tuple((last.ftable(index), last.ftablecol(index)) for index in range(last.nfields)),
    )


def _refusal(result: PGresult) -> RefusedStatement:
    """Return the error in a result."""

    def field(code: DiagnosticField) -> str | None:
        value = result.error_field(code)
        return None if value is None else value.decode("utf-8", "replace")

    position = field(DiagnosticField.STATEMENT_POSITION)
    return RefusedStatement(
        field(DiagnosticField.SQLSTATE) or "",
        field(DiagnosticField.MESSAGE_PRIMARY) or "",
        int(position) if position else None,
        field(DiagnosticField.MESSAGE_DETAIL),
        field(DiagnosticField.MESSAGE_HINT),
    )
