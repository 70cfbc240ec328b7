"""`raw`: the text of the server instead of JSON, to the byte (rendering-36 to rendering-38)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import BYTES, JSON, TEXT, answer
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = r"""
create type mood as enum ('fine', 'so, so');
create domain label as text;
create type gauge as (id int, name text);

create function plain() returns table(n int, b boolean, t text) language sql stable
  as $$values (1, true, 'x'), (2, false, null)$$;
create function sheet() returns table(n numeric, d timestamp, b boolean, t text) language sql stable
  as $$values (5, timestamp '2024-01-01', true, 'say "hi"'), (6, timestamp '2024-12-31', false, null)$$;
create function sheet_in_assignments() returns table(n numeric, d timestamp, b boolean, t text) language sql stable
  as $$select * from sheet()$$;
create function no_sheet() returns table(n numeric, "a""b" text) language sql stable as 'select 1, null where false';
create function every_class() returns table(
    a text, b varchar, c char, d name, e json, f jsonb, g date, h timestamptz, i label, j text[], k date[],
    l int, m uuid, o interval, p time, q inet, r bytea, s mood, t int[], v gauge[], w boolean[]
) language sql stable as $$select 'a', 'b', 'c', 'd', '{"e": 1}'::json, '{"f":1}'::jsonb, date '2024-02-29',
    timestamptz '2024-02-29 10:00+00', 'i', array['j', 'k"'], array[date '2024-02-29'], 1,
    '00000000-0000-0000-0000-000000000001'::uuid, interval '1 day', time '10:00', '10.0.0.1'::inet, '\x00ff'::bytea,
    'so, so'::mood, array[1, 2], array[(1, 'x')::gauge], array[true]$$;
create function nulls() returns table(t text, n int, d date) language sql stable
  as 'select null::text, null::int, null::date';
create function tabs() returns table(a text, b int) language sql stable as $$values ('x', 1), ('y', 2)$$;
create function empty_separator() returns table(a text, b int) language sql stable as $$select 'x', 1$$;
create function colon() returns table(a int, b int) language sql stable as 'select 1, 2';
create function blanks() returns table(a int, b int) language sql stable as 'values (1, 2), (3, 4)';
create function several_characters() returns table(a int, b int) language sql stable as 'values (1, 2), (3, 4)';
create function one_value() returns setof int language sql stable as 'values (1), (2)';
create function lines() returns setof text language sql stable as $$values ('a'), ('b')$$;
create function first_line() returns table(a int, b text) language sql stable as $$values (1, 'x'), (2, 'y')$$;
create function no_first_line() returns table(a int) language sql stable as 'select 1 where false';
create function no_first_line_named() returns table(a int) language sql stable as 'select 1 where false';
create function one_record(out a int, out b text) language sql stable as $$select 1, 'x'$$;
create function anonymous() returns setof record language sql stable as $$select 1, 'x y'$$;
create function composite_column() returns table(n int, c gauge, m text) language sql stable
  as $$select 1, (7, 'x')::gauge, 'z'$$;
create function raw_array() returns int[] language sql stable as 'select array[1, 2]';
create function raw_json() returns json language sql stable as $$select '{"a" : 1}'::json$$;
create function raw_null() returns text language sql stable as 'select null::text';
create function raw_bytes() returns bytea language sql stable as $$select '\x00ff'::bytea$$;
create function raw_moment() returns timestamp language sql stable as $$select timestamp '2024-02-29 10:00'$$;
create function csv() returns table(a text, b int) language sql stable as $$values ('x', 1), ('y', 2)$$;
create function switched_off() returns setof int language sql stable as 'select 1';
create function many() returns table(n int, t text) language sql stable
  as $$select n, repeat('x', 50) from generate_series(1, 20000) n$$;
create function wrong_escape() returns table(a int, b int) language sql stable as 'select 1, 2';
create function separator_missing() returns table(a int, b int) language sql stable as 'select 1, 2';

comment on function plain() is E'HTTP\nraw';
comment on function sheet() is E'HTTP\nraw\nseparator ,\nnew_line \\n\ncolumns';
comment on function sheet_in_assignments() is
  E'HTTP\n@raw_mode = true\nraw_separator = ,\n@raw_new_line = \\n\ncolumn_names = true';
