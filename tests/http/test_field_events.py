"""Server-sent events as in NpgsqlRest (events-1 to events-9, events-11 to events-14): sources of events, paths of
streams, audiences."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.harness.database import Database, create_database, drop_database
from tests.harness.events import EventStream
from tests.harness.postgres import PostgresServer
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import member_sql, with_cookie

PUBLISHERS = {
    "plain": "sse",
    "named": "sse Steps",
    "kept": "sse = Steps",
    "inside": "sse /api/inside/deep/steps",
    "slashed": "sse /steps",
    "level_first": "sse_level notice\nsse",
    "level_last": "sse\nsse_level notice",
    "on_warning": "sse loud on warning",
    "aliased": "sse_path tale",
    "aliased_long": "sse_events_path tale",
    "assigned": "sse = true",
    "off": "sse = false",
    "switched_off": "sse\nsse = false",
    "only_publish": "sse_publish",
    "only_publish_at": "sse_events_publish on notice",
    "publish_assigned": "sse_publish = true",
    "only_subscribe": "sse_subscribe news",
    "only_subscribe_bare": "sse_events_subscribe",
    "subscribe_assigned": "sse_subscribe = News",
    "at_notice": "sse_publish\nsse_level = notice",
    "at_warning": "sse_publish\nsse_events_level warning",
    "any_case": "@SSE_PUBLISH ON Notice",
    "not_a_level": "sse_publish on notice\nsse_level loud",
    "on_no_level": "sse steps on loud",
    "on_no_level_again": "sse_publish on notice\nsse_publish on loud",
    "half": "sse\nsse_subscribe = false",
    "other_half": "sse\nsse_publish = false",
    "two_lines": "sse_publish\nsse_subscribe watch on warning",
    "renamed": "sse\nHTTP POST /elsewhere",
}

SQL = """
create or replace function raise_all(_text text) returns void language plpgsql as $$begin
    raise debug 'debug %', _text; raise log 'log %', _text; raise notice 'notice %', _text;
    raise info 'info %', _text; raise warning 'warning %', _text;
end$$;
create function publish(_text text, _hint text default null) returns text language plpgsql as $$begin
    if _hint is null then raise info '%', _text; else raise info '%', _text using hint = _hint; end if;
    return 'published';
end$$;
comment on function publish(text, text) is E'HTTP POST\\nsse';
create function publish_steady(_text text) returns text language plpgsql stable as $$begin
    raise info 'steady %', _text; return _text;
end$$;
comment on function publish_steady(text) is E'HTTP GET\\nsse_publish';
create procedure publish_in_steps() language plpgsql as $$begin
    raise info 'first'; commit; raise info 'second';
end$$;
comment on procedure publish_in_steps() is E'HTTP POST\\nsse_publish';
create function publish_and_fail(_text text) returns text language plpgsql as $$begin
    raise info '%', _text; raise exception 'no';
end$$;
comment on function publish_and_fail(text) is E'HTTP POST\\nsse_publish';
create function publish_lines() returns void language plpgsql as $$begin
    raise info E'one\\ntwo\\r\\nthree\\rfour'; raise info ''; raise info E'\\n'; raise info ' ä€😀 ';
end$$;
comment on function publish_lines() is E'HTTP POST\\nsse_publish';
create function wait_then(_key bigint, _text text) returns text language plpgsql as $$begin
    raise info 'begun %', _text; perform pg_advisory_xact_lock(_key); raise info 'ended %', _text; return 'done';
end$$;
comment on function wait_then(bigint, text) is E'HTTP POST\\nsse_publish';
create function say(_text text) returns text language plpgsql as $$begin
    raise info 'said %', _text; return _text;
end$$;
create function resolving(_text text, _found text default null) returns text language sql as $$select _found$$;
comment on function resolving(text, text) is E'HTTP POST\\nsse_publish\\n_found = select say({_text})';
create function run_job(_job text) returns text language sql as 'select _job';
comment on function run_job(text) is E'HTTP POST /jobs/{_job}/run\\nsse Progress';
create function on_shelf(_shelf int default 1) returns int language sql as 'select _shelf';
comment on function on_shelf(int) is E'HTTP GET /on-shelf/{_shelf?}\\nsse_subscribe';
create function german() returns void language plpgsql as $$begin
    set local lc_messages = 'C'; set local client_min_messages = error; raise info 'still here';
