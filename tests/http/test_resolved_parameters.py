"""Parameters that SQL in the comment fills, and no request can (execution-17 to execution-19; execution-17 to
execution-19)."""

from __future__ import annotations

import socket

import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, TEXT, answer, problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create schema app;
create table app.tokens (u int, t text);
insert into app.tokens values (7, 'seven'), (8, null), (7, 'also seven');

create function push(_uid int, _text text, _token text default null) returns text language sql stable as
$$ select format('%s|%s|%s', _uid, _text, coalesce(_token, 'none')) $$;
comment on function push(int, text, text) is 'HTTP GET /push
_token = select t from app.tokens where u = {_uid} and {_uid} <> '''' order by t desc
X-Token: [{_token}]';

create function post_push(_uid int, _token text) returns text language sql as $$ select _uid || ':' || _token $$;
comment on function post_push(int, text) is 'HTTP POST /push
@_token = select t from app.tokens where u = {UID} order by t limit 1';

create function chain(_a int, _b int, _c int) returns text language sql stable as
$$ select format('%s,%s,%s', _a, _b, _c) $$;
comment on function chain(int, int, int) is 'HTTP GET /chain
_b = select {_a}::int + coalesce({_c}::int, 10)
_c = select {_b}::int * 2';

create function typed(_day date, _flag boolean, _list int[], _doc jsonb) returns text language sql stable as
$$ select format('%s %s %s %s', _day + 1, not _flag, _list[2], _doc ->> 'k') $$;
comment on function typed(date, boolean, int[], jsonb) is 'HTTP GET /typed
_day = date ''2026-02-28''
_flag = select true
_list = array[1, 2]
_doc = select ''{"k": "v", "l": {}}''::jsonb';

create function noted(_uid int, _first text, _last text) returns text language sql stable as
$$ select _first || ' to ' || _last $$;
comment on function noted(int, text, text) is 'HTTP GET /noted
_first = select t from app.tokens where u = {_uid} order by t -- the first one
_last = ''z'' -- a constant';

create function ended(_uid int, _first text, _last text) returns text language sql stable as
$$ select _first || ' to ' || _last $$;
comment on function ended(int, text, text) is 'HTTP GET /ended
_first = /* of the user */ select t from app.tokens where u = {_uid} order by t; -- the first one; really
_last = ''z;--'' ; /* a constant; */ ; -- no more';

create function strictly(_given int, _found int) returns text language sql strict stable as $$ select 'called' $$;
comment on function strictly(int, int) is 'HTTP GET /strict
_found = select u from app.tokens where u = {_given}';

create function broken(_x int, _y int) returns int language sql stable as 'select 1';
comment on function broken(int, int) is 'HTTP GET /broken
_y = select 1 / {_x}::int';

create function nowhere(_x int, _y int) returns int language sql stable as 'select 1';
comment on function nowhere(int, int) is 'HTTP GET /nowhere
_y = select y from app.nowhere where x = {_x}';

create function raising() returns int language plpgsql as $$ begin raise exception 'not so'; end $$;
create function refused(_y int) returns int language sql stable as 'select 1';
comment on function refused(int) is 'HTTP GET /refused
_y = select raising()';

create function closed(_n bigint) returns bigint language sql stable as 'select _n';
create sequence asked;
comment on function closed(bigint) is 'HTTP GET /closed
authorize
_n = select nextval(''asked'')';

create function one_session(_a int, _b int, _c int) returns text language sql stable as
$$ select format('%s %s %s', _a = _b, _b = _c, current_setting('app.left', true)) $$;
comment on function one_session(int, int, int) is 'HTTP GET /one-session
_a = select pg_backend_pid() from set_config(''app.left'', ''x'', false)
_b = select pg_backend_pid() where current_setting(''app.left'') = ''x''
_c = select pg_backend_pid()';

create function interrupted(_how text, _a text, _b int) returns text language sql stable as $$ select 'called' $$;
comment on function interrupted(text, text, int) is 'HTTP GET /interrupted
_a = select 1
_b = select end_session({_how})';
create function end_session(_how text) returns int language plpgsql as $$
begin
    if _how = 'terminate' then
        perform pg_terminate_backend(pg_backend_pid()), pg_sleep(10);
    end if;
    perform pg_sleep(60) where _how = 'wait';
    return 1;
end $$;

create function renamed(_uid int, _t text) returns text language sql stable as 'select _t';
comment on function renamed(int, text) is 'HTTP GET /renamed
param _t is token
token = select t from app.tokens where u = {_uid} order by t limit 1';

create function reported(_t text, _d date, _l int[], _said text) returns text language sql stable as 'select _said';
comment on function reported(text, date, int[], text) is 'HTTP GET /reported
_said = select concat_ws('' '', {_t}, to_char({_d}, ''YYYY''), {_d} - 1, array_length({_l}, 1), {_t} is null)';

create function doubled(_n text, _m int) returns int language sql stable as 'select _m';
comment on function doubled(text, int) is 'HTTP GET /doubled
_m = select {_n} * 2';

create function quoted(_n text, _m text) returns text language sql stable as 'select _m';
comment on function quoted(text, text) is 'HTTP GET /quoted
_m = select concat_ws('' '', {_n}, ''{n}'', (''{a}''::text[])[1], "{n}") from (select 1 as "{n}") x';

create function table_of(_of text, _rows int) returns table (n int) language sql stable as
$$ select generate_series(1, _rows) $$;
comment on function table_of(text, int) is 'HTTP GET /rows
_rows = select length({_of})
validate _of using not_empty';
"""


@pytest.fixture(scope="module")
def service(every_database: Database, serve: Serve) -> Service:
    settings = {
        "Service:CommandTimeout": "2s",
        "ErrorHandlingOptions:TimeoutErrorMapping:StatusCode": "503",
        "ErrorHandlingOptions:TimeoutErrorMapping:Title": "Too slow",
    }
    return serve(every_database, SQL, settings, workers=2)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/push?uid=7&text=x", "7|x|seven"),
        ("/push?uid=7&text=x&token=evil", "7|x|seven"),
        ("/push?uid=7&text=x&token=", "7|x|seven"),
        ("/push?uid=8&text=x&token=evil", "8|x|none"),
        ("/push?uid=9&text=x&token=evil", "9|x|none"),
        ("/push?uid=7&text=%27%3B%20drop%20table%20app.tokens%3B--", "7|'; drop table app.tokens;--|seven"),
        ("/chain?a=1", "1,11,22"),
        ("/chain?a=1&b=5&c=7", "1,11,22"),
        ("/typed", "2026-03-01 f 2 v"),
        ("/typed?day=nonsense&flag=nonsense&list=x&doc=%7B", "2026-03-01 f 2 v"),
        ("/renamed?uid=7", "also seven"),
        ("/strict?given=7", "called"),
        ("/reported?t=x&d=2026-01-01&l=5&l=6", "x 2026 2025-12-31 2 f"),
        ("/reported?t=y&d=2025-01-01&l=7", "y 2025 2024-12-31 1 f"),
        ("/doubled?n=4", "8"),
        ("/noted?uid=7", "also seven to z"),
        ("/ended?uid=7", "also seven to z;--"),
        ("/quoted?n=4", "4 {n} a 1"),
    ],
)
def test_sql_expressions_replace_values_of_the_request(service: Service, path: str, body: str) -> None:
    assert answer(service.get(path)) == (200, TEXT, body)


@pytest.mark.parametrize("more", [{}, {"token": "evil"}, {"token": None}, {"token": {"a": 1}}])
def test_a_body_cannot_set_a_resolved_parameter(service: Service, more: dict[str, object]) -> None:
    assert answer(service.post("/push", json={"uid": 7, **more})) == (200, TEXT, "7:also seven")


def test_resolved_values_fill_placeholders(service: Service) -> None:
    assert service.get("/push?uid=7&text=x").headers["x-token"] == "[seven]"
    assert service.get("/push?uid=9&text=x").headers["x-token"] == "[]"


@pytest.mark.parametrize("path", ["/strict?given=9", "/strict?given="])
def test_a_strict_routine_is_not_called_for_a_null(service: Service, path: str) -> None:
    assert answer(service.get(path)) == (204, None, "")


def test_resolved_parameters_work_with_rows_and_validation(service: Service) -> None:
    assert answer(service.get("/rows?of=abc")) == (200, JSON, '[{"n":1},{"n":2},{"n":3}]')
    problem(service.get("/rows?of="), 400)


def test_errors_of_an_expression_follow_no_error_policy(service: Service) -> None:
    assert problem(service.get("/broken?x=0"), 500)["title"] == "22012: division by zero"
    assert problem(service.get("/refused"), 500)["title"] == "P0001: not so"
    assert answer(service.get("/broken?x=1")) == (200, TEXT, "1")


def test_an_expression_on_a_missing_table_is_an_error(service: Service) -> None:
    assert problem(service.get("/nowhere?x=1"), 500)["detail"] == "42P01"


def test_a_value_that_fits_no_type_gets_the_error_of_the_first_attempt(service: Service) -> None:
    title = '22P02: invalid input syntax for type integer: "x"'
    assert [problem(service.get("/doubled?n=x"), 500)["title"] for _ in range(3)] == [title] * 3
    assert service.get("/doubled?n=4").text == "8"


@pytest.mark.slow
def test_an_expression_has_the_time_limit_of_the_routine(service: Service) -> None:
    assert problem(service.get("/interrupted?how=wait"), 503)["title"] == "Too slow"


def test_expressions_do_not_run_for_unauthorized_callers(service: Service, every_database: Database) -> None:
    problem(service.get("/closed"), 401)
    assert every_database.value("select is_called from asked") is False


def test_expressions_and_routine_run_in_one_dedicated_session(service: Service) -> None:
    bodies = {service.get("/one-session").text for _ in range(10)}
    assert bodies == {"t t "}


def test_a_session_lost_between_expressions_is_not_replaced(service: Service) -> None:
    problem(service.get("/interrupted?how=terminate"), 503)
    assert service.get("/interrupted?how=other").text == "called"


@pytest.mark.slow
def test_a_client_that_disconnects_during_an_expression_cancels_it(service: Service, every_database: Database) -> None:
    running = "query like '%end_session($1)%' and state = 'active'"
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", service.port)) as client:
            client.sendall(b"GET /interrupted?how=wait HTTP/1.1\r\nHost: x\r\n\r\n")
            wait_until(lambda: every_database.backends(running), "the second statement runs")
        wait_until(lambda: not every_database.backends(running), "it is cancelled")
    service.wait_for_log("the client is gone, the query is cancelled")
    assert service.get("/interrupted?how=other").text == "called"


def test_a_session_that_failed_serves_again(service: Service) -> None:
    """More failures than there are connections."""
    for _ in range(40):
        problem(service.get("/broken?x=0"), 500)
    assert answer(service.get("/broken?x=1")) == (200, TEXT, "1")


def test_unknown_keys_are_still_unknown(service: Service) -> None:
    problem(service.get("/push?uid=7&text=x&_token=evil"), 404)


def test_parameters_are_resolved_by_every_worker(service: Service) -> None:
    bodies = {service.get("/push?uid=7&text=x", headers={"Connection": "close"}).text for _ in range(20)}
    assert bodies == {"7|x|seven"}
