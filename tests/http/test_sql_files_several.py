"""A file of several statements answers with one object, and each statement counts as if it were sent alone
(sql-files-23 to sql-files-28)."""

from __future__ import annotations

import json
import threading

import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, answer, problem
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SCHEMA = """
create type dims as (w int, h int);
create table bed (id int primary key, name text, size dims, watered timestamptz);
insert into bed values (3, 'north', '(4,2)', null);
create table bed_log (id int generated always as identity, bed_id int, constraint small check (bed_id < 1000));
create table strict_log (id int, constraint once unique (id) deferrable initially deferred);
create function note(_n int) returns int language sql as 'insert into bed_log (bed_id) values (_n) returning bed_id';
create view busy as select note(900) as n;
create sequence attempts;
create function unlucky() returns int language plpgsql as $$ begin
  if nextval('attempts') % 2 = 1 then raise exception 'another request was first' using errcode = '40001'; end if;
  return 1;
end $$;
"""

FILES = {
    "water.sql": """-- HTTP POST
begin;
update bed set watered = now() where id = :bed_id;
insert into bed_log (bed_id) values (:bed_id) returning bed_id, 'x' as note; -- @result log
select set_config('app.bed', :bed_id, true); -- @skip
commit;
-- @result bed
-- @single
select id, name from bed where id = :bed_id;
""",
    "kinds.sql": """-- HTTP GET
-- @result check
select 1; select 2, 3; select 4 where false; -- result none
select n from generate_series(1, 3) n;
-- @single
select size, id from bed;
-- @single
select 'x' as lone;
-- @single
select 1, 2 where false;
select size from bed;
select 1, 2 as a, 3 as a;
""",
    "changes.sql": """-- HTTP POST
create temp table scratch (a int) on commit drop;
insert into bed_log (bed_id) values (1), (2);
update bed_log set bed_id = bed_id where bed_id in (1, 2);
delete from bed_log where bed_id in (1, 2);
truncate strict_log;
-- @returns void
select note(5);
delete from bed_log where bed_id = 5 returning bed_id;
""",
    "temporary.sql": """-- HTTP POST
begin;
create temp table found (id int, name text) on commit drop;
-- @returns void
insert into found select id, name from bed;
-- @returns dims
-- @result dims
select id, 7 from found;
-- @returns integer
-- @single
select id, name from found;
end;
""",
    "settings.sql": "-- HTTP GET\nselect set_config('app.x', 'lost', true);\n"
    "select current_setting('app.x', true) as x, 1 as n;",
    "settings_in_one.sql": "-- HTTP GET\nbegin;\nselect set_config('app.x', 'kept', true); -- skip\n"
    "select current_setting('app.x', true) as x, 1 as n;\nend;",
    "halfway.sql": "-- HTTP POST\ninsert into bed_log (bed_id) values (:n);\n"
    "insert into bed_log (bed_id) values (1000);\ninsert into bed_log (bed_id) values (:n);",
    "whole.sql": "-- HTTP POST\nbegin;\ninsert into bed_log (bed_id) values (:n);\n"
    "insert into bed_log (bed_id) values (1000);\ncommit;\nselect 1;",
    "open.sql": "-- HTTP POST\nbegin;\ninsert into bed_log (bed_id) values (:n) returning bed_id;",
    "deferred.sql": "-- HTTP POST\ninsert into strict_log values (1), (1);\nselect 1",
    "busy.sql": "-- HTTP POST\nselect * from busy;\nselect 1 / :n::int",
    "isolation.sql": "-- HTTP GET\n-- timeout 5s\nselect 1;\nbegin;\nset transaction isolation level serializable;\n"
    "select current_setting('transaction_isolation') as level, 1 as n;\ncommit;",
    "numbering.sql": "-- HTTP GET\nselect :b as b, :a as a;\nselect :a as only, 1 as n;\nselect 1;",
    "typed.sql": "-- HTTP GET\n-- param $1 ids int[]\nselect $1;\nselect $2::text, $1[1];\n",
    "nothing.sql": "-- HTTP POST\n-- void\ninsert into bed_log (bed_id) values (77);\nselect * from bed_log",
    "hidden.sql": "-- HTTP GET\nselect 1; -- skip\nselect 2; -- @skip\n",
    "odd_keys.sql": '-- HTTP GET\n-- result is my"k\nselect 1;\n-- result is\nselect 2;\n',
    "nested.sql": "-- HTTP GET\n-- nested\nselect id, size from bed;\nselect array[size] as sizes, 1 as n from bed;",
    "large.sql": "-- HTTP GET\nselect n, repeat('x', 80) as v from generate_series(1, 20000) n;\n"
    "-- @result last\n-- @single\nselect 7;",
    "two_large.sql": "-- HTTP POST\nselect n from generate_series(1, 50000) n;\nselect note(1); -- skip\n"
    "select n, 1 as m from generate_series(1, 50000) n;",
    "many.sql": "-- HTTP GET\n" + ";\n".join(f"select {n} as n, :a as a" for n in range(100)),
    "format.sql": "-- HTTP GET\n-- raw\n-- separator ,\nselect 1;\nselect 2;",
    "again.sql": "-- HTTP POST\nbegin;\ninsert into bed_log (bed_id) values (:n);\nselect unlucky();\ncommit;",
    "not_again.sql": "-- HTTP POST\nbegin;\ninsert into bed_log (bed_id) values (:n);\ncommit;\nselect unlucky();",
    "waits.sql": "-- HTTP POST\nselect note(1);\nselect pg_advisory_lock(4711);\nselect note(2);",
}  # fmt: skip