end$$;
comment on function german() is E'HTTP POST\\nsse_publish';
""" + "\n".join(
    f"""create function {name}(_text text) returns void language sql as 'select raise_all(_text)';
comment on function {name}(text) is E'HTTP POST\n{comment}';"""
    for name, comment in PUBLISHERS.items()
)


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, workers=2)


def _path(name: str) -> str:
    return f"/api/{name.replace('_', '-')}"


STREAMS = {
    "plain": "/api/plain/info",
    "named": "/api/named/steps",
    "kept": "/api/kept/Steps",
    "inside": "/api/inside/deep/steps",
    "slashed": "/api/slashed/steps",
    "level_first": "/api/level-first/notice",
    "level_last": "/api/level-last/info",
    "on_warning": "/api/on-warning/loud",
    "aliased": "/api/aliased/tale",
    "aliased_long": "/api/aliased-long/tale",
    "assigned": "/api/assigned/info",
    "only_subscribe": "/api/only-subscribe/news",
    "only_subscribe_bare": "/api/only-subscribe-bare/info",
    "subscribe_assigned": "/api/subscribe-assigned/News",
    "on_no_level": "/api/on-no-level/steps",
    "other_half": "/api/other-half/info",
    "two_lines": "/api/two-lines/watch",
    "renamed": "/elsewhere/info",
    "parameter": "/jobs/77.0%20b/run/progress",
    "parameter_as_written": "/jobs/%7B_job%7D/run/progress",
    "optional_parameter": "/on-shelf/3/info",
    "optional_parameter_left_out": "/on-shelf/info",
}


@pytest.mark.parametrize("path", STREAMS.values(), ids=STREAMS)
def test_stream_is_served_at_its_path(service: Service, path: str) -> None:
    with EventStream(service, path) as stream:
        service.post("/api/publish", json={"text": path})
        stream.wait_for(path)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "QUERY"])
def test_any_method_can_subscribe(service: Service, method: str) -> None:
    with EventStream(service, "/api/plain/info", method=method) as stream:
        assert stream.status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api/plain/INFO",
        "/api/plain/info/",
        "/api/kept/steps",
        "/api/level-last/notice",
        "/api/off/info",
        "/api/switched-off/info",
        "/api/only-publish/info",
        "/api/half/info",
        "/api/renamed/info",
        "/jobs/77/run/Progress",
        "/jobs/77/8/run/progress",
        "/jobs//run/progress",
        "/jobs/77/run/progress/",
    ],
)
def test_other_paths_have_no_stream(service: Service, path: str) -> None:
    assert service.get(path).status_code == 404


def test_head_of_a_stream_returns_its_headers(service: Service) -> None:
    response = service.request("HEAD", "/api/plain/info")
    assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream")


PUBLISHED = {
    "plain": "info",
    "named": "info",
    "level_first": "notice",
    "level_last": "notice",
    "on_warning": "warning",
    "assigned": "info",
    "only_publish": "info",
    "only_publish_at": "notice",
    "publish_assigned": "info",
    "at_notice": "notice",
    "at_warning": "warning",
    "any_case": "notice",
    "not_a_level": "notice",
    "on_no_level": "info",
    "on_no_level_again": "notice",
    "half": "info",
    "two_lines": "warning",
    "renamed": "info",
}


@pytest.mark.parametrize("name", PUBLISHERS)
def test_notices_of_the_configured_level_become_events(service: Service, name: str) -> None:
    level = PUBLISHED.get(name)
    if name in ("kept", "inside", "slashed", "aliased", "aliased_long"):
        level = "info"
    with EventStream(service, "/api/plain/info") as stream:
        response = service.post("/elsewhere" if name == "renamed" else _path(name), json={"text": name})
        assert response.status_code == 204
        service.post("/api/publish", json={"text": "end"})
        stream.wait_for(*([f"{level} {name}"] if level else []), "end")


def test_subscription_response_has_sse_headers_and_format(service: Service) -> None:
    with EventStream(service, "/api/plain/info") as stream:
        service.post("/api/publish", json={"text": "40 percent"})
        stream.wait_for("40 percent")
        assert stream.body == b": connected\n\ndata: 40 percent\n\n"
        expected = {
            "content-type": "text/event-stream",
            "cache-control": "no-cache, no-store, must-revalidate, max-age=0",
            "x-accel-buffering": "no",
            "connection": "keep-alive",
        }
        assert {name: stream.headers[name] for name in expected} == expected


@pytest.mark.parametrize(("version", "requested"), [("1.1", "close"), ("1.0", ""), ("1.0", "keep-alive")])
def test_stream_response_sends_connection_close_if_the_connection_ends(
    service: Service, version: str, requested: str
) -> None:
    """RFC 9112, 9.3: without chunks, the end of a response of HTTP/1.0 is the end of its connection."""
    head = f"HTTP/{version}\r\nhost: test\r\nconnection: {requested}\r\n\r\n"
    with service.connect() as connection:
        connection.sendall(f"GET /api/plain/info {head}".encode())
        response = b""
        while b": connected\n\n" not in response:
            response += connection.recv(4096)
    values = [line for line in response.lower().split(b"\r\n") if line.startswith(b"connection:")]
    assert [line.startswith(b"connection: close") for line in values] == [True], values
    headless = service.raw(f"HEAD /api/plain/info {head}".encode())
    assert headless is not None
    assert not {"content-length", "transfer-encoding"} & set(headless.headers)


def test_stream_is_served_over_http_2(service: Service) -> None:
    with (
        httpx.Client(http1=False, http2=True, base_url=service.url, trust_env=False, timeout=15) as client,
        client.stream("GET", "/api/plain/info") as response,
    ):
        lines = response.iter_lines()
        assert (response.http_version, next(lines)) == ("HTTP/2", ": connected")
        assert "connection" not in response.headers
        service.post("/api/publish", json={"text": "hello"})
        assert [next(lines), next(lines)] == ["", "data: hello"]


def test_each_line_of_a_message_is_a_data_field(service: Service) -> None:
    with EventStream(service, "/api/plain/info") as stream:
        service.post("/api/publish-lines")
        stream.wait_for("one\ntwo\nthree\nfour", "", "\n", " ä€😀 ")


def test_events_are_sent_while_the_routine_runs(service: Service, database: Database) -> None:
    with EventStream(service, "/api/plain/info") as stream, service.connect() as connection:
        with database.locked(4711):
            body = b'{"key": 4711, "text": "it"}'
            connection.sendall(
                b"POST /api/wait-then HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
                b"content-length: %d\r\n\r\n%s" % (len(body), body)
            )
            stream.wait_for("begun it")
        stream.wait_for("begun it", "ended it")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")


def test_events_of_a_failed_call_are_sent_before_the_failure(service: Service) -> None:
    """The default of NpgsqlRest: events about progress cannot wait for the end of the call."""
    with EventStream(service, "/api/plain/info") as stream:
        assert service.post("/api/publish-and-fail", json={"text": "halfway"}).status_code == 400
        stream.wait_for("halfway")


@pytest.mark.parametrize(
    ("path", "body", "messages"),
    [
        ("/api/publish-in-steps", None, ["first", "second"]),
        ("/api/resolving", {"text": "x"}, ["said x"]),
        ("/api/german", None, ["still here"]),
    ],
)
def test_notices_of_all_statements_of_a_request_are_events(
    service: Service, path: str, body: dict[str, str] | None, messages: list[str]
) -> None:
    with EventStream(service, "/api/plain/info") as stream:
        assert service.post(path, json=body).status_code in (200, 204)
        stream.wait_for(*messages)


def test_stable_routine_publishes_events_on_every_call(service: Service) -> None:
    """It never shares a connection, where a notice could be attributed to another execution."""
    with EventStream(service, "/api/plain/info") as stream:
        for number in range(30):
            assert service.get(f"/api/publish-steady?text={number}").text == str(number)
        stream.wait_for(*(f"steady {number}" for number in range(30)))


@pytest.mark.parametrize(
    ("subscribed", "published", "received"),
    [
        ("?job-17", "job-17", True),
        ("?job-17", "job-18", False),
        ("?job-17", None, True),
        ("?job-17", "", True),
        ("", "job-17", True),
        ("?", "job-17", True),
        ("?job-17", "JOB-17", False),
        ("?a=b&c", "a=b&c", True),
        ("?a%20b", "a b", False),
        ("?a%20b", "a%20b", True),
    ],
)
def test_execution_id_filters_events(service: Service, subscribed: str, published: str | None, received: bool) -> None:
    headers = {} if published is None else {"X-NpgsqlRest-ID": published}
    with EventStream(service, f"/api/plain/info{subscribed}") as stream:
        service.post("/api/publish", json={"text": "it"}, headers=headers)
        service.post("/api/publish", json={"text": "end"})
        stream.wait_for(*(["it"] if received else []), "end")


def test_disconnected_subscriber_does_not_affect_others(service: Service) -> None:
    with EventStream(service, "/api/plain/info") as stays:
        with EventStream(service, "/api/plain/info"):
            pass
        service.post("/api/publish", json={"text": "on"})
        stays.wait_for("on")


# --- audience of events ----------------------------------------------------------------------------------------------

SCOPED = """
create function say(_text text, _hint text) returns void language plpgsql as $$begin
    if _hint is null then raise info '%', _text; else raise info '%', _text using hint = _hint; end if;
