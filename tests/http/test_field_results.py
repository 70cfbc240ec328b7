"""Results in the forms of NpgsqlRest: raw text, single rows, NULL as text, headers, bytes, nested composites."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, ask, cases, check
from tests.harness.routines import routines
from tests.harness.service import Service
from tests.http.conftest import Serve

TYPES = """
create type pair as (id int, label text);
create type crate as (code text, item pair);
create type shelf as (shelf_title text, items pair[]);
create type stamped as (at timestamp, "Camel" int, tags text[], ok boolean, doc jsonb);
create type flagbox as (is_on boolean);
create type deep as (name text, crates crate[], first crate);
create table note (note_id int, body text);
insert into note values (1, 'a'), (2, null);
"""

ROWS = (
    "values (1::numeric, timestamp '2024-01-01', true, 'say \"hi\"'),"
    " (2.50, timestamp '2024-12-31 10:00', false, null) order by 1"
)
ROW_TYPE = "returns table(n_no numeric, d timestamp, b boolean, t text) stable"
MANY_TYPES = (
    "returns table(j json, arr int[], tarr text[], u uuid, i interval, dt date, bt bytea, m text, v varchar) stable"
)
MANY = (
    "select '{\"a\": 1}'::json, array[1,null], array['x', 'y z'], 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid,"
    " interval '1 day', date '2024-01-01', '\\x00ff'::bytea, null::text, 'a,b'::varchar"
)

ROUTINES = [
    (f"raw_plain() {ROW_TYPE}", ROWS, "HTTP\nraw"),
    (f"raw_mode() {ROW_TYPE}", ROWS, "HTTP\n@raw_mode\nraw_separator ;\nraw_new_line \\r\\n"),
    (f"raw_csv() {ROW_TYPE}", ROWS, "HTTP\nraw\nseparator ,\nnew_line \\n\ncolumns\nContent-Type: text/csv"),
    (f"raw_assigned() {ROW_TYPE}", ROWS, "HTTP\nraw = true\nseparator = |\nnew_line = \\n\ncolumn_names = true"),
    (f"raw_off() {ROW_TYPE}", ROWS, "HTTP\nraw\nraw = false"),
    (f"raw_tab() {ROW_TYPE}", ROWS, "HTTP\nraw_results\nseparator \\t\nnew_line \\n"),
    (f"raw_words() {ROW_TYPE}", ROWS, "HTTP\nraw\nseparator  and \nnew_line \\x20/\\u0020"),
    (f"raw_colon() {ROW_TYPE}", ROWS, "HTTP\nraw\nseparator = :\nnew_line \\n"),
    (f"raw_columns_only() {ROW_TYPE}", ROWS, "HTTP\nraw\nnames"),
    (f"raw_columns_lines() {ROW_TYPE}", ROWS, "HTTP\nraw\ncolumns\nnew_line \\n"),
    (f"raw_single() {ROW_TYPE}", ROWS, "HTTP\nraw\nseparator ,\nnew_line \\n\nsingle"),
    (f"raw_types() {MANY_TYPES}", MANY, "HTTP\nraw\nseparator ,"),
    (f"raw_types_bare() {MANY_TYPES}", MANY, "HTTP\nraw"),
    (f"raw_none() {ROW_TYPE}", "select 1::numeric, now()::timestamp, true, '' where false", "HTTP\nraw\nseparator ,"),
    (f"raw_none_columns() {ROW_TYPE}", "select 1::numeric, now()::timestamp, true, '' where false",
     "HTTP\nraw\nseparator ,\nnew_line \\n\ncolumns"),
    ("raw_set() returns setof text stable", "values ('a'), (null), ('c\"d')", "HTTP\nraw\nnew_line \\n"),
    ("raw_set_separated() returns setof text stable", "values ('a'), (null), ('c\"d')",
     "HTTP\nraw\nseparator ,\nnew_line \\n\ncolumns"),
    ("raw_scalar() returns int[] stable", "select array[1,2]", "HTTP\nraw"),
    ("raw_scalar_text() returns text stable", "select 'a\"b'", "HTTP\nraw\nseparator ,\ncolumns"),
    ("raw_scalar_null() returns text stable", "select null::text",
     "HTTP\nraw\nresponse_null_handling null_literal"),
    ("raw_record() returns pair stable", "select (1, 'x')::pair", "HTTP\nraw\nseparator ,"),
    # single
    (f"single_row() {ROW_TYPE}", ROWS, "HTTP\nsingle"),
    (f"single_record_word() {ROW_TYPE}", ROWS, "HTTP\nsingle_record = true"),
    (f"single_false() {ROW_TYPE}", ROWS + " limit 1", "HTTP\nsingle\nsingle_result = false"),
    ("single_value() returns setof int stable", "values (7), (8)", "HTTP\nsingle"),
    ("single_null_value() returns setof int stable", "values (null::int), (8)", "HTTP\nsingle"),
    ("single_one_column() returns table(val text) stable", "values ('x'), ('y')", "HTTP\n@single"),
    ("single_none() returns setof note stable", "select * from note where false", "HTTP\nsingle"),
    ("single_none_literal() returns setof note stable", "select * from note where false",
     "HTTP\nsingle\nresponse_null_handling null_literal"),
    ("single_none_204() returns setof note stable", "select * from note where false",
     "HTTP\nsingle\nresponse_null_handling no_content"),
    ("single_of_scalar() returns int stable", "select 5", "HTTP\nsingle"),
    # NULL as text
    ("null_empty() returns text stable", "select null::text", "HTTP\ntext_response_null_handling empty_string"),
    ("null_literal() returns text stable", "select null::text", "HTTP\ntext_response_null_handling null_literal"),
    ("null_none() returns text stable", "select null::text", "HTTP\ntext_response_null_handling no_content"),
    ("null_204() returns int stable", "select null::int", "HTTP\n@response_null 204"),
    ("null_204_word() returns int stable", "select null::int", "HTTP\nresponse_null_handling 204_NO_CONTENT"),
    ("null_short() returns int stable", "select null::int", "HTTP\nresponse_null_handling NULL"),
    ("null_json() returns json stable", "select null::json", "HTTP\nresponse_null null"),
    ("null_json_none() returns json stable", "select null::json", "HTTP\nresponse_null no_content"),
    ("null_unknown() returns text stable", "select null::text", "HTTP\nresponse_null_handling whatever"),
    ("null_not_null() returns text stable", "select ''", "HTTP\nresponse_null no_content"),
    ("null_rows() returns setof text stable", "select null::text", "HTTP\nresponse_null no_content"),
    ("null_row() returns pair stable", "select null::pair", "HTTP\nresponse_null no_content"),
    # bytes
    ("bytes() returns bytea stable", "select 'PDF'::bytea", "HTTP\nContent-Type: application/pdf"),
    ("bytes_set() returns setof bytea stable", "values ('ab'::bytea), (null), ('\\x00'::bytea)", "HTTP"),
    ("bytes_table() returns table(data bytea) stable", "select 'xyz'::bytea", "HTTP"),
    ("bytes_none() returns setof bytea stable", "select ''::bytea where false", "HTTP"),
    ("bytes_and_more() returns table(data bytea, n int) stable", "select '\\xdeadbeef'::bytea, 1", "HTTP"),
    # composites
    ("flat() returns table(n int, c pair, m text) stable", "select 1, (7, 'x')::pair, 'z'", "HTTP"),
    ("flat_null() returns table(n int, c pair, m text) stable", "select 1, null::pair, 'z'", "HTTP"),
    ("nested() returns table(n int, c pair, m text) stable", "select 1, (7, 'x')::pair, 'z'", "HTTP\nnested"),
    ("nested_word() returns table(n int, c pair) stable", "select 1, (7, 'x')::pair", "HTTP\n@nested_json"),
    ("nested_third() returns table(n int, c pair) stable", "select 1, (7, 'x')::pair", "HTTP\nnested_composite"),
    ("nested_null() returns table(n int, c pair) stable", "select 1, null::pair", "HTTP\nnested"),
    ("nested_nulls() returns table(n int, c pair) stable", "select 1, (null, null)::pair", "HTTP\nnested"),
    ("nested_half() returns table(n int, c pair) stable", "select 1, (null, '')::pair", "HTTP\nnested"),
    ("nested_alone() returns table(c pair) stable", "select (7, 'x')::pair", "HTTP\nnested"),
    ("flat_alone() returns table(c pair) stable", "select (7, 'x')::pair", "HTTP"),
    ("nested_direct() returns pair stable", "select (7, 'x')::pair", "HTTP\nnested"),
    ("nested_set() returns setof pair stable", "select (7, 'x')::pair", "HTTP\nnested"),
    ("flat_deep() returns table(n int, c crate) stable", "select 1, ('k', (1, 'a \"b\"'))::crate", "HTTP"),
    ("nested_deep() returns table(n int, c crate) stable", "select 1, ('k', (1, 'a \"b\"'))::crate", "HTTP\nnested"),
    ("nested_shelf() returns table(n int, s shelf) stable",
     "select 1, ('top', array[(1, 'a,b')::pair, null, (null, '')::pair])::shelf", "HTTP\nnested"),
    ("pairs_column() returns table(n int, ps pair[]) stable",
     "select 1, array[(1, 'a')::pair, null, (2, 'q\"q\\z')::pair]", "HTTP"),
    ("pairs_empty() returns table(n int, ps pair[], qs pair[]) stable", "select 1, '{}'::pair[], null::pair[]", "HTTP"),
    ("pairs_matrix() returns table(ps pair[]) stable",
     "select array[[(1,'a')::pair, (2,'b')::pair], [(3,'c')::pair, null]]", "HTTP"),
    ("flags() returns table(f flagbox[], n int) stable", "select array[row(true)::flagbox, row(false)::flagbox], 1",
     "HTTP"),
    ("flag_direct() returns flagbox stable", "select row(true)::flagbox", "HTTP"),
    ("flag_column() returns table(n int, f flagbox) stable", "select 1, row(true)::flagbox", "HTTP\nnested"),
    ("stamps() returns table(n int, s stamped[]) stable",
     "select 1, array[(timestamp '2024-01-15 10:30', 5, array['a', null], false, '{\"k\": 1}')::stamped]", "HTTP"),
    ("stamp_direct() returns stamped stable",
     "select (timestamp '2024-01-15 10:30', 5, array['a', null], false, '{\"k\": 1}')::stamped", "HTTP"),
    ("deeps() returns table(d deep[]) stable",
     "select array[('x', array[('c', (1, 'l'))::crate], ('f', null)::crate)::deep]", "HTTP"),
    ("clash() returns table(label text, c pair) stable", "select 'mine', (1, 'theirs')::pair", "HTTP"),
    ("two_pairs() returns table(a pair, b pair) stable", "select (1, 'x')::pair, (2, 'y')::pair", "HTTP\nnested"),
    ("notes() returns table(n note, k int) stable", "select note, 1 from note order by note_id", "HTTP\nnested"),
    ("pair_array() returns pair[] stable", "select array[(1, 'a')::pair, null]", "HTTP"),
    ("pair_array_out(out ps pair[]) stable", "select array[(1, 'b c')::pair]", "HTTP"),
    ("record_nested() returns record stable", "select 1, (2, 'x')::pair, array[1,2], timestamp '2024-01-01', ''",
     "HTTP"),
    # buffers
    ("buffered() returns setof int stable", "select generate_series(1, 60)", "HTTP\nbuffer_rows 7"),
    ("buffered_one() returns setof int stable", "select generate_series(1, 5)", "HTTP\nbuffer 1"),
    ("buffered_zero() returns setof int stable", "select generate_series(1, 5)", "HTTP\nbuffer_rows = 0"),
    ("buffered_wrong() returns setof int stable", "select generate_series(1, 5)", "HTTP\nbuffer_rows many"),
]  # fmt: skip

NUMBERS = ",".join(str(n) for n in range(1, 61))
STAMP = '"Camel"'

CASES: list[RequestContext] = [
    ("GET /api/raw-plain", '200 12024-01-01 00:00:00tsay "hi"2.502024-12-31 10:00:00f'),
    ("GET /api/raw-mode", '200 1;"2024-01-01 00:00:00";t;"say ""hi"""\r\n2.50;"2024-12-31 10:00:00";f;""'),
    ("GET /api/raw-csv",
     '200 "n_no","d","b","t"\n1,"2024-01-01 00:00:00",t,"say ""hi"""\n2.50,"2024-12-31 10:00:00",f,""',
     {"content-type": "text/csv"}),
    ("GET /api/raw-assigned",
     '200 "n_no"|"d"|"b"|"t"\n1|"2024-01-01 00:00:00"|t|"say ""hi"""\n2.50|"2024-12-31 10:00:00"|f|""'),
    ("GET /api/raw-off",
     '200 [{"nNo":1,"d":"2024-01-01T00:00:00","b":true,"t":"say \\"hi\\""},{"nNo":2.50,'
     '"d":"2024-12-31T10:00:00","b":false,"t":null}]'),
    ("GET /api/raw-tab", '200 1\t"2024-01-01 00:00:00"\tt\t"say ""hi"""\n2.50\t"2024-12-31 10:00:00"\tf\t""'),
    ("GET /api/raw-words",
     '200 1 and"2024-01-01 00:00:00" andt and"say ""hi""" / 2.50 and"2024-12-31 10:00:00" andf and""'),
    ("GET /api/raw-colon", '200 1:"2024-01-01 00:00:00":t:"say ""hi"""\n2.50:"2024-12-31 10:00:00":f:""'),
    ("GET /api/raw-columns-only", '200 "n_no""d""b""t"12024-01-01 00:00:00tsay "hi"2.502024-12-31 10:00:00f'),
    ("GET /api/raw-columns-lines", '200 "n_no""d""b""t"\n12024-01-01 00:00:00tsay "hi"\n2.502024-12-31 10:00:00f'),
    ("GET /api/raw-single", '200 1,"2024-01-01 00:00:00",t,"say ""hi"""'),
    ("GET /api/raw-types",
     '200 "{""a"": 1}",{1,NULL},"{x,""y z""}",a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,1 day,"2024-01-01",\\x00ff,'
     '"","a,b"'),
    ("GET /api/raw-types-bare",
     '200 {"a": 1}{1,NULL}{x,"y z"}a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111 day2024-01-01\\x00ffa,b'),
    ("GET /api/raw-none", "200E"),
    ("GET /api/raw-none-columns", '200 "n_no","d","b","t"\n'),
    ("GET /api/raw-set", '200 a\n\nc"d'),
    ("GET /api/raw-set-separated", '200 "raw_set_separated"\n"a"\n""\n"c""d"'),
    ("GET /api/raw-scalar", "200 {1,2}"),
    ("GET /api/raw-scalar-text", '200T a"b'),
    ("GET /api/raw-scalar-null", "200T"),
    ("GET /api/raw-record", '200 1,"x"'),
    ("GET /api/single-row", '200 {"nNo":1,"d":"2024-01-01T00:00:00","b":true,"t":"say \\"hi\\""}'),
    ("GET /api/single-record-word", '200 {"nNo":1,"d":"2024-01-01T00:00:00","b":true,"t":"say \\"hi\\""}'),
    ("GET /api/single-false", '200 [{"nNo":1,"d":"2024-01-01T00:00:00","b":true,"t":"say \\"hi\\""}]'),
    ("GET /api/single-value", "200 7"),
    ("GET /api/single-null-value", "200 null"),
    ("GET /api/single-one-column", '200 {"val":"x"}'),
    ("GET /api/single-none", "200 null"),
    ("GET /api/single-none-204", "204"),
    ("GET /api/single-of-scalar", "200T 5"),
    ("GET /api/null-empty", "200T"),
    ("GET /api/null-literal", "200T NULL"),
    ("GET /api/null-none", "204"),
    ("GET /api/null-204", "204"),
    ("GET /api/null-204-word", "204"),
    ("GET /api/null-short", "200T NULL"),
    ("GET /api/null-json-none", "204"),
    ("GET /api/null-unknown", "200T"),
    ("GET /api/null-not-null", "200T"),
    ("GET /api/null-rows", "200 [null]"),
    ("GET /api/null-row", '200 {"id":null,"label":null}'),
    ("GET /api/bytes", "200 PDF", {"content-type": "application/pdf"}),
    ("GET /api/bytes-set", "200B ab\x00"),
    ("GET /api/bytes-table", "200B xyz"),
    ("GET /api/bytes-none", "200B"),
    ("GET /api/bytes-and-more", '200 [{"data":"\\\\xdeadbeef","n":1}]'),
    ("GET /api/flat", '200 [{"n":1,"id":7,"label":"x","m":"z"}]'),
    ("GET /api/flat-null", '200 [{"n":1,"id":null,"label":null,"m":"z"}]'),
    ("GET /api/nested", '200 [{"n":1,"c":{"id":7,"label":"x"},"m":"z"}]'),
    ("GET /api/nested-word", '200 [{"n":1,"c":{"id":7,"label":"x"}}]'),
    ("GET /api/nested-third", '200 [{"n":1,"c":{"id":7,"label":"x"}}]'),
    ("GET /api/nested-null", '200 [{"n":1,"c":null}]'),
    ("GET /api/nested-nulls", '200 [{"n":1,"c":null}]'),
    ("GET /api/nested-half", '200 [{"n":1,"c":{"id":null,"label":""}}]'),
    ("GET /api/nested-alone", '200 [{"c":{"id":7,"label":"x"}}]'),
    ("GET /api/flat-alone", '200 [{"id":7,"label":"x"}]'),
    ("GET /api/nested-direct", '200 {"id":7,"label":"x"}'),
    ("GET /api/nested-set", '200 [{"id":7,"label":"x"}]'),
    ("GET /api/flat-deep", '200 [{"n":1,"code":"k","item":{"id":1,"label":"a \\"b\\""}}]'),
    ("GET /api/nested-deep", '200 [{"n":1,"c":{"code":"k","item":{"id":1,"label":"a \\"b\\""}}}]'),
    ("GET /api/nested-shelf",
     '200 [{"n":1,"s":{"shelfTitle":"top","items":[{"id":1,"label":"a,b"},null,{"id":null,"label":""}]}}]'),
    ("GET /api/pairs-column", '200 [{"n":1,"ps":[{"id":1,"label":"a"},null,{"id":2,"label":"q\\"q\\\\z"}]}]'),
    ("GET /api/pairs-empty", '200 [{"n":1,"ps":[],"qs":null}]'),
    ("GET /api/pairs-matrix", '200 [{"ps":[["(1,a)","(2,b)"],["(3,c)",null]]}]'),
    ("GET /api/flags", '200 [{"f":[{"isOn":true},{"isOn":false}],"n":1}]'),
    ("GET /api/flag-direct", '200 {"isOn":true}'),
    ("GET /api/flag-column", '200 [{"n":1,"f":{"isOn":true}}]'),
    ("GET /api/stamps",
     '200 [{"n":1,"s":[{"at":"2024-01-15T10:30:00","camel":5,"tags":["a",null],"ok":false,"doc":{"k": 1}}]}]'),
    ("GET /api/stamp-direct",
     '200 {"at":"2024-01-15T10:30:00","Camel":5,"tags":["a",null],"ok":false,"doc":{"k": 1}}'),
    ("GET /api/deeps",
     '200 [{"d":[{"name":"x","crates":[{"code":"c","item":{"id":1,"label":"l"}}],"first":{"code":"f",'
     '"item":null}}]}]'),
    ("GET /api/clash", '200 [{"label":"mine","id":1,"label":"theirs"}]'),
    ("GET /api/two-pairs", '200 [{"a":{"id":1,"label":"x"},"b":{"id":2,"label":"y"}}]'),
    ("GET /api/notes", '200 [{"n":{"noteId":1,"body":"a"},"k":1},{"n":{"noteId":2,"body":null},"k":1}]'),
    ("GET /api/pair-array", '200 ["(1,a)",null]'),
    ("GET /api/pair-array-out", '200 ["(1,\\"b c\\")"]'),
    ("GET /api/record-nested", '200 ["1","(2,x)","{1,2}","2024-01-01 00:00:00",""]'),
    ("GET /api/buffered", f"200 [{NUMBERS}]"),
    ("GET /api/buffered-one", "200 [1,2,3,4,5]"),
    ("GET /api/buffered-zero", "200 [1,2,3,4,5]"),
    ("GET /api/buffered-wrong", "200 [1,2,3,4,5]"),
]  # fmt: skip


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, TYPES + routines(ROUTINES))


@pytest.mark.parametrize("context", cases(CASES))
def test_result_is_rendered_as_expected(service: Service, context: RequestContext) -> None:
    check(service, context)


@pytest.mark.parametrize("path", ["single-none-literal", "null-json"])
def test_null_is_the_json_literal_in_json_responses(service: Service, path: str) -> None:
    assert ask(service, f"GET /api/{path}").text.lower() == "null"
