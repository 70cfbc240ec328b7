"""`issue_token` and `consume_token`: one-time tokens, stored as hashes, in the transaction of the routine."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rowcall.service.installation.script import install_sql
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.mail_server import MailServer
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

pytestmark = pytest.mark.attack

SQL = """
create table account (user_id int primary key, email text unique, password text);
insert into account values (41, 'ana@example.com', 'old'), (42, 'ben@example.com', 'old');
create function forgot(_email text) returns table (user_id int, "to" text, subject text, text text)
language sql as $$
    select user_id, email, 'Your password', 'https://shop.example/reset#{token}' from account where email = _email
$$;
comment on function forgot(text) is 'HTTP POST /forgot
allow_anonymous
issue_token password_reset for 1 hour
send_mail';
create function reset(_token text, _password text) returns text language plpgsql as $$
begin
  if _password = '' then raise exception 'a password is needed'; end if;
  perform pg_sleep(0.02);
  update account set password = _password where user_id = current_setting('request.token_subject')::int;
  return current_setting('request.token_subject');
end $$;
comment on function reset(text, text) is 'HTTP POST /reset
allow_anonymous
consume_token password_reset';
create function reset_strictly(_token text, _password text) returns text language sql strict as
$$ select current_setting('request.token_subject') || _password $$;
comment on function reset_strictly(text, text) is 'HTTP POST /strict-reset
allow_anonymous
consume_token password_reset';
create function invite(_email text) returns table (email text, "invitedBy" text)
language sql as $$ select _email, 'boss' $$;
comment on function invite(text) is 'HTTP POST /invite
issue_token invitation for 7 days subject email
single';
create function short(_id int) returns table (user_id int) language sql as 'select _id';
comment on function short(int) is 'HTTP POST /short
issue_token password_reset for 1ms';
create function enter(_code text) returns table (user_id text)
language sql as $$ select current_setting('request.token_subject') $$;
comment on function enter(text) is 'HTTP POST /enter
login
consume_token magic from _code';
create function enter_strictly(_code text, _device text) returns table (user_id text) language sql strict
as $$ select current_setting('request.token_subject') $$;
comment on function enter_strictly(text, text) is 'HTTP POST /strict-enter
login
consume_token magic from _code';
create function magic(_id int) returns table (user_id int) language sql as 'select _id';
comment on function magic(int) is 'HTTP POST /magic
issue_token magic for 10 minutes';
create function me() returns text language sql stable as $$ select current_setting('request.user_id') $$;
comment on function me() is 'HTTP GET /me
authorize
user_context';
create function invite_few(_id text) returns table (user_id text, "to" text, text text)
language sql as $$ select _id, 'ana@example.com', '{token}' $$;
comment on function invite_few(text) is 'HTTP POST /few
issue_token few for 1 hour at most 3 per 1 day
send_mail';
create function issue_few(_id text) returns table (user_id text) language sql as 'select _id';
comment on function issue_few(text) is 'HTTP POST /few-tokens
issue_token few for 1 hour subject user_id at most 3
single';
create function invite_to(_id int) returns table (user_id int) language sql as 'select _id';
comment on function invite_to(int) is 'HTTP POST /tenants/invite
tenant from header X-Tenant
issue_token join for 1 hour at most 2
single';
create function join_tenant(_token text) returns text language sql as
$$ select concat_ws(' ', current_setting('request.tenant'), current_setting('request.token_subject')) $$;
comment on function join_tenant(text) is 'HTTP POST /tenants/join
tenant from header X-Tenant
consume_token join';
create function join_any(_token text) returns text language sql as
$$ select current_setting('request.token_subject') $$;
comment on function join_any(text) is 'HTTP POST /join
consume_token join';
create function nothing(_x text) returns text language sql as 'select _x';
comment on function nothing(text) is 'HTTP POST /nothing
consume_token password_reset';
create function wrong() returns table (id int) language sql as 'select 1';
comment on function wrong() is 'HTTP POST /wrong
issue_token password_reset for 1 hour';
create function never() returns table (user_id int) language sql as 'select 1';
comment on function never() is 'HTTP POST /never
issue_token password_reset';
"""
INVALID = "the token is not valid, has expired, or has been used"


@pytest.fixture(scope="module")
def server() -> Iterator[MailServer]:
    server = MailServer()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, server: MailServer) -> Service:
    database.execute(install_sql())
    settings = {
        "Service:RequiresAuthorization": "false",
        "Auth:BearerTokenAuth": "true",
        "Batch:Enabled": "true",
        "Mail:Enabled": "true",
        "Mail:From": "shop@example.com",
        "Mail:Host": "127.0.0.1",
        "Mail:Port": str(server.port),
        "Mail:Security": "None",
    }
    return serve(database, SQL, settings, workers=2)


def mailed_token(service: Service, server: MailServer, email: str = "ana@example.com") -> str:
    before = len(server.messages)
    assert service.post("/forgot", json={"email": email}).status_code == 202
    body = server.wait_for(before + 1)[-1].get_body()
    assert body is not None
    match = re.search(r"#(\w+)", body.get_content())
    assert match is not None
    return match[1]


def refused(service: Service, path: str, **body: str) -> None:
    assert problem(service.post(path, json=body), 400)["detail"] == INVALID


def test_a_password_is_reset_with_a_token_from_a_mail(service: Service, server: MailServer, database: Database) -> None:
    token = mailed_token(service, server)
    assert re.fullmatch("[0-9a-f]{64}", token)
    stored = database.fetch("select hash, purpose, subject from rowcall.token where purpose = 'password_reset'")
    assert (hashlib.sha256(token.encode()).digest(), "password_reset", "41") in [
        (bytes(item), purpose, subject) for item, purpose, subject in stored
    ]
    assert service.post("/reset", json={"token": token, "password": "new"}).text == "41"
    assert database.value("select password from account where user_id = 41") == "new"
    refused(service, "/reset", token=token, password="newer")
    assert database.value("select password from account where user_id = 41") == "new"
    assert token not in service.log


def test_responses_for_unknown_addresses_are_equal(service: Service, server: MailServer, database: Database) -> None:
    before = database.value("select count(*) from rowcall.token")
    response = service.post("/forgot", json={"email": "unknown@example.com"})
    assert (response.status_code, response.content) == (202, b"")
    assert database.value("select count(*) from rowcall.token") == before


@pytest.mark.parametrize("token", ["", "0" * 64, "x", "%", "' or 1=1 --", "\u00e9" * 100])
def test_malformed_tokens_are_refused(service: Service, token: str) -> None:
    refused(service, "/reset", token=token, password="x")


def test_a_token_of_another_purpose_or_that_has_expired(
    service: Service, server: MailServer, database: Database
) -> None:
    invitation = service.post("/invite", json={"email": "cy@example.com"}).json()
    assert (invitation["email"], invitation["invitedBy"]) == ("cy@example.com", "boss")
    refused(service, "/reset", token=invitation["token"], password="x")
    (short,) = service.post("/short", json={"id": 42}).json()
    # All other tokens of this user last for an hour.
    valid = (
        "select from rowcall.list_tokens('42') where expires between clock_timestamp() and now() + interval '1 minute'"
    )
    wait_until(lambda: not database.fetch(valid), "the token has expired")
    refused(service, "/reset", token=short["token"], password="x")


def test_a_failed_request_does_not_consume_the_token(service: Service, server: MailServer) -> None:
    token = mailed_token(service, server, "ben@example.com")
    assert service.post("/reset", json={"token": token, "password": ""}).status_code == 400
    assert service.post("/reset", json={"token": token, "password": "b"}).text == "42"


def test_null_for_a_strict_routine_neither_skips_the_check_nor_consumes_the_token(
    service: Service, server: MailServer
) -> None:
    for token in ("0" * 64, "", None):
        response = service.post("/strict-reset", json={"token": token, "password": None})
        assert problem(response, 400)["detail"] == INVALID
    token = mailed_token(service, server, "ben@example.com")
    for _ in range(2):
        response = service.post("/strict-reset", json={"token": token, "password": None})
        assert (response.status_code, response.content) == (204, b"")
    assert service.post("/strict-reset", json={"token": token, "password": "b"}).text == "42b"
    assert problem(service.post("/strict-reset", json={"token": token, "password": None}), 400)["detail"] == INVALID


def test_null_for_a_strict_login_does_not_consume_the_token(service: Service) -> None:
    (issued,) = service.post("/magic", json={"id": 43}).json()
    for code, status in (("0" * 64, 400), (issued["token"], 401), (issued["token"], 401)):
        assert service.post("/strict-enter", json={"code": code, "device": None}).status_code == status
    assert service.post("/strict-enter", json={"code": issued["token"], "device": "d"}).status_code == 200
    assert service.post("/strict-enter", json={"code": issued["token"], "device": "d"}).status_code == 400


def test_consuming_a_token_revokes_the_others_of_its_subject(
    service: Service, server: MailServer, database: Database
) -> None:
    first, second = mailed_token(service, server), mailed_token(service, server)
    assert service.post("/reset", json={"token": second, "password": "x"}).status_code == 200
    refused(service, "/reset", token=first, password="y")
    third = mailed_token(service, server)
    listed = database.fetch("select purpose, used is null from rowcall.list_tokens('41') where expires > now()")
    assert listed[0] == ("password_reset", True)
    assert database.value("select rowcall.revoke_tokens('41')") == 1
    refused(service, "/reset", token=third, password="y")


def test_a_token_is_consumed_once_by_fifty_parallel_requests(service: Service, server: MailServer) -> None:
    token = mailed_token(service, server)
    with service.new_client() as client, ThreadPoolExecutor(50) as pool:
        results = pool.map(
            lambda number: client.post("/reset", json={"token": token, "password": str(number)}).status_code, range(50)
        )
        assert Counter(results) == {200: 1, 400: 49}


def test_a_magic_link_signs_in(service: Service) -> None:
    (row,) = service.post("/magic", json={"id": 41}).json()
    assert service.post("/magic", json={"id": 41}).headers["cache-control"] == "no-store"
    response = service.post("/enter", json={"code": row["token"]}).json()
    headers = {"Authorization": f"Bearer {response['accessToken']}"}
    assert service.get("/me", headers=headers).text == "41"
    refused(service, "/enter", code=row["token"])


def test_a_batch_in_one_transaction_refuses_endpoints_with_tokens(service: Service) -> None:
    """The transaction of a token is its own: it is not that of other requests."""
    for path in ("/reset", "/forgot", "/magic"):
        response = service.post("/batch", json=[{"method": "POST", "path": path, "body": {}}])
        assert "its tokens and mail have a transaction of their own" in response.text
        assert response.status_code == 400
    sent = [{"method": "POST", "path": "/reset", "body": {"token": "0" * 64, "password": "x"}}]
    assert INVALID in service.post("/batch?transaction=false", json=sent).text


def test_impossible_token_annotations_are_reported(service: Service) -> None:
    log = service.log
    assert "POST /nothing: consume_token is not possible: there is no parameter token; the endpoint is left out" in log
    assert "POST /wrong: issue_token is not possible: its result has no column user_id; the endpoint is left out" in log
    assert "is none of: password_reset for 1 hour, invitation for 7 days subject email" in log or ("issue_token" in log)


def test_other_roles_may_not_issue_tokens(service: Service, database: Database) -> None:
    with pytest.raises(Exception, match="permission denied"):
        database.execute(
            "begin; create role role_without_tokens; set local role role_without_tokens;"
            " select rowcall.issue_token('password_reset', '41'); rollback"
        )


def test_the_number_of_tokens_of_a_subject_is_limited(service: Service, server: MailServer, database: Database) -> None:
    """The response to a request with mail does not reveal the limit; parallel requests are counted too."""
    before = len(server.messages)
    with ThreadPoolExecutor(10) as pool:
        responses = [*pool.map(lambda _: service.post("/few", json={"id": "one"}), range(10))]
    assert {response.status_code for response in responses} == {202}
    assert database.value("select count(*) from rowcall.token where purpose = 'few' and subject = 'one'") == 3
    server.wait_for(before + 3)
    service.wait_for_log("a subject has got 3 tokens for few in 86400 s, so no mail is sent")
    with ThreadPoolExecutor(10) as pool:
        responses = [*pool.map(lambda _: service.post("/few-tokens", json={"id": "two"}), range(10))]
    assert Counter(response.status_code for response in responses) == {200: 3, 429: 7}
    refusal = next(response for response in responses if response.status_code == 429)
    assert problem(refusal, 429)["detail"] == "this subject has got 3 tokens for few in 3600 s"
    assert refusal.headers["retry-after"] == "3600"
    assert service.post("/few-tokens", json={"id": "three"}).status_code == 200


def test_used_and_revoked_tokens_count_for_the_limit(service: Service, database: Database) -> None:
    tokens = [service.post("/few-tokens", json={"id": "four"}).json()["token"] for _ in range(3)]
    assert database.value("select rowcall.consume_token('few', %s)", tokens[2]) == "four"
    problem(service.post("/few-tokens", json={"id": "four"}), 429)
    assert [database.value("select rowcall.consume_token('few', %s)", token) for token in tokens] == [None] * 3
    listed = "select used is null from rowcall.list_tokens('four')"
    assert database.fetch(listed) == [(False,)]
    database.execute("delete from rowcall.token where subject = 'four' and used is not null")
    assert service.post("/few-tokens", json={"id": "four"}).status_code == 200
    assert database.value("select rowcall.revoke_tokens('four', 'few')") == 1
    assert database.value("select rowcall.revoke_tokens('four')") == 0
    problem(service.post("/few-tokens", json={"id": "four"}), 429)


def test_a_token_is_valid_for_its_tenant_only(service: Service, database: Database) -> None:
    def invited(tenant: str) -> str:
        response = service.post("/tenants/invite", json={"id": 41}, headers={"x-tenant": tenant})
        assert response.status_code == 200, response.text
        return str(response.json()["token"])

    def join(tenant: str, token: str) -> str:
        return service.post("/tenants/join", json={"token": token}, headers={"x-tenant": tenant}).text

    red, blue, other_red = invited("red"), invited("blue"), invited("red")
    assert INVALID in join("blue", red)
    assert INVALID in join("RED", red)
    refused(service, "/join", token=red)
    # The limit counts, and the use of a token revokes, those of the same tenant.
    limited = service.post("/tenants/invite", json={"id": 41}, headers={"x-tenant": "red"})
    assert problem(limited, 429)["detail"] == "this subject has got 2 tokens for join in 3600 s"
    assert join("red", red) == "red 41"
    assert INVALID in join("red", other_red)
    assert join("blue", blue) == "blue 41"
    assert INVALID in join("blue", blue)


def test_tokens_of_tenants_in_sql(service: Service, database: Database) -> None:
    token = database.value("select rowcall.issue_token('join', '7', '1 hour', 'green')")
    refused(service, "/join", token=token)
    database.execute("select rowcall.issue_token('join', '7', '1 hour', 'red'), rowcall.issue_token('join', '7')")
    listed = "select tenant from rowcall.list_tokens_of_tenants('7') where used is null order by tenant"
    assert database.fetch(listed) == [("green",), ("red",), (None,)]
    assert database.value("select rowcall.revoke_tokens('7', null, 'red')") == 1
    assert database.fetch(listed) == [("green",), (None,)]
    joined = service.post("/tenants/join", json={"token": token}, headers={"x-tenant": "green"})
    assert joined.text == "green 7"
    database.execute("select rowcall.issue_token('join', '7', '1 hour', 'red')")
    assert database.value("select rowcall.revoke_tokens('7')") == 2
    assert database.fetch(listed) == []
    without = database.value("select rowcall.issue_token('join', '8')")
    response = service.post("/tenants/join", json={"token": without}, headers={"x-tenant": "green"})
    assert problem(response, 400)["detail"] == INVALID
    assert service.post("/join", json={"token": without}).text == "8"


def test_an_older_schema_leaves_out_tokens_of_tenants(own_database: Database, serve_once: Serve) -> None:
    older = install_sql().partition("if not exists (select from rowcall.schema_version where version = 18)")[0]
    own_database.execute(f"{older.rpartition('do $rowcall$')[0]} commit")
    role = f"{own_database.name}_service"
    functions = "rowcall.consume_token(text, text), rowcall.list_tokens(text)"
    own_database.execute(f"create role {role}; grant execute on function {functions} to {role}")
    try:
        service = serve_once(own_database, SQL)
        message = "needs the schema rowcall, which has version 17: run rowcall --install; the endpoint is left out"
        for line in ("POST /tenants/invite: issue_token", "POST /tenants/join: consume_token"):
            assert f"{line} {message}" in service.log
        assert service.post("/tenants/invite", json={"id": 41}, headers={"x-tenant": "red"}).status_code == 404
        token = own_database.value("select rowcall.issue_token('join', '8')")
        own_database.execute(install_sql())
        wait_until(
            lambda: service.post("/tenants/invite", json={"id": 9}, headers={"x-tenant": "red"}).status_code == 200,
            "the endpoint is served",
            30,
        )
        assert service.post("/join", json={"token": token}).text == "8"
        for function, granted in (
            ("consume_token(text, text, text)", True),
            ("list_tokens_of_tenants(text)", True),
            ("issue_token(text, text, interval, text)", False),
        ):
            rights = "select has_function_privilege(%s, %s, 'execute')"
            assert own_database.value(rights, role, f"rowcall.{function}") == granted, function
    finally:
        own_database.execute(f"drop owned by {role} cascade; drop role {role}")
