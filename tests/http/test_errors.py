"""Errors in the database, as a client receives them (discovery-3, sign-in-36, access-4, protection-11, errors-12)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function raising(_message text) returns text language plpgsql as $$
begin raise exception '%', _message; end $$;
create function raising_detail() returns text language plpgsql as $$
begin raise exception 'Box full' using detail = 'it holds 3', hint = 'empty it'; end $$;
create function raising_code(_code text) returns text language plpgsql as $$
begin raise exception 'coded' using errcode = _code; end $$;
create function asserting() returns text language plpgsql as $$ begin assert false, 'must hold'; end $$;
create function dividing(_by int) returns int language sql stable as 'select 1 / _by';
create function late_error(_rows int) returns setof int language sql stable
  as 'select 1 / (_rows - n) from generate_series(1, _rows) n';
create function deferred() returns int language plpgsql as $$
begin insert into child values (99); return 1; end $$;
create table parent (id int primary key);
create table child (id int references parent deferrable initially deferred);
create function sleeping(_seconds float8) returns text language plpgsql volatile
  as $$ begin perform pg_sleep(_seconds); return 'slept'; end $$;
create function cancelled() returns text language plpgsql
  as $$ begin perform pg_cancel_backend(pg_backend_pid()); perform pg_sleep(1); return 'never'; end $$;
create function noticing() returns text language plpgsql as $$ begin raise notice 'beside'; return 'ok'; end $$;
comment on function raising(text) is 'HTTP GET';
comment on function raising_detail() is 'HTTP GET';
comment on function raising_code(text) is 'HTTP GET';
comment on function asserting() is 'HTTP GET';
comment on function dividing(int) is 'HTTP';
comment on function late_error(int) is 'HTTP';
comment on function deferred() is 'HTTP';
comment on function sleeping(float8) is E'HTTP GET\\ntimeout 200ms';
comment on function cancelled() is 'HTTP GET';
comment on function noticing() is 'HTTP GET';
"""


@pytest.fixture(scope="module")
def service(every_database: Database, serve: Serve) -> Service:
    return serve(every_database, SQL)


def test_raised_exception_gets_400_with_detail_and_hint(service: Service) -> None:
    response = service.get("/api/raising-detail")
    assert response.text == (
        '{"type":"https://tools.ietf.org/html/rfc9110#section-15.5.1","title":"Box full","status":400,'
        '"detail":"it holds 3","hint":"empty it","sqlstate":"P0001"}'
    )
    problem(response, 400)


@pytest.mark.parametrize("message", ['say "no"', "back\\slash", "line\nbreak", "ж 😀", "<&>"])
def test_error_message_is_escaped_without_loss(service: Service, message: str) -> None:
    members = problem(service.get("/api/raising", params={"message": message}), 400)
    assert members["title"] == message


def test_failed_assertion_gets_400(service: Service) -> None:
    members = problem(service.get("/api/asserting"), 400)
    assert (members["title"], members["detail"]) == ("must hold", "P0004")


@pytest.mark.parametrize(
    ("code", "status", "title"),
    [
        ("42501", 403, "Insufficient Privilege"),
        ("P0001", 400, "coded"),
        ("23505", 409, "coded"),
        ("ZZ999", 500, "ZZ999: coded"),
    ],
)
def test_sqlstate_decides_the_status(service: Service, code: str, status: int, title: str) -> None:
    members = problem(service.get(f"/api/raising-code?code={code}"), status)
    assert (members["title"], members["detail"]) == (title, code)


def test_unmapped_error_carries_its_code(service: Service) -> None:
    members = problem(service.get("/api/dividing?by=0"), 500)
    assert (members["title"], members["detail"]) == ("22012: division by zero", "22012")


def test_connection_stays_usable_after_an_error(service: Service) -> None:
    for by in (0, 1) * 10:
        assert service.get(f"/api/dividing?by={by}").status_code == (200 if by else 500)


def test_error_after_buffered_rows_gets_500(service: Service) -> None:
    """Buffered rows are dropped (rendering-42)."""
    problem(service.get("/api/late-error?rows=3"), 500)


@pytest.mark.slow
def test_error_in_mid_stream_truncates_the_body(service: Service) -> None:
    """The status has been sent, so only the missing end can report it: the body is never complete, and the log has the
    reason."""
    with service.connect() as connection:
        connection.sendall(b"GET /api/late-error?rows=2000000 HTTP/1.1\r\nHost: x\r\n\r\n")
        received = b""
        while chunk := connection.recv(1 << 20):
            received += chunk
            if received.endswith(b"0\r\n\r\n") or b"application/problem+json" in received[:500]:
                break
    assert not (received.startswith(b"HTTP/1.1 200") and received.endswith(b"0\r\n\r\n"))
    line = service.wait_for_log("public.late_error: the response is cut off")
    assert line.endswith("is cut off: 22012: division by zero [rowcall.database]")
    assert " ERR] " in line


def test_error_at_commit_gets_an_error_response(service: Service) -> None:
    """The call itself returned a row; its transaction failed (driver-14)."""
    members = problem(service.post("/api/deferred"), 409)
    assert members["detail"] == "23503"


def test_statement_beyond_its_timeout_gets_504(service: Service) -> None:
    members = problem(service.get("/api/sleeping?seconds=30"), 504)
    assert members["title"] == "Command execution timed out"


def test_statement_within_its_timeout_succeeds(service: Service) -> None:
    assert answer(service.get("/api/sleeping?seconds=0")) == (200, TEXT, "slept")


def test_cancel_by_the_server_gets_504(service: Service) -> None:
    """57014 is never a success."""
    problem(service.get("/api/cancelled"), 504)


def test_notice_does_not_affect_the_response(service: Service) -> None:
    assert answer(service.get("/api/noticing")) == (200, TEXT, "ok")


GLOBAL_TIMEOUT = """
create function sleeping(_seconds float8) returns text language plpgsql volatile
  as $$ begin perform pg_sleep(_seconds); return 'slept'; end $$;
create function patient(_seconds float8) returns text language plpgsql volatile
  as $$ begin perform pg_sleep(_seconds); return 'slept'; end $$;
comment on function sleeping(float8) is 'HTTP GET';
comment on function patient(float8) is E'HTTP GET\\n@timeout 1min';
"""


@pytest.mark.slow
def test_timeout_annotation_overrides_the_configured_timeout(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, GLOBAL_TIMEOUT, {"Service:CommandTimeout": "300ms"})
    problem(service.get("/api/sleeping?seconds=30"), 504)
    assert answer(service.get("/api/patient?seconds=0.6")) == (200, TEXT, "slept")


def test_type_member_can_be_left_out(own_database: Database, serve_once: Serve) -> None:
    sql = "create function f() returns int language sql stable as 'select 1/0'; comment on function f() is 'HTTP'"
    service = serve_once(own_database, sql, {"ErrorHandlingOptions:RemoveTypeUrl": "true"})
    assert service.get("/api/f").text == '{"title":"22012: division by zero","status":500,"detail":"22012"}'


def test_missing_privilege_is_forbidden(own_database: Database, serve_once: Serve) -> None:
    role = f"{own_database.name}_web"
    own_database.execute(f"create role {role} login; create table closed (id int)")
    sql = "create function peek() returns bigint language sql stable as 'select count(*) from closed';"
    service = serve_once(
        own_database,
        sql + "comment on function peek() is 'HTTP'",
        {"ConnectionStrings:Default": own_database.conninfo_as(role)},
    )
    members = problem(service.get("/api/peek"), 403)
    assert (members["title"], members["detail"]) == ("Insufficient Privilege", "42501")
