"""A few of many routines change: each worker serves what a service serves that has been started anew.

Only what has changed is read, sent to the workers and put among their routes, so no result may depend on how
the schema snapshot was made.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.each_worker import Way, ways
from tests.harness.expect import answer
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SETTINGS = {
    "Service:OpenApiOptions:Enabled": "true",
    "Service:HttpFileOptions:Enabled": "true",
    "Service:HttpFileOptions:Option": "Endpoint",
    "Service:HttpFileOptions:Name": "requests",
}
SQL = """
create type gauge as (id int, label text);
do $$ begin
  for n in 1..120 loop
    execute format('create function plain_%s(_id int default 7) returns int language sql stable as ''select _id + %s''',
                   n, n);
    execute format('comment on function plain_%s(int) is %L', n,
                   case when n % 2 = 0 then format('HTTP GET /plain/%s', n)
                        else format('HTTP GET /part-%s/{_id}/end', n) end);
  end loop;
end $$;
create function measured(_g gauge default (1, 'a')) returns gauge language sql stable as 'select _g';
comment on function measured(gauge) is 'HTTP GET /measured';
create function inner_gauges() returns table (n int, c gauge) language plpgsql stable
  as $$begin return query execute 'select 1, row(2, null)::gauge'; end$$;
comment on function inner_gauges() is E'HTTP GET /gauges\\nnested';
"""
CHANGES = (
    # These have the workers begin anew.
    (
        "a composite",
        "alter type gauge drop attribute label; alter type gauge add attribute unit_of text; "
        "create or replace function measured(_g gauge default (1, 'a')) returns gauge language sql stable as "
        "'select _g'",
        "",
    ),
    (
        "shared: an overload",
        "create function plain_14(_id int, _more int) returns int language sql stable as 'select _more'; "
        "comment on function plain_14(int, int) is 'HTTP GET /plain/14'",
        "changed GET /plain/14",
    ),
    ("a comment beside the overload", "comment on function plain_16(int) is 'HTTP POST /plain/14'", "POST /plain/14"),
    ("the overload gone", "drop function plain_14(int, int)", "changed GET /plain/14"),
    # What follows is put among the routes that there are.
    ("a comment", "comment on function plain_2(int) is 'HTTP GET /plain/two'", "added GET /plain/two"),
    (
        "a comment with a parameter in the path",
        "comment on function plain_3(int) is 'HTTP GET /part-3/{_id}/other\nWhat it is.'",
        "added GET /part-3/{_id}/other",
    ),
    (
        "a body",
        "create or replace function plain_4(_id int default 7) returns int language sql stable as 'select -_id'",
        "",
    ),
    (
        "another result",
        "drop function plain_6(int); create function plain_6(_id int default 7) returns table (a int, b text) "
        "language sql stable as $$select _id, 'b'$$; comment on function plain_6(int) is 'HTTP GET /plain/6'",
        "changed GET /plain/6",
    ),
    (
        "added",
        "create function one_more(_id int) returns int language sql stable as 'select _id'; "
        "comment on function one_more(int) is 'HTTP GET /part-3/{_id}/more'",
        "added GET /part-3/{_id}/more",
    ),
    ("removed", "drop function plain_8(int); drop function plain_5(int)", "removed GET /plain/8"),
    ("renamed", "alter function plain_10(int) rename to renamed", ""),
    (
        "renamed, with the path from the name",
        "comment on function plain_12(int) is 'HTTP GET'; alter function plain_12(int) rename to named",
        "added GET /api/named",
    ),
    ("not served", "comment on function plain_18(int) is E'HTTP GET /plain/18\\ninternal'", ""),
    (
        "the path of one that goes",
        "drop function plain_20(int); comment on function plain_22(int) is 'HTTP GET /plain/20'",
        "removed GET /plain/22",
    ),
)
PATHS = (
    *(f"/plain/{n}" for n in (2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, "two")),
    *("/plain/14?id=1&more=5", "/api/named", "/api/plain-12", "/api/plain-10", "/api/renamed"),
    *("/part-3/5/end", "/part-3/5/other", "/PART-3/5/Other/", "/part-3/5/more", "/part-5/5/end", "/part-7/5/end"),
    *("/measured", "/measured?gId=3&gUnitOf=m", "/measured?gLabel=x", "/gauges"),
)


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS, workers=2)


@pytest.fixture(scope="module")
def workers(service: Service) -> Iterator[list[Way]]:
    with ExitStack() as stack:
        yield list(ways(service, service.url, "/plain/24", stack))


@pytest.mark.slow
def test_a_reload_after_each_change_equals_a_fresh_start(
    database: Database, service: Service, workers: list[Way], serve_once: Serve, tmp_path: Path
) -> None:
    for number, (_, sql, result) in enumerate(CHANGES, 2):
        database.execute(sql)
        service.signal(signal.SIGHUP)
        service.wait_for_log(f"schema snapshot {number} is served")
        service.wait_for_log(result)
    fresh = serve_once(database, settings=SETTINGS, workers=2)
    document = fresh.get("/openapi.json").json()
    examples = fresh.get("/requests_public.http").text.partition("\n")[2]  # without the address of the service
    assert "/part-3/{_id}/more" in examples
    expected = {path: answer(fresh.get(path)) for path in PATHS}
    allowed = {path: fresh.request("OPTIONS", path).headers.get("allow") for path in PATHS}
    listed = rowcall(tmp_path, "--endpoints", f"--ConnectionStrings:Default={database.conninfo}")
    assert listed.stdout.count('"method"') == sum(map(len, document["paths"].values())) + 1, "one of them is internal"
    assert len(workers) == 2
    for way in workers:
        body = way.client.get("/openapi.json").json()
        # The address is that of the service.
        assert {**body, "servers": None} == {**document, "servers": None}
        assert way.client.get("/requests_public.http").text.partition("\n")[2] == examples
        assert {path: answer(way.client.get(path)) for path in PATHS} == expected
        assert {path: way.client.options(path).headers.get("allow") for path in PATHS} == allowed
    assert expected["/plain/two"][2] == "9"
    assert expected["/plain/4"][2] == "-7"
    assert expected["/plain/20"][2] == "29"
    assert expected["/part-3/5/more"][2] == "5"
    assert expected["/part-3/5/end"][0] == expected["/plain/8"][0] == expected["/plain/18"][0] == 404
    assert expected["/measured?gId=3&gUnitOf=m"][2] == '{"id":3,"unitOf":"m"}'


def test_written_files_follow_a_nested_type_of_unchanged_endpoints(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    sql = """create type part as (id int);
    create function parts() returns table (n int, parts part[]) language sql stable as 'select 1, null::part[]';
    comment on function parts() is 'HTTP GET /parts';"""
    files = [tmp_path / "openapi.json", tmp_path / "clientTypes.d.ts"]
    settings = {
        "Service:OpenApiOptions:Enabled": "true",
        "Service:OpenApiOptions:FileName": str(files[0]),
        "Service:OpenApiOptions:FileOverwrite": "true",
        "Service:ClientCodeGen:Enabled": "true",
        "Service:ClientCodeGen:BySchema": "false",
        "Service:ClientCodeGen:FilePath": str(tmp_path / "client.ts"),
    }
    service = serve_once(own_database, sql, settings, workers=2)
    assert not any("colour" in file.read_text() for file in files)
    own_database.execute("alter type part add attribute colour text")
    service.signal(signal.SIGHUP)
    wait_until(lambda: all("colour" in file.read_text() for file in files), "both files have the new attribute")
    assert "colour" in service.get("/openapi.json").text


def test_a_notification_finds_a_new_label_of_an_enum(own_database: Database, serve_once: Serve) -> None:
    """A label is a row of its own: that of the type does not change."""
    sql = """create type mood as enum ('good', 'bad');
    create function moods(_mood mood) returns mood language sql stable as 'select _mood';
    comment on function moods(mood) is 'HTTP GET /moods';"""
    settings = {"Service:OpenApiOptions:Enabled": "true", "Service:ExactTypes": "true"}
    service = serve_once(own_database, sql, settings, workers=2)
    assert "ugly" not in service.get("/openapi.json").text
    own_database.execute("alter type mood add value 'ugly'")
    own_database.execute("notify rowcall, 'reload'")
    wait_until(lambda: "ugly" in service.get("/openapi.json").text, "the document has the label")
