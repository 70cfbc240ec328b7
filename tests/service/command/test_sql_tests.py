"""`rowcall --test` as the real command (testing-1 to testing-13). One run over a folder of files that each show one
thing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.waiting import wait_until

SQL = """
create table bed (id int primary key, kind text not null unique);
create table stored (what text);
insert into bed values (1, 'fern');
create function beds() returns setof bed language sql as $$ select * from bed order by id $$;
comment on function beds is 'HTTP GET /beds
allow_anonymous';
create function bed_of(_id int, _kind text default 'any') returns text language sql as
$$ select kind from bed where id = _id $$;
comment on function bed_of is 'HTTP GET /beds/{_id}
allow_anonymous';
create function plant(_id int, _kind text) returns text language plpgsql as $$
begin
  raise notice 'planting %', _kind;
  insert into bed values (_id, _kind);
  return _kind;
end $$;
comment on function plant is 'HTTP POST /beds
authorize gardener';
create function me() returns text language sql as $$ select current_setting('request.user_id', true) $$;
comment on function me is 'HTTP GET /me
allow_anonymous
user_context';
create function resolved(_owner text, _bed int) returns text language sql as $$ select _owner $$;
comment on function resolved is 'HTTP GET /resolved
allow_anonymous
_owner = select kind from bed where id = {_bed}';
create procedure water(_id int) language plpgsql as $$ begin update bed set kind = 'wet' where id = _id; end $$;
comment on procedure water is 'HTTP POST /water
allow_anonymous';
create function change(_id int, _kind text) returns text language sql as
$$ update bed set kind = _kind where id = _id returning kind $$;
comment on function change is 'HTTP PATCH /beds/{_id}
allow_anonymous';
create function asked(_kind text) returns int language sql stable as $$ select id from bed where kind = _kind $$;
comment on function asked is 'HTTP QUERY /beds
allow_anonymous';
create function spelled() returns text language sql as $$ select '' $$;
comment on function spelled is 'HTTP GET /spelled
allow_anonymous
X-DATA-Id: 7';
create function crash() returns int language sql as $$ select pg_terminate_backend(pg_backend_pid())::int $$;
comment on function crash is 'HTTP GET /crash
allow_anonymous';
create function sleep() returns void language sql as $$ insert into stored values ('asleep'); select pg_sleep(600) $$;
comment on function sleep is 'HTTP GET /sleep
allow_anonymous';
create function inner_secret() returns int language sql as $$ select 42 $$;
comment on function inner_secret is 'HTTP GET /inside
allow_anonymous
internal';
create function cached() returns float language sql as $$ select random() $$;
comment on function cached is 'HTTP GET /cached
allow_anonymous
cached
cache_profile long';
create function large() returns table (oid oid) language sql as
$$ select lo_from_bytea(0, convert_to(repeat('0123456789', 200000), 'utf8')) $$;
comment on function large is 'HTTP GET /large
allow_anonymous
download';
create function numbers() returns setof int language sql as $$ select generate_series(1, 200000) $$;
comment on function numbers is 'HTTP GET /numbers
allow_anonymous';
create function enter(_name text) returns table (status int, user_id text) language sql as $$ select 200, _name $$;
comment on function enter is 'HTTP POST /enter
login';
create function protected() returns text language sql as $$ select 'in' $$;
comment on function protected is 'HTTP GET /protected
authorize
basic_auth ana pots';
create type rate as (body text, status_code int);
comment on type rate is 'GET http://rates.invalid/{_currency}';
create function rate_of(_currency text, _rate rate) returns text language sql as $$ select (_rate).body $$;
comment on function rate_of is 'HTTP GET /rate
allow_anonymous';
create function chosen() returns text language plpgsql as $$
begin
  perform set_config('response.status', '201', true);
  return 'made';
end $$;
comment on function chosen is 'HTTP POST /chosen
allow_anonymous';
create function chosen_row() returns table (code int, kind text) language sql stable as $$ select 202, 'fern' $$;
comment on function chosen_row is 'HTTP GET /chosen
allow_anonymous
single
response_status_column code';
create function away() returns text language sql as $$ select '' $$;
comment on function away is 'HTTP GET /away
allow_anonymous
proxy http://elsewhere.invalid';
"""

ENDPOINT = """-- HTTP POST /repot
-- allow_anonymous
begin;
update bed set kind = :kind where id = 1;
-- @result kind
-- @single
select kind from bed where id = 1;
commit;
select 1 / :divisor::int as later;
"""

FILES = {
    "uncommitted": """begin;
