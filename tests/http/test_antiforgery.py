"""Antiforgery tokens over two workers: issuing, endpoints that require them, and their binding (browsers-6 to
browsers-10)."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql, tokens, with_cookie

SQL = """
create function note(_text text) returns text language sql volatile as $$select _text$$;
comment on function note(text) is E'HTTP POST\\nallow_anonymous';
create function bare() returns text language sql volatile as $$select 'bare'$$;
comment on function bare() is E'HTTP POST\\nallow_anonymous\\nrequest_param_type body';
create function pay(_n int) returns int language sql volatile as $$select _n$$;
comment on function pay(int) is E'HTTP POST\\nauthorize';
create function priced(_sku text) returns text language sql volatile as $$select _sku$$;
comment on function priced(text) is E'HTTP GET\\nauthorize\\ncached';
create function find_key(_digest text) returns table (user_id int) language sql stable as
    $$select 41 where _digest = encode(sha256('right'), 'hex')$$;
create function twin(_a int) returns text language sql volatile as $$select 'one'$$;
comment on function twin(int) is E'HTTP POST /twin\\nallow_anonymous';
create function twin(_a int, _b int) returns text language sql volatile as $$select 'two'$$;
comment on function twin(int, int) is E'HTTP POST /twin\\nallow_anonymous';
"""
KEYS = {"Auth:ApiKey:Enabled": "true", "Auth:ApiKey:Command": "select * from find_key($1)"}
TAGS = {
    "CacheOptions:Enabled": "true",
    "CacheOptions:TagsPath": "/forget",
    "CacheOptions:InvalidateCacheSuffix": "purge",
}
ANTIFORGERY = {
    **EVERY_SCHEME,
    **KEYS,
    **TAGS,
    "Antiforgery:Enabled": "true",
    "Antiforgery:TokenPath": "/token",
}
FIELD, HEADER = "__RequestVerificationToken", "RequestVerificationToken"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
PARSED = "StaticFiles:ParseContentOptions:"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    root = tmp_path_factory.mktemp("www")
    for name in ("form.html", "form.htm", "plain.txt"):
        (root / name).write_text("{antiForgeryFieldName}|{antiForgeryToken}|{user_id}|{other}")
    files = {"StaticFiles:Enabled": "true", "StaticFiles:RootPath": str(root), PARSED + "Enabled": "true"}
    patterns = {f"{PARSED}FilePaths:{number}": pattern for number, pattern in enumerate(("*.htm*", "*.txt"))}
    return serve(database, member_sql() + SQL, {**ANTIFORGERY, **files, **patterns}, workers=2)


def request_on_new_connection(service: Service, method: str, path: str, **options: object) -> httpx.Response:
    """Send a request over a new connection, so to any worker, with no cookies but the arguments."""
    with service.new_client() as client:
        return client.request(method, path, **options)  # type: ignore[arg-type]


def fetch_token(service: Service, headers: dict[str, str] | None = None) -> tuple[str, dict[str, str]]:
    """Return a token, and the cookies to send with it."""
    response = request_on_new_connection(service, "GET", "/token", headers=headers)
    assert response.status_code == 200, response.text
    own = response.headers["set-cookie"].partition(";")[0]
    others = [headers["Cookie"]] if headers and "Cookie" in headers else []
    return response.json()["token"], {"Cookie": "; ".join([*others, own])}


def test_token_endpoint_returns_token_field_and_header_names(service: Service) -> None:
    response = request_on_new_connection(service, "GET", "/token")
    assert response.json() == {"fieldName": FIELD, "headerName": HEADER, "token": response.json()["token"]}
    assert list(response.json()) == ["fieldName", "headerName", "token"]
    name, _, attributes = response.headers["set-cookie"].partition("=")
    assert name.startswith(".AspNetCore.Antiforgery.")
    assert attributes.partition("; ")[2] == "path=/; samesite=strict; httponly"
    assert response.headers["cache-control"] == "no-cache, no-store"
    assert response.headers["pragma"] == "no-cache"
    assert response.headers["x-frame-options"] == "SAMEORIGIN"


@pytest.mark.parametrize("path", ["/form.html", "/form.htm"])
def test_html_page_contains_a_valid_token(service: Service, path: str) -> None:
    page = request_on_new_connection(service, "GET", path)
    field, token, user, rest = page.text.split("|")
    assert (field, user, rest) == (FIELD, "null", "{other}")
    assert page.headers.get_list("cache-control") == ["no-cache, no-store"]
    assert page.headers.get_list("pragma") == ["no-cache"]
    assert page.headers["x-frame-options"] == "SAMEORIGIN"
    cookie = {"Cookie": page.headers["set-cookie"].partition(";")[0]}
    sent = request_on_new_connection(service, "POST", "/api/note", data={"text": "hi", FIELD: token}, headers=cookie)
    assert (sent.status_code, sent.text) == (200, "hi")


def test_other_static_files_contain_no_token(service: Service) -> None:
    response = request_on_new_connection(service, "GET", "/plain.txt")
    assert response.text == "{antiForgeryFieldName}|{antiForgeryToken}|null|{other}"
    assert "set-cookie" not in response.headers
    assert "x-frame-options" not in response.headers


def test_antiforgery_cookie_is_reused_for_later_tokens(service: Service) -> None:
    first, cookie = fetch_token(service)
    again = request_on_new_connection(service, "GET", "/token", headers=cookie)
    assert "set-cookie" not in again.headers
    for token in (first, again.json()["token"]):
        assert (
            request_on_new_connection(
                service, "POST", "/api/note", data={"text": "x", FIELD: token}, headers=cookie
            ).text
            == "x"
        )


def test_token_is_accepted_by_every_worker(service: Service) -> None:
    token, cookie = fetch_token(service)
    responses = {
        request_on_new_connection(
            service, "POST", "/api/note", data={"text": "x"}, headers={**cookie, HEADER: token}
        ).text
        for _ in range(24)
    }
    assert responses == {"x"}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/x-www-form-urlencoded", b"text=x"),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="text"\r\n\r\nx\r\n--b--\r\n',
        ),
        ("text/plain;charset=utf-8", b'{"text":"x"}'),
        ("Text/Plain", b'{"text":"x"}'),
    ],
)
def test_a_form_without_a_token_is_refused(service: Service, kind: str, body: bytes) -> None:
    token, cookie = fetch_token(service)
    sent = {**cookie, "Content-Type": kind}
    problem(request_on_new_connection(service, "POST", "/api/note", content=body, headers=sent), 400)
    problem(
        request_on_new_connection(service, "POST", "/api/note", content=body, headers={**sent, HEADER: "A" + token}),
        400,
    )
    problem(
        request_on_new_connection(
            service, "POST", "/api/note", content=body, headers={"Content-Type": kind, HEADER: token}
        ),
        400,
    )
    good = request_on_new_connection(service, "POST", "/api/note", content=body, headers={**sent, HEADER: token})
    assert (good.status_code, good.text) == (200, "x")


def test_multipart_form_field_carries_the_token(service: Service) -> None:
    token, cookie = fetch_token(service)
    files = {"text": (None, "x"), FIELD: (None, token)}
    sent = request_on_new_connection(service, "POST", "/api/note", files=files, headers=cookie)
    assert (sent.status_code, sent.text) == (200, "x")
    alone = request_on_new_connection(service, "POST", "/api/bare", files={FIELD: (None, token)}, headers=cookie)
    assert (alone.status_code, alone.text) == (200, "bare")
    alone = request_on_new_connection(service, "POST", "/api/bare", data={FIELD: token}, headers=cookie)
    assert (alone.status_code, alone.text) == (200, "bare")


@pytest.mark.parametrize(("values", "answer"), [({"a": "1"}, "one"), ({"a": "1", "b": "2"}, "two")])
def test_token_field_does_not_affect_overload_selection(service: Service, values: dict[str, str], answer: str) -> None:
    token, cookie = fetch_token(service)
    assert (
        request_on_new_connection(service, "POST", "/twin", data={**values, FIELD: token}, headers=cookie).text
        == answer
    )


def test_token_of_another_browser_is_refused(service: Service) -> None:
    token, _ = fetch_token(service)
    _, cookie = fetch_token(service)
    response = request_on_new_connection(service, "POST", "/api/note", data={"text": "x", FIELD: token}, headers=cookie)
    problem(response, 400)
    assert "another browser" in response.json()["detail"]


def test_anonymous_json_request_needs_no_token(service: Service) -> None:
    assert request_on_new_connection(service, "POST", "/api/note", json={"text": "x"}).text == "x"


def test_cookie_session_request_needs_a_token(service: Service) -> None:
    session = with_cookie(service)
    problem(request_on_new_connection(service, "POST", "/api/pay", json={"n": 1}, headers=session), 400)
    anonymous, cookie = fetch_token(service)
    both = {"Cookie": f"{session['Cookie']}; {cookie['Cookie']}"}
    problem(
        request_on_new_connection(service, "POST", "/api/pay", json={"n": 1}, headers={**both, HEADER: anonymous}), 400
    )
    token, both = fetch_token(service, session)
    assert (
        request_on_new_connection(service, "POST", "/api/pay", json={"n": 1}, headers={**both, HEADER: token}).text
        == "1"
    )
    assert request_on_new_connection(service, "POST", "/api/pay", data={"n": 1, FIELD: token}, headers=both).text == "1"
    assert request_on_new_connection(service, "GET", "/api/closed", headers=session).text == "in"


def test_a_token_is_bound_to_the_user(service: Service) -> None:
    token, both = fetch_token(service, with_cookie(service))
    own = both["Cookie"].rpartition("; ")[2]
    other = with_cookie(service, "mo")["Cookie"]
    theirs = {"Cookie": f"{other}; {own}", HEADER: token}
    problem(request_on_new_connection(service, "POST", "/api/pay", json={"n": 1}, headers=theirs), 400)


def test_signing_out_needs_a_token(service: Service) -> None:
    session = with_cookie(service)
    problem(request_on_new_connection(service, "POST", "/api/sign-out", json={}, headers=session), 400)
    token, both = fetch_token(service, session)
    done = request_on_new_connection(service, "POST", "/api/sign-out", json={}, headers={**both, HEADER: token})
    assert done.status_code in (200, 204)


def test_bearer_token_request_needs_no_antiforgery_token(service: Service) -> None:
    token = bearer(tokens(service, "BearerToken")["accessToken"])
    assert request_on_new_connection(service, "POST", "/api/pay", json={"n": 1}, headers=token).text == "1"
    assert request_on_new_connection(service, "POST", "/api/pay", data={"n": 1}, headers=token).text == "1"


def test_settings_change_token_names_and_locations(own_database: Database, serve_once: Serve) -> None:
    settings = {
        **ANTIFORGERY,
        "Antiforgery:CookieName": "xsrf",
        "Antiforgery:FormFieldName": "proof",
        "Antiforgery:HeaderName": "X-Proof",
        "Antiforgery:SuppressReadingTokenFromFormBody": "true",
        "Antiforgery:SuppressXFrameOptionsHeader": "true",
    }
    service = serve_once(own_database, member_sql() + SQL, settings)
    response = request_on_new_connection(service, "GET", "/token")
    body = response.json()
    assert (body["fieldName"], body["headerName"]) == ("proof", "X-Proof")
    assert response.headers["set-cookie"].startswith("xsrf=")
    assert "x-frame-options" not in response.headers
    cookie = {"Cookie": response.headers["set-cookie"].partition(";")[0]}
    problem(
        request_on_new_connection(
            service, "POST", "/api/note", data={"text": "x", "proof": body["token"]}, headers=cookie
        ),
        400,
    )
    sent = request_on_new_connection(
        service, "POST", "/api/note", data={"text": "x"}, headers={**cookie, "X-Proof": body["token"]}
    )
    assert sent.text == "x"


@pytest.mark.slow
def test_enforcement_can_be_switched_off(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, member_sql() + SQL, {**ANTIFORGERY, "Antiforgery:Enforce": "false"})
    token, _ = fetch_token(service)
    assert request_on_new_connection(service, "POST", "/api/note", data={"text": "x"}).text == "x"
    assert request_on_new_connection(service, "POST", "/api/note", data={"text": "x", FIELD: token}).text == "x"
    assert (
        request_on_new_connection(service, "POST", "/api/pay", json={"n": 1}, headers=with_cookie(service)).text == "1"
    )


def test_invalid_token_path_stops_the_start(own_database: Database, tmp_path: Path) -> None:
    values = {"ConnectionStrings:Default": own_database.conninfo, **ANTIFORGERY, "Antiforgery:TokenPath": "token"}
    done = rowcall(tmp_path, *(f"--{key}={value}" for key, value in values.items()))
    assert done.returncode == 1
    assert "Antiforgery:TokenPath" in done.stderr + done.stdout


def test_valid_api_key_replaces_the_antiforgery_token(service: Service) -> None:
    """No page can add the header of an API key; an unknown key proves nothing."""
    cookie = with_cookie(service)
    for more in ({}, cookie):
        sent = request_on_new_connection(
            service, "POST", "/api/note", data={"text": "hi"}, headers={**more, "X-Api-Key": "right"}
        )
        assert (sent.status_code, sent.text) == (200, "hi")
    problem(
        request_on_new_connection(service, "POST", "/api/note", data={"text": "hi"}, headers={"X-Api-Key": "wrong"}),
        400,
    )


def test_invalidation_by_tag_needs_a_token(service: Service) -> None:
    token, cookies = fetch_token(service, with_cookie(service))
    problem(request_on_new_connection(service, "POST", "/forget?tag=a", headers=cookies), 400)
    assert (
        request_on_new_connection(service, "POST", "/forget?tag=a", headers={**cookies, HEADER: token}).status_code
        == 200
    )
    key = {"X-Api-Key": "right"}
    assert request_on_new_connection(service, "POST", "/forget?tag=a", headers=key).status_code == 200


def test_invalidation_path_needs_a_token(service: Service) -> None:
    token, cookies = fetch_token(service, with_cookie(service))
    problem(request_on_new_connection(service, "POST", "/api/priced/purge?sku=a", headers=cookies), 400)
    problem(
        request_on_new_connection(service, "POST", "/api/priced/purge?sku=a", headers=cookies, data={"x": "y"}), 400
    )
    for headers in ({**cookies, HEADER: token}, {"X-Api-Key": "right"}):
        sent = request_on_new_connection(service, "POST", "/api/priced/purge?sku=a", headers=headers)
        assert (sent.status_code, sent.json()) == (200, {"invalidated": False})
