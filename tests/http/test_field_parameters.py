"""Many parameters at once: every type in query and body, lists, defaults, NULL, unusual names."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, cases, check
from tests.harness.routines import routines
from tests.harness.service import Service
from tests.http.conftest import Serve

TYPES = "create type mood as enum ('calm', 'dark amber'); create domain score as int check (value >= 0);"

MULTI = """_smallint smallint, _integer integer, _bigint bigint, _numeric numeric, _text text, _varchar varchar(20),
 _char char(4), _json json, _jsonb jsonb, _smallint_array smallint[], _integer_array int[], _bigint_array bigint[],
 _numeric_array numeric[], _text_array text[], _varchar_array varchar[], _json_array json[]"""

TIMES = """_date date, _time time, _timetz timetz, _ts timestamp, _tstz timestamptz, _interval interval, _bool boolean,
 _uuid uuid, _real real, _double double precision, _money money, _dates date[], _flags boolean[], _uuids uuid[]"""

OTHERS = """_inet inet, _cidr cidr, _mac macaddr, _bit bit varying, _xml xml, _bytea bytea, _range int4range,
 _point point, _mood mood, _score score, _moods mood[], _tsv tsvector, _oid oid, _jsonpath jsonpath"""


def _object(parameters: str) -> str:
    """Return SQL for all values as one JSON object, each as PostgreSQL prints it."""
    listed = [word.split()[0] for word in parameters.replace("\n", " ").split(", ")]
    return "select jsonb_strip_nulls(jsonb_build_object(" + ",".join(f"'{n[1:]}', {n}::text" for n in listed) + "))"


def _listed(parameters: str) -> str:
    return ", ".join(part.strip() + " default null" for part in parameters.replace("\n", " ").split(","))


SHOW = "select format('%s|%s|%s', coalesce(_a::text, 'NULL'), coalesce(_b::text, 'NULL'), coalesce(_c::text, 'NULL'))"

ROUTINES = [
    (f"get_multi({_listed(MULTI)}) returns jsonb", _object(MULTI), "HTTP"),
    (f"post_multi({_listed(MULTI)}) returns jsonb", _object(MULTI), "HTTP"),
    (f"get_times({_listed(TIMES)}) returns jsonb", _object(TIMES), "HTTP"),
    (f"post_times({_listed(TIMES)}) returns jsonb", _object(TIMES), "HTTP"),
    (f"get_others({_listed(OTHERS)}) returns jsonb", _object(OTHERS), "HTTP"),
    (f"post_others({_listed(OTHERS)}) returns jsonb", _object(OTHERS), "HTTP"),
    ("get_three(_a int, _b text, _c boolean) returns text", SHOW, "HTTP"),
    ("post_three(_a int, _b text, _c boolean) returns text", SHOW, "HTTP"),
    ("get_defaults(_a int, _b text default 'dflt', _c int default 7) returns text", SHOW, "HTTP"),
    ("post_defaults(_a int, _b text default 'dflt', _c int default 7) returns text", SHOW, "HTTP"),
    ("get_all_defaults(_a int default 1, _b text default 'a, b', _c date default null) returns text", SHOW, "HTTP"),
    ("get_first_default(_a int default 1, _b text default null, _c int default 3) returns text", SHOW, "HTTP"),
    ("get_strict(_a int, _b text) returns text strict", "select 'ran'", "HTTP"),
    ("get_strict_default(_a int, _b text default 'x') returns text strict", "select 'ran ' || _b", "HTTP"),
    ("post_strict(_a int, _b text) returns text strict", "select 'ran'", "HTTP"),
    ("get_unnamed(int, text, boolean) returns text", "select $1 || $2 || $3", "HTTP"),
    ("post_unnamed(int, text) returns text", "select $1 || $2", "HTTP"),
    ("get_half_named(int, _b text) returns text", "select $1 || _b", "HTTP"),
    ('get_odd_names("Upper" int, "with space" int, "camelCase" int, _ int, "a.b" int) returns text',
     """select concat_ws('-', "Upper", "with space", "camelCase", $4, "a.b")""", "HTTP"),
    ("get_caps(_USER_ID int, user_NAME text) returns text", "select _user_id || user_name", "HTTP"),
    ("get_variadic(variadic _v int[]) returns text", "select _v::text", "HTTP"),
    ("post_variadic(_a text, variadic _v text[]) returns text", "select _a || _v::text", "HTTP"),
    ("post_variadic_default(_a text, variadic _v text[] default '{}') returns text", "select _a || _v::text", "HTTP"),
    ("get_polymorphic(_a anyelement) returns text", "select _a::text", "HTTP"),
    ("get_key(_key text) returns text", "select coalesce('[' || _key || ']', 'NULL')", "HTTP"),
    ("get_keys(_keys text[]) returns text", "select _keys::text", "HTTP"),
    ("get_numbers(_keys int[]) returns text", "select _keys::text", "HTTP"),
    ("get_key_empty(_key text, _n int default 1) returns text",
     "select coalesce('[' || _key || ']', 'NULL') || coalesce(_n::text, 'NULL')",
     "HTTP\nquery_string_null_handling empty_string"),
    ("get_key_literal(_key text, _keys text[] default null) returns text",
     "select coalesce('[' || _key || ']', 'NULL') || coalesce(_keys::text, '')",
     "HTTP\nquery_string_null_handling null_literal"),
    ("get_key_ignore(_key text) returns text", "select coalesce('[' || _key || ']', 'NULL')",
     "HTTP\n@query_null_handling ignore"),
    ("get_key_assigned(_key text) returns text", "select coalesce('[' || _key || ']', 'NULL')",
     "HTTP\nquery_string_null empty"),
    ("posted_query(_a int, _b text, _c int default 1) returns text", SHOW, "HTTP POST\nparam_type query_string"),
    ("get_body(_a int, _b text, _c int default 1) returns text", SHOW, "HTTP GET\nparam_type body_json"),
    ("get_body_short(_a int, _b text, _c int default 1) returns text", SHOW, "HTTP GET\n@request_param_type = body"),
    ("reset_transport(_a int, _b text, _c int default 1) returns text", SHOW, "param_type body\nHTTP GET"),
    ("put_thing(_a int, _b text, _c int default 1) returns text", SHOW, "HTTP PUT /put-thing"),
    ("delete_thing(_a int, _b text, _c int default 1) returns text", SHOW, "HTTP DELETE /delete-thing"),
    ("delete_query(_a int, _b text, _c int default 1) returns text", SHOW,
     "HTTP DELETE /delete-query\nrequest_param_type query_string"),
    ("raw_body(_id int, _payload text) returns text",
     "select coalesce(_id::text, 'NULL') || ':' || coalesce(_payload, 'NULL')",
     "HTTP POST\nbody_parameter_name _payload"),
    ("raw_body_api(_id int default 0, _pay_load text default null) returns text",
     "select _id || ':' || coalesce(_pay_load, 'NULL')",
     "HTTP PUT /raw-body-api\nbody_param_name payLoad"),
    ("raw_body_json(_doc jsonb) returns jsonb", "select _doc", "HTTP POST\nbody_parameter_name _doc"),
    ("raw_body_int(_n int) returns text", "select coalesce(_n::text, 'NULL')", "HTTP POST\nbody_parameter_name _n"),
    ("raw_body_empty(_b text) returns text", "select coalesce('[' || _b || ']', 'NULL')",
     "HTTP POST\nbody_parameter_name _b\nquery_string_null_handling empty_string"),
    ("raw_body_unknown(_b text) returns text", "select coalesce(_b, 'NULL')", "HTTP POST\nbody_parameter_name unknown"),
    ("post_out_args(_a int, out b int, out c int)", "select _a, _a + 1", "HTTP"),
    ("post_no_args() returns text", "select 'none'", "HTTP"),
    ("get_no_args() returns text", "select 'none'", "HTTP"),
    ("get_jsonb(_doc jsonb) returns jsonb", "select _doc", "HTTP"),
    ("post_texts(_t text, _j json, _jb jsonb) returns text", "select concat_ws('|', _t, _j, _jb)", "HTTP"),
]  # fmt: skip

UUID = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"

CASES: list[RequestContext] = [
    ("GET /api/get-multi?smallint=1&integer=2&bigint=3&numeric=4.50&text=t%20t&varchar=v&char=c&json={}&"
     "jsonb=[1]&smallintArray=1&smallintArray=2&integerArray=3&bigintArray=4&numericArray=1.5&numericArray=&"
     "textArray=a,b&textArray=&varcharArray=x&jsonArray={}",
     '200 {"char": "c", "json": "{}", "text": "t t", "jsonb": "[1]", "bigint": "3", "integer": "2", '
     '"numeric": "4.50", "varchar": "v", "smallint": "1", "json_array": "{\\"{}\\"}", "text_array": "{\\"a,'
     'b\\",\\"\\"}", "bigint_array": "{4}", "integer_array": "{3}", "numeric_array": "{1.5,NULL}", '
     '"varchar_array": "{x}", "smallint_array": "{1,2}"}'),
    ('POST /api/post-multi {"smallint":1,"integer":2,"bigint":3,"numeric":4.5,"text":"t","varchar":"v",'
     '"char":"c","json":{},"jsonb":[1],"smallintArray":[1,2],"integerArray":[3],"bigintArray":[4],'
     '"numericArray":[1.5,null],"textArray":["a,b","",null],"varcharArray":[],"jsonArray":[{"a":1}]}',
     '200 {"char": "c", "json": "{}", "text": "t", "jsonb": "[1]", "bigint": "3", "integer": "2", "numeric": '
     '"4.5", "varchar": "v", "smallint": "1", "json_array": "{\\"{\\\\\\"a\\\\\\":1}\\"}", "text_array": '
     '"{\\"a,b\\",\\"\\",NULL}", "bigint_array": "{4}", "integer_array": "{3}", "numeric_array": "{1.5,NULL}",'
     ' "varchar_array": "{}", "smallint_array": "{1,2}"}'),
    ('POST /api/post-multi {"smallint":"1","integer":"2","bigint":"3","numeric":"4.50","integerArray":["1"]}',
     '200 {"bigint": "3", "integer": "2", "numeric": "4.50", "smallint": "1", "integer_array": "{1}"}'),
    ('POST /api/post-multi {"smallint":null,"text":null,"textArray":null,"json":null}', "200 {}"),
    (f"GET /api/get-times?date=2024-02-29&time=10:30&timetz=10:30&ts=2024-02-29T10:30:00&tstz=2024-02-29T10:30:00Z"
     f"&interval=2%20hours&bool=true&uuid={UUID}&real=1.5&double=2.5&money=3.25&dates=2024-01-01&dates=2024-01-02"
     f"&flags=true&flags=false&uuids={UUID}",
     '200 {"ts": "2024-02-29 10:30:00", "bool": "true", "date": "2024-02-29", "real": "1.5", "time": "10:30:00", '
     f'"tstz": "2024-02-29 10:30:00+00", "uuid": "{UUID}", "dates": "{{2024-01-01,2024-01-02}}", "flags": "{{t,f}}", '
     f'"money": "$3.25", "uuids": "{{{UUID}}}", "double": "2.5", "timetz": "10:30:00+00", "interval": "02:00:00"}}'),
    ('POST /api/post-times {"date": "2024-02-29", "time": "10:30:15.5", "timetz": "10:30", "bool": true, "real": 1.5, '
     '"ts": "2024-02-29 10:30", "tstz": "2024-02-29T10:30:00+02:00", "interval": "1 day", '
     f'"uuid": "{UUID.upper()}", "double": 1e3, "money": 3.25, "dates": ["2024-01-01", null], '
     f'"flags": [true, "false", null], "uuids": ["{UUID}"]}}',
     '200 {"ts": "2024-02-29 10:30:00", "bool": "true", "date": "2024-02-29", "real": "1.5", '
     f'"time": "10:30:15.5", "tstz": "2024-02-29 08:30:00+00", "uuid": "{UUID}", "dates": "{{2024-01-01,NULL}}", '
     f'"flags": "{{t,f,NULL}}", "money": "$3.25", "uuids": "{{{UUID}}}", "double": "1000", "timetz": "10:30:00+00", '
     '"interval": "1 day"}'),
    ("GET /api/get-times?date=2024-02-29T23:00:00Z&ts=2024-02-29T10:30:00%2B02:00&bool=FALSE",
     '200 {"ts": "2024-02-29 08:30:00", "bool": "false", "date": "2024-02-29"}'),
    ("GET /api/get-times?date=&time=&ts=&bool=&uuid=&real=&interval=&dates=&flags=",
     '200 {"dates": "{NULL}", "flags": "{NULL}"}'),
    ("GET /api/get-others?inet=10.0.0.1&cidr=10.0.0.0/8&mac=08:00:2b:01:02:03&bit=101&xml=%3Ca/%3E&"
     "bytea=%5Cx00ff&range=[1,5)&point=(1,2)&mood=dark%20amber&score=5&moods=calm&moods=dark%20amber&"
     "tsv=a%20b&oid=12&jsonpath=$.a",
     '200 {"bit": "101", "mac": "08:00:2b:01:02:03", "oid": "12", "tsv": "\'a\' \'b\'", "xml": "<a/>", '
     '"cidr": "10.0.0.0/8", "inet": "10.0.0.1/32", "mood": "dark amber", "bytea": "\\\\x00ff", "moods": '
     '"{calm,\\"dark amber\\"}", "point": "(1,2)", "range": "[1,5)", "score": "5", "jsonpath": "$.\\"a\\""}'),
    ('POST /api/post-others {"inet":"10.0.0.1","mood":"calm","score":5,"moods":["calm"],"range":"(1,5]",'
     '"bit":"0101","bytea":"\\\\x00ff","point":"(1,2)","oid":12}',
     '200 {"bit": "0101", "oid": "12", "inet": "10.0.0.1/32", "mood": "calm", "bytea": "\\\\x00ff", "moods": '
     '"{calm}", "point": "(1,2)", "range": "[2,6)", "score": "5"}'),
    ("GET /api/get-others?mood=furious", "400 parameter '"),
    ("GET /api/get-others?score=-1", "400 parameter '"),
    ("GET /api/get-others?inet=nowhere", "400 parameter '"),
    ("GET /api/get-others?range=[5,1)", "400 parameter '"),
    ('POST /api/post-others {"mood":"furious"}', "400 parameter '"),
    ("GET /api/get-three?a=1&b=x&c=true", "200T 1|x|true"),
    ("GET /api/get-three?c=true&b=x&a=1", "200T 1|x|true"),
    ("GET /api/get-three?a=1&b=x", "404 c"),
    ("GET /api/get-three?a=1&b=x&c=true&d=1", "404 d"),
    ("GET /api/get-three?a=one&b=x&c=true", "400 parameter '"),
    ("GET /api/get-three?a=1&b=x&c=yes", "400 parameter '"),
    ("GET /api/get-three?A=1&b=x&c=true", "404 A"),
    ("GET /api/get-three?_a=1&b=x&c=true", "404 _a"),
    ("GET /api/get-three?a=&b=&c=", "200T NULL||NULL"),
    ("GET /api/get-three?a&b&c", "200T NULL||NULL"),
    ("GET /api/get-three?a=1&a=2&b=x&b=y&c=true", "400 parameter '"),
    ("GET /api/get-three?&&a=1&b=x=y&c=true&", "200T 1|x=y|true"),
    ("GET /api/get-three?a=1&b=a%2Cb%26c%3Dd&c=true", "200T 1|a,b&c=d|true"),
    ("GET /api/get-three?a=1&b=a;b&c=true", "200T 1|a;b|true"),
    ("GET /api/get-three?a=1&b=null&c=true", "200T 1|null|true"),
    ("GET /api/get-three?a=null&b=null&c=true", "400 parameter '"),
    ("GET /api/get-three", "404 a"),
    ('POST /api/post-three {"a":1,"b":"x","c":true}', "200T 1|x|true"),
    ('POST /api/post-three {"c":false,"b":"","a":-1}', "200T -1||false"),
    ('POST /api/post-three {"a":null,"b":null,"c":null}', "200T NULL|NULL|NULL"),
    ('POST /api/post-three {"a":1,"b":"x"}', "404 c"),
    ('POST /api/post-three {"a":1,"b":"x","c":true,"d":1}', "404 d"),
    ('POST /api/post-three {"a":"","b":"x","c":true}', "400 parameter '"),
    ('POST /api/post-three {"a":1,"b":"x","c":"t"}', "400 parameter '"),
    ('POST /api/post-three {"a":1,"b":2.5,"c":"TRUE"}', "200T 1|2.5|true"),
    ('POST /api/post-three {"a":1,"b":false,"c":true}', "200T 1|false|true"),
    ('POST /api/post-three {"a":[1],"b":"x","c":true}', "400 parameter '"),
    ('POST /api/post-three {"A":1,"b":"x","c":true}', "404 A"),
    ("POST /api/post-three ", "404 a"),
    ("POST /api/post-three nonsense", "400 "),
    ("POST /api/post-three []", "400 "),
    ("POST /api/post-three?a=1&b=x&c=true", "404 a"),
    ("GET /api/get-defaults?a=1", "200T 1|dflt|7"),
    ("GET /api/get-defaults?a=1&b=", "200T 1||7"),
    ("GET /api/get-defaults?a=1&c=", "200T 1|dflt|NULL"),
    ("GET /api/get-defaults?a=1&c=9", "200T 1|dflt|9"),
    ("GET /api/get-defaults?a=1&c=x", "400 parameter '"),
    ("GET /api/get-defaults?b=1", "404 a"),
    ("GET /api/get-defaults?a=1&x=1", "404 x"),
    ('POST /api/post-defaults {"a":1}', "200T 1|dflt|7"),
    ('POST /api/post-defaults {"a":1,"c":null}', "200T 1|dflt|NULL"),
    ('POST /api/post-defaults {"a":1,"c":8,"b":"y"}', "200T 1|y|8"),
    ('POST /api/post-defaults {"a":1,"c":"x"}', "400 parameter '"),
    ('POST /api/post-defaults {"b":"x"}', "404 a"),
    ("GET /api/get-all-defaults", "200T 1|a, b|NULL"),
    ("GET /api/get-all-defaults?c=2024-01-01", "200T 1|a, b|2024-01-01"),
    ("GET /api/get-first-default?c=5", "200T 1|NULL|5"),
    ("GET /api/get-first-default?b=5", "200T 1|5|3"),
    ("GET /api/get-strict?a=1&b=x", "200T ran"),
    ("GET /api/get-strict?a=&b=x", "204"),
    ("GET /api/get-strict?a=1&b=", "200T ran"),
    ("GET /api/get-strict?a=1", "404 b"),
    ("GET /api/get-strict-default?a=1", "200T ran x"),
    ("GET /api/get-strict-default?a=", "204"),
    ('POST /api/post-strict {"a":1,"b":null}', "204"),
    ('POST /api/post-strict {"a":1,"b":""}', "200T ran"),
    ("GET /api/get-unnamed?$1=1&$2=x&$3=true", "200T 1xtrue"),
    ("GET /api/get-unnamed?1=1&2=x&3=true", "404 1"),
    ('POST /api/post-unnamed {"$1":4,"$2":"x"}', "200T 4x"),
    ("GET /api/get-half-named?$1=4&b=x", "200T 4x"),
    ("GET /api/get-odd-names?Upper=1&with%20space=2&camelCase=3&$4=4&a.b=5", "200T 1-2-3-4-5"),
    ("GET /api/get-odd-names?upper=1&with%20space=2&camelCase=3&$4=4&a.b=5", "404 upper"),
    ("GET /api/get-caps?userId=1&userName=x", "200T 1x"),
    ("GET /api/get-variadic?v=1&v=2&v=3", "200T {1,2,3}"),
    ("GET /api/get-variadic?v=1", "200T {1}"),
    ('POST /api/post-variadic {"a":"x","v":["y","z"]}', "200T x{y,z}"),
    ('POST /api/post-variadic {"a":"x","v":[]}', "200T x{}"),
    ('POST /api/post-variadic-default {"a":"x"}', "200T x{}"),
    ("GET /api/get-key?key=", "200T []"),
    ("GET /api/get-key?key", "200T []"),
    ("GET /api/get-key?key=null", "200T [null]"),
    ("GET /api/get-key?key=%20", "200T [ ]"),
    ("GET /api/get-key?key=a+b", "200T [a b]"),
    ("GET /api/get-key?key=a%2Bb", "200T [a+b]"),
    ("GET /api/get-key?key=%C5%A1%C4%91%20%F0%9F%98%80", "200T [šđ 😀]"),
    ("GET /api/get-keys?keys=", '200T {""}'),
    ("GET /api/get-keys?keys=a&keys=b&keys=NULL", '200T {a,b,"NULL"}'),
    ("GET /api/get-keys", "404 keys"),
    ("GET /api/get-numbers?keys=1,2", "400 parameter '"),
    ("GET /api/get-numbers?keys={1,2}", "400 parameter '"),
    ("GET /api/get-numbers?keys=1&keys=x", "400 parameter '"),
    ("GET /api/get-numbers?keys=", "200T {NULL}"),
    ("GET /api/get-key-empty?key=", "200T NULL1"),
    ("GET /api/get-key-empty?key=x&n=", "200T [x]NULL"),
    ("GET /api/get-key-empty?key=null", "200T [null]1"),
    ("GET /api/get-key-literal?key=null", "200T NULL"),
    ("GET /api/get-key-literal?key=NuLL&keys=null&keys=x", "200T NULL{NULL,x}"),
    ("GET /api/get-key-literal?key=", "200T []"),
    ("GET /api/get-key-ignore?key=null", "200T [null]"),
    ("GET /api/get-key-assigned?key=", "200T NULL"),
    ("POST /api/posted-query?a=1&b=x", "200T 1|x|1"),
    ('POST /api/posted-query?a=1&b=x {"c":5}', "200T 1|x|1"),
    ('POST /api/posted-query {"a":1,"b":"x"}', "404 a"),
    ('GET /api/get-body {"a":1,"b":"x"}', "200T 1|x|1"),
    ("GET /api/get-body?a=1&b=x", "404 a"),
    ("GET /api/reset-transport?a=1&b=x", "200T 1|x|1"),
    ('PUT /put-thing {"a":1,"b":"x","c":3}', "200T 1|x|3"),
    ('DELETE /delete-thing {"a":1,"b":"x","c":3}', "200T 1|x|3"),
    ("DELETE /delete-thing?a=1&b=x", "404 a"),
    ("DELETE /delete-query?a=1&b=x", "200T 1|x|1"),
    ("POST /api/raw-body?id=1 hello {x}\n", "200T 1:hello {x}\n"),
    ('POST /api/raw-body?id=1 {"a": 1}', '200T 1:{"a": 1}'),
    ("POST /api/raw-body?id=1", "200T 1:"),
    ("POST /api/raw-body?id= x", "200T NULL:x"),
    ("POST /api/raw-body x", "404 id"),
    ("POST /api/raw-body?id=1&zz=2 x", "404 zz"),
    ("PUT /raw-body-api?id=1 x", "200T 1:x"),
    ("PUT /raw-body-api x", "200T 0:x"),
    ('POST /api/raw-body-json {"b": 1, "a": [2]}', '200 {"a": [2], "b": 1}'),
    ("POST /api/raw-body-json nope", "400 parameter '"),
    ("POST /api/raw-body-int 42", "200T 42"),
    ("POST /api/raw-body-int ", "200T NULL"),
    ("POST /api/raw-body-empty ", "200T NULL"),
    ('POST /api/post-out-args {"a":1}', '200 {"b":1,"c":2}'),
    ("POST /api/post-no-args {}", "200T none"),
    ('POST /api/post-no-args {"a":1}', "404 a"),
    ("GET /api/get-no-args?", "200T none"),
    ("GET /api/get-no-args?x=1", "404 x"),
    ('GET /api/get-jsonb?doc={"a":%201}', '200 {"a": 1}'),
    ("GET /api/get-jsonb?doc=x", "400 parameter '"),
    ('POST /api/post-texts {"t":{"k":1},"j":{"k":[1]},"jb":{"k":null}}', '200T {"k":1}|{"k":[1]}|{"k": null}'),
    ('POST /api/post-texts {"t":"s","j":"{\\"k\\":1}","jb":"[1,2]"}', '200T s|{"k":1}|[1, 2]'),
    ('POST /api/post-texts {"t":"s","j":"no json","jb":"[]"}', "400 parameter '"),
    ('POST /api/post-texts {"t":1.5,"j":2,"jb":true}', "200T 1.5|2|true"),
]  # fmt: skip


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, TYPES + routines(ROUTINES))


@pytest.mark.parametrize("context", cases(CASES))
def test_parameters_are_bound_as_expected(service: Service, context: RequestContext) -> None:
    check(service, context)
