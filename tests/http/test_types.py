"""Every base type on its way out: digits, blanks and escapes are PostgreSQL's own (rendering-14, rendering-25 to
rendering-29).

One function for each row of the tables, so that a body is compared to the byte.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, TEXT, answer
from tests.harness.postgres import PostgresServer
from tests.harness.service import Service
from tests.http.conftest import Serve

TYPES = """
create type mood as enum ('calm', 'amber glow', '');
create domain percentage as int check (value between 0 and 100);
create domain word as text;
create domain moment as timestamp;
"""


@dataclass(frozen=True)
class Value:
    type: str
    expression: str
    output: str
    since: int = 13
    """Major version of PostgreSQL that first knows it."""

    @property
    def title(self) -> str:
        return f"{self.type}: {self.expression}".replace("::", ":")[:60]


IN_ROWS = [
    # Numbers keep their digits and their spelling
    Value("smallint", "-32768", "-32768"),
    Value("int", "2147483647", "2147483647"),
    Value("bigint", "9007199254740993", "9007199254740993"),
    Value("bigint", "-9223372036854775808", "-9223372036854775808"),
    Value("numeric", "1.50", "1.50"),
    Value("numeric(30,12)", "12345678901234567.000000000100", "12345678901234567.000000000100"),
    Value("numeric", "'NaN'", '"NaN"'),
    Value("numeric", "'Infinity'", '"Infinity"', since=14),
    Value("real", "1e30", "1e+30"),
    Value("real", "0.1", "0.1"),
    Value("float8", "1e-7", "1e-07"),
    Value("float8", "0.1::float8 + 0.2::float8", "0.30000000000000004"),
    Value("float8", "'NaN'", '"NaN"'),
    Value("float8", "'Infinity'", '"Infinity"'),
    Value("real", "'-Infinity'", '"-Infinity"'),
    Value("float8", "'-0'", "-0"),
    Value("money", "12.34", '"$12.34"'),
    Value("money", "-1234.5", '"-$1,234.50"'),
    Value("oid", "1234", '"1234"'),
    # Booleans
    Value("boolean", "true", "true"),
    Value("boolean", "false", "false"),
    # Text escapes what JSON requires and nothing else
    Value("text", "''", '""'),
    Value("text", "'plain'", '"plain"'),
    Value("text", "'q\"q b\\b /'", '"q\\"q b\\\\b /"'),
    Value("text", "E'\\b\\t\\n\\f\\r'", '"\\b\\t\\n\\f\\r"'),
    Value("text", "chr(1) || chr(31)", '"\\u0001\\u001F"'),
    Value("text", "chr(127) || chr(8232) || chr(128512)", '"\x7f\u2028\U0001f600"'),
    Value("text", "'<&>''+'", "\"<&>'+\""),
    Value("text", "'日本 ж é'", '"日本 ж é"'),
    Value("varchar(4)", "'abcd'", '"abcd"'),
    Value("char(5)", "'ab'", '"ab   "'),
    Value('"char"', "'x'", '"x"'),
    Value("name", "'some_name'", '"some_name"'),
    Value("bytea", "'\\xDEADBEEF'", '"\\\\xdeadbeef"'),
    Value("tsvector", "to_tsvector('simple', 'b a')", "\"'a':2 'b':1\""),
    # json leaves as it is stored
    Value("json", "'{\"a\" : 1, \"a\" : 2 }'", '{"a" : 1, "a" : 2 }'),
    Value("json", "E'[1,\\n 2]'", "[1,\n 2]"),
    Value("json", "'null'", "null"),
    Value("jsonb", "'{\"b\":1,\"a\":[true,null]}'", '{"a": [true, null], "b": 1}'),
    # Dates and times
    Value("timestamp", "'2024-01-15 10:30:00.120'", '"2024-01-15T10:30:00.12"'),
    Value("timestamptz", "'2024-01-15 10:30:00+02'", '"2024-01-15T08:30:00+00:00"'),
    Value("timestamp", "'0044-03-15 08:00 BC'", '"0044-03-15T08:00:00 BC"'),
    Value("timestamptz", "'infinity'", '"infinity"'),
    Value("date", "'2024-02-29'", '"2024-02-29"'),
    Value("date", "'0044-03-15 BC'", '"0044-03-15 BC"'),
    Value("date", "'-infinity'", '"-infinity"'),
    Value("time", "'10:30:00.123456'", '"10:30:00.123456"'),
    Value("timetz", "'10:30+02'", '"10:30:00+02"'),
    Value("interval", "'1 day 10 hours 30 minutes 1 second'", '"1 day 10:30:01"'),
    Value("interval", "'-1 year 2 mons'", '"-10 mons"'),
    # The rest is quoted text
    Value("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", '"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"'),
    Value("inet", "'192.168.5.18'", '"192.168.5.18"'),
    Value("inet", "'10.0.0.1/8'", '"10.0.0.1/8"'),
    Value("cidr", "'10.0.0.0/8'", '"10.0.0.0/8"'),
    Value("macaddr", "'08:00:2b:01:02:03'", '"08:00:2b:01:02:03"'),
    Value("bit(3)", "b'101'", '"101"'),
    Value("varbit", "b'10'", '"10"'),
    Value("point", "'(1,2)'", '"(1,2)"'),
    Value("int4range", "'[1,5)'", '"[1,5)"'),
    Value("daterange", "'[2024-01-01,2024-02-01)'", '"[2024-01-01,2024-02-01)"'),
    Value("tsrange", "'[2024-01-01,2024-01-02)'", '"[\\"2024-01-01 00:00:00\\",\\"2024-01-02 00:00:00\\")"'),
    Value("int4multirange", "'{[1,3),[5,7)}'", '"{[1,3),[5,7)}"', since=14),
    Value("regtype", "'integer'", '"integer"'),
    Value("regtype", "'\"char\"'", '"\\"char\\""'),
    Value("pg_lsn", "'16/B374D848'", '"16/B374D848"'),
    # Enums are strings, domains what they stand on
    Value("mood", "'amber glow'", '"amber glow"'),
    Value("mood", "''", '""'),
    Value("percentage", "50", "50"),
    Value("word", "'(a,b)'", '"(a,b)"'),
    Value("moment", "'2024-01-15 10:30'", '"2024-01-15T10:30:00"'),
    # NULL is null, whatever the type
    *[Value(type, "null", "null") for type in ("int", "text", "json", "timestamp", "mood", "int[]", "percentage")],
    # Arrays
    Value("int[]", "'{}'", "[]"),
    Value("int[]", "'{1,NULL,3}'", "[1,null,3]"),
    Value("int[]", "'{{1,2},{3,NULL}}'", "[[1,2],[3,null]]"),
    Value("int[]", "'{{{1},{2}},{{3},{4}}}'", "[[[1],[2]],[[3],[4]]]"),
    Value("int[]", "'[0:2]={7,8,9}'", "[7,8,9]"),
    Value("int[]", "'[-1:0][2:3]={{1,2},{3,4}}'", "[[1,2],[3,4]]"),
    Value("bigint[]", "'{9007199254740993}'", "[9007199254740993]"),
    Value("numeric[]", "'{1.50,NaN}'", '[1.50,"NaN"]'),
    Value("float8[]", "'{1e-7,Infinity,-Infinity}'", '[1e-07,"Infinity","-Infinity"]'),
    Value("money[]", "array[1000::money, 2::money]", '["$1,000.00","$2.00"]'),
    Value("boolean[]", "'{t,f,NULL}'", "[true,false,null]"),
    Value("text[]", "array['NULL', null, '', 'a,b', '{x}', 'q\"q', 'dir\\', ' ']",
          '["NULL",null,"","a,b","{x}","q\\"q","dir\\\\"," "]'),
    Value("text[]", "array[E'a\\nb', 'ж']", '["a\\nb","ж"]'),
    Value("timestamp[]", "array[timestamp '2024-01-15 10:30']", '["2024-01-15T10:30:00"]'),
    Value("date[]", "array[date '2024-01-15']", '["2024-01-15"]'),
    Value("json[]", "array['{\"a\" : \"x\"}'::json, '1'::json, null]", '[{"a" : "x"},1,null]'),
    Value("jsonb[]", "array['{\"a\":\"q\\\"q\"}'::jsonb]", '[{"a": "q\\"q"}]'),
    Value("bytea[]", "array['\\x00ff'::bytea]", '["\\\\x00ff"]'),
    Value("oid[]", "array[12::oid]", '["12"]'),
    Value("box[]", "array[box '(2,2),(1,1)', box '(4,4),(3,3)']", '["(2,2),(1,1)","(4,4),(3,3)"]'),
    Value("mood[]", "array['calm', 'amber glow']::mood[]", '["calm","amber glow"]'),
    Value("tsrange[]", "array[tsrange '[2024-01-01,2024-01-02)']",
          '["[\\"2024-01-01 00:00:00\\",\\"2024-01-02 00:00:00\\")"]'),
    Value("percentage[]", "array[1, 2]::percentage[]", '["1","2"]'),
]  # fmt: skip

AS_SCALARS = [
    (Value("bigint", "9007199254740993", "9007199254740993"), TEXT),
    (Value("numeric", "'NaN'", "NaN"), TEXT),
    (Value("boolean", "false", "f"), TEXT),
    (Value("timestamptz", "'2024-01-15 10:30:00+02'", "2024-01-15 08:30:00+00"), TEXT),
    (Value("mood", "'amber glow'", "amber glow"), TEXT),
    (Value("percentage", "7", "7"), TEXT),
    (Value("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), TEXT),
    (Value("text", "E'two\\nlines \"quoted\"'", 'two\nlines "quoted"'), TEXT),
    (Value("text", "null", ""), TEXT),
    (Value("json", "'[1,  2]'", "[1,  2]"), JSON),
    (Value("jsonb", "'\"x\"'", '"x"'), JSON),
    (Value("text[]", "array['a', null]", '["a",null]'), JSON),
    (Value("timestamp[]", "array[timestamp '2024-01-15 10:30']", '["2024-01-15T10:30:00"]'), JSON),
    (Value("int[]", "null", "null"), JSON),
    (Value("int2vector", "'1 2'", "1 2"), TEXT),
    (Value("oidvector", "'1 2 3'", "1 2 3"), TEXT),
]


def _functions(major: int) -> str:
    rows = [
        f"create function row_{n}() returns table(v {value.type}, n int) language sql stable"
        f" as $_$select ({value.expression})::{value.type}, {n}$_$;"
        f" comment on function row_{n}() is 'HTTP GET /row/{n}';"
        for n, value in enumerate(IN_ROWS)
        if value.since <= major
    ]
    scalars = [
        f"create function scalar_{n}() returns {value.type} language sql stable"
        f" as $_$select ({value.expression})::{value.type}$_$;"
        f" comment on function scalar_{n}() is 'HTTP GET /scalar/{n}';"
        for n, (value, _) in enumerate(AS_SCALARS)
    ]
    return "\n".join([*rows, *scalars])


@pytest.fixture(scope="module")
def major(every_postgres: PostgresServer) -> int:
    return every_postgres.major


@pytest.fixture(scope="module")
def service(every_database: Database, major: int, serve: Serve) -> Service:
    return serve(every_database, TYPES + _functions(major))


@pytest.mark.parametrize("number", range(len(IN_ROWS)), ids=[value.title for value in IN_ROWS])
def test_value_in_a_row(service: Service, major: int, number: int) -> None:
    if IN_ROWS[number].since > major:
        pytest.skip(f"PostgreSQL {major} does not know it")
    expected = f'[{{"v":{IN_ROWS[number].output},"n":{number}}}]'
    assert answer(service.get(f"/row/{number}")) == (200, JSON, expected)


@pytest.mark.parametrize("number", range(len(AS_SCALARS)), ids=[value.title for value, _ in AS_SCALARS])
def test_value_as_the_whole_result(service: Service, number: int) -> None:
    value, content_type = AS_SCALARS[number]
    assert answer(service.get(f"/scalar/{number}")) == (200, content_type, value.output)


def test_xml_is_text(own_database: Database, serve_once: Serve) -> None:
    try:
        own_database.execute(
            "create function doc() returns setof xml language sql stable as $$select xml '<a>\"</a>'$$"
        )
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("this PostgreSQL is built without XML")
    service = serve_once(own_database, "comment on function doc() is 'HTTP'")
    assert answer(service.get("/api/doc")) == (200, JSON, '["<a>\\"</a>"]')


SETTINGS = """
alter database {0} set client_encoding = 'LATIN1';
alter database {0} set datestyle = 'German';
alter database {0} set intervalstyle = 'iso_8601';
alter database {0} set bytea_output = 'escape';
alter database {0} set extra_float_digits = -5;
alter database {0} set timezone = 'Asia/Kathmandu';
alter database {0} set array_nulls = off;
"""
EVERYTHING = """
create function everything(out t text, out at timestamptz, out i interval, out b bytea, out f float8)
language sql stable
as $$select 'ж', timestamptz '2024-01-15 10:30+00', interval '1 day 2 hours', '\\x00ff'::bytea, 0.1::float8 + 0.2$$;
comment on function everything() is 'HTTP';
create function nulls(_texts text[]) returns bigint language sql stable
as 'select count(*) from unnest(_texts) item where item is null';
comment on function nulls(text[]) is 'HTTP POST'
"""


@pytest.mark.parametrize("preferred", ["", "client_encoding=LATIN1", "options=-c%20client_encoding%3DLATIN1"])
def test_only_the_time_zone_setting_changes_the_text_of_values(
    own_database: Database, serve_once: Serve, preferred: str
) -> None:
    own_database.execute(EVERYTHING)
    own_database.execute(SETTINGS.format(own_database.name))
    service = serve_once(own_database, "", {"ConnectionStrings:Default": f"{own_database.conninfo}?{preferred}"})
    assert answer(service.get("/api/everything")) == (
        200,
        JSON,
        '{"t":"ж","at":"2024-01-15T16:15:00+05:45","i":"1 day 02:00:00","b":"\\\\x00ff","f":0.30000000000000004}',
    )
    assert service.post("/api/nulls", json={"texts": [None, "null", "x"]}).text == "1"
