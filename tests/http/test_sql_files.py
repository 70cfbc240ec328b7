"""A file of SQL is an endpoint: its path, its method, its parameters and what it answers with
(docs/internals/behaviour/sql-files.md)."""

from __future__ import annotations

import json

import pytest

from tests.harness.database import Database
from tests.harness.expect import BYTES, JSON, answer, problem
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve

SCHEMA = """
create type dims as (w int, h int);
create type mood as enum ('calm', 'wild');
create type stamped as (at timestamp, "MyNote" text);
create table bed (id int primary key, kind text, size dims);
insert into bed values (1, 'fern', '(4,2)'), (2, 'moss', null);
create table bed_log (id int generated always as identity, bed_id int);
create function visit(_n int) returns int language sql as 'insert into bed_log (bed_id) values (_n) returning bed_id';
create procedure proceed(_n int) language plpgsql as
  $$ begin insert into bed_log (bed_id) values (_n); commit; insert into bed_log (bed_id) values (_n + 1); end $$;
"""

FILES = {
    "beds.sql": "-- HTTP GET\nselect id, kind from bed order by id;",
    "Sub/Plant_List.sql": "-- HTTP\nselect kind from bed order by id",
    "sub/deeper/my file.sql": "/* HTTP */ select 1, 2",
    "numbers.sql": "-- HTTP\nselect n from generate_series(1, 3) n",
    "none.sql": "-- HTTP\nselect id, kind from bed where false",
    "none_of_one.sql": "-- HTTP\nselect kind from bed where false",
    "nothing.sql": "-- HTTP GET\ncreate temp table if not exists scratch (a int)",
    "same_names.sql": "-- HTTP\nselect id, id, 1, kind as id from bed order by 1 limit 1",
    "flat.sql": "-- HTTP\nselect id, size, kind as note from bed order by id",
    "nested.sql": "-- HTTP\n-- nested\nselect id, size, kind as note from bed order by id",
    "lone.sql": "-- HTTP\nselect size from bed where id = 1",
    "lone_nested.sql": "-- HTTP\n-- @nested\nselect size from bed where id = 1",
    "fields.sql": "-- HTTP\nselect row('2024-02-29 10:00', 'x')::stamped as s, 7 as n",
    "arrays.sql": "-- HTTP\nselect id, array[size] as sizes from bed where id = 1",
    "moods.sql": "-- HTTP\nselect 'calm'::mood as mood, 1.50 as n, '{\"a\":1}'::json as j, "
    "timestamp '2024-02-29 10:00' as t",
    "bytes.sql": "-- HTTP\nselect '\\x00ff41'::bytea",
    "single_row.sql": "-- HTTP\n-- single\nselect id, kind from bed order by id",
    "single_value.sql": "-- HTTP\n-- @single\nselect kind from bed order by id;",
    "single_null.sql": "-- HTTP\n-- @single\nselect null::text",
    "single_of_none.sql": "-- HTTP\n-- @single\nselect id, kind from bed where false",
    "single_of_none_204.sql": "-- HTTP\n-- single\n-- text_response_null_handling no_content\nselect 1 where false",
    "dropped.sql": "-- HTTP\n-- void\nselect id from bed",
    "skipped.sql": "-- HTTP\n-- @skip\nselect id from bed",
    "raw.sql": "-- HTTP\n-- raw\n-- separator ,\n-- new_line \\n\n-- columns\nselect id, kind from bed order by id",
    "returned.sql": "-- HTTP\n-- @returns integer\nselect id, kind from bed order by id",
    "returned_void.sql": "-- HTTP GET\n-- returns void\nselect visit(1000)",
    "returned_dims.sql": "-- HTTP\n-- returns dims\nselect id, id + 1 from bed order by id",
    "returned_words.sql": "-- HTTP\n-- Returns the beds, all of them.\nselect id from bed order by id",
    "header.sql": "-- HTTP\n-- X-Bed: {bed_id}\nselect :bed_id::int as id",
    "named.sql": "-- HTTP GET\nselect :bed_id::int as id, kind from bed where id = :bed_id",
    "positional.sql": "-- HTTP GET\n-- @param $1 bed_id int\n-- @param $2 season default 'spring'\n"
    "select id, $2 as season from bed where id = $1;",
    "bare.sql": "-- HTTP GET\nselect $1::int + $2::int as sum",
    "typed.sql": "-- HTTP GET\n-- param :ids int[]\n-- param :n type is int\nselect :ids as ids, :n as n",
    "colon.sql": "-- HTTP GET\n-- @param :bed_id int\nselect :bed_id as id",
    "renamed.sql": "-- HTTP GET\n-- param bed_id is Bed\nselect :bed_id as id",
    "unknown.sql": "-- HTTP GET\nselect kind from bed where id = :n",
    "virtual.sql": "-- HTTP GET\n-- define_param Format_Name\n-- X-Format: {Format_Name}\nselect :a as a, 1 as n",
    "empty_text.sql": "-- HTTP GET\n-- param c type is int\n"
    "select :a as a, :b as b, :c is null as c",
    "empty_text_null.sql": "-- HTTP GET\n-- query_null empty\nselect :a as a, 1 as n",
    "composite.sql": "-- HTTP GET\n-- param $1 size dims\nselect ($1::dims).w as w",
    "in_path.sql": "-- HTTP GET /beds/{bed_id}/kind\nselect kind from bed where id = :bed_id",
    "body.sql": "-- HTTP POST\nselect :a as a, :b as b, :c as c",
    "insert_bed.sql": "-- HTTP\ninsert into bed_log (bed_id) values (:bed_id) returning bed_id",
    "update_bed.sql": "-- HTTP\nupdate bed set kind = kind where id = :bed_id",
    "delete_bed.sql": "-- HTTP\ndelete from bed_log where bed_id = :bed_id returning bed_id",
    "delete_by_body.sql": "-- HTTP DELETE\ndelete from bed_log where bed_id = :bed_id returning bed_id",
    "locked_bed.sql": "-- HTTP\nselect id from bed where id = 1 for update",
    "do_block.sql": "-- HTTP\ndo $$ begin perform visit(1); end $$",
    "call.sql": "-- HTTP POST\ncall proceed(:n)",
    "fails.sql": "-- HTTP GET\nselect 1 / (:n::int - 1) as n",
    "closed.sql": "-- HTTP GET\n-- authorize\nselect 1 as n",
    "crlf.sql": "-- HTTP GET\r\nselect id, -- the id\r\n  kind\r\nfrom bed\r\nwhere id = 1;\r\n",
    "marked.sql": "\ufeff-- HTTP GET\nselect 'ж' as zh, 1 as n",
    "quiet.sql": "select nothing from nowhere -- not annotated, so never looked at",
    "quiet.test.sql": "-- HTTP GET\nselect nothing from nowhere",
    "empty.sql": "-- HTTP GET\n-- and nothing else",
    ".hidden/secret.sql": "-- HTTP GET\nselect 1 as n",
    "large.sql": "-- HTTP GET\nselect length('" + "x" * 1_000_000 + "') as n, 1 as one",
}  # fmt: skip


