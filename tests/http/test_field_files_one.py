"""Files of one statement as users of NpgsqlRest write them: discovery, parameters, and responses (sql-files-1 to
sql-files-22)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, cases, check, check_in_order
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve

SCHEMA = """
create type dims as (w int, note text);
create type crate as (id int, inner_dims dims);
create type mood as enum ('calm', 'wild');
create domain code as text check (value ~ '^[a-z]+$');
create table bed (id int primary key, kind text, size dims);
insert into bed values (1, 'fern', '(4,"a, b")'), (2, 'moss', null);
create table log (id int generated always as identity primary key, note text unique);
create function add_up(_a int, _b int default 10) returns int language sql as 'select _a + _b';
"""

SELECT = "select 1 as a, 2 as b"

PATHS = {
    "Sub Folder/Plant List.sql": f"-- HTTP\n{SELECT}",
    "UPPER_case_Name.sql": f"-- HTTP GET\n{SELECT}",
    "dotted.name.sql": f"-- HTTP GET\n{SELECT}",
    "_leading.sql": f"-- HTTP GET\n{SELECT}",
    "get_changes.sql": "-- HTTP\nupdate bed set kind = kind where id = 0",
    "own_path.sql": f"-- HTTP GET /Own/Path\n{SELECT}",
    "path_only.sql": f"-- HTTP relative/way\n{SELECT}",
    "path_line.sql": f"-- HTTP GET\n-- PATH /by/line\n{SELECT}",
    "patch_method.sql": f"-- HTTP PATCH\n{SELECT}",
    "strange_method.sql": f"-- HTTP HEAD /strange/way\n{SELECT}",
    "four_words.sql": f"-- HTTP POST /four/words too many\n{SELECT}",
    "lower_case.sql": f"-- http get /lower/case\n{SELECT}",
    "with_at.sql": f"-- @HTTP GET /with/at\n{SELECT}",
    "query_method.sql": "-- HTTP QUERY\nselect :a as a, 1 as n",
    "query_by_query.sql": "-- HTTP QUERY\n-- param_type query\nselect :a as a, 1 as n",
    "get_by_body.sql": "-- HTTP GET\n-- request_param_type body_json\nselect :a as a, 1 as n",
    "post_by_query.sql": "-- HTTP POST\n-- @request_param_type query_string\nselect :a as a, 1 as n",
    "reset_by_http.sql": "-- param_type body\n-- HTTP GET\nselect :a as a, 1 as n",
    "in_path.sql": "-- HTTP GET /in/{bed_id}/path\nselect :bed_id::int as id, :b as b",
    "in_api_path.sql": "-- HTTP GET /api-in/{bedid}\nselect :bed_id::int as id, 1 as n",
    "optional_path.sql": "-- HTTP GET /optional/{bed_id?}\n-- param bed_id type is int default 7\n"
    "select :bed_id as id, 1 as n",
    "path_and_body.sql": "-- HTTP POST /path-and-body/{a}\nselect :a as a, :b as b",
    "put_file.sql": "-- HTTP PUT /put-file\nselect :a as a, 1 as n",
    "delete_file.sql": "-- HTTP DELETE /delete-file\nselect :a as a, 1 as n",
    "two_tags.sql": f"-- HTTP GET /first/tag\n-- HTTP GET /second/tag\n{SELECT}",
    "switched_off.sql": f"-- HTTP GET\n-- disabled\n{SELECT}",
    "off_and_on.sql": f"-- HTTP GET\n-- disabled\n-- enabled\n{SELECT}",
    "internal_only.sql": f"-- HTTP GET\n-- internal\n{SELECT}",
    "tag_block.sql": f"-- HTTP GET\n-- for admins only\n-- X-Seen: yes\n{SELECT}",
    "only_prose.sql": f"-- A file like any other.\n{SELECT}",
    "https.sql": f"-- https is no HTTP line\n{SELECT}",
}

AB = '200 [{"a":1,"b":2}]'

PATH_CASES: list[RequestContext] = [
    ("GET /api/plant-list", AB),
    ("GET /API/Plant-List/", AB),
    ("GET /api/sub-folder/plant-list", "404"),
    ("GET /api/upper-case-name", AB),
    ("GET /api/dotted.name", AB),
    ("GET /api/-leading", AB),
    ("POST /api/get-changes", "204"),
    ("GET /api/get-changes", "405"),
    ("GET /own/path", AB),
    ("GET /OWN/Path", AB),
    ("GET /api/own-path", "404"),
    ("GET /relative/way", AB),
    ("GET /by/line", AB),
    ("PATCH /api/patch-method", AB),
    ("GET /api/patch-method", "405"),
    ("GET /patch", "404"),
    ("GET /strange/way", AB),
    ("GET /api/four-words", AB),
    ("POST /four/words", "404"),
    ("GET /lower/case", AB),
    ("GET /with/at", AB),
    ('QUERY /api/query-method {"a":"x"}', '200 [{"a":"x","n":1}]'),
    ("QUERY /api/query-method?a=x", "404 'a'"),
    ("GET /api/query-method", "405"),
    ("QUERY /api/query-by-query?a=x", '200 [{"a":"x","n":1}]'),
    ('GET /api/get-by-body {"a":"x"}', '200 [{"a":"x","n":1}]'),
    ("GET /api/get-by-body?a=x", "404 'a'"),
    ("POST /api/post-by-query?a=x", '200 [{"a":"x","n":1}]'),
    ('POST /api/post-by-query {"a":"x"}', "404 'a'"),
    ("GET /api/reset-by-http?a=x", '200 [{"a":"x","n":1}]'),
    ("GET /in/4/path?b=x", '200 [{"id":4,"b":"x"}]'),
    ("GET /in/4/path", "404 'b'"),
    ("GET /in/x/path?b=x", "400 'bedId'|integer"),
    ("GET /in/4/path?b=x&bedId=9", '200 [{"id":4,"b":"x"}]'),
    ("GET /in/a%20b/path?b=x", "400 'bedId'|integer"),
    ("GET /api-in/5", '200 [{"id":5,"n":1}]'),
    ("GET /optional/3", '200 [{"id":3,"n":1}]'),
    ("GET /optional", '200 [{"id":7,"n":1}]'),
    ("GET /optional/", '200 [{"id":7,"n":1}]'),
    ("GET /optional?bed_id=8", "404 unknown parameter 'bed_id'"),
    ("GET /optional?bedId=8", '200 [{"id":8,"n":1}]'),
    ('POST /path-and-body/1 {"b":"x"}', '200 [{"a":"1","b":"x"}]'),
    ('POST /path-and-body/1 {"b":"x","a":"2"}', '200 [{"a":"1","b":"x"}]'),
    ("POST /path-and-body/1 {}", "404 'b'"),
    ("POST /path-and-body/1 [1]", "400"),
    ('PUT /put-file {"a":"x"}', '200 [{"a":"x","n":1}]'),
    ('DELETE /delete-file {"a":"x"}', '200 [{"a":"x","n":1}]'),
    ("DELETE /delete-file?a=x", "404 'a'"),
    ("GET /second/tag", AB),
    ("GET /first/tag", "404"),
    ("GET /api/switched-off", "404"),
    ("GET /api/off-and-on", AB),
    ("GET /api/internal-only", "404"),
    ("GET /api/tag-block", AB, {"x-seen": "yes"}),
    ("GET /api/only-prose", "404"),
    ("GET /api/https", "404"),
    ("POST /api/plant-list", "405"),
    ("GET /api/plant-list?x=1", "404 unknown parameter 'x'"),
]

METHODS = {
    "m_insert.sql": "-- HTTP\ninsert into log (note) values (:note) returning note, 1 as n",
    "m_upsert.sql": "-- HTTP\ninsert into log (note) values (:note) on conflict (note) do update set note = "
    "excluded.note"
    " returning note, 1 as n",
    "m_nothing.sql": "-- HTTP\ninsert into log (note) values (:note) on conflict do nothing",
    "m_delete.sql": "-- HTTP\ndelete from log where note = :note returning note, 1 as n",
    "m_cte.sql": "-- HTTP\nwith gone as (delete from log where note = :note returning note) select note, 1 as n "
    "from gone",
    "m_string.sql": "-- HTTP\nselect 'delete update insert' as a, 2 as b",
    "m_dollar.sql": "-- HTTP\nselect $$ delete $$ as a, $q$ update $q$ as b",
    "m_comment.sql": "-- HTTP\nselect 1 as a, /* delete */ 2 as b -- update",
    "m_part.sql": "-- HTTP\nselect 1 as updated_at, 2 as insert_count",
    "m_quoted.sql": '-- HTTP\nselect 1 as "update", 2 as b',
    "m_lock.sql": "-- HTTP\nselect id, kind from bed where id = 1 for update",
    "m_upper.sql": "-- HTTP\nDELETE FROM log WHERE note = 'none'",
    "m_both.sql": "-- HTTP\nupdate log set note = 'delete' where id = -1 and exists (select 'insert')",
    "m_do.sql": "-- HTTP\ndo $$ begin null; end $$",
    "m_do_tag.sql": "-- HTTP\nDO $body$ begin perform 1; end $body$;",
    "m_call.sql": "-- HTTP\nselect add_up(1) as a, add_up(1, 2) as b",
    "m_values.sql": "-- HTTP\nvalues (1, 'x'), (2, 'y')",
    "m_table.sql": "-- HTTP\ntable bed order by id",
    "m_merge.sql": "-- HTTP\ntruncate log",
}

METHOD_CASES: list[RequestContext] = [
    ('PUT /api/m-insert {"note":"m1"}', '200 [{"note":"m1","n":1}]'),
    ('PUT /api/m-insert {"note":"m1"}', "409 23505"),
    ("PUT /api/m-insert?note=x", "404 'note'"),
    ('POST /api/m-upsert {"note":"m1"}', '200 [{"note":"m1","n":1}]'),
    ("PUT /api/m-upsert", "405"),
    ('PUT /api/m-nothing {"note":"m1"}', "204"),
    ("DELETE /api/m-delete?note=m1", '200 [{"note":"m1","n":1}]'),
    ("DELETE /api/m-delete?note=m1", "200 []"),
    ("DELETE /api/m-delete", "404 'note'"),
    ("DELETE /api/m-cte?note=m1", "200 []"),
    ("GET /api/m-string", '200 [{"a":"delete update insert","b":2}]'),
    ("GET /api/m-dollar", '200 [{"a":" delete ","b":" update "}]'),
    ("GET /api/m-comment", '200 [{"a":1,"b":2}]'),
    ("GET /api/m-part", '200 [{"updatedAt":1,"insertCount":2}]'),
    ("POST /api/m-quoted", '200 [{"update":1,"b":2}]'),
    ("POST /api/m-lock", '200 [{"id":1,"kind":"fern"}]'),
    ("DELETE /api/m-upper", "204"),
    ("POST /api/m-both", "204"),
    ("POST /api/m-do", "204"),
    ("POST /api/m-do-tag", "204"),
    ("GET /api/m-call", '200 [{"a":11,"b":3}]'),
    ("GET /api/m-values", '200 [{"column1":1,"column2":"x"},{"column1":2,"column2":"y"}]'),
    (
        "GET /api/m-table",
        '200 [{"id":1,"kind":"fern","w":4,"note":"a, b"},{"id":2,"kind":"moss","w":null,"note":null}]',
    ),
    ("GET /api/m-merge", "204"),
]

PARAMETERS = {
    "p_positional.sql": "-- HTTP GET\nselect $1 as a, $2::int as b",
    "p_named.sql": "-- HTTP GET\nselect :first_name as a, :_x1::int as b, :First_Name as c",
    "p_renamed.sql": "-- HTTP GET\n-- @param $1 from_date\n-- @param $2 is toDate\nselect $1 as a, $2 as b",
    "p_typed.sql": "-- HTTP GET\n-- @param $1 n int\n-- @param $2 is t timestamp\n-- parameter $3 flag boolean\n"
    "select $1 as n, $2 as t, $3 as flag",
    "p_colon_typed.sql": "-- HTTP GET\n-- @param :bed_id int\n-- @param :at type is date\nselect :bed_id as id, :at "
    "as at",
    "p_default.sql": "-- HTTP GET\n-- @param $1 a default 'two words'\n-- @param $2 b int = 5\n-- @param $3 c "
    "default null\n"
    "-- @param $4 d default\n-- @param $5 e default one more words\nselect $1 as a, $2 as b, $3 as c, $4 as d, $5 as e",
    "p_named_default.sql": "-- HTTP GET\n-- @param kind default 'fern'\n-- @param lim type is int default 1\n"
    "select id, kind from bed where kind = :kind limit :lim",
    "p_default_null_word.sql": "-- HTTP GET\n-- @param a default 'null'\n-- @param b default NULL\nselect :a as a, :"
    "b as b",
    "p_array.sql": "-- HTTP GET\n-- @param $1 ids int[]\nselect id, kind from bed where id = any($1) order by id",
    "p_text_array.sql": "-- HTTP POST\n-- @param :names text[]\nselect :names as names, cardinality(:names) as n",
    "p_repeat.sql": "-- HTTP GET\nselect :a as a, 1 as n",
    "p_json.sql": "-- HTTP POST\n-- param $1 doc jsonb\nselect $1 as doc, $1 ->> 'x' as x",
    "p_operators.sql": "-- HTTP GET\nselect '{\"a\":1}'::jsonb ? 'a' as a, '{\"b\":1}'::jsonb ?| array['b'] as b",
    "p_slices.sql": "-- HTTP GET\nselect (array[1,2,3])[1:2] as a, (array[1,2,3])[2 : 3] as b",
    "p_slice_name.sql": "-- HTTP GET\n-- param n type is int\nselect (array[1,2,3])[1 : :n] as a, 1 as one",
    "p_assign.sql": "-- HTTP GET\nselect add_up(_a := 1) as a, add_up(_a => 2, _b := 3) as b",
    "p_casts.sql": "-- HTTP GET\nselect '1'::int::text as a, :a::int::text as b",
    "p_quotes.sql": "-- HTTP GET\nselect ':a $9' as a, $$:b $8$$ as b, :c as \":d\" -- :e $7",
    "p_escape.sql": "-- HTTP GET\nselect E'it\\'s :a' as a, 'it''s :b' as b, U&'\\0061' as c",
    "p_time.sql": "-- HTTP GET\nselect to_char(timestamp '2026-01-02 03:04:05', 'HH24:MI:SS') as a, 1 as b",
    "p_null_unknown.sql": "-- HTTP GET\nselect coalesce(:a, 'none') as a, :b::int as b",
    "p_skipped_number.sql": "-- HTTP GET\nselect $2::text as b, 1 as n",
    "p_cast_types.sql": "-- HTTP GET\nselect :a::int as a, :b::boolean as b, :c::numeric as c, :d::date as d, :e::"
    "uuid as e",
    "p_composite.sql": "-- HTTP GET\n-- @param $1 size dims\nselect ($1::dims).w as w, ($1::dims).note as note",
    "p_enum.sql": "-- HTTP GET\nselect :m::mood as m, :c::code as c",
    "p_virtual.sql": "-- HTTP GET\n-- define_param fmt\n-- define_param Num int\n-- X-Fmt: {fmt}-{Num}\nselect 1 as "
    "a, 2 as b",
    "p_placeholder.sql": "-- HTTP GET\n-- X-Bed: no {bedId} of {bed_id}\n-- Content-Type: text/x-{kind}\n"
    "select :bed_id::int as id, :kind as kind",
    "p_limit.sql": "-- HTTP GET\nselect id, kind from bed order by id limit :n offset :skip",
    "p_like.sql": "-- HTTP GET\nselect id, kind from bed where kind like '%' || :part || '%' order by id",
    "p_in.sql": "-- HTTP GET\nselect id, kind from bed where id in (:a, :b) order by id",
    "p_camel.sql": "-- HTTP GET\nselect :bedId::int as id, :BED as b",
    "p_raw_body.sql": "-- HTTP POST\n-- body_parameter_name content\nselect :content as content, :n::int as n",
    "p_null_literal.sql": "-- HTTP GET\n-- query_string_null_handling null_literal\nselect :a as a, 1 as n",
    "p_empty_null.sql": "-- HTTP GET\n-- query_string_null_handling empty_string\nselect :a as a, 1 as n",
    "p_validated.sql": "-- HTTP GET\n-- validate email using required, email\nselect :email as email, 1 as n",
    "p_resolved.sql": "-- HTTP GET\n-- kind = select kind from bed where id = {id}::int\nselect :id::int as id, :"
    "kind as kind",
    "p_hash.sql": "-- HTTP POST\n-- param digest is hash of secret\nselect :secret as secret, length(:digest) as "
    "digest",
    "p_unnamed_default.sql": "-- HTTP GET\n-- param $1 default 3\n-- param $2 type is int\nselect $1 as a, $2 as b",
    "p_semicolon.sql": "-- HTTP GET\n-- @param $1 n int;\nselect $1 as n, 1 as one;",
}

PARAMETER_CASES: list[RequestContext] = [
    ("GET /api/p-positional?$1=x&$2=3", '200 [{"a":"x","b":3}]'),
    ("GET /api/p-positional?%241=x&%242=3", '200 [{"a":"x","b":3}]'),
    ("GET /api/p-positional?$1=x", "404 '$2'"),
    ("GET /api/p-positional?$1=x&$2=", "400 invalid input syntax"),
    ("GET /api/p-named?firstName=n&x1=4", '200 [{"a":"n","b":4,"c":"n"}]'),
    ("GET /api/p-named?first_name=n&x1=4", "404 unknown parameter 'first_name'"),
    ("GET /api/p-renamed?from_date=a&toDate=b", '200 [{"a":"a","b":"b"}]'),
    ("GET /api/p-renamed?fromDate=a&toDate=b", "404 'fromDate'"),
    ("GET /api/p-typed?n=1&t=2026-01-02T03:04:05&flag=true", '200 [{"n":1,"t":"2026-01-02T03:04:05","flag":true}]'),
    ("GET /api/p-typed?n=&t=&flag=", '200 [{"n":null,"t":null,"flag":null}]'),
    ("GET /api/p-typed?n=one&t=2026-01-02&flag=true", "400 parameter 'n' (integer)"),
    ("GET /api/p-typed?n=1&t=2026-01-02&flag=yes", "400 parameter 'flag' (boolean)"),
    ("GET /api/p-colon-typed?bedId=3&at=2026-02-01", '200 [{"id":3,"at":"2026-02-01"}]'),
    ("GET /api/p-colon-typed?bed_id=3&at=2026-02-01", "404 'bed_id'"),
    ("GET /api/p-default", '200 [{"a":"two words","b":5,"c":null,"d":null,"e":"one"}]'),
    ("GET /api/p-default?a=&b=6&c=7", '200 [{"a":"","b":6,"c":"7","d":null,"e":"one"}]'),
    ("GET /api/p-default?b=x", "400 parameter 'b' (integer)"),
    ("GET /api/p-named-default", '200 [{"id":1,"kind":"fern"}]'),
    ("GET /api/p-named-default?kind=moss", '200 [{"id":2,"kind":"moss"}]'),
    ("GET /api/p-named-default?lim=0", "200 []"),
    ("GET /api/p-default-null-word", '200 [{"a":"null","b":null}]'),
    ("GET /api/p-array?ids=2&ids=1", '200 [{"id":1,"kind":"fern"},{"id":2,"kind":"moss"}]'),
    ("GET /api/p-array?ids=2", '200 [{"id":2,"kind":"moss"}]'),
    ("GET /api/p-array?ids=1,2", "400 'ids' (integer)"),
    ("GET /api/p-array", "404 'ids'"),
    ('POST /api/p-text-array {"names":["a","b,c",null,""]}', '200 [{"names":["a","b,c",null,""],"n":4}]'),
    ('POST /api/p-text-array {"names":[]}', '200 [{"names":[],"n":0}]'),
    ("GET /api/p-repeat?a=1&a=2", "400 'a'|takes one value, and has 2"),
    ("GET /api/p-repeat?a", '200 [{"a":"","n":1}]'),
    ("GET /api/p-repeat?a=a%2Bb+c%20d", '200 [{"a":"a+b c d","n":1}]'),
    ("GET /api/p-repeat?a=%D0%B6", '200 [{"a":"ж","n":1}]'),
    ('POST /api/p-json {"doc":{"x":"y"}}', '200 [{"doc":{"x": "y"},"x":"y"}]'),
    ('POST /api/p-json {"doc":"{\\"x\\":1}"}', '200 [{"doc":{"x": 1},"x":"1"}]'),
    ("GET /api/p-operators", '200 [{"a":true,"b":true}]'),
    ("GET /api/p-slices", '200 [{"a":[1,2],"b":[2,3]}]'),
    ("GET /api/p-slice-name?n=2", '200 [{"a":[1,2],"one":1}]'),
    ("GET /api/p-assign", '200 [{"a":11,"b":5}]'),
    ("GET /api/p-casts?a=7", '200 [{"a":"1","b":"7"}]'),
    ("GET /api/p-quotes?c=z", '200 [{"a":":a $9","b":":b $8",":d":"z"}]'),
    ("GET /api/p-escape", '200 [{"a":"it\'s :a","b":"it\'s :b","c":"a"}]'),
    ("GET /api/p-time", '200 [{"a":"03:04:05","b":1}]'),
    ("GET /api/p-null-unknown?a=&b=1", '200 [{"a":"","b":1}]'),
    ("GET /api/p-skipped-number?$1=x&$2=y", '200 [{"b":"y","n":1}]'),
    ("GET /api/p-skipped-number?$2=y", "404 '$1'"),
    (
        "GET /api/p-cast-types?a=1&b=t&c=1.50&d=2026-01-02&e=00000000-0000-0000-0000-000000000001",
        '200 [{"a":1,"b":true,"c":1.50,"d":"2026-01-02","e":"00000000-0000-0000-0000-000000000001"}]',
    ),
    ("GET /api/p-cast-types?a=x&b=t&c=1&d=2026-01-02&e=0", "400 'a'|integer"),
    ("GET /api/p-composite?size=(4,%22a%20b%22)", '200 [{"w":4,"note":"a b"}]'),
    ("GET /api/p-composite?size=(4,)", '200 [{"w":4,"note":null}]'),
    ("GET /api/p-enum?m=calm&c=abc", '200 [{"m":"calm","c":"abc"}]'),
    ("GET /api/p-enum?m=none&c=abc", "400 'm'|enum mood"),
    ("GET /api/p-enum?m=calm&c=A1", "400 'c'|not allowed"),
    ("GET /api/p-virtual?fmt=pdf&Num=3", AB, {"x-fmt": "pdf-3"}),
    ("GET /api/p-virtual", AB, {"x-fmt": "{fmt}-{Num}"}),
    ("GET /api/p-virtual?num=3", "404 'num'"),
    ("GET /api/p-placeholder?bedId=3&kind=k", '200 [{"id":3,"kind":"k"}]',
     {"x-bed": "no 3 of 3", "content-type": "text/x-k"}),
    ("GET /api/p-limit?n=1&skip=1", '200 [{"id":2,"kind":"moss"}]'),
    ("GET /api/p-limit?n=-1&skip=0", "400 LIMIT must not be negative|2201W"),
    ("GET /api/p-limit?n=1&skip=-1", "400 OFFSET must not be negative|2201X"),
    ("GET /api/p-like?part=er", '200 [{"id":1,"kind":"fern"}]'),
    ("GET /api/p-like?part='%20or%201=1%20--", "200 []"),
    ("GET /api/p-in?a=1&b=2", '200 [{"id":1,"kind":"fern"},{"id":2,"kind":"moss"}]'),
    ("GET /api/p-camel?bedId=1&bED=x", '200 [{"id":1,"b":"x"}]'),
    ("POST /api/p-raw-body?n=4 any {text}", '200 [{"content":"any {text}","n":4}]'),
    ("POST /api/p-raw-body?n=4", '200 [{"content":"","n":4}]'),
    ("POST /api/p-raw-body any", "404 'n'"),
    ("GET /api/p-null-literal?a=NULL", '200 [{"a":null,"n":1}]'),
    ("GET /api/p-null-literal?a=", '200 [{"a":"","n":1}]'),
    ("GET /api/p-empty-null?a=", '200 [{"a":null,"n":1}]'),
    ("GET /api/p-empty-null?a=null", '200 [{"a":"null","n":1}]'),
    ("GET /api/p-validated?email=a@b.c", '200 [{"email":"a@b.c","n":1}]'),
    ("GET /api/p-validated?email=ab", "400 Parameter 'email' must be a valid email address"),
    ("GET /api/p-validated?email=", "400 Parameter 'email' is required"),
    ("GET /api/p-resolved?id=2", '200 [{"id":2,"kind":"moss"}]'),
    ("GET /api/p-resolved?id=2&kind=x", '200 [{"id":2,"kind":"moss"}]'),
    ("GET /api/p-resolved?id=9", '200 [{"id":9,"kind":null}]'),
    ('POST /api/p-hash {"secret":"s"}', '200 [{"secret":"s","digest":64}]'),
    ("GET /api/p-unnamed-default?$2=4", '200 [{"a":"3","b":4}]'),
    ("GET /api/p-semicolon?n=4", '200 [{"n":4,"one":1}]'),
]  # fmt: skip


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = write_files(tmp_path_factory.mktemp("files"), {**PATHS, **METHODS, **PARAMETERS})
    return serve(database, SCHEMA, file_settings(folder) | {"ValidationOptions:Enabled": "true"})


@pytest.mark.parametrize("context", cases(PATH_CASES))
def test_file_is_served_at_its_path_and_method(service: Service, context: RequestContext) -> None:
    check(service, context)


def test_statement_kind_of_a_file_determines_its_method(service: Service) -> None:
    check_in_order(service, METHOD_CASES)


@pytest.mark.parametrize("context", cases(PARAMETER_CASES))
def test_parameters_reach_the_statement(service: Service, context: RequestContext) -> None:
    check(service, context)