end$$;
""" + "\n".join(
    f"""create function to_{name}(_hint text default null) returns void language plpgsql as
$$begin perform say('{name}', _hint); end$$;
comment on function to_{name}(text) is E'HTTP POST\nallow_anonymous\nsse\n{comment}';"""
    for name, comment in {
        "public": "",
        "public_said": "sse_scope all",
        "signed_in": "sse_scope authorize",
        "bosses": "sse_scope authorize boss",
        "namesakes": "sse_scope authorize mo, kiri, 41, 42",
        "mo": "sse_scope authorize user:42, another",
        "kiri": "sse_events_scope = authorize name:kiri",
        "callers": "sse_scope matching",
    }.items()
)
"""`allow_anonymous` keeps the caller of the tests simple; access to a `matching` publisher is tested below."""

MATCHING = """
create function to_members() returns void language plpgsql as $$begin perform say('members', null); end$$;
comment on function to_members() is E'HTTP POST\\nauthorize\\nsse_publish\\nsse_scope matching';
create function to_gate() returns void language plpgsql as $$begin perform say('gate', null); end$$;
comment on function to_gate() is E'HTTP POST\\nauthorize boss\\nsse_publish\\nsse_scope = matching';
"""


@pytest.fixture(scope="module")
def member_service(database: Database, serve: Serve) -> Service:
    return serve(database, member_sql() + SCOPED + MATCHING, {"Auth:CookieAuth": "true"}, workers=2)


@pytest.mark.parametrize(
    ("path", "hint", "received"),
    [
        ("public", None, "anonymous kiri mo"),
        ("public", "", "anonymous kiri mo"),
        ("public", "all", "anonymous kiri mo"),
        ("public", "authorize", "kiri mo"),
        ("public", "authorize user:42", "mo"),
        ("public", "AUTHORIZE gate", "kiri mo"),
        ("public", " authorize\tuser:42\n", "mo"),
        ("public", "authorize name:kiri,name:mo", "kiri mo"),
        ("public", "authorize kiri, mo, 41, 42", ""),
        ("namesakes", None, ""),
        ("public", "authorize anonymous", ""),
        ("public", "matching", "anonymous kiri mo"),
        ("public", "try it again", "anonymous kiri mo"),
        ("public_said", None, "anonymous kiri mo"),
        ("signed_in", None, "kiri mo"),
        ("signed_in", "authorize user:41", "kiri"),
        ("signed_in", "all", "anonymous kiri mo"),
        ("signed_in", "be patient", "kiri mo"),
        ("bosses", None, "kiri"),
        ("bosses", "authorize name:mo", "kiri mo"),
        ("public", "authorize name:kiri user:mo", "kiri"),
        ("bosses", "authorize", "kiri"),
        ("mo", None, "mo"),
        ("kiri", None, "kiri"),
        ("callers", None, "anonymous kiri mo"),
        ("members", None, "kiri mo"),
        ("gate", None, "kiri"),
    ],
)
def test_event_scope_and_hint_select_the_subscribers(
    member_service: Service, path: str, hint: str | None, received: str
) -> None:
    kiri, mo = with_cookie(member_service), with_cookie(member_service, "mo")
    stream_path = "/api/to-public/info"
    with (
        EventStream(member_service, stream_path) as anonymous,
        EventStream(member_service, stream_path, kiri) as as_kiri,
        EventStream(member_service, stream_path, mo) as as_mo,
    ):
        response = member_service.post(
            f"/api/to-{path.replace('_', '-')}", json={} if hint is None else {"hint": hint}, headers=kiri
        )
        assert response.status_code == 204, response.text
        member_service.post("/api/to-public", json={"hint": "all"})
        for name, stream in (("anonymous", anonymous), ("kiri", as_kiri), ("mo", as_mo)):
            stream.wait_for(*([path] if name in received.split() else []), "public")


def test_invalid_scope_hint_is_logged(member_service: Service) -> None:
    member_service.post("/api/to-signed-in", json={"hint": "harder next time"})
    line = member_service.wait_for_log("'harder' is none of all, matching, authorize")
    assert "POST /api/to-signed-in" in line


def test_stream_of_a_closed_endpoint_accepts_all_subscribers(member_service: Service) -> None:
    """No subscriber is refused; the audience is checked for each event."""
    with EventStream(member_service, "/api/to-bosses/info") as stream:
        assert stream.status == 200


# --- around it -----------------------------------------------------------------------------------------------------

AROUND = """
create function publish(_text text) returns text language plpgsql as
    $$begin raise notice '%', _text; return 'published'; end$$;
