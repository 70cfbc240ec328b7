"""Commands and notices in the log, and values that never appear in it (logging-8, logging-9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function logged(_id int, _price numeric, _ok boolean, _name text, _tags text[], _gone text default 'x')
  returns text language sql stable as 'select _name';
comment on function logged(int, numeric, boolean, text, text[], text) is 'HTTP';
create function posted(_name text, _note text) returns text language sql as 'select _name';
comment on function posted(text, text) is 'HTTP POST /posted/{_name}';
create function failing(_name text) returns int language sql stable as 'select 1 / length(_name)';
comment on function failing(text) is 'HTTP';
create function hidden(_secret text, _number int) returns int language plpgsql as $$
begin return _secret::int; end $$;
comment on function hidden(text, int) is E'HTTP GET /hidden/{_secret}\\nsensitive';
create function hidden_too(_secret text) returns int language plpgsql as $$
begin raise exception 'no user %, "%"', _secret, _secret; end $$;
comment on function hidden_too(text) is E'HTTP POST\\n@security';
create function registered(_name text, _word text, _hash text default 'none') returns text language sql
as 'select _name || '' '' || length(_hash)';
comment on function registered(text, text, text) is E'HTTP POST\\nparam _hash is hash of _word';
create function rehashed(_name text, _word text) returns text language sql as 'select _word';
comment on function rehashed(text, text) is E'HTTP GET\\nparameter_hash _word';
create function sealed(_name text, _word text) returns text language sql as 'select _word';
comment on function sealed(text, text) is E'HTTP GET\\nencrypt _word';
create function kept(_word text) returns text language sql stable as 'select _word';
comment on function kept(text) is E'HTTP GET /kept/{_word}\\nencrypt\\ncached';
create function let_in(_word text) returns table (user_id int) language sql stable as 'select 1 where _word is null';
comment on function let_in(text) is E'HTTP GET /let-in/{_word}\\nlogin';
create function closed(_word text) returns text language sql stable as 'select _word';
comment on function closed(text) is E'HTTP GET /closed/{_word}\\nauthorize\\nsensitive';
create function nowhere(_word text) returns text language sql stable as 'select _word';
comment on function nowhere(text) is E'HTTP GET /nowhere/{_word}\\nencrypt _word\\nconnection elsewhere';
"""

NUMBER = "1987654321"
"""Longer than any duration or process id that the log may contain."""

LOUD = {
    "Service:LogCommands": "true",
    "Service:LogCommandParameters": "true",
    "Log:MinimalLevels:rowcall": "Debug",
}


@pytest.fixture(scope="module")
def logging_service(database: Database, serve: Serve) -> Service:
    stored = {"CacheOptions:Enabled": "true", "CacheOptions:InvalidateCacheSuffix": "forget"}
    return serve(database, SQL, {**LOUD, **stored, "Auth:CookieAuth": "true", "ForwardedHeaders:Enabled": "true"})


def log_block(service: Service, first: str, lines: int) -> list[str]:
    """Return the log line that contains `first`, and the following ones."""
    service.wait_for_log(first)

    def found() -> list[str]:
        log = service.log.splitlines()
        start = next(number for number, line in enumerate(log) if first in line)
        return log[start : start + lines]

    wait_until(lambda: len(found()) == lines, f"{lines} lines from {first}")
    return found()


def test_a_command_is_logged_with_its_url_values_and_sql(logging_service: Service) -> None:
    url = "/api/logged?id=7&price=1.50&ok=true&name=it%27s%20me&tags=a&tags=b"
    assert logging_service.get(url).status_code == 200
    message = log_block(logging_service, f"-- GET {logging_service.url}{url}", 7)
    assert message[1:6] == [
        "-- $1 integer = 7",
        "-- $2 numeric = 1.50",
        "-- $3 boolean = true",
        "-- $4 text = 'it's me'",
        '-- $5 text[] = \'{"a","b"}\'',
    ]
    assert message[6].startswith('select "public"."logged"("_id" => $1::integer')


def test_the_logged_url_has_the_host_and_scheme_of_a_trusted_proxy(logging_service: Service) -> None:
    forwarded = {"x-forwarded-host": "shop.example", "x-forwarded-proto": "https"}
    assert logging_service.post("/posted/seen", json={"note": "n"}, headers=forwarded).status_code == 200
    logging_service.wait_for_log("-- POST https://shop.example/posted/seen")


def test_null_is_logged_as_a_word_and_line_breaks_are_escaped(logging_service: Service) -> None:
    assert logging_service.post("/posted/a%0Ab", json={"note": None}).status_code == 200
    assert log_block(logging_service, f"-- POST {logging_service.url}/posted/a\\nb", 3)[1:] == [
        "-- $1 text = 'a\\nb'",
        "-- $2 text = null",
    ]


