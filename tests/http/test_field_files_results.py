"""Results and parsing of files: results of one statement and of several, names, comments in unusual places, all quotes
(sql-files-9 to sql-files-12, sql-files-21 to sql-files-28)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, cases, check, check_in_order
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve

SCHEMA = """
create type dims as (w int, note text);
create type crate as (id int, size dims, tags text[]);
create type mood as enum ('calm', 'wild');
create domain code as text;
create table bed (id int primary key, kind text, size dims);
insert into bed values (1, 'fern', '(4,"a, b")'), (2, 'moss', null);
create table log (id int generated always as identity primary key, note text unique);
create function fail(_state text) returns int language plpgsql as
  $$ begin raise exception 'as raised' using errcode = _state; end $$;
create function nothing() returns void language sql as 'select';
create procedure work(_n int, inout doubled int) language plpgsql as $$ begin doubled := 2 * _n; end $$;
create aggregate joined(text) (sfunc = textcat, stype = text, initcond = '');
"""

Row = tuple[str, str, str] | tuple[str, str, str, dict[str, str]]

RESULTS: dict[str, Row] = {
    "r_null": ("select null as a, null::int as b", "GET /api/r-null", '200 [{"a":null,"b":null}]'),
    "r_one_null": ("select null::int", "GET /api/r-one-null", "200 [null]"),
    "r_bools": ("select true union all select false", "GET /api/r-bools", "200 [true,false]"),
    "r_numbers": (
        "select 1::smallint as a, 2::bigint as b, 1.50 as c, 0.1::float4 as d, 1e100::float8 as e, -0.0::numeric as f",
        "GET /api/r-numbers",
        '200 [{"a":1,"b":2,"c":1.50,"d":0.1,"e":1e+100,"f":0.0}]',
    ),
    "r_nan": ("select 'NaN'::float8 as a, 'Infinity'::numeric as b", "GET /api/r-nan",
              '200 [{"a":"NaN","b":"Infinity"}]'),
    "r_money": ("select '1.5'::money as a, 'x'::char(3) as b", "GET /api/r-money", '200 [{"a":"$1.50","b":"x  "}]'),
    "r_times": (
        "select timestamp '2026-01-02 03:04:05.6' as a, timestamptz '2026-01-02 03:04:05+00' at time zone 'UTC' as b,"
        " date '2026-01-02' as c, time '03:04' as d, interval '1 day 2 hours' as e",
        "GET /api/r-times",
        '200 [{"a":"2026-01-02T03:04:05.6","b":"2026-01-02T03:04:05","c":"2026-01-02","d":"03:04:00",'
        '"e":"1 day 02:00:00"}]',
    ),
    "r_json": (
        """select '{"a": [1, 2]}'::json as a, '{"b":1}'::jsonb as b, 'null'::jsonb as c""",
        "GET /api/r-json",
        '200 [{"a":{"a": [1, 2]},"b":{"b": 1},"c":null}]',
    ),
    "r_one_json": ("""select '{"a": 1}'::jsonb""", "GET /api/r-one-json", '200 [{"a": 1}]'),
    "r_arrays": (
        "select array[1,null,3] as a, array['x,y','\"q\"',null] as b, '{}'::int[] as c, array[[1,2],[3,4]] as d,"
        " array[true,false] as e",
        "GET /api/r-arrays",
        '200 [{"a":[1,null,3],"b":["x,y","\\"q\\"",null],"c":[],"d":[[1,2],[3,4]],"e":[true,false]}]',
    ),
    "r_one_array": ("select array[1,2]", "GET /api/r-one-array", "200 [[1,2]]"),
    "r_enum": ("select 'calm'::mood as a, array['wild'::mood] as b", "GET /api/r-enum",
               '200 [{"a":"calm","b":["wild"]}]'),
    "r_others": (
        "select '1.2.3.4'::inet as a, int4range(1, 3) as b, '(1,2)'::point as c, 'x'::code as d, 'a'::xml as e,"
        " '00000000-0000-0000-0000-00000000000a'::uuid as f, b'101' as g",
        "GET /api/r-others",
        '200 [{"a":"1.2.3.4","b":"[1,3)","c":"(1,2)","d":"x","e":"a",'
        '"f":"00000000-0000-0000-0000-00000000000a","g":"101"}]',
    ),
    "r_escapes": (
        "select E'a\\\\b\"c\\n\\t\\u0001' as a, '</script>&ж' as b",
        "GET /api/r-escapes",
        '200 [{"a":"a\\\\b\\"c\\n\\t\\u0001","b":"</script>&ж"}]',
    ),
    "r_bytea_and": ("select '\\x00ff'::bytea as a, 1 as b", "GET /api/r-bytea-and", '200 [{"a":"\\\\x00ff","b":1}]'),
    "r_names": (
        'select 1 as some_long_name, 2 as "MixedCase", 3 as "with space", 4 as "UPPER", 5 as _lead, 6 as a__b',
        "GET /api/r-names",
        '200 [{"someLongName":1,"MixedCase":2,"with space":3,"UPPER":4,"lead":5,"aB":6}]',
    ),
    "r_functions": ("select count(*), max(id), 1 from bed", "GET /api/r-functions",
                    '200 [{"count":2,"max":2,"column3":1}]'),
    "r_aggregate": ("select joined(kind order by id) from bed", "GET /api/r-aggregate", '200 ["fernmoss"]'),
    "r_flat": (
        "select id, size, kind from bed order by id",
        "GET /api/r-flat",
        '200 [{"id":1,"w":4,"note":"a, b","kind":"fern"},{"id":2,"w":null,"note":null,"kind":"moss"}]',
    ),
    "r_spread_twice": (
        "select 1 as w, size from bed where id = 1",
        "GET /api/r-spread-twice",
        '200 [{"w":1,"w":4,"note":"a, b"}]',
    ),
    "r_row": ("select b from bed b where id = 1", "GET /api/r-row",
              '200 [{"id":1,"kind":"fern","size":{"w":4,"note":"a, b"}}]'),
    "r_deep": (
        "-- nested\nselect (1, (2, 'x')::dims, '{a}')::crate as c, 1 as n",
        "GET /api/r-deep",
        '200 [{"c":{"id":1,"size":{"w":2,"note":"x"},"tags":["a"]},"n":1}]',
    ),
    "r_composites": (
        "select array_agg(size) as sizes, 1 as n from bed where size is not null",
        "GET /api/r-composites",
        '200 [{"sizes":[{"w":4,"note":"a, b"}],"n":1}]',
    ),
    "r_one_composites": (
        "select array_agg(size) as sizes from bed where size is not null",
        "GET /api/r-one-composites",
        '200 [[{"w":4,"note":"a, b"}]]',
    ),
    "r_call": ("call work(2, null)", "GET /api/r-call", "200 [4]"),
    "r_show": ("show server_encoding", "GET /api/r-show", '200 ["UTF8"]'),
    "r_set": ("set application_name = 'x'", "GET /api/r-set", "204"),
    "r_single": ("-- single\nselect id, kind from bed order by id", "GET /api/r-single", '200 {"id":1,"kind":"fern"}'),
    "r_single_value": ("-- @single_record\nselect kind from bed order by id", "GET /api/r-single-value", '200 "fern"'),
    "r_single_int": ("-- single_result\nselect 7", "GET /api/r-single-int", "200 7"),
    "r_single_bool": ("-- @single = true\nselect true", "GET /api/r-single-bool", "200 true"),
    "r_single_off": ("-- @single = false\nselect true", "GET /api/r-single-off", "200 [true]"),
    "r_single_json": ("-- single\nselect '{\"a\":1}'::json", "GET /api/r-single-json", '200 {"a":1}'),
    "r_single_null": ("-- single\nselect null::text", "GET /api/r-single-null", "200 null"),
    "r_single_size": ("-- single\nselect size from bed where id = 1", "GET /api/r-single-size",
                      '200 {"w":4,"note":"a, b"}'),
    "r_single_none": ("-- single\nselect id, kind from bed where false", "GET /api/r-single-none", "200 null"),
    "r_single_none_null": (
        "-- single\n-- response_null_handling null_literal\nselect id, kind from bed where false",
        "GET /api/r-single-none-null",
        "200 null",
    ),
    "r_single_none_204": (
        "-- single\n-- response_null 204\nselect id, kind from bed where false",
        "GET /api/r-single-none-204",
        "204",
    ),
    "r_single_insert": (
        "-- single\ninsert into log (note) values (:note) returning note, id > 0 as made",
        'PUT /api/r-single-insert {"note":"single"}',
        '200 {"note":"single","made":true}',
    ),
    "r_void_line": ("-- void\nselect 1", "GET /api/r-void-line", "204"),
    "r_void_result": ("-- @void_result\ninsert into log (note) values ('void') returning id", "PUT /api/r-void-result",
                      "204"),
    "r_raw": (
        "-- raw\n-- separator ;\n-- new_line |\nselect id, kind from bed order by id",
        "GET /api/r-raw",
        '200 1;"fern"|2;"moss"',
    ),
    "r_typed": ("-- Content-Type: text/csv\n-- raw\nselect 'a'", "GET /api/r-typed", "200 a",
                {"content-type": "text/csv"}),
    "r_headers": ("-- X-One: 1\n-- X-Two: a, b\nselect 1", "GET /api/r-headers", "200 [1]", {"x-one": "1",
                  "x-two": "a, b"}),
    "r_error": ("select fail(:state)", "GET /api/r-error?state=P0001", "400 as raised|P0001"),
    "r_error_500": ("select fail(:state), 1", "GET /api/r-error-500?state=23505", "409 as raised|23505"),
    "r_error_403": ("select fail(:state), 2", "GET /api/r-error-403?state=42501", "403 Insufficient Privilege|42501"),
    "r_error_late": ("select 1 / (2 - n) from generate_series(1, 3) n", "GET /api/r-error-late", "500 22012"),
    "r_timeout": ("-- timeout 50ms\nselect pg_sleep(20)", "GET /api/r-timeout", "504 Command execution timed out"),
    "r_do": ("-- HTTP POST\ndo $$ begin raise exception 'no'; end $$", "POST /api/r-do", "400 no|P0001"),
    "r_ddl": ("create temp table if not exists scratch_r (a int)", "GET /api/r-ddl", "204"),
}  # fmt: skip

TEXTS: dict[str, Row] = {
    "t_block": ("/*\n  HTTP GET\n  @param $1 n int\n  X-Block: yes\n*/\nselect $1 as n, 1 as one",
                "GET /api/t-block?n=2",
                '200 [{"n":2,"one":1}]', {"x-block": "yes"}),
    "t_nested_block": ("/* HTTP GET /* inner */ outer */ select 1", "GET /api/t-nested-block", "200 [1]"),
    "t_trailing": ("select 1 as a, 2 as b; -- HTTP GET", "GET /api/t-trailing", '200 [{"a":1,"b":2}]'),
    "t_after": ("select 1 as a, 2 as b\n-- HTTP GET\n-- X-After: yes", "GET /api/t-after", '200 [{"a":1,"b":2}]',
                {"x-after": "yes"}),
    "t_inside": ("-- HTTP GET\nselect 1 as a, -- X-Inside: yes\n 2 as b /* X-Other: no */ from bed -- rows\nlimit 1",
                 "GET /api/t-inside", '200 [{"a":1,"b":2}]', {"x-inside": "yes", "x-other": "no"}),
    "t_no_space": ("--HTTP GET\nselect 1--one\n,2", "GET /api/t-no-space", '200 [{"column1":1,"column2":2}]'),
    "t_dashes": ("---- HTTP GET\n-- HTTP GET\nselect 5-\n-3", "GET /api/t-dashes", "200 [8]"),
    "t_crlf": ("-- HTTP GET\r\n-- @param $1 n int\r\nselect $1 as n,\r\n  'a\r\nb' as t;\r\n", "GET /api/t-crlf?n=1",
               '200 [{"n":1,"t":"a\\r\\nb"}]'),
    "t_cr": ("-- HTTP GET\rselect 1;\r", "GET /api/t-cr", "200 [1]"),
    "t_bom": ("\ufeff-- HTTP GET\nselect 1", "GET /api/t-bom", "200 [1]"),
    "t_bom_sql": ("\ufeffselect 1 -- HTTP GET", "GET /api/t-bom-sql", "200 [1]"),
    "t_dollar": ("-- HTTP GET\nselect $a$ ; -- no ' $$ /* $a$ as a, $$;$$ as b", "GET /api/t-dollar",
                 '200 [{"a":" ; -- no \' $$ /* ","b":";"}]'),
    "t_quotes": ("-- HTTP GET\nselect 'a;b' as a, 'it''s -- no' as b, \"id\" as \"c;d\" from bed where id = 1",
                 "GET /api/t-quotes", '200 [{"a":"a;b","b":"it\'s -- no","c;d":1}]'),
    "t_escapes": ("-- HTTP GET\nselect E'\\';' as a, e'\\\\' as b, '\\' as c", "GET /api/t-escapes",
                  '200 [{"a":"\';","b":"\\\\","c":"\\\\"}]'),
    "t_strings": ("-- HTTP GET\nselect 'a'\n  'b' as a, N'n' as b, U&'d\\0061t' as c", "GET /api/t-strings",
                  '200 [{"a":"ab","b":"n","c":"dat"}]'),
    "t_empty_parts": ("-- HTTP GET\n;;\n; select 1 ;; ;\n;", "GET /api/t-empty-parts", "200 [1]"),
    "t_comment_only_part": ("-- HTTP GET\nselect 1;\n/* nothing more */\n-- at all\n", "GET /api/t-comment-only-part",
                            "200 [1]"),
    "t_function_body": (
        "-- HTTP POST\n-- void\ncreate or replace function made() returns int language sql begin atomic select 1; "
        "select 2; end;"
        "\nselect 1", "POST /api/t-function-body", "204"),
    "t_header_colon": ("-- HTTP GET\n-- Note: see the wiki\nselect 1", "GET /api/t-header-colon", "200 [1]",
                       {"note": "see the wiki"}),
    "t_prose": ("-- HTTP GET\n-- Lists all beds, and then some.\n-- It's simple (very).\nselect 1", "GET /api/t-prose",
                "200 [1]"),
    "t_single_prose": ("-- HTTP GET\n-- Single bed view\nselect 1", "GET /api/t-single-prose", "200 1"),
    "t_custom": ("-- HTTP GET\n-- limit = 5\n-- X-Limit: {limit}\nselect 1", "GET /api/t-custom", "200 [1]",
                 {"x-limit": "{limit}"}),
    "t_unicode": ("-- HTTP GET\n-- Ünïcode prose ☃\nselect 'ж☃😀' as s, 1 as \"größe\"", "GET /api/t-unicode",
                  '200 [{"s":"ж☃😀","größe":1}]'),
    "t_returns_sentence": ("-- HTTP GET\n-- Returns the number of beds.\nselect 1", "GET /api/t-returns-sentence",
                           "200 [1]"),
    "t_results_sentence": ("-- HTTP GET\n-- Results are ordered\nselect 1", "GET /api/t-results-sentence", "200 [1]"),
    "t_returns": ("-- HTTP GET\n-- returns setof_unknown words here\nselect 1", "GET /api/t-returns", "200 [1]"),
    "t_returns_type": ("-- HTTP GET\n-- returns double precision\nselect 1.5, 2", "GET /api/t-returns-type",
                       "200 [1.5]"),
    "t_returns_behind": ("-- HTTP POST\n-- returns void\n-- Returns nothing\nselect nothing()",
                         "POST /api/t-returns-behind", "204"),
    "t_returns_upper": ("-- HTTP POST\n-- @returns VOID\nselect 1", "POST /api/t-returns-upper", "204"),
    "t_returns_both": ("-- HTTP GET\n-- @returns integer\n-- returns text\nselect 1.5", "GET /api/t-returns-both",
                       "200 [1.5]"),
    "t_returns_pseudo": ("-- HTTP GET\n-- returns record\nselect 1 as a, 2 as b", "GET /api/t-returns-pseudo",
                         '200 [{"a":1,"b":2}]'),
    "t_returns_array": ("-- HTTP GET\n-- @returns text[]\nselect array['a','b']", "GET /api/t-returns-array",
                        '200 [["a","b"]]'),
    "t_returns_composite": ("-- HTTP GET\n-- @returns dims\n-- @single\nselect 1, 'x'", "GET /api/t-returns-composite",
                            '200 {"w":1,"note":"x"}'),
    "t_returns_void": ("-- HTTP POST\n-- @returns void\nselect nothing()", "POST /api/t-returns-void", "204"),
    "t_operators": ("-- HTTP GET\nselect 1 -- minus\n- 1, 2 */* times */ 3, @ -5", "GET /api/t-operators",
                    '200 [{"column1":0,"column2":6,"column3":5}]'),
}  # fmt: skip

SEVERAL: dict[str, Row] = {
    "s_left_open": (
        "-- raw\n-- @skip it\nbegin;\n-- @result\nupdate bed set kind = 'lost' where id = 1;\n-- @result lost",
        "POST /api/s-left-open {}",
        '200 {"result1":1}',
    ),
    "s_left_open_gave_nothing": ("select kind from bed where id = 1;\nselect 1", "GET /api/s-left-open-gave-nothing",
                                 '200 {"result1":["fern"],"result2":[1]}'),
    "s_two": ("select 1;\nselect 2 as a, 3 as b;", "GET /api/s-two", '200 {"result1":[1],"result2":[{"a":2,"b":3}]}'),
    "s_names": ("-- @result beds\nselect id, kind from bed where id = 1;\n-- result is total\nselect count(*) from bed",
                "GET /api/s-names", '200 {"beds":[{"id":1,"kind":"fern"}],"total":[2]}'),
    "s_same_line": ("select 1; -- @result one\nselect 2; /* result two */\nselect 3;", "GET /api/s-same-line",
                    '200 {"one":[1],"two":[2],"result3":[3]}'),
    "s_next_line": ("select 1; -- @result a\n-- @result b\nselect 2;\n-- @result c\nselect 3", "GET /api/s-next-line",
                    '200 {"a":[1],"b":[2],"c":[3]}'),
    "s_inside": ("select 1\n-- @result inside\n;\nselect /* @result within */ 2;", "GET /api/s-inside",
                 '200 {"inside":[1],"within":[2]}'),
    "s_verbatim": ("-- @result Some_Name more words\nselect 1;\nselect 2", "GET /api/s-verbatim",
                   '200 {"Some_Name":[1],"result2":[2]}'),
    "s_single": ("-- @single\nselect id, kind from bed order by id;\n-- @single\nselect kind from bed order by id "
                 "desc;\n"
                 "-- @single\nselect 1 where false;\n-- single\nselect null::int", "GET /api/s-single",
                 '200 {"result1":{"id":1,"kind":"fern"},"result2":"moss","result3":null,"result4":null}'),
    "s_single_named": ("-- @result bed\n-- @single\nselect id, kind from bed where id = :id::int;\n-- @result "
                       "none\nselect 1 where :id = 'x'",
                       "GET /api/s-single-named?id=2", '200 {"bed":{"id":2,"kind":"moss"},"none":[]}'),
    "s_skip": ("select 1; -- @skip\nselect 2;\nselect 3; -- no_result\nselect 4", "GET /api/s-skip",
               '200 {"result1":[2],"result2":[4]}'),
    "s_skip_beats": ("-- @skip\n-- @result a\nselect 1;\nselect 2", "GET /api/s-skip-beats", '200 {"result1":[2]}'),
    "s_numbering": ("-- @result check\nselect 1;\nselect 2;\n-- @result final\nselect 3;", "GET /api/s-numbering",
                    '200 {"check":[1],"result2":[2],"final":[3]}'),
    "s_counts": ("begin;\ninsert into log (note) values ('c1'), ('c2');\nupdate log set note = note || '!' where "
                 "note = 'c1';\n"
                 "delete from log where note in ('c1!', 'c2', 'c3');\ncommit;", "DELETE /api/s-counts",
                 '200 {"result1":2,"result2":1,"result3":2}'),
    "s_zero": ("update log set note = null where false;\nselect 1", "POST /api/s-zero",
               '200 {"result1":0,"result2":[1]}'),
    "s_returning": ("insert into log (note) values (:a) returning note;\ndelete from log where note = :a returning "
                    "note, 1 as n",
                    "DELETE /api/s-returning?a=r1", '200 {"result1":["r1"],"result2":[{"note":"r1","n":1}]}'),
    "s_commands": ("create temp table if not exists scratch_s (a int);\nselect 1", "GET /api/s-commands",
                   '200 {"result1":-1,"result2":[1]}'),
    "s_hidden": ("begin;\nset local application_name = 'x';\nsavepoint a;\nlock table bed in share mode;\nselect 1;\n"
                 "release a;\nreset application_name;\nend;", "GET /api/s-hidden", '200 {"result1":[1]}'),
    "s_do": ("do $$ begin perform 1; end $$;\nselect 1;", "POST /api/s-do", '200 {"result1":[1]}'),
    "s_do_parameter": ("select set_config('a.b', :v, false); -- @skip\ndo $$ begin perform set_config('a.b', "
                       "current_setting('a.b') || '!', false); end $$;\n"
                       "select current_setting('a.b')", 'POST /api/s-do-parameter {"v":"x"}', '200 {"result1":["x!"]}'),
    "s_start": ("start transaction;\nselect 1;\ncommit", "GET /api/s-start", '200 {"result1":-1,"result2":[1]}'),
    "s_void_select": ("-- @returns void\nselect nothing();\nselect 1", "GET /api/s-void-select",
                      '200 {"result1":-1,"result2":[1]}'),
    "s_void": ("-- void\nselect 1;\nselect 2", "GET /api/s-void", "204"),
    "s_shared": ("select :a as a, 1 as n;\nselect :b as b;\nselect :a as a2, :b as b2", "GET /api/s-shared?a=x&b=y",
                 '200 {"result1":[{"a":"x","n":1}],"result2":["y"],"result3":[{"a2":"x","b2":"y"}]}'),
    "s_positional": ("-- @param $1 a\n-- @param $2 b int\nselect $2 as b, 1 as n;\nselect $1 as a",
                     "GET /api/s-positional?a=x&b=2",
                     '200 {"result1":[{"b":2,"n":1}],"result2":["x"]}'),
    "s_missing": ("select :a as a;\nselect :b as b", "GET /api/s-missing?a=x", "404 'b'"),
    "s_unknown": ("select :a as a;\nselect 1", "GET /api/s-unknown?a=x&c=1", "404 'c'"),
    "s_composite": ("select size from bed where id = 1;\nselect id, size from bed where id = 2", "GET /api/s-composite",
                    '200 {"result1":[{"w":4,"note":"a, b"}],"result2":[{"id":2,"w":null,"note":null}]}'),
    "s_nested": ("-- nested\nselect size from bed where id = 1;\nselect id, size from bed where id = 2",
                 "GET /api/s-nested",
                 '200 {"result1":[{"size":{"w":4,"note":"a, b"}}],"result2":[{"id":2,"size":null}]}'),
    "s_duplicates": ("select 1, 1;\nselect id, id from bed where id = 1", "GET /api/s-duplicates",
                     '200 {"result1":[{"column1":1,"column2":1}],"result2":[{"id":1,"column2":1}]}'),
    "s_error": ("select 1;\nselect fail(:s)", "GET /api/s-error?s=P0001", "400 as raised|P0001"),
    "s_headers": ("-- X-Count: {n}\nselect :n as n, 1 as m;\nselect 2", "GET /api/s-headers?n=3",
                  '200 {"result1":[{"n":"3","m":1}],"result2":[2]}', {"x-count": "3"}),
    "s_no_rows": ("select 1 where false;\nselect id, kind from bed where false", "GET /api/s-no-rows",
                  '200 {"result1":[],"result2":[]}'),
    "s_json": ("select '{\"a\":1}'::json;\n-- @single\nselect array[1,2]", "GET /api/s-json",
               '200 {"result1":[{"a":1}],"result2":[1,2]}'),
    "s_bytea": ("select '\\x41'::bytea;\nselect 1", "GET /api/s-bytea", '200 {"result1":["\\\\x41"],"result2":[1]}'),
    "s_default": ("-- @param a default 'x'\nselect :a as a, 1 as n;\nselect 2", "GET /api/s-default",
                  '200 {"result1":[{"a":"x","n":1}],"result2":[2]}'),
    "s_call": ("call work(4, null);\nselect 1", "GET /api/s-call", '200 {"result1":[8],"result2":[1]}'),
    "s_path": ("-- HTTP GET /s/path/{id}\nselect :id::int as id, 1 as n;\nselect 2", "GET /s/path/5",
               '200 {"result1":[{"id":5,"n":1}],"result2":[2]}'),
    "s_quoted_name": ("-- @result a\"b\nselect 1;\nselect 2", "GET /api/s-quoted-name",
                      '200 {"a\\"b":[1],"result2":[2]}'),
    "s_upper": ("-- @RESULT Up\n-- @SINGLE\nselect 1;\nselect 2; -- @SKIP", "GET /api/s-upper", '200 {"Up":1}'),
}  # fmt: skip


def _with_tag(text: str) -> str:
    return text if "HTTP" in text else f"-- HTTP\n{text}"


def _request_cases(rows: dict[str, Row]) -> list[RequestContext]:
    return [row[1:] for row in rows.values()]


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    rows = {**RESULTS, **TEXTS, **SEVERAL}
    files = {f"{name}.sql": _with_tag(row[0]) for name, row in rows.items()}
    return serve(database, SCHEMA, file_settings(write_files(tmp_path_factory.mktemp("files"), files)))


@pytest.mark.parametrize("context", cases(_request_cases(RESULTS)))
def test_file_returns_the_result_of_its_statement(service: Service, context: RequestContext) -> None:
    check(service, context)


@pytest.mark.parametrize("context", cases(_request_cases(TEXTS)))
def test_file_is_parsed_like_by_postgresql(service: Service, context: RequestContext) -> None:
    check(service, context)


def test_several_statements_return_one_json_object(service: Service) -> None:
    check_in_order(service, _request_cases(SEVERAL))


def test_duplicate_member_names_are_logged_at_the_start(service: Service) -> None:
    assert "GET /api/r-spread-twice: two columns are called 'w' in one row, of which" in service.log
    assert "GET /api/r-flat: two columns" not in service.log


@pytest.mark.parametrize(
    "message",
    [
        "a transaction is begun and not ended, so nothing that is done in it stays; end it with commit",
        "the response of a file with several statements is one JSON object; raw has no effect",
        "'@skip it' skips nothing: skip stands alone in its comment line",
        "'@result' names no result: a name has to follow",
        "'@result lost' has no effect, as no statement follows: write it in front of its statement",
    ],
)
def test_lines_without_effect_in_a_file_are_logged_at_the_start(service: Service, message: str) -> None:
    assert f"s_left_open.sql: {message}" in service.log
    assert service.log.count(message) == 1