comment on function no_sheet() is E'HTTP\nraw_results\nseparator ,\nnew_line \\n\nnames';
comment on function every_class() is E'HTTP\nraw\nseparator |';
comment on function nulls() is E'HTTP\nraw\nseparator ,';
comment on function tabs() is E'HTTP\nraw\nseparator \\t\nnew_line \\r\\n';
comment on function empty_separator() is E'HTTP\nraw\nseparator =';
comment on function colon() is E'HTTP\nraw\nseparator = :';
comment on function blanks() is E'HTTP\nraw\nseparator \\x20\nnew_line \\u0020|';
comment on function several_characters() is E'HTTP\nraw\nseparator  - , \\\\\nnew_line \\n--\\n';
comment on function one_value() is E'HTTP\nraw\ncolumns\nnew_line \\n';
comment on function lines() is E'HTTP\nraw\nnew_line \\n';
comment on function first_line() is E'HTTP\nraw\nsingle\nseparator ,';
comment on function no_first_line() is E'HTTP\nraw\nsingle\nresponse_null null';
comment on function no_first_line_named() is E'HTTP\nraw\nsingle\nresponse_null null\ncolumns';
comment on function one_record() is E'HTTP\nraw\nseparator ;';
comment on function anonymous() is E'HTTP\nraw\nseparator ;';
comment on function composite_column() is E'HTTP\nraw\nnested\nseparator ;\ncolumns\nnew_line \\n';
comment on function raw_array() is E'HTTP\nraw\nseparator ,\ncolumns';
comment on function raw_json() is E'HTTP\nraw';
comment on function raw_null() is E'HTTP\nraw\nresponse_null null';
comment on function raw_bytes() is E'HTTP\nraw';
comment on function raw_moment() is E'HTTP\nraw';
comment on function csv() is
  E'HTTP\nraw\nseparator ,\nnew_line \\n\nContent-Type: text/csv; charset=utf-8\n'
  'Content-Disposition: attachment; filename=a.csv';
comment on function switched_off() is E'HTTP\nraw\nraw = false';
comment on function many() is E'HTTP\nraw\nseparator ,\nnew_line \\n\ncolumns';
comment on function wrong_escape() is E'HTTP\nraw\nseparator \\q';
comment on function separator_missing() is E'HTTP\nraw\nseparator';
"""

EVERY_CLASS = (
    '"a"|"b"|"c"|"d"|"{""e"": 1}"|"{""f"": 1}"|"2024-02-29"|"2024-02-29 10:00:00+00"|"i"|"{j,""k\\""""}"|'
    '"{2024-02-29}"|1|00000000-0000-0000-0000-000000000001|1 day|10:00:00|10.0.0.1|\\x00ff|so, so|{1,2}|'
    '{"(1,x)"}|{t}'
)


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    database.execute(f"alter database \"{database.name}\" set timezone = 'UTC'")
    return serve(database, SQL)


BODIES = [
    ("plain", JSON, "1tx2f"),
    ("sheet", JSON, '"n","d","b","t"\n5,"2024-01-01 00:00:00",t,"say ""hi"""\n6,"2024-12-31 00:00:00",f,""'),
    (
        "sheet-in-assignments",
        JSON,
        '"n","d","b","t"\n5,"2024-01-01 00:00:00",t,"say ""hi"""\n6,"2024-12-31 00:00:00",f,""',
    ),
    ("no-sheet", JSON, '"n","a""b"\n'),
    ("every-class", JSON, EVERY_CLASS),
    ("nulls", JSON, '"",,""'),
    ("tabs", JSON, '"x"\t1\r\n"y"\t2'),
    ("empty-separator", JSON, '"x"1'),
    ("colon", JSON, "1:2"),
    ("blanks", JSON, "1 2 |3 4"),
    ("several-characters", JSON, "1 - , \\2\n--\n3 - , \\4"),
    ("one-value", JSON, '"one_value"\n1\n2'),
    ("lines", JSON, "a\nb"),
    ("first-line", JSON, '1,"x"'),
    ("no-first-line", JSON, "NULL"),
    ("no-first-line-named", JSON, '"a"'),
    ("one-record", JSON, '1;"x"'),
    ("anonymous", JSON, '(1,"x y")'),
    ("composite-column", JSON, '"n";"id";"name";"m"\n1;7;"x";"z"'),
    ("raw-array", JSON, "{1,2}"),
    ("raw-json", JSON, '{"a" : 1}'),
    ("raw-null", TEXT, ""),
    ("raw-moment", TEXT, "2024-02-29 10:00:00"),
    ("csv", "text/csv; charset=utf-8", '"x",1\n"y",2'),
    ("switched-off", JSON, "[1]"),
    ("wrong-escape", JSON, "1\\q2"),
    ("separator-missing", JSON, "12"),
]


@pytest.mark.parametrize(("routine", "content_type", "body"), BODIES, ids=[row[0] for row in BODIES])
def test_raw_result_is_the_text_of_the_server(service: Service, routine: str, content_type: str, body: str) -> None:
    assert answer(service.get(f"/api/{routine}")) == (200, content_type, body)


def test_raw_bytea_is_its_bytes(service: Service) -> None:
    response = service.get("/api/raw-bytes")
    assert (response.headers["content-type"], response.content) == (BYTES, b"\x00\xff")


def test_large_raw_result_streams_with_its_header_row_once(service: Service) -> None:
    expected = "\n".join(['"n","t"', *(f'{n},"{"x" * 50}"' for n in range(1, 20001))])
    response = service.get("/api/many")
    assert "content-length" not in response.headers
    assert response.text == expected


def test_mistakes_in_separators_are_logged(service: Service) -> None:
    service.wait_for_log(r"'\q' is not an escape sequence")
    service.wait_for_log("separator =` sets an empty one")
