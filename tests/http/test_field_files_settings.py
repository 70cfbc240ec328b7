"""Files with other settings than usual: modes, scopes, patterns, and shared paths (sql-files-1, sql-files-8)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, cases, check
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve

SCHEMA = """
create type dims as (w int, h int);
create function shared() returns text language sql stable return 'routine';
comment on function shared() is 'HTTP GET';
create function kept() returns text language sql stable return 'routine';
comment on function kept() is 'HTTP GET';
create function counted(_a int) returns text language sql stable return 'routine';
comment on function counted(int) is 'HTTP GET';
"""

IGNORED = {
    "plain.sql": "select 1 as a, 2 as b",
    "renamed.sql": "-- HTTP POST /elsewhere\n-- @param $1 n int\n-- @param $2 m default 5\n-- authorize\n"
    "select $1 as n, $2 as m",
    "several.sql": "-- @result one\nselect 1;\n-- @single\nselect 2;\nselect 3; -- @skip",
    "typed.sql": "-- returns dims\nselect 1, 2",
    "virtual.sql": "-- define_param x\n-- X-Seen: yes\nselect :a as a, 1 as n",
    "removes.sql": "delete from pg_class where false",
}

IGNORED_CASES: list[RequestContext] = [
    ("GET /api/plain", '200 [{"a":1,"b":2}]'),
    ("GET /api/renamed?$1=3&$2=4", '200 [{"n":3,"m":"4"}]'),
    ("GET /api/renamed?$1=x&$2=4", "400 '$1' (integer)"),
    ("GET /api/renamed?n=3&m=4", "404"),
    ("GET /api/renamed?$1=3", "404 '$2'"),
    ("POST /elsewhere", "404"),
    ("GET /api/several", '200 {"one":[1],"result2":2}'),
    ("GET /api/typed", '200 [{"w":1,"h":2}]'),
    ("GET /api/virtual?a=1&x=2", '200 [{"a":"1","n":1}]', {"x-seen": None}),
    ("DELETE /api/removes", "204"),
]

PARSED = {
    "bare.sql": "select 1 as a, 2 as b",
    "header.sql": "-- X-One: 1\nselect 1; -- X-Two: 2\n-- X-Three: 3\n-- @result last\nselect 2",
    "closed.sql": "-- authorize\nselect 1",
    "off.sql": "-- disabled\nselect 1",
    "moved.sql": "-- path /moved\nselect 1",
    "nested_all.sql": "select 1 as id, (1,2)::dims as size",
    "one_column.sql": "select 1 as n",
    "returns_type.sql": "-- @returns integer\nselect 1, 2",
    "returns_single.sql": "-- @returns integer\n-- @single\nselect 1, 2",
    "returns_several.sql": "-- @returns integer\nselect 1, 2;\n-- @returns text[]\n-- @single\nselect array['a']",
    "single_assigned.sql": "-- @single = true\nselect 'fern' as kind",
    "single_words.sql": "-- Single bed view\nselect 'fern' as kind",
    "single_off.sql": "-- @single\n-- @single = false\nselect 'fern' as kind",
    "a/same.sql": "select 'a' as who",
    "b/same.sql": "-- param a type is int\nselect :a as who",
    "shared.sql": "select 'file' as who",
    "counted.sql": "select 'file' as who",
    "skipped.test.sql": "select 1",
    "left.out.sql": "select 1",
    "other.txt": "select 1",
}

PARSED_CASES: list[RequestContext] = [
    ("GET /api/bare", '200 [{"a":1,"b":2}]'),
    ("GET /api/header", '200 {"part1":[{"column1":1}],"last":[{"column1":2}]}',
     {"x-one": "1", "x-two": None, "x-three": None}),
    ("GET /api/closed", "401"),
    ("GET /api/off", "404"),
    ("GET /moved", '200 [{"column1":1}]'),
    ("GET /api/moved", "404"),
    ("GET /api/nested-all", '200 [{"id":1,"size":{"w":1,"h":2}}]'),
    ("GET /api/one-column", '200 [{"n":1}]'),
    ("GET /api/returns-type", '200 [{"integer":1}]'),
    ("GET /api/returns-single", "200 1"),
    ("GET /api/returns-several", '200 {"part1":[{"integer":1}],"part2":["a"]}'),
    ("GET /api/single-assigned", '200 "fern"'),
    ("GET /api/single-words", '200 "fern"'),
    ("GET /api/single-off", '200 [{"kind":"fern"}]'),
    ("GET /api/same", '200 [{"who":"a"}]'),
    ("GET /api/same?a=7", '200 [{"who":7}]'),
    ("GET /api/shared", '200 [{"who":"file"}]'),
    ("GET /api/kept", "200T routine"),
    ("GET /api/counted", '200 [{"who":"file"}]'),
    ("GET /api/counted?a=1", "200T routine"),
    ("GET /api/skipped.test", '200 [{"column1":1}]'),
    ("GET /api/left.out", "404"),
    ("GET /api/other", "404"),
]  # fmt: skip


@pytest.fixture(scope="module")
def ignoring(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = write_files(tmp_path_factory.mktemp("files"), IGNORED)
    return serve(database, SCHEMA, file_settings(folder, CommentsMode="Ignore"))


@pytest.fixture(scope="module")
def parsing(database: Database, ignoring: Service, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = write_files(tmp_path_factory.mktemp("files"), PARSED)
    changes = {
        "CommentsMode": "ParseAll", "CommentScope": "Header", "SkipPattern": "*.out.sql", "ResultPrefix": "part",
        "UnnamedSingleColumnSet": "false", "NestedJsonForCompositeTypes": "true",
    }  # fmt: skip
    return serve(database, "", file_settings(folder, **changes))


@pytest.mark.parametrize("context", cases(IGNORED_CASES))
def test_ignored_annotations_do_not_affect_statement_parameters(ignoring: Service, context: RequestContext) -> None:
    check(ignoring, context)


@pytest.mark.parametrize("context", cases(PARSED_CASES))
def test_source_settings_apply_to_all_files(parsing: Service, context: RequestContext) -> None:
    check(parsing, context)


def test_path_conflicts_are_logged(parsing: Service) -> None:
    line = parsing.wait_for_log("GET /api/shared is also that of public.shared()")
    assert "shared.sql" in line
    assert " WRN] " in line