insert into bed values (2, 'moss');
/* GET /beds */
select body::jsonb = '[{"id":1,"kind":"fern"},{"id":2,"kind":"moss"}]', 'the request sees it' from _response;
select content_type = 'application/json' and is_success and headers ? 'Content-Type' from _response;
""",
    "chosen_status": """begin;
/* POST /chosen */
select status = 201 and body = 'made', 'status ' || status || coalesce(body, ' without body') from _response_1;
/* GET /chosen */
select status = 202 and body::jsonb = '{"kind": "fern"}', status || coalesce(body, ' without body') from _response_2;
""",
    "claims": """begin;
/*
POST /beds

{"id": 2, "kind": "moss"}
*/
select status = 401, 'unknown' from _response_1;
/*
POST /beds
# @claim user_roles=cook

{"id": 2, "kind": "moss"}
*/
select status = 403, 'signed in' from _response_2;
/*
POST /beds
# @claim user_id=7
# @claim user_roles=cook
# @claim user_roles=gardener

{"id": 2, "kind": "moss"}
*/
select (status, body) = (200, 'moss'), 'one of the roles' from _response_3;
""",
    "context": """begin;
/*
GET /me
# @claim user_id=7
*/
/* GET /me */
select array_agg(body order by n) = array['7', ''], 'each has its own'
from (select 1 as n, * from _response_1 union all select 2, * from _response_2) as both_of_them;
select set_config('request.user_id', 'set by the test', true);
/*
GET /me
# @claim user_id=8
*/
select body = '8' from _response_3;
select current_setting('request.user_id') = 'set by the test', 'and the test has its own again';
""",
    "failing_request": """begin;
insert into bed values (2, 'moss');
/*
POST /beds
# @claim user_roles=gardener

{"id": 2, "kind": "other"}
*/
select status = 409, 'refused' from _response;
select count(*) = 2, 'what the test did before is still there' from bed;
""",
    "resolved": """begin;
insert into bed values (5, 'rose');
/* GET /resolved?bed=5 */
select body = 'rose', 'sql of the comment sees it' from _response;
""",
    "own_transaction": """begin;
/*
POST /repot

{"kind": "aloe", "divisor": 1}

HTTP/1.1 200

{"result1": 1, "kind": "aloe", "result3": [1]}
*/
rollback;
select kind = 'fern', 'its commit did not end the transaction of the test' from bed where id = 1;
""",
    "part_of_a_file": """begin;
/*
POST /repot

{"kind": "aloe", "divisor": 0}
*/
select status >= 400, 'the last statement fails' from _response;
select kind = 'aloe', 'what the file has committed before stays' from bed where id = 1;
""",
    "procedure": """begin;
/*
POST /water

{"id": 1}
*/
select status = 204 and (select kind = 'wet' from bed where id = 1), 'it is called' from _response;
""",
    "alone": """/* GET /beds */
create temp table seen as select * from _response;
select status = 200, 'without a transaction' from seen;
""",
    "internal": """/* GET /inside */
select body = '42', 'can be reached' from _response;
""",
    "cached": """/* GET /cached */
/* GET /cached */
select a.body <> b.body, 'nothing is cached' from _response_1 a, _response_2 b;
""",
    "unknown": """/* GET /nowhere */
select (status, body, content_type, headers, is_success) is not distinct from (404, null, null, null, false)
from _response;
""",
    "basic": """/*
GET /protected
# @claim user_id=7
*/
select status = 200 from _response_1;
/* GET /protected */
select status = 401 from _response_2;
""",
    "named": """/*
GET /beds
# @response answer
*/
select status = 200 from answer;
""",
    "stub": """/*
STUB GET http://rates.invalid/{{any}}
HTTP/1.1 200

1.25
*/
/*
GET /rate?currency=eur

HTTP/1.1 200

1.25
*/
/*
STUB GET http://elsewhere.invalid/away
HTTP/1.1 201

far away
*/
/*
GET /away

HTTP/1.1 201

far away
*/
""",
    "failed_commit": """begin;
create temp table pair (id int unique deferrable initially deferred);
insert into pair values (1), (1);
commit;
/* EXPECT ERROR 23505 pair */
select to_regclass('pair') is null, 'the transaction has ended';
""",
    "expectations": """begin;