comment on function publish(text) is E'HTTP POST\\nsse';
create function murmur() returns text language plpgsql as $$begin raise notice 'psst'; return 'ok'; end$$;
comment on function murmur() is E'HTTP POST';
create function shout() returns text language plpgsql as $$begin raise warning 'hey'; return 'ok'; end$$;
comment on function shout() is E'HTTP POST';
create function steady() returns text language plpgsql stable as $$begin raise notice 'psst'; return 'ok'; end$$;
comment on function steady() is E'HTTP GET';
"""
SETTINGS = {
    "Service:DefaultServerSentEventsEventNoticeLevel": "notice",
    "Service:ServerSentEventsResponseHeaders:Cache-Control": "no-store",
    "Service:ServerSentEventsResponseHeaders:X-Accel-Buffering": "no",
    "Service:ExecutionIdHeaderName": "X-Job",
    "ResponseCompression:Enabled": "true",
    "ResponseCompression:IncludeMimeTypes:0": "text/event-stream",
}


@pytest.fixture(scope="module")
def configured_service(other_database: Database, serve: Serve) -> Service:
    return serve(other_database, AROUND, SETTINGS, workers=2)


@pytest.fixture(scope="module")
def other_database(postgres: PostgresServer) -> Iterator[Database]:
    made = create_database(postgres)
    yield made
    drop_database(made)


def test_configured_default_level_determines_path_and_events(configured_service: Service) -> None:
    with EventStream(configured_service, "/api/publish/notice") as stream:
        configured_service.post("/api/publish", json={"text": "hello"})
        stream.wait_for("hello")


def test_configured_response_headers_take_precedence(configured_service: Service) -> None:
    with EventStream(configured_service, "/api/publish/notice", {"accept-encoding": "gzip, br"}) as stream:
        headers = {name: stream.headers.get(name) for name in ("content-type", "cache-control", "x-accel-buffering")}
        assert headers == {"content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no"}
        assert "content-encoding" not in stream.headers


def test_execution_id_header_name_is_configurable(configured_service: Service) -> None:
    with EventStream(configured_service, "/api/publish/notice?a") as stream:
        configured_service.post("/api/publish", json={"text": "not for a"}, headers={"x-job": "b"})
        configured_service.post("/api/publish", json={"text": "for a"}, headers={"x-job": "a", "x-npgsqlrest-id": "b"})
        stream.wait_for("for a")


def test_unpublished_notice_is_logged_once(configured_service: Service) -> None:
    for _ in range(6):
        configured_service.post("/api/murmur")
        configured_service.post("/api/shout")
        for _ in range(10):
            configured_service.get("/api/steady")
    configured_service.post("/api/publish", json={"text": "published"})
    configured_service.wait_for_log("/api/steady raised a notice of severity NOTICE")
    configured_service.wait_for_log("/api/murmur raised a notice of severity NOTICE")
    log = [line for line in configured_service.log.splitlines() if "raised a notice of severity" in line]
    assert len(log) == 2, log


def test_without_streams_notices_are_not_logged(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, AROUND.replace("\\nsse", ""), SETTINGS)
    service.post("/api/murmur")
    service.wait_for_log("psst")
    assert "raised a notice of severity" not in service.log
    assert service.get("/api/publish/notice").status_code == 404