def test_failed_command_is_logged_with_url_and_parameters(logging_service: Service) -> None:
    problem(logging_service.get("/api/failing?name="), 500)
    message = log_block(logging_service, "22012: division by zero", 3)
    assert message[1:] == [
        f"-- GET {logging_service.url}/api/failing?name=",
        "-- $1 text = ''  [rowcall.database]".replace("  ", " "),
    ]


def test_values_of_sensitive_requests_are_not_logged_or_returned(logging_service: Service) -> None:
    members = problem(logging_service.get(f"/hidden/hush-hush?number={NUMBER}"), 400)
    assert members["title"] == 'invalid input syntax for type integer: "***"'
    members = problem(logging_service.get("/hidden/hush-hush?number=many-hushes"), 400)
    assert members["detail"] == "parameter 'number': the value cannot be used"
    members = problem(logging_service.post("/api/hidden-too", json={"secret": "hush-hush"}), 400)
    assert members["title"] == 'no user ***, "***"'
    members = problem(logging_service.post("/api/hidden-too", json={"secret": ["hush-hush"], "x": 1}), 404)
    assert members["detail"] == "unknown parameter 'x'"
    problem(logging_service.post("/api/hidden-too", json={}), 404)
    message = log_block(logging_service, f"-- GET {logging_service.url}/hidden/{{_secret}}", 3)
    assert message[1:] == ["-- $1 text = ***", "-- $2 integer = ***"]
    logging_service.wait_for_log("HTTP GET /hidden/{_secret} responded 400")
    assert "hush" not in logging_service.log
    assert NUMBER not in logging_service.log


def test_passwords_and_their_hashes_are_not_logged(logging_service: Service) -> None:
    """Other values of the same request are logged."""
    assert logging_service.post("/api/registered", json={"name": "kiri", "word": "hush-word"}).text == "kiri 64"
    made = logging_service.get("/api/rehashed?name=kiri&word=hush-word").text
    assert log_block(logging_service, f"-- POST {logging_service.url}/api/registered", 4)[1:] == [
        "-- $1 text = 'kiri'",
        "-- $2 text = ***",
        "-- $3 text = ***",
    ]
    assert log_block(logging_service, f"-- GET {logging_service.url}/api/rehashed", 3) == [
        f"-- GET {logging_service.url}/api/rehashed",
        "-- $1 text = 'kiri'",
        "-- $2 text = ***",
    ]
    sealed = logging_service.get("/api/sealed?name=kiri&word=hush-word").text
    assert log_block(logging_service, f"-- GET {logging_service.url}/api/sealed", 3)[1:] == [
        "-- $1 text = 'kiri'",
        f"-- $2 text = '{sealed}'",
    ]
    assert "hush" not in logging_service.log
    assert made not in logging_service.log


@pytest.mark.parametrize(
    ("method", "path", "logged", "statuses"),
    [
        ("GET", "/kept/hush-word", "/kept/{_word}", [200, 200]),  # the second response is the cached one
        ("POST", "/kept/hush-word/forget", "/kept/{_word}/forget", [200]),
        ("GET", "/kept/hush-word?more=1", "/kept/{_word}", [404]),
        ("POST", "/kept/hush-word", "/kept/{_word}", [405]),
        ("OPTIONS", "/kept/hush-word", "/kept/{_word}", [204]),
        ("GET", "/let-in/hush-word", "/let-in/{_word}", [401]),
        ("GET", "/closed/hush-word", "/closed/{_word}", [401]),
        ("GET", "/closed/%FFhush-word", "/closed/{_word}", [400]),
        ("GET", "/nowhere/hush-word", "/nowhere/{_word}", [500]),
    ],
)
def test_path_with_secret_values_is_logged_as_its_template(
    logging_service: Service, method: str, path: str, logged: str, statuses: list[int]
) -> None:
    """Passwords, sensitive values, and values that the database only receives encrypted."""
    assert [logging_service.request(method, path).status_code for _ in statuses] == statuses
    logging_service.wait_for_log(f"HTTP {method} {logged} responded {statuses[-1]}")
    assert "hush" not in logging_service.log


def test_only_the_url_is_logged_without_parameters(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, LOUD | {"Service:LogCommandParameters": "false"})
    assert service.get("/api/failing?name=a").status_code == 200
    assert log_block(service, f"-- GET {service.url}/api/failing?name=a", 2)[1].startswith("select")
    assert "-- $1" not in service.log


def test_commands_are_not_logged_if_switched_off(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {"Log:MinimalLevels:rowcall": "Debug"})
    problem(service.get("/api/failing?name="), 500)
    service.wait_for_log("22012: division by zero")
    assert "-- GET" not in service.log


