"""HTTP Basic: for single endpoints and for all, with configured users or with a command (access-6 to access-11)."""

from __future__ import annotations

import pytest

from rowcall.service.auth.basic import basic_header
from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

BASIC = "Service:AuthenticationOptions:BasicAuth:"
STORED = "gW85WHZwyGW3kRPZuSVxRyunJe1rA+uqHXdU92po0IQ2YE2u4FIygkWzWbRS6b4y"
"""`hash_password("s3cret")`."""

SQL = f"""
create function weigh(_user_name text default null) returns text language sql as $$select _user_name$$;
comment on function weigh(text) is E'HTTP GET\\nuser_parameters\\nbasic_auth scale7 {STORED}
basic_auth mate {STORED}';

create function north() returns int language sql as 'select 1';
comment on function north() is E'HTTP GET\\nbasic_auth\\nbasic_auth_realm = Depot "North"';

create function asked(_user_id text default null, _user_roles text[] default null) returns text language sql
as $$select _user_id || coalesce(_user_roles[1], '')$$;
comment on function asked(text, text[]) is E'HTTP GET\\nuser_parameters\\nauthorize gate, boss
basic_auth scale7 {STORED}
challenge_command = select id user_id, roles user_roles, ok status from device($1, $2, $3, $4, $5)';
create function device(_user text, _word text, _valid boolean, _realm text, _path text)
returns table (id text, roles text[], ok boolean) language sql as $$
    select _user || coalesce(_valid::text, '?') || _realm || _path, array[_word], true where _user <> 'unknown'
    union all select 'x', array['boss'], false where _user = 'unknown' and _word = 'known'$$;

create function unasked() returns text language sql as $$select 'in'$$;
comment on function unasked() is E'HTTP GET
basic_auth scale7 {STORED}
challenge_command = select $1 user_id';

create function described(_user_name text default null) returns text language sql as 'select _user_name';
comment on function described(text) is E'HTTP GET\\nuser_parameters
basic_auth scale7 {STORED}
challenge_command = select format(''%s %s %s'', $1, $3, $4) user_name where concat($2) <> ''''';

create function lost() returns text language sql as 'select null';
comment on function lost() is E'HTTP GET\\nchallenge_command = select * from nowhere($1)';

create function adjust() returns text language sql as $$select 'done'$$;
comment on function adjust() is E'HTTP POST\\nchallenge_command = select $1 user_name where $2 = ''s3cret''';

create function sign_in() returns table (name_identifier int) language sql as 'select 7';
comment on function sign_in() is E'HTTP POST\\nlogin';
create function either(_a int) returns text language sql as $$select 'session'$$;
comment on function either(int) is E'HTTP POST /either\\nauthorize';
create function either(_a int, _b int) returns text language sql as $$select 'password'$$;
comment on function either(int, int) is E'HTTP POST /either\\nauthorize\\nbasic_auth mate {STORED}';
create function other(_a int) returns text language sql as $$select 'password'$$;
comment on function other(int) is E'HTTP POST /other\\nauthorize\\nbasic_auth mate {STORED}';
create function other(_a int, _b int) returns text language sql as $$select 'session'$$;
comment on function other(int, int) is E'HTTP POST /other\\nauthorize';
create sequence challenges;
create function pair(_a int) returns text language sql as $$select 'one'$$;
comment on function pair(int) is E'HTTP POST /pair\\nauthorize
challenge_command = select $1 user_name, nextval(''challenges'') user_id where $2 = ''s3cret''';
create function pair(_a int, _b int) returns text language sql as $$select 'two'$$;
comment on function pair(int, int) is E'HTTP POST /pair\\nauthorize
challenge_command = select $1 user_name, nextval(''challenges'') user_id where $2 = ''s3cret''';

create function publish_callers(_text text default 'for callers') returns void language plpgsql as
$$begin raise info '%', _text; end$$;
comment on function publish_callers(text) is E'HTTP POST\\nallow_anonymous\\nbasic_auth mate {STORED}
sse\\nsse_scope matching';
create function publish_fewer() returns void language sql as $$select publish_callers('for callers anywhere')$$;
comment on function publish_fewer() is E'HTTP POST\\nallow_anonymous\\nsse_publish\\nsse_scope matching';
create function publish_all() returns void language sql as $$select publish_callers('for all')$$;
comment on function publish_all() is E'HTTP POST\\nallow_anonymous\\nsse_publish';

create function to_keep() returns text language sql as $$select 'in'$$;
comment on function to_keep() is E'HTTP GET\\nallow_anonymous\\ncache_control public, max-age=60, s-maxage=600';
create function to_keep_by_line() returns text language sql as $$select 'in'$$;
comment on function to_keep_by_line() is E'HTTP GET\\nallow_anonymous\\nCache-Control: max-age=60, public';

create function closed() returns text language sql as $$select 'in'$$;
comment on function closed() is E'HTTP GET\\nauthorize';
"""


COOKIES = {"Auth:CookieAuth": "true"}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    settings = {
        BASIC + "SslRequirement": "Ignore",
        **COOKIES,
        "Auth:TrustedOrigins:0": "https://partner.example",
    }
    return serve(database, SQL, settings)