select * from bed order by id;
/* EXPECT ROWS
id | kind
1  | fern
*/
insert into bed values (1, 'fern');
/* EXPECT ERROR 23505 bed_pkey */
do $$ begin raise notice 'It rains'; end $$;
/* EXPECT NOTICE it rains */
select true where false;
""",
    "included": """-- @tag with_include
\\ir parts/fixture.sql
select count(*) = 2 from bed;
""",
    "nothing": "select 1;",
    "headers": """/* GET /spelled */
select headers = '{"Content-Type": "text/plain", "X-DATA-Id": "7"}', 'as the comment spells them' from _response;
""",
    "methods": """begin;
/*
PATCH /beds/1

{"kind": "ivy"}

HTTP/1.1 200

ivy
*/
/*
QUERY /beds

{"kind": "ivy"}

HTTP/1.1 200

1
*/
""",
    "head": """begin;
/* HEAD /beds/1 */
select (status, body, headers ->> 'Content-Length') = (200, '', '4'), 'without a body' from _response_1;
/*
HEAD /beds
# @claim user_roles=gardener
*/
select status = 200 and body = '', 'of a set' from _response_2;
/* HEAD /water */
select status = 404, 'POST only' from _response_3;
""",
    "streamed": """begin;
/* GET /large */
select status = 200 and length(body) = 2000000, 'a large object' from _response_1;
/* HEAD /large */
select status = 200 and body = '', 'its head' from _response_2;
/*
GET /numbers
Accept: text/csv
*/
select status = 200 and length(body) > 1000000 and body like '%200000%', 'an export' from _response_3;
select count(*) = 1, 'the test goes on' from bed;
""",
    "doubtful": """-- @tags slow
