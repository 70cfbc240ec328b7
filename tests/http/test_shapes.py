"""What a routine declares to return decides what the body looks like (rendering-1 to rendering-22).

Decided from the catalogue and never from values, so a set is an array however many rows it has.
"""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import BYTES, JSON, TEXT, answer
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create type gauge as (id int, label text);
create type flagbox as (is_on boolean);
create table shelf (shelf_id int, shelf_title text);
insert into shelf values (1, 'upper'), (2, null);

create function nothing() returns void language sql stable as 'select null';
create procedure proceed(inout _n int default 4) language plpgsql as 'begin _n := _n + 1; end';
create function one_int() returns int language sql stable as 'select 42';
create function one_text() returns text language sql stable as $$select 'a "b" ' || chr(10) || 'ж'$$;
create function one_bool() returns boolean language sql stable as 'select true';
create function one_moment() returns timestamp language sql stable as $$select timestamp '2024-02-29 10:00:00'$$;
create function one_out(out answer int) language sql stable as 'select 7';
create function one_json() returns json language sql stable as $$select '{"a" : [1,  2]}'::json$$;
create function one_jsonb() returns jsonb language sql stable as $$select '{"a":[1,2]}'::jsonb$$;
create function one_array() returns int[] language sql stable as 'select array[1,null,3]';
create function one_bytes() returns bytea language sql stable as $$select '\\x00ff41'::bytea$$;
create function any_array(_x anyelement default 'x'::text) returns anyarray language sql stable as 'select array[_x]';
create function two_out(out a int, out b_name text) language sql stable as $$select 1, 'x'$$;
create function one_gauge() returns gauge language sql stable as $$select (1, 'n')::gauge$$;
create function null_gauge() returns gauge language sql stable as 'select null::gauge';
create function one_shelf() returns shelf language sql stable as 'select * from shelf where shelf_id = 1';
create function one_record() returns record language sql stable as $$select 1, 'north', true, null::int$$;
create function null_record() returns record language plpgsql stable as 'begin return null; end';
create function set_of_int() returns setof int language sql stable as 'select generate_series(1, 3)';
create function set_of_text() returns setof text language sql stable as $$values ('a'), (null), ('')$$;
create function set_of_json() returns setof json language sql stable
  as $$select '{"k" : 1}'::json union all select '{"k" : 2}'::json$$;
create function set_of_array() returns setof int[] language sql stable as 'values (array[1,2]), (array[3])';
create function set_of_record() returns setof record language sql stable as $$values (1, 'x'), (null, 'y')$$;
create function set_of_out(out col_a int, out col_b text) returns setof record language sql stable
  as $$values (1, 'x'), (2, null)$$;
create function set_of_shelf() returns setof shelf language sql stable as 'select * from shelf order by 1';
create function one_column() returns table(val text) language sql stable as $$select 'x'$$;
create function two_columns() returns table(col_a int, col_b text) language sql stable as $$select 1, 'x'$$;
create function no_rows() returns table(col_a int, col_b text) language sql stable as $$select 1, 'x' where false$$;
create function no_values() returns setof int language sql stable as 'select 1 where false';
create function no_row_scalar() returns int language sql stable as 'select 1 where false';
create function quoted_names() returns table("MyCol" int, "from" int, _lead__ing int, "URLPath" int)
  language sql stable as 'select 1, 2, 3, 4';
create function key_to_escape() returns table("a""b\\c" int, other int) language sql stable as 'select 1, 2';
create function composite_column() returns table(n int, c gauge, m text) language sql stable
  as $$select 1, (7, 'x')::gauge, 'z'$$;
create function composite_array() returns table(n int, items gauge[]) language sql stable
  as $$select 1, array[(1, 'a')::gauge, null, (null, 'c')::gauge]$$;
create function first_row() returns setof shelf language sql stable as 'select * from shelf order by 1';
create function first_value() returns setof text language sql stable as $$values ('row1'), ('row2')$$;
create function first_of_none() returns setof text language sql stable as $$select 'x' where false$$;
create function discarded() returns int language sql stable as 'select 1';

do $$ declare routine regprocedure; begin
  for routine in select oid from pg_proc where pronamespace = 'public'::regnamespace loop
    execute format('comment on routine %s is %L', routine, 'HTTP GET');
  end loop;