def credentials(user: str, password: str) -> dict[str, str]:
    name, _, value = basic_header(user, password).partition(": ")
    return {name: value}


def test_command_parameters_have_types(service: Service) -> None:
    response = service.get("/api/described", headers=credentials("scale7", "s3cret"))
    assert response.text.startswith("scale7 t ")
    assert service.get("/api/described", headers=credentials("else", "x")).text.startswith("else  ")


def test_correct_password_is_accepted(service: Service) -> None:
    for _ in range(3):
        assert service.get("/api/weigh", headers=credentials("scale7", "s3cret")).text == "scale7"
    assert service.get("/api/weigh?userName=boss", headers=credentials("mate", "s3cret")).text == "mate"


def test_scheme_name_is_case_insensitive(service: Service) -> None:
    """RFC 9110, 11.1."""
    headers = {"Authorization": "basic " + credentials("scale7", "s3cret")["Authorization"][6:]}
    assert service.get("/api/weigh", headers=headers).text == "scale7"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        credentials("scale7", "wrong"),
        credentials("scale7", ""),
        credentials("", "s3cret"),
        credentials("unknown", "s3cret"),
        credentials("Scale7", "s3cret"),
        credentials("scale7", STORED),
        {"Authorization": "Basic c2NhbGU3"},
        {"Authorization": "Basic !!!"},
        {"Authorization": "Bearer x"},
    ],
)
def test_missing_or_wrong_credentials_get_a_challenge(service: Service, headers: dict[str, str]) -> None:
    response = service.get("/api/weigh", headers=headers)
    assert response.headers["www-authenticate"] == 'Basic realm="rowcall", charset="UTF-8"'
    problem(response, 401)


def test_configured_realm_is_sent_escaped_in_the_challenge(service: Service) -> None:
    response = service.get("/api/north", headers=credentials("scale7", "s3cret"))
    assert response.headers["www-authenticate"] == 'Basic realm="Depot \\"North\\"", charset="UTF-8"'
    problem(response, 401)


def test_challenge_command_authenticates_and_returns_claims(service: Service) -> None:
    assert service.get("/api/asked", headers=credentials("scale7", "gate")).text == "scale7falserowcall/api/askedgate"
    assert service.get("/api/asked", headers=credentials("else", "boss")).text == "else?rowcall/api/askedboss"


def test_command_without_password_parameter_accepts_any_password(service: Service) -> None:
    assert service.get("/api/unasked", headers=credentials("scale7", "wrong")).text == "in"
    assert service.get("/api/unasked", headers=credentials("unknown", "wrong")).text == "in"


def test_roles_of_the_challenge_command_are_checked(service: Service) -> None:
    problem(service.get("/api/asked", headers=credentials("scale7", "nothing")), 403)


@pytest.mark.parametrize("word", ["known", "unknown"])
def test_challenge_command_can_refuse_the_credentials(service: Service, word: str) -> None:
    response = service.get("/api/asked", headers=credentials("unknown", word))
    assert response.headers["www-authenticate"] == 'Basic realm="rowcall", charset="UTF-8"'
    problem(response, 401)


def test_passwords_are_not_logged(service: Service) -> None:
    service.get("/api/weigh", headers=credentials("scale7", "hush-hush"))
    service.wait_for_log("HTTP Basic failed")
    assert "hush-hush" not in service.log
    assert STORED not in service.log


def test_configuration_requires_basic_auth_for_every_endpoint(
    database: Database, service: Service, serve_once: Serve
) -> None:
    settings = {
        BASIC + "Enabled": "true",
        BASIC + "SslRequirement": "Warning",
        BASIC + "Realm": "yard",
        BASIC + "Users:kiri": "open sesame",
        BASIC + "UseDefaultPasswordHasher": "false",
    }
    everywhere = serve_once(database, settings=settings)
    assert everywhere.get("/api/closed", headers=credentials("kiri", "open sesame")).text == "in"
    response = everywhere.get("/api/closed", headers=credentials("kiri", "open sesame!"))
    assert response.headers["www-authenticate"] == 'Basic realm="yard", charset="UTF-8"'
    assert (
        everywhere.get("/api/north").headers["www-authenticate"] == 'Basic realm="Depot \\"North\\"", charset="UTF-8"'
    )
    assert "without TLS" in everywhere.log


@pytest.mark.slow
def test_basic_auth_requires_tls_or_a_forwarded_https_scheme(
    database: Database, service: Service, serve_once: Serve
) -> None:
    strict = serve_once(database)
    problem(strict.get("/api/weigh", headers=credentials("scale7", "s3cret")), 401)
    behind = serve_once(database, settings={"ForwardedHeaders:Enabled": "true"})
    headers = {**credentials("scale7", "s3cret"), "X-Forwarded-Proto": "https"}
    assert behind.get("/api/weigh", headers=headers).text == "scale7"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Content-Type": "text/plain"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "https://partner.example", "Sec-Fetch-Site": "cross-site"}, 200),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_cross_site_requests_with_stored_credentials_are_refused(
    service: Service, headers: dict[str, str], status: int
) -> None:
    """A form of that page is sent with the name and the password that the user has typed here."""
    sent = {**credentials("mate", "s3cret"), **headers}
    assert service.post("/api/adjust", content=b"{}", headers=sent).status_code == status
    assert service.get("/api/unasked", headers={**sent, **credentials("x", "y")}).status_code == 200