-- @connection
/* OPTIONS /beds */
/*
GET /me
# @clam user_id=7
*/
/* EXPECT ROW */
select true;
""",
}
WARNINGS = {
    "doubtful.test.sql:1: '@tags slow' has no effect; the head of a test has @setup",
    "doubtful.test.sql:2: '@connection' has no effect",
    "doubtful.test.sql:3: 'OPTIONS /beds' is a comment without effect; a request line is GET, HEAD, POST, PUT, PATCH",
    "doubtful.test.sql:4: '# @clam user_id=7' has no effect; known are @claim",
    "doubtful.test.sql:8: 'EXPECT ROW' is a comment without effect; EXPECT is followed by ROWS, NOTICE or ERROR",
    "TestRunner:PerTestTimeout at command line: 'soon' is not a duration",
    "Unknown configuration key: TestRunner:Filtr at command line (did you mean TestRunner:Filter?)",
    "TestRunner:Steps:idle does nothing: it has none of Sql, SqlFile and Command",
    "TestRunner:Steps:shell: ConnectionName has no effect with Command",
}
"""Directives without an effect, which are reported as warnings."""
FAILING = {
    "false": ("FAIL", "select 1;\nselect false, 'bed is listed';\nselect 1 / 0;",
              "✗ bed is listed  [tests/false.test.sql:2]"),
    "null": ("FAIL", "select null::bool", "the result is NULL"),
    "assertion": ("FAIL", "do $$ begin assert false, 'dry'; end $$", "          dry"),
    "division": ("ERROR", "select 1 / 0", "22012: division by zero"),
    "syntax": ("ERROR", "selec 1", "42601: syntax error"),
    "raised": ("ERROR", "do $$ begin raise notice 'so far'; raise 'stop'; end $$", "notice: so far"),
    "difference": ("FAIL", "/*\nGET /beds/1\n\nHTTP/1.1 200\n\nmoss\n*/", "          -moss\n          +fern"),
    "rows": ("FAIL", "select 1\n/* EXPECT ROWS\n2\n*/", "          -2\n          +1"),
    "login": ("ERROR", "/* POST /enter */", "cannot be called from a test: it signs in or out"),
    "proxy": ("ERROR", "/* GET /away */", "without a stub: it is a proxy for another service"),
    "unstubbed": (
        "ERROR",
        "/* STUB GET http://other.invalid/ */ /* GET /rate?currency=eur */",
        "no stub answers GET http://rates.invalid/eur",
    ),
    "taken": ("ERROR", "create temp table _response (); /* GET /beds */", "42P07"),
    "copy": ("ERROR", "copy bed to stdout", "COPY FROM STDIN and COPY TO STDOUT cannot run in a test; insert or"),
    "folder": ("ERROR", "\\ir parts", "the included file tests/parts is no file"),
    "missing": ("ERROR", "\\i nowhere.sql", "the included file nowhere.sql does not exist"),
    "circle": ("ERROR", "\\ir circle.test.sql", "tests/circle.test.sql includes itself"),
    "fault_inside": ("FAIL", "\\ir parts/fault.sql", "[tests/parts/fault.sql:2]"),
    "setup_unknown": ("ERROR", "-- @setup nope\nselect 1;", "TestRunner:Steps has no step 'nope'"),
    "connection_unknown": ("ERROR", "-- @connection nope\nselect 1;", "ConnectionStrings has no entry 'nope'"),
    "crash": ("ERROR", "begin; insert into stored values ('crash'); select pg_terminate_backend(pg_backend_pid())",
              "the connection to the database was lost"),
    "crash_inside": ("ERROR", "begin; insert into stored values ('inside'); /* GET /crash */ select true",
                     "the connection to the database was lost"),
    "snapshot": ("FAIL", "/*\nGET /beds\n# @snapshot\n*/", "there is no snapshot yet"),
    "claim": ("ERROR", "/*\nGET /beds\n# @claim unknown\n*/", "a claim is written as # @claim name=value"),
}  # fmt: skip
SETTINGS = (
    "--Service:SqlFileSource:FilePattern=sql/*.sql",
    "--Service:HttpClientOptions:Enabled=true",
    "--Service:ProxyOptions:Enabled=true",
    "--Exports:Enabled=true",
    "--CacheOptions:Enabled=true",
    "--CacheOptions:Profiles:long:Enabled=true",
    "--CacheOptions:Profiles:long:Type=Memory",
    "--CacheOptions:Profiles:long:Expiration=1h",
    "--Service:AuthenticationOptions:BasicAuth:SslRequirement=Ignore",
    "--Service:AuthenticationOptions:BasicAuth:UseDefaultPasswordHasher=false",
    "--Auth:CookieAuth=true",
)


@dataclass
class Outcome:
    code: int
    lines: str
    errors: str
    folder: Path

    def of(self, name: str) -> str:
        """What is said about one file."""
        match = re.search(rf"^\w+ +tests/{name}\.test\.sql .*\n(?:        .*\n)*", self.lines, re.MULTILINE)
        assert match is not None, self.lines
        return match[0]


def write(folder: Path, texts: dict[str, str]) -> None:
    for name, text in {"sql/repot.sql": ENDPOINT, **texts}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def run(folder: Path, database: Database, *arguments: str) -> Outcome:
    pattern = "--TestRunner:FilePattern=tests/*.test.sql"
    done = rowcall(folder, "--test", f"--ConnectionStrings:Default={database.conninfo}", pattern, *SETTINGS, *arguments)
    return Outcome(done.returncode, done.stdout, done.stderr, folder)


@pytest.fixture(scope="module")
def planted(database: Database) -> Database:
    database.execute(SQL)
    return database


@pytest.fixture(scope="module")
def whole(planted: Database, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("tests")
    write(folder, {f"tests/{name}.test.sql": text for name, text in FILES.items()})
    write(folder, {f"tests/{name}.test.sql": text for name, (_, text, _) in FAILING.items()})
    write(folder, {
        "tests/parts/fixture.sql": "begin;\ninsert into bed values (3, 'ivy');",
        "tests/parts/fault.sql": "select 1;\nselect false;",
    })  # fmt: skip
    return run(
        folder, planted, "--TestRunner:JUnitOutput=junit.xml", "--TestRunner:TapOutput=tap.txt",
        "--TestRunner:FailedFirst=failed.json", "--TestRunner:ResponseTempTable:DebugTable=answers",
        "--TestRunner:PerTestTimeout=soon", "--TestRunner:Filtr=x", "--TestRunner:Steps:idle:Enabled=true",
        "--TestRunner:LcovOutput=coverage.info", "--TestRunner:CoberturaOutput=coverage.xml",
        "--TestRunner:Steps:shell:Command=true", "--TestRunner:Steps:shell:ConnectionName=nope",
        "--Service:AuditTrail:Enabled=true", "--Service:AuditTrail:Command=insert into stored values ($1)",
    )  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_passing_files_are_reported(name: str, whole: Outcome) -> None:
    assert whole.of(name).startswith("PASS "), whole.of(name)


@pytest.mark.parametrize("name", FAILING)
def test_failing_files_are_reported_with_the_reason(name: str, whole: Outcome) -> None:
    verdict, _, message = FAILING[name]
    assert whole.of(name).startswith(verdict), whole.of(name)
    assert message in whole.of(name)


@pytest.mark.parametrize("doubt", sorted(WARNINGS))
def test_annotations_without_effect_are_reported(doubt: str, whole: Outcome) -> None:
    assert doubt in whole.errors


def test_files_run_in_the_order_of_their_paths(whole: Outcome) -> None:
    paths = re.findall(r"^(?:PASS|FAIL|ERROR) +(\S+)  \(", whole.lines, re.MULTILINE)
    assert paths == sorted(f"tests/{name}.test.sql" for name in (*FILES, *FAILING))


def test_the_first_failure_ends_a_file(whole: Outcome) -> None:
    assert whole.of("false").count("✗") == 1


def test_errors_have_precedence_over_failures(whole: Outcome) -> None:
    assert whole.code == 2
    failed = sum(verdict == "FAIL" for verdict, _, _ in FAILING.values())
    assert f"\n{len(FILES)} passed, {failed} failed, {len(FAILING) - failed} error(s)  —  " in whole.lines


def test_tests_leave_no_rows_and_sessions(whole: Outcome, planted: Database) -> None:
    assert planted.fetch("select * from bed") == [(1, "fern")]
    assert planted.fetch("select * from stored") == []
    wait_until(lambda: not planted.backends(), "the sessions of the tests have ended")


def test_endpoints_that_were_not_called_are_reported(whole: Outcome) -> None:
    # A login cannot be; the proxy was, as a stub has answered for the other service.
    assert "endpoint coverage: 20/21 (95%)  —  1 endpoint(s) excluded (not testable in test mode)" in whole.lines
    assert "\n        untested: GET /sleep\n" in whole.lines


def test_reports_for_programs_are_written(whole: Outcome) -> None:
    suite = ElementTree.fromstring((whole.folder / "junit.xml").read_text(encoding="utf-8"))
    cases = {(case.get("classname"), case.get("name")): [child.tag for child in case] for case in suite}
    assert cases["tests/false.test.sql", "bed is listed"] == ["failure"]
    assert cases["tests/nothing.test.sql", "(no assertions)"] == ["skipped"]
    assert "not ok" in (whole.folder / "tap.txt").read_text(encoding="utf-8")


def test_coverage_is_written_for_programs(whole: Outcome) -> None:
    listing = (whole.folder / "coverage.endpoints.txt").read_text(encoding="utf-8").splitlines()
    number = next(number for number, line in enumerate(listing, 1) if line.startswith("GET /sleep "))
    assert listing[number - 1].endswith("  public.sleep")
    tracefile = (whole.folder / "coverage.info").read_text(encoding="utf-8").splitlines()
    assert tracefile[:2] == ["TN:rowcall", f"SF:{whole.folder / 'coverage.endpoints.txt'}"]
    assert {f"FN:{number},GET /sleep", "FNDA:0,GET /sleep", f"DA:{number},0", "LF:21", "LH:20"} <= set(tracefile)
    root = ElementTree.fromstring((whole.folder / "coverage.xml").read_text(encoding="utf-8"))
    assert (root.get("lines-covered"), root.get("lines-valid"), root.get("line-rate")) == ("20", "21", "0.9524")
    lines = {
        line.get("number"): line.get("hits") for line in root.findall("./packages/package/classes/class/lines/line")
    }
    assert len(lines) == len(listing)
    assert [line for line, hits in lines.items() if hits == "0"] == [str(number)]


def test_parallel_files_with_metrics_and_shared_state(planted: Database, tmp_path: Path) -> None:
    """Each application of a run has a store of its own: LMDB refuses a second environment of one file."""
    write(
        tmp_path, {f"tests/{name}.test.sql": "/* GET /beds */\nselect status = 200 from _response;" for name in "abc"}
    )
    outcome = run(
        tmp_path, planted, "--TestRunner:MaxParallelism=3", "--Auth:CookieAuth=true",
        "--Auth:SessionCheckCommand=select true", "--Metrics:Enabled=true", "--Admin:Url=http://127.0.0.1:9464",
    )  # fmt: skip
    assert (outcome.code, outcome.errors) == (0, "")


def test_failed_files_are_recorded(whole: Outcome) -> None:
    assert json.loads((whole.folder / "failed.json").read_text()) == sorted(
        f"tests/{name}.test.sql" for name in FAILING
    )


@pytest.mark.slow
def test_failed_files_that_do_not_run_stay_recorded(planted: Database, tmp_path: Path) -> None:
    names = ("broken", "mended", "other")
    write(tmp_path, {f"tests/{name}.test.sql": f"select {name == 'mended'};".lower() for name in names})
    remembered = tmp_path / "failed.json"
    remembered.write_text(json.dumps([f"tests/{name}.test.sql" for name in (*names, "removed")]))
    options = ("--TestRunner:FailedFirst=failed.json", "--TestRunner:FailFast=true", "--TestRunner:MaxParallelism=1")
    assert run(tmp_path, planted, *options).code == 1
    assert json.loads(remembered.read_text()) == [f"tests/{name}.test.sql" for name in names]
    assert run(tmp_path, planted, *options, "--TestRunner:Filter=mended").code == 0
    assert json.loads(remembered.read_text()) == ["tests/broken.test.sql", "tests/other.test.sql"]


def test_responses_are_stored_in_the_debug_table(whole: Outcome, planted: Database) -> None:
    rows = planted.fetch("select block, method, path, status, body from answers where test_file like '%named%'")
    assert rows == [("answer", "GET", "/beds", 200, '[{"id":1,"kind":"fern"}]')]
    assert "!!!" in whole.errors


@pytest.mark.slow
def test_a_file_that_hangs_is_ended_and_cleaned_up(planted: Database, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "tests/hang.test.sql": """-- @setup mark
-- @teardown unmark
begin;
insert into stored values ('hang');
select pg_sleep(600);
""",
            "tests/hang_inside.test.sql": "/* GET /sleep */\nselect true;",
            "tests/hang_setup.test.sql": "-- @setup slow\nselect true;",
            "tests/later.test.sql": "/* GET /beds */",
        },
    )
    outcome = run(
        tmp_path, planted, "--TestRunner:PerTestTimeout=4s", "--TestRunner:MaxParallelism=3",
        "--TestRunner:Steps:slow:Command=sleep 600 & sleep 600",
        "--TestRunner:Steps:mark:Sql=create table marked ()", "--TestRunner:Steps:unmark:Sql=drop table marked",
    )  # fmt: skip
    assert outcome.code == 2
    assert "timed out after 4s" in outcome.of("hang")
    assert "[tests/hang.test.sql:5]" in outcome.of("hang")
    assert "✗ GET /sleep  [tests/hang_inside.test.sql:1]\n          timed out after 4s" in outcome.of("hang_inside")
    assert "timed out after 4s" in outcome.of("hang_setup")
    assert outcome.of("later").startswith("PASS ")
    assert outcome.errors == ""
    assert planted.value("select to_regclass('marked')") is None
    assert planted.fetch("select * from stored") == []
    wait_until(lambda: not planted.backends(), "the sessions of the tests have ended")


@pytest.mark.slow
def test_filters_setup_and_isolation_are_combined(planted: Database, tmp_path: Path) -> None:
    write(tmp_path, {
        "tests/own.test.sql": "-- @isolation template\n-- @tag wanted\ninsert into bed values (9, 'own');\n"
                              "select count(*) = 2 from bed;\n/* GET /beds/9 */\nselect body = 'own' from _response;",
        "tests/wrapped.test.sql": "-- @tag wanted\ninsert into bed values (9, 'w');\nselect count(*) = 2 from bed;",
        "tests/slow.test.sql": "-- @tag wanted slow\nselect false;",
        "tests/other.test.sql": "select false;",
    })  # fmt: skip
    outcome = run(
        tmp_path, planted, "--TestRunner:Isolation=Transaction", "--TestRunner:Tag=wanted",
        "--TestRunner:ExcludeTag=slow", "--TestRunner:DetailedReport=true", "--TestRunner:Coverage=true",
        "--TestRunner:Setup:0:Command=echo up >> trace", "--TestRunner:Teardown:0:Command=echo down >> trace",
    )  # fmt: skip
    assert (outcome.code, outcome.errors) == (0, "")
    assert "rowcall test — 2 files" in outcome.lines
    assert "✓ select count(*) = 2 from bed  [tests/wrapped.test.sql:3]" in outcome.lines
    assert "\n        GET /beds/{_id}: kind was never supplied\n" in outcome.lines
    assert (tmp_path / "trace").read_text() == "up\ndown\n"
    assert planted.fetch("select * from bed") == [(1, "fern")]
    assert planted.value("select count(*) from pg_database where datname like %s", f"{planted.name}\\_test%") == 0


@pytest.mark.slow
def test_a_debug_table_does_not_replace_an_existing_table(planted: Database, tmp_path: Path) -> None:
    write(tmp_path, {"tests/one.test.sql": "/* GET /beds */"})
    outcome = run(tmp_path, planted, "--TestRunner:ResponseTempTable:DebugTable=public.stored")
    assert outcome.code == 3
    assert "DebugTable 'public.stored': there is such a table, which no run of tests has made" in outcome.errors
    assert planted.value("select count(*) from stored") == 0
    for _ in range(2):
        outcome = run(tmp_path, planted, "--TestRunner:ResponseTempTable:DebugTable=public.answer")
        assert (outcome.code, planted.value("select count(*) from answer")) == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("closed", [False, True])
def test_a_copy_of_a_database_admits_the_same_roles(planted: Database, tmp_path: Path, closed: bool) -> None:
    if closed:
        planted.execute(f"revoke connect on database {planted.name} from public")
    test = f"select has_database_privilege('pg_monitor', current_database(), 'connect') = {not closed};"
    write(tmp_path, {f"tests/{name}.test.sql": f"-- @isolation template\n{test}" for name in ("one", "two")})
    outcome = run(tmp_path, planted)
    assert (outcome.code, outcome.errors) == (0, "")
    assert planted.value("select count(*) from pg_database where datname like %s", f"{planted.name}\\_test%") == 0


@pytest.mark.slow
def test_snapshots_are_written_and_compared(planted: Database, tmp_path: Path) -> None:
    request = "begin;\ninsert into bed values (2, '{kind}');\n/*\nGET /beds\n# @snapshot\n*/\n"
    write(tmp_path, {"tests/snap.test.sql": request.format(kind="moss")})
    assert run(tmp_path, planted, "--update", "--TestRunner:CoverageThreshold=20").code == 2
    assert '"kind": "moss"' in (tmp_path / "tests/snap.test.sql.snapshots").read_text()
    write(tmp_path, {"tests/snap.test.sql": request.format(kind="ivy")})
    outcome = run(tmp_path, planted, "--TestRunner:Coverage=false")
    assert outcome.code == 1
    assert '-    "kind": "moss"\n          +    "kind": "ivy"' in outcome.of("snap")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 4, "there are no tests"),
        (("--TestRunner:ConnectionName=nope",), 3, "TestRunner:ConnectionName is 'nope'"),
        (("--TestRunner:Setup:0:Command=echo sorry; exit 7",), 3, "exit code 7: sorry"),
        (
            ("--TestRunner:Setup:0:Command=true", "--TestRunner:Setup:0:WorkingDirectory=nowhere"),
            3,
            "step Setup[1]: its WorkingDirectory 'nowhere' is no folder",
        ),
        (
            ("--TestRunner:Setup:0:Command=true", f"--TestRunner:Setup:0:WorkingDirectory={'x' * 300}"),
            3,
            f"step Setup[1]: its WorkingDirectory '{'x' * 300}' is no folder that this user can reach",
        ),
        (("--TestRunner:Setup:0:SqlFile=no.sql",), 3, "step Setup[1]: its SqlFile 'no.sql' cannot be read: No such"),
        (("--TestRunner:ResponseTempTable:Columns:Headers=body",), 3, "two columns are called 'body'"),
        (("--TestRunner:Filtr=x", "--Config:ValidateConfigKeys=Error"), 3, "did you mean TestRunner:Filter?"),
    ],
)
def test_errors_before_a_run_have_their_exit_codes(
    arguments: tuple[str, ...], code: int, message: str, planted: Database, tmp_path: Path
) -> None:
    write(tmp_path, {})
    outcome = run(tmp_path, planted, *arguments)
    assert outcome.code == code
    assert message in outcome.errors