@pytest.fixture(scope="module")
def service(every_database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = write_files(tmp_path_factory.mktemp("files"), FILES)
    return serve(every_database, SCHEMA, file_settings(folder), workers=2)


RESPONSES = [
    ("beds", '[{"id":1,"kind":"fern"},{"id":2,"kind":"moss"}]'),
    ("plant-list", '["fern","moss"]'),
    ("my-file", '[{"column1":1,"column2":2}]'),
    ("numbers", "[1,2,3]"),
    ("none", "[]"),
    ("none-of-one", "[]"),
    ("same-names", '[{"id":1,"column2":1,"column3":1,"column4":"fern"}]'),
    ("flat", '[{"id":1,"w":4,"h":2,"note":"fern"},{"id":2,"w":null,"h":null,"note":"moss"}]'),
    ("nested", '[{"id":1,"size":{"w":4,"h":2},"note":"fern"},{"id":2,"size":null,"note":"moss"}]'),
    ("lone", '[{"w":4,"h":2}]'),
    ("lone-nested", '[{"size":{"w":4,"h":2}}]'),
    ("fields", '[{"at":"2024-02-29T10:00:00","MyNote":"x","n":7}]'),
    ("arrays", '[{"id":1,"sizes":[{"w":4,"h":2}]}]'),
    ("moods", '[{"mood":"calm","n":1.50,"j":{"a":1},"t":"2024-02-29T10:00:00"}]'),
    ("single-row", '{"id":1,"kind":"fern"}'),
    ("single-value", '"fern"'),
    ("single-null", "null"),
    ("single-of-none", "null"),
    ("returned", "[1,2]"),
    ("returned-dims", '[{"w":1,"h":2},{"w":2,"h":3}]'),
    ("returned-words", "[1,2]"),
    ("named?bedId=2", '[{"id":2,"kind":"moss"}]'),
    ("positional?bed_id=1", '[{"id":1,"season":"spring"}]'),
    ("positional?bed_id=1&season=", '[{"id":1,"season":""}]'),
    ("bare?$1=1&$2=2", "[3]"),
    ("typed?ids=1&ids=2&n=7", '[{"ids":[1,2],"n":7}]'),
    ("renamed?Bed=x", '["x"]'),
    ("unknown?n=1", '["fern"]'),
    ("virtual?a=1&Format_Name=x", '[{"a":"1","n":1}]'),
    ("empty-text?a=&b=&c=", '[{"a":"","b":"","c":true}]'),
    ("empty-text?a&b&c", '[{"a":"","b":"","c":true}]'),
    ("empty-text-null?a=", '[{"a":null,"n":1}]'),
    ("virtual?a=1", '[{"a":"1","n":1}]'),
    ("composite?size=(4,5)", "[4]"),
    ("locked-bed", None),
    ("crlf", '[{"id":1,"kind":"fern"}]'),
    ("marked", '[{"zh":"ж","n":1}]'),
    ("large", '[{"n":1000000,"one":1}]'),
]


@pytest.mark.parametrize(("target", "body"), RESPONSES, ids=[row[0] for row in RESPONSES])
def test_endpoints_of_files_return_their_rows(service: Service, target: str, body: str | None) -> None:
    response = service.get(f"/api/{target}")
    if body is None:
        problem(response, 405)
    else:
        assert answer(response) == (200, JSON, body)


@pytest.mark.parametrize("name", ["nothing", "dropped", "skipped", "returned-void", "single-of-none-204"])
def test_a_file_without_rows_is_204(service: Service, name: str) -> None:
    assert answer(service.get(f"/api/{name}")) == (204, None, "")


def test_one_bytea_is_sent_as_its_bytes(service: Service) -> None:
    response = service.get("/api/bytes")
    assert (response.headers["content-type"], response.content) == (BYTES, b"\x00\xffA")


def test_raw_rows_are_text(service: Service) -> None:
    assert service.get("/api/raw").text == '"id","kind"\n1,"fern"\n2,"moss"'


@pytest.mark.parametrize(
    ("method", "name", "body"),
    [
        ("PUT", "insert-bed", "[7]"),
        ("POST", "update-bed", ""),
        ("POST", "locked-bed", "[1]"),
        ("POST", "do-block", ""),
    ],
)
def test_the_statement_determines_the_method_and_the_place_of_parameters(
    service: Service, method: str, name: str, body: str
) -> None:
    sent = b"" if name in ("locked-bed", "do-block") else b'{"bedId":7}'
    response = service.request(method, f"/api/{name}", content=sent)
    assert (response.status_code, response.text) == (200 if body else 204, body)


def test_a_declared_delete_takes_its_parameters_from_the_body(service: Service) -> None:
    service.request("PUT", "/api/insert-bed", content=b'{"bedId":71}')
    assert answer(service.request("DELETE", "/api/delete-by-body", content=b'{"bedId":71}')) == (200, JSON, "[71]")


def test_a_delete_by_content_takes_its_parameters_from_the_query(service: Service) -> None:
    service.request("PUT", "/api/insert-bed", content=b'{"bedId":70}')
    assert answer(service.request("DELETE", "/api/delete-bed?bedId=70")) == (200, JSON, "[70]")


def test_body_values_without_a_type_travel_as_their_text(service: Service) -> None:
    sent = json.dumps({"a": 1.5, "b": True, "c": {"x": [1]}})
    assert service.post("/api/body", content=sent).json() == [{"a": "1.5", "b": "true", "c": '{"x": [1]}'}]
    assert service.post("/api/body", content='{"a":null,"b":"","c":"ж"}').json() == [{"a": None, "b": "", "c": "ж"}]


def test_headers_of_the_comment_are_filled_with_parameters(service: Service) -> None:
    assert service.get("/api/header?bedId=9").headers["x-bed"] == "9"
    assert service.get("/api/virtual?a=1&Format_Name=pdf").headers["x-format"] == "pdf"


def test_parameters_may_be_part_of_the_path(service: Service) -> None:
    assert answer(service.get("/beds/2/kind")) == (200, JSON, '["moss"]')


@pytest.mark.parametrize(
    ("target", "detail"),
    [
        ("named", "parameter 'bedId' (text) is required"),
        ("named?bedId=1&x=2", "unknown parameter 'x'"),
        ("named?bed_id=1", "unknown parameter 'bed_id'"),
        ("positional?$1=1", "unknown parameter '$1'"),
        ("bare?$1=1", "parameter '$2' (text) is required"),
    ],
)
def test_wrong_parameters_are_404_as_for_routines(service: Service, target: str, detail: str) -> None:
    assert problem(service.get(f"/api/{target}"), 404)["detail"].startswith(detail)


@pytest.mark.parametrize(
    ("target", "name", "message"),
    [
        ("typed?ids=1&n=x", "n", "parameter 'n' (integer): 'x' is not an integer"),
        ("colon?bedId=x", "bedId", "parameter 'bedId' (integer): 'x' is not an integer"),
        # Without a type it is the server that cannot read it.
        ("unknown?n=x", "n", "parameter 'n' (text): invalid input syntax for type integer: \"x\""),
    ],
)
def test_an_invalid_value_is_400_as_for_routines(service: Service, target: str, name: str, message: str) -> None:
    refused = problem(service.get(f"/api/{target}"), 400)
    assert refused["detail"] == message
    assert refused["errors"] == [{"parameter": name, "path": name, "message": message}]


def test_an_error_of_the_statement_is_a_problem(service: Service) -> None:
    assert problem(service.get("/api/fails?n=1"), 500)["title"].startswith("22012")


def test_files_obey_authorize(service: Service) -> None:
    problem(service.get("/api/closed"), 401)


def test_a_procedure_that_a_file_calls_may_commit(service: Service, every_database: Database) -> None:
    assert service.post("/api/call", content=b'{"n":500}').status_code == 204
    assert every_database.value("select count(*) from bed_log where bed_id in (500, 501)") == 2


@pytest.mark.parametrize("name", ["quiet", "quiet.test", "empty", "secret", "sub/plant-list"])
def test_files_without_an_endpoint_are_404(service: Service, name: str) -> None:
    problem(service.get(f"/api/{name}"), 404)