def test_missing_challenge_function_is_reported_as_500(service: Service) -> None:
    assert problem(service.get("/api/lost", auth=("kiri", "any")), 500)["detail"] == "42883"


def cookie(service: Service) -> dict[str, str]:
    return {"Cookie": service.request_once("POST", "/api/sign-in").headers["set-cookie"].partition(";")[0]}


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/either", "/other"])
def test_session_does_not_replace_a_basic_password_among_overloads(service: Service, path: str) -> None:
    """Of routines on one path, one requires HTTP Basic."""
    session, password, wrong = cookie(service), credentials("mate", "s3cret"), credentials("mate", "s3cre")
    for sent in ({"a": 1}, {"a": 1, "b": 2}):
        by_password = ("b" in sent) == (path == "/either")
        callers = [({}, 401), (session, 401 if by_password else 200), (password, 200 if by_password else 401)]
        callers += [(wrong, 401), ({**session, **password}, 200), ({**session, **wrong}, 401 if by_password else 200)]
        for headers, status in callers:
            response = service.post(path, json=sent, headers=headers)
            assert (response.status_code, sent, headers) == (status, sent, headers)
            assert status != 200 or response.text == ("password" if by_password else "session")


def test_challenge_command_runs_once_for_several_overloads(database: Database, service: Service) -> None:
    before = database.value("select nextval('challenges')")
    assert service.post("/pair", json={"a": 1, "b": 2}, headers=credentials("mate", "s3cret")).text == "two"
    assert service.post("/pair", json={"a": 1}, headers=credentials("mate", "s3cre")).status_code == 401
    assert database.value("select nextval('challenges')") == before + 2


@pytest.mark.slow
def test_session_does_not_replace_a_basic_password_with_hidden_paths(
    database: Database, service: Service, serve_once: Serve
) -> None:
    hidden = serve_once(database, settings={BASIC + "SslRequirement": "Ignore", "Service:HidePaths": "true", **COOKIES})
    for headers, status in ((cookie(hidden), 401), (credentials("scale7", "s3cret"), 200)):
        assert hidden.request_once("HEAD", "/api/weigh", headers=headers).status_code == status


# --- everywhere ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def everywhere(database: Database, service: Service, serve: Serve) -> Service:
    """Provide a service with the same schema, whose configuration requires HTTP Basic for all endpoints."""
    settings = {
        "Service:RequiresAuthorization": "false",
        BASIC + "Enabled": "true",
        BASIC + "SslRequirement": "Ignore",
        BASIC + "Users:mate": STORED,
    }
    return serve(database, "", settings)


@pytest.mark.slow
def test_events_for_authorized_callers_need_a_password_to_be_received(service: Service, everywhere: Service) -> None:
    """Whether the comment or the configuration requires the password."""
    mate, stream = credentials("mate", "s3cret"), "/api/publish-callers/info"
    for requested, path, result in (
        (service, "/api/publish-callers", "for callers"),
        (everywhere, "/api/publish-callers", "for callers"),
        (everywhere, "/api/publish-fewer", "for callers anywhere"),
    ):
        with EventStream(requested, stream) as anonymous, EventStream(requested, stream, mate) as caller:
            assert requested.post(path).status_code == 401
            assert requested.post(path, headers=mate).is_success
            assert requested.post("/api/publish-all", headers=mate).is_success
            caller.wait_for(result, "for all")
            anonymous.wait_for("for all")


@pytest.mark.parametrize("scheme", ["Basic", "basic", "BASIC"])
def test_event_stream_refuses_wrong_passwords(service: Service, scheme: str) -> None:
    """Without any, it is open; the scheme is compared without regard to case (RFC 9110, 11.1)."""
    ((_, wrong),) = credentials("mate", "wrong").items()
    with EventStream(
        service, "/api/publish-callers/info", {"authorization": scheme + wrong.removeprefix("Basic")}
    ) as stream:
        assert stream.status == 401


@pytest.mark.parametrize("path", ["/api/to-keep", "/api/to-keep-by-line"])
def test_responses_behind_basic_auth_are_not_publicly_cacheable(
    service: Service, everywhere: Service, path: str
) -> None:
    """`public` permits a shared cache to store the response to a request with `Authorization` (RFC 9111, 3.5)."""
    mate = credentials("mate", "s3cret")
    assert "public" in service.get(path).headers["cache-control"]
    for headers, status in (({}, 401), (mate, 200)):
        response = everywhere.get(path, headers=headers)
        assert response.status_code == status
        assert not {"public", "s-maxage"} & set(
            response.headers.get("cache-control", "").replace("=", ", ").split(", ")
        )
    assert everywhere.get(path, headers=mate).headers["cache-control"] == "private, max-age=60"
    assert "is personal, so its responses are sent with `private, max-age=60`" in everywhere.log