@pytest.fixture(scope="module")
def service(every_database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = write_files(tmp_path_factory.mktemp("files"), FILES)
    return serve(every_database, SCHEMA, file_settings(folder), workers=2)


def logged(database: Database, number: int) -> int:
    return int(database.value("select count(*) from bed_log where bed_id = %s", number))


GOOD = [
    (
        "GET", "kinds", None,
        '{"check":[1],"result2":[{"column1":2,"column2":3}],"none":[],"result4":[1,2,3],"result5":{"w":4,"h":2,"id":3},'
        '"result6":"x","result7":null,"result8":[{"w":4,"h":2}],"result9":[{"column1":1,"a":2,"column3":3}]}',
    ),
    ("POST", "water", {"bedId": "3"}, '{"result1":1,"log":[{"bedId":3,"note":"x"}],"bed":{"id":3,"name":"north"}}'),
    ("POST", "changes", {},
     '{"result1":-1,"result2":2,"result3":2,"result4":2,"result5":-1,"result6":-1,"result7":[5]}'),
    ("POST", "temporary", {}, '{"result1":-1,"result2":1,"dims":[{"w":3,"h":7}],"result4":3}'),
    ("GET", "settings", None, '{"result1":["lost"],"result2":[{"x":"","n":1}]}'),
    ("GET", "settings-in-one", None, '{"result1":[{"x":"kept","n":1}]}'),
    ("GET", "isolation", None, '{"result1":[1],"result2":[{"level":"serializable","n":1}]}'),
    ("GET", "numbering?a=1&b=2", None,
     '{"result1":[{"b":"2","a":"1"}],"result2":[{"only":"1","n":1}],"result3":[1]}'),
    ("GET", "typed?ids=4&ids=5&$2=x", None, '{"result1":[[4,5]],"result2":[{"text":"x","column2":4}]}'),
    ("GET", "hidden", None, "{}"),
    ("GET", "odd-keys", None, '{"my\\"k":[1],"is":[2]}'),
    ("GET", "nested", None,
     '{"result1":[{"id":3,"size":{"w":4,"h":2}}],"result2":[{"sizes":[{"w":4,"h":2}],"n":1}]}'),
    ("GET", "format", None, '{"result1":[1],"result2":[2]}'),
]  # fmt: skip


@pytest.mark.parametrize(("method", "target", "sent", "body"), GOOD, ids=[row[1] for row in GOOD])
def test_each_statement_has_its_key_in_the_result(
    service: Service, method: str, target: str, sent: dict[str, object] | None, body: str
) -> None:
    content = b"" if sent is None else json.dumps(sent).encode()
    for _ in range(12):  # on connections of its own, and on shared ones as soon as it has shown to be fast
        assert answer(service.request(method, f"/api/{target}", content=content)) == (200, JSON, body)


def test_statements_before_a_failure_stay_committed(service: Service, every_database: Database) -> None:
    assert problem(service.post("/api/halfway", content=b'{"n":501}'), 400)["detail"] == "23514"
    assert logged(every_database, 501) == 1


def test_statements_before_a_failure_are_rolled_back_in_a_file_with_one_transaction(
    service: Service, every_database: Database
) -> None:
    problem(service.post("/api/whole", content=b'{"n":502}'), 400)
    assert logged(every_database, 502) == 0


def test_a_transaction_left_open_is_rolled_back(service: Service, every_database: Database) -> None:
    response = service.post("/api/open", content=b'{"n":503}')
    assert answer(response) == (200, JSON, '{"result1":[503]}')
    assert logged(every_database, 503) == 0
    assert every_database.backends("state like 'idle in transaction%'") == []


def test_an_error_of_the_commit_is_returned(service: Service) -> None:
    assert problem(service.post("/api/deferred"), 409)["detail"] == "23505"


def test_writes_of_a_view_before_a_failure_stay_committed(service: Service, every_database: Database) -> None:
    problem(service.post("/api/busy", content=b'{"n":0}'), 500)
    assert logged(every_database, 900) == 1


def test_a_void_file_runs_all_statements_and_returns_204(service: Service, every_database: Database) -> None:
    assert answer(service.post("/api/nothing")) == (204, None, "")
    assert logged(every_database, 77) == 1


def test_a_serialization_conflict_is_retried_in_one_transaction(service: Service, every_database: Database) -> None:
    every_database.execute("alter sequence attempts restart")
    assert answer(service.post("/api/again", content=b'{"n":505}')) == (200, JSON, '{"result1":1,"result2":[1]}')
    assert logged(every_database, 505) == 1


def test_statements_that_have_committed_are_not_retried(service: Service, every_database: Database) -> None:
    every_database.execute("alter sequence attempts restart")
    problem(service.post("/api/not-again", content=b'{"n":506}'), 500)
    assert logged(every_database, 506) == 1


@pytest.mark.parametrize(("method", "name"), [("GET", "large"), ("POST", "two-large")])
def test_large_results_are_streamed_with_every_row_once(service: Service, method: str, name: str) -> None:
    for _ in range(3):
        body = service.request(method, f"/api/{name}").json()
        if name == "large":
            assert [row["n"] for row in body["result1"]] == list(range(1, 20001))
            assert body["last"] == 7
        else:
            assert body["result1"] == list(range(1, 50001))
            assert [row["n"] for row in body["result2"]] == list(range(1, 50001))


def test_a_file_with_a_hundred_statements_is_served(service: Service) -> None:
    body = service.get("/api/many?a=1").json()
    assert [body[f"result{n + 1}"][0]["n"] for n in range(100)] == list(range(100))


def test_a_killed_backend_preserves_committed_statements_and_repeats_none(
    service: Service, every_database: Database
) -> None:
    before = logged(every_database, 1), logged(every_database, 2)
    with every_database.locked(4711):
        responses: list[int] = []
        asking = threading.Thread(target=lambda: responses.append(service.post("/api/waits").status_code))
        asking.start()
        (pid,) = wait_until(every_database.waiting, "the second statement waits")
        every_database.execute(f"select pg_terminate_backend({pid})")
        asking.join()
    assert responses == [503]
    assert (logged(every_database, 1), logged(every_database, 2)) == (before[0] + 1, before[1])


def test_all_statements_run_in_one_transaction_if_configured(
    every_database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> None:
    level = "select current_setting('transaction_isolation') as level"
    files = {
        "halfway.sql": FILES["halfway.sql"],
        "chosen.sql": f"-- HTTP GET\nset transaction isolation level serializable;\n{level};\n{level}",
        "begun.sql": f"-- HTTP GET\nbegin isolation level serializable;\n{level};\ncommit;\n{level}",
    }
    folder = write_files(tmp_path_factory.mktemp("wrapped"), files)
    wrapped = serve(every_database, "", {**file_settings(folder), "Service:WrapInTransaction": "true"})
    problem(wrapped.post("/api/halfway", content=b'{"n":504}'), 400)
    assert logged(every_database, 504) == 0
    chosen = '{"result1":["serializable"],"result2":["%s"]}'
    assert answer(wrapped.get("/api/chosen")) == (200, JSON, chosen % "serializable")
    assert answer(wrapped.get("/api/begun")) == (200, JSON, chosen % "read committed")


def test_keys_and_columns_follow_the_configuration(
    every_database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory
) -> None:
    sql = "-- HTTP GET\nbegin;\nselect 1 as n;\ncommit"
    folder = write_files(tmp_path_factory.mktemp("other"), {"a.sql": sql, "b.sql": "-- HTTP GET\nselect 1 as n"})
    changes = {"ResultPrefix": "part", "SkipNonQueryCommands": "false", "UnnamedSingleColumnSet": "false"}
    other = serve(every_database, "", file_settings(folder, **changes))
    assert answer(other.get("/api/a")) == (200, JSON, '{"part1":-1,"part2":[{"n":1}],"part3":-1}')
    assert answer(other.get("/api/b")) == (200, JSON, '[{"n":1}]')
