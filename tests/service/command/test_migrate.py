"""`rowcall --migrate`: numbered SQL files, each run once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database

FIRST = "create table shelf (id int primary key);\ncreate table book (id int);\n"
SECOND = "alter table book add column title text;\ninsert into book values (1, 'a;b');\nset role pg_monitor;\n"


def write(folder: Path, **files: str) -> None:
    """Write migrations; `__` in a name stands for `-`."""
    (folder / "migrations").mkdir(exist_ok=True)
    for name, text in files.items():
        path = folder / "migrations" / (name.replace("__", "-") + ".sql")
        path.write_bytes(text.encode())


def migrate(folder: Path, database: Database, *arguments: str) -> tuple[int, str]:
    done = rowcall(folder, "--migrate", *arguments, f"--ConnectionStrings:Default={database.conninfo}")
    return done.returncode, done.stdout + done.stderr


def fails(folder: Path, database: Database, message: str) -> None:
    code, text = migrate(folder, database)
    assert code == 1, text
    assert message in text


def test_each_file_runs_once_in_the_order_of_the_numbers(own_database: Database, tmp_path: Path) -> None:
    write(tmp_path, **{"10__tenth": "insert into book values (10);", "001__first": FIRST, "2_second": SECOND})
    code, text = migrate(tmp_path, own_database, "--check")
    assert (code, text.splitlines()) == (3, ["to run: 001-first.sql", "to run: 2_second.sql", "to run: 10-tenth.sql"])
    assert own_database.value("select to_regclass('book')") is None
    code, text = migrate(tmp_path, own_database)
    assert code == 0, text
    assert text.splitlines()[-1] == "3 of 3 migrations run, the last one is 10-tenth.sql"
    assert own_database.fetch("select id, title from book order by id") == [(1, "a;b"), (10, None)]
    assert own_database.fetch("select number, name from rowcall.migration order by number") == [
        (1, "001-first.sql"), (2, "2_second.sql"), (10, "10-tenth.sql"),
    ]  # fmt: skip
    assert migrate(tmp_path, own_database) == (0, "0 of 3 migrations run, the last one is 10-tenth.sql\n")
    assert migrate(tmp_path, own_database, "--check") == (0, "nothing to run\n")


def test_a_migration_that_fails_changes_nothing(own_database: Database, tmp_path: Path) -> None:
    write(tmp_path, **{"1__first": FIRST, "2__wrong": "create table lamp ();\ninsert into missing\nvalues (1);"})
    fails(tmp_path, own_database, '2-wrong.sql: line 2: relation "missing" does not exist (42P01)')
    assert own_database.value("select to_regclass('lamp')") is None
    assert own_database.value("select to_regclass('book')") == "book"
    write(tmp_path, **{"2__wrong": "create table lamp ();"})
    assert migrate(tmp_path, own_database)[0] == 0
    assert own_database.value("select to_regclass('lamp')") == "lamp"


def test_files_that_do_not_continue_the_applied_migrations_are_refused(own_database: Database, tmp_path: Path) -> None:
    write(tmp_path, **{"1__first": FIRST, "5__fifth": "select 1;"})
    assert migrate(tmp_path, own_database)[0] == 0
    write(tmp_path, **{"3__third": "select 3;"})
    fails(
        tmp_path,
        own_database,
        "3-third.sql has not run, but 5-fifth.sql with a higher number has: give it a new number",
    )
    (tmp_path / "migrations" / "3-third.sql").unlink()
    write(tmp_path, **{"1__first": FIRST.replace("\n", "\r\n")})
    assert migrate(tmp_path, own_database)[0] == 0
    write(tmp_path, **{"1__first": FIRST + "select 2;"})
    fails(tmp_path, own_database, "1-first.sql has changed since it has run; write another migration instead")
    (tmp_path / "migrations" / "1-first.sql").unlink()
    fails(tmp_path, own_database, "1-first.sql has run, and its file is missing")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"first": "select 1;"}, "the name has to be a number, - and a text, such as 001-accounts.sql"),
        ({"1__a": "select 1;", "01__b": "select 1;"}, "has the same number"),
        ({"1__a": "create table a ();\ncommit;"}, "commit would end the transaction in which it runs"),
        ({"1__a": "begin; create table a (); commit;"}, "begin would end the transaction"),
        ({"1__a": "create table a (); rollback and chain;"}, "rollback would end the transaction"),
        ({"1__a": "create table a (); prepare transaction 'x';"}, "prepare transaction would end the transaction"),
    ],
)
def test_files_that_are_refused(own_database: Database, tmp_path: Path, files: dict[str, str], message: str) -> None:
    write(tmp_path, **files)
    fails(tmp_path, own_database, message)
    assert own_database.value("select to_regclass('rowcall.migration')") is None


def test_savepoints_are_permitted_in_migrations(own_database: Database, tmp_path: Path) -> None:
    sql = "savepoint a; create table lost (); rollback to savepoint a; rollback work to a; create table remaining ();"
    write(tmp_path, **{"1__savepoint": sql})
    code, text = migrate(tmp_path, own_database)
    assert code == 0, text
    assert own_database.fetch("select to_regclass('lost'), to_regclass('remaining')") == [(None, "remaining")]


def test_a_missing_folder_is_reported(own_database: Database, tmp_path: Path) -> None:
    fails(tmp_path, own_database, "Migrations:Folder: there is no folder migrations")
    code, text = migrate(tmp_path, own_database, f"--Migrations:Folder={'x' * 300}")
    assert code == 1
    assert f"Migrations:Folder: the folder {'x' * 300} cannot be reached: File name too long" in text


def test_a_file_can_run_without_a_transaction(own_database: Database, tmp_path: Path) -> None:
    alone = "-- no transaction\ncreate index concurrently shelf_id on shelf (id);\nselect 1;"
    write(tmp_path, **{"1__first": FIRST, "2__index": alone})
    code, text = migrate(tmp_path, own_database)
    assert code == 0, text
    assert own_database.value("select to_regclass('shelf_id')") == "shelf_id"


def test_what_a_migration_leaves_in_its_session_does_not_reach_the_next_one(
    own_database: Database, tmp_path: Path
) -> None:
    write(
        tmp_path,
        **{
            "1__a": "create table item (id int); prepare q as select 1; set search_path to pg_catalog;",
            "2__b": "create temp table item (id int); insert into item values (1);",
            "3__c": "prepare q as select 1; create temp table other (id int); insert into item values (2);",
        },
    )
    code, text = migrate(tmp_path, own_database)
    assert code == 0, text
    assert own_database.fetch("select id from public.item") == [(2,)]


def test_a_transaction_that_stays_open_is_an_error(own_database: Database, tmp_path: Path) -> None:
    write(tmp_path, **{"1__a": "-- no transaction\nbegin;\ncreate table item (id int);\n"})
    fails(tmp_path, own_database, "1-a.sql: it leaves a transaction open, which is rolled back; end it")
    assert own_database.value("select to_regclass('item')") is None
    write(tmp_path, **{"1__a": "-- no transaction\nbegin;\ncreate table item (id int);\ncommit;\n"})
    assert migrate(tmp_path, own_database)[0] == 0


def test_several_at_the_same_time_run_each_migration_once(own_database: Database, tmp_path: Path) -> None:
    slow = "create table slow (id int);\nselect pg_sleep(0.3);\ninsert into slow values (1);"
    write(tmp_path, **{"1__slow": slow})
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _number: migrate(tmp_path, own_database), range(4)))
    assert [code for code, _ in results] == [0, 0, 0, 0]
    assert sorted(text.splitlines()[-1].split(" ")[0] for _, text in results) == ["0", "0", "0", "1"]
    assert own_database.value("select count(*) from slow") == 1