NOTICES = """
create function outer_one(_level text) returns text language plpgsql as $$ begin return inner_one(_level); end $$;
create function inner_one(_level text) returns text language plpgsql as $$
begin
  case _level
    when 'debug' then raise debug 'said %', _level;
    when 'log' then raise log 'said %', _level;
    when 'info' then raise info 'said %', _level;
    when 'notice' then raise notice 'said %', _level;
    else raise warning 'said %', _level;
  end case;
  return _level;
end $$;
create function at_the_end() returns int language sql stable as 'select 1';
comment on function outer_one(text) is 'HTTP GET /outer';
comment on function at_the_end() is 'HTTP GET /end';
alter function outer_one(text) set client_min_messages = 'debug1';
"""


def notice_log_lines(service: Service) -> list[str]:
    """Return the log lines of one notice of each kind, without the time."""
    for level in ("debug", "log", "info", "notice", "warning"):
        assert answer(service.get(f"/outer?level={level}")) == (200, TEXT, level)
    service.wait_for_log("said warning")
    lines = (line for line in service.log.splitlines() if "volatile routine" not in line)
    return [line.partition(" ")[2] for line in lines if "outer_one" in line or line.startswith("said ")]


LABEL = "GET /outer public.outer_one"


def test_notices_are_logged_with_their_endpoint_and_frame(own_database: Database, serve_once: Serve) -> None:
    """The last line of the context: the outermost frame."""
    service = serve_once(own_database, NOTICES)
    frame = "PL/pgSQL function outer_one(text) line 1 at RETURN:"
    assert notice_log_lines(service) == [
        f"INF] {LABEL}: INFO: {frame}",
        "info [rowcall.notices]",
        f"INF] {LABEL}: NOTICE: {frame}",
        "notice [rowcall.notices]",
        f"WRN] {LABEL}: WARNING: {frame}",
        "warning [rowcall.notices]",
    ]


def test_notices_of_lower_severity_need_verbose_logging(own_database: Database, serve_once: Serve) -> None:
    settings = {
        "Service:LogConnectionNoticeEventsMode": "MessageOnly",
        "Log:MinimalLevels:rowcall": "Verbose",
        "Service:DebugLogCommentAnnotationEvents": "false",
        "Service:DebugLogEndpointCreateEvents": "false",
    }
    service = serve_once(own_database, NOTICES, settings)
    assert [line for line in notice_log_lines(service) if "[rowcall.notices]" in line] == [
        f"VRB] {LABEL}: DEBUG: said debug [rowcall.notices]",
        f"VRB] {LABEL}: LOG: said log [rowcall.notices]",
        f"INF] {LABEL}: INFO: said info [rowcall.notices]",
        f"INF] {LABEL}: NOTICE: said notice [rowcall.notices]",
        f"WRN] {LABEL}: WARNING: said warning [rowcall.notices]",
    ]


def test_the_whole_stack_can_be_logged(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, NOTICES, {"Service:LogConnectionNoticeEventsMode": "FullStackAndMessage"})
    assert service.get("/outer?level=notice").status_code == 200
    service.wait_for_log("said notice")
    lines = service.log.splitlines()
    start = next(number for number, line in enumerate(lines) if f"{LABEL}: NOTICE" in line)
    assert "PL/pgSQL function inner_one(text) line 7 at RAISE" in lines[start]
    assert lines[start + 1 : start + 3] == [
        "PL/pgSQL function outer_one(text) line 1 at RETURN:",
        "said notice [rowcall.notices]",
    ]


def test_notices_can_be_excluded_from_the_log(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, NOTICES, {"Service:LogConnectionNoticeEvents": "false"})
    assert service.get("/outer?level=warning").status_code == 200
    assert service.get("/end").status_code == 200
    wait_until(lambda: "HTTP GET /end" in service.log, "the later request is logged")
    assert "said warning" not in service.log


@pytest.mark.parametrize("whole", [False, True])
def test_a_file_with_several_statements_is_logged_by_its_name(
    own_database: Database, serve_once: Serve, tmp_path: Path, whole: bool
) -> None:
    write_files(tmp_path, {"both.sql": "-- HTTP GET\nselect 1 as a;\nselect 2 as b;"})
    settings = {"Service:SqlFileSource:LogCommandText": str(whole)}
    service = serve_once(own_database, "", LOUD | file_settings(tmp_path) | settings)
    assert service.get("/api/both").status_code == 200
    message = log_block(service, f"-- GET {service.url}/api/both", 3)
    if whole:
        assert message[1:] == ["select 1 as a;", "select 2 as b [rowcall.commands]"]
    else:
        assert message[1].endswith("both.sql: 2 statements [rowcall.commands]")
