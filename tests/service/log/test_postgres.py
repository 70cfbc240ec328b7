"""The PostgreSQL sink against a real server: batches, refused entries, restarts."""

from __future__ import annotations

import logging
import threading

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rowcall.service.log.entry import Entry
from rowcall.service.log.postgres import PostgresSink, parameter_count
from rowcall.service.log.sinks import LostEntriesError, SinkThread
from rowcall.service.startup_error import StartupError
from tests.harness.database import Database, create_database
from tests.harness.postgres import PostgresServer
from tests.harness.waiting import wait_until

SQL = """
create table logged(number int generated always as identity, level text, message text, at timestamptz,
  exception text, source text);
create procedure log(_level text, _message text, _at timestamptz, _exception text, _source text) language sql as
  'insert into logged(level, message, at, exception, source) values (_level, _message, _at, _exception, _source)';
"""


def entry(message: str, exception: str | None = None) -> Entry:
    return Entry(1_700_000_000.25, logging.WARNING, "rowcall", message, exception)


def sink_on(database: Database, command: str = "call log($1,$2,$3,$4,$5)") -> PostgresSink:
    sink = PostgresSink(command)
    sink.connect_to(conninfo_to_dict(database.conninfo))  # type: ignore[arg-type]
    return sink


@pytest.fixture
def prepared(own_database: Database) -> Database:
    own_database.execute(SQL)
    return own_database


def stored(database: Database) -> list[str]:
    with psycopg.connect(database.conninfo) as connection:
        return [row[0] for row in connection.execute("select message from logged order by number")]


def test_an_entry_reaches_the_command_with_all_its_parameters(prepared: Database) -> None:
    sink = sink_on(prepared)
    sink.write([entry("it's \N{SNOWMAN} {x} $1 %s \0", "Traceback"), entry("plain")])
    sink.close()
    with psycopg.connect(prepared.conninfo) as connection:
        rows = connection.execute("select level, message, extract(epoch from at)::float8, exception, source "
                                  "from logged order by number").fetchall()  # fmt: skip
    assert rows == [
        ("Warning", "it's \N{SNOWMAN} {x} $1 %s \\0", 1_700_000_000.25, "Traceback", "rowcall"),
        ("Warning", "plain", 1_700_000_000.25, None, "rowcall"),
    ]


def test_a_timestamp_without_zone_gets_utc(prepared: Database) -> None:
    prepared.execute("create table early(at timestamp, level text)")
    sink = sink_on(prepared, "insert into early(level, at) select $1, $3 where $2 <> ''")
    sink.write([entry("x")])
    sink.close()
    with psycopg.connect(prepared.conninfo) as connection:
        assert str(connection.execute("select at from early").fetchone()) == str(
            connection.execute("select timestamp '2023-11-14 22:13:20.25'").fetchone()
        )


def test_a_refused_entry_does_not_prevent_others(prepared: Database) -> None:
    prepared.execute("alter table logged add check (message <> 'bad')")
    sink = sink_on(prepared)
    with pytest.raises(LostEntriesError, match="violates check constraint") as caught:
        sink.write([entry("one"), entry("bad"), entry("two")])
    assert caught.value.count == 1
    sink.close()
    assert stored(prepared) == ["one", "two"]


def test_entries_beside_a_refused_one_are_stored_once_if_the_connection_is_lost(prepared: Database) -> None:
    prepared.execute("""
alter table logged add check (message <> 'bad');
create sequence losses;
create function lose() returns trigger language plpgsql as $$
begin
  if new.message = 'lose' and nextval('losses') = 1 then
    perform pg_terminate_backend(pg_backend_pid());
  end if;
  return new;
end $$;
create trigger lose before insert on logged for each row execute function lose();
""")
    sink = sink_on(prepared)
    with pytest.raises(LostEntriesError, match="violates check constraint"):
        sink.write([entry("one"), entry("bad"), entry("lose"), entry("two")])
    sink.close()
    assert stored(prepared) == ["one", "lose", "two"]


def test_entries_wait_for_a_server_that_restarts(own_postgres: PostgresServer) -> None:
    database = create_database(own_postgres)
    database.execute(SQL)
    message: list[str] = []
    sink = sink_on(database)
    thread = SinkThread(sink, 0, message.append)
    thread.submit([entry("before")])
    assert thread.flush(30)
    own_postgres.stop("immediate")
    thread.submit([entry("during")])
    own_postgres.start()
    thread.submit([entry("after")])
    assert thread.flush(60)
    thread.close()
    assert stored(database) == ["before", "during", "after"]
    assert message == []


def test_entries_refused_by_the_command_are_reported_in_other_sinks(prepared: Database) -> None:
    text: list[str] = []
    result = threading.Event()

    def report(message: str) -> None:
        text.append(message)
        result.set()

    thread = SinkThread(sink_on(prepared, "call no_such_procedure($1)"), 0, report)
    thread.submit([entry("x")])
    wait_until(result.is_set, "the trouble is reported")
    thread.close()
    assert "procedure no_such_procedure(unknown) does not exist" in text[0]


def test_only_refused_entries_are_counted_as_lost(prepared: Database) -> None:
    prepared.execute("alter table logged add check (message <> 'bad')")
    messages: list[str] = []
    thread = SinkThread(sink_on(prepared), 0, messages.append)
    thread.submit([entry("one"), entry("bad"), entry("two")])
    assert thread.flush(30)
    thread.submit([entry("three")])
    assert thread.flush(30)
    thread.close()
    assert stored(prepared) == ["one", "two", "three"]
    assert messages[1:] == ["the log sink PostgreSQL has lost 1 entries"]


@pytest.mark.parametrize(
    ("command", "count"),
    [
        ("call log($1,$2,$3,$4,$5)", 5),
        ("select write($1)", 1),
        ("insert into log values ($2, $1, '$7')", 2),
        ('insert into log("$9") values ($1)', 1),
    ],
)
def test_parameters_are_counted(command: str, count: int) -> None:
    assert parameter_count(command) == count


@pytest.mark.parametrize("command", ["call log()", "call log($2)", "call log($1,$3)", "call log($1,$2,$3,$4,$5,$6)"])
def test_other_numbers_of_parameters_end_the_start(command: str) -> None:
    with pytest.raises(StartupError, match=r"Log:PostgresCommand must have one to five parameters"):
        parameter_count(command)