end $$;
comment on function first_row() is E'HTTP GET\\nsingle';
comment on function first_value() is E'HTTP GET\\nsingle';
comment on function first_of_none() is E'HTTP GET\\nsingle';
comment on function discarded() is E'HTTP GET\\nvoid';
"""


@pytest.fixture(scope="module")
def service(every_database: Database, serve: Serve) -> Service:
    return serve(every_database, SQL)


SHAPES = [
    ("nothing", 204, None, ""),
    ("proceed", 204, None, ""),
    ("discarded", 204, None, ""),
    ("one-int", 200, TEXT, "42"),
    ("one-text", 200, TEXT, 'a "b" \nж'),
    ("one-bool", 200, TEXT, "t"),
    ("one-moment", 200, TEXT, "2024-02-29 10:00:00"),
    ("one-out", 200, TEXT, "7"),
    ("one-json", 200, JSON, '{"a" : [1,  2]}'),
    ("one-jsonb", 200, JSON, '{"a": [1, 2]}'),
    ("one-array", 200, JSON, "[1,null,3]"),
    ("any-array", 200, JSON, '["x"]'),
    ("two-out", 200, JSON, '{"a":1,"bName":"x"}'),
    ("one-gauge", 200, JSON, '{"id":1,"label":"n"}'),
    ("null-gauge", 200, JSON, '{"id":null,"label":null}'),
    ("one-shelf", 200, JSON, '{"shelfId":1,"shelfTitle":"upper"}'),
    ("one-record", 200, JSON, '["1","north","t",null]'),
    ("null-record", 200, JSON, "null"),
    ("set-of-int", 200, JSON, "[1,2,3]"),
    ("set-of-text", 200, JSON, '["a",null,""]'),
    ("set-of-json", 200, JSON, '[{"k" : 1},{"k" : 2}]'),
    ("set-of-array", 200, JSON, "[[1,2],[3]]"),
    ("set-of-record", 200, JSON, '[["1","x"],[null,"y"]]'),
    ("set-of-out", 200, JSON, '[{"colA":1,"colB":"x"},{"colA":2,"colB":null}]'),
    ("set-of-shelf", 200, JSON, '[{"shelfId":1,"shelfTitle":"upper"},{"shelfId":2,"shelfTitle":null}]'),
    ("one-column", 200, JSON, '[{"val":"x"}]'),
    ("two-columns", 200, JSON, '[{"colA":1,"colB":"x"}]'),
    ("no-rows", 200, JSON, "[]"),
    ("no-values", 200, JSON, "[]"),
    ("quoted-names", 200, JSON, '[{"MyCol":1,"from":2,"leadIng":3,"URLPath":4}]'),
    ("key-to-escape", 200, JSON, '[{"a\\"b\\\\c":1,"other":2}]'),
    ("composite-column", 200, JSON, '[{"n":1,"id":7,"label":"x","m":"z"}]'),
    ("composite-array", 200, JSON, '[{"n":1,"items":[{"id":1,"label":"a"},null,{"id":null,"label":"c"}]}]'),
    ("first-row", 200, JSON, '{"shelfId":1,"shelfTitle":"upper"}'),
    ("first-value", 200, JSON, '"row1"'),
    ("first-of-none", 200, JSON, "null"),
]


@pytest.mark.parametrize(("routine", "status", "content_type", "body"), SHAPES, ids=[row[0] for row in SHAPES])
def test_declared_result_type_determines_the_body(
    service: Service, routine: str, status: int, content_type: str | None, body: str
) -> None:
    assert answer(service.get(f"/api/{routine}")) == (status, content_type, body)


def test_scalar_bytea_is_sent_as_its_bytes(service: Service) -> None:
    response = service.get("/api/one-bytes")
    assert (response.headers["content-type"], response.content) == (BYTES, b"\x00\xffA")


def test_void_responses_have_neither_body_nor_content_length(service: Service) -> None:
    response = service.raw(b"GET /api/nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert response is not None
    assert (response.status, response.rest) == (204, b"")
    assert "content-length" not in response.headers
    assert "transfer-encoding" not in response.headers


def test_a_scalar_function_that_selects_no_row_gives_null(service: Service) -> None:
    assert answer(service.get("/api/no-row-scalar")) == (200, TEXT, "")
