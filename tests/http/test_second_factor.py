"""Second factor: authenticator apps, recovery codes, remembered devices, passkeys, step-up (docs/second-factor.md)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import httpx
import pytest
import zxingcpp

from rowcall.service.installation.script import install_sql
from tests.docs.pages import FOLDER, read_page
from tests.harness.authenticator_app import AuthenticatorApp
from tests.harness.database import Database
from tests.harness.passkeys import PRESENT, Authenticator
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

pytestmark = pytest.mark.attack

SQL = """
create table account (user_id int primary key, name text, methods text[]);
create function enter(_id int, _scheme text default null)
returns table (user_id int, user_name text, scheme text, second_factor text[], body text) language sql as $$
    select a.user_id, a.name, _scheme, a.methods, '{"hello":"é"}' from account a where a.user_id = _id
$$;
comment on function enter(int, text) is 'HTTP POST /enter
login';
create function enter_plainly(_id int) returns table (user_id int) language sql as 'select _id';
comment on function enter_plainly(int) is 'HTTP POST /enter-plainly
login
second_factor off';
create function enter_without_id() returns table (user_name text) language sql as $$select 'ana'$$;
comment on function enter_without_id() is 'HTTP POST /enter-without-id
login';
create function enter_at_length(_id int, _length int) returns table (user_id int, body text) language sql as
$$ select _id, repeat('x', _length) $$;
comment on function enter_at_length(int, int) is 'HTTP POST /enter-at-length
login';
create function me() returns text language sql stable as $$ select current_setting('request.user_id') $$;
comment on function me() is 'HTTP GET /me
authorize
user_context';
create function pay() returns text language sql as $$ select 'paid' $$;
comment on function pay() is 'HTTP POST /pay
second_factor';
create function pay_soon() returns text language sql as $$ select 'paid' $$;
comment on function pay_soon() is 'HTTP POST /pay-soon
second_factor
authorize within 5 minutes';
"""
SETTINGS = {
    "ApplicationName": "Shop",
    "Service:RequiresAuthorization": "false",
    "Auth:CookieAuth": "true",
    "Auth:BearerTokenAuth": "true",
    "Auth:JwtAuth": "true",
    "Auth:JwtSecret": "a secret of at least 32 characters",
    "Auth:SecondFactor:Enabled": "true",
    "Auth:SecondFactor:Drift": "10",
    "Auth:SecondFactor:RememberDevice": "30 days",
    "Auth:ApiKey:Enabled": "true",
    "Auth:ApiKey:Command": "select 7 as user_id where $1 = encode(sha256('key-of-seven'), 'hex')",
    "Service:AuthenticationOptions:ContextKeyClaimsMapping:request.user_id": "user_id",
}
API = "/api/second-factor"
_ids = count(100)


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    database.execute(install_sql())
    return serve(database, SQL, SETTINGS, workers=2)


@pytest.fixture
def user(service: Service, database: Database) -> int:
    """A new user without a second factor."""
    number = next(_ids)
    database.execute(f"insert into account values ({number}, 'user {number}')")
    return number


@pytest.fixture
def browser(service: Service) -> Iterator[httpx.Client]:
    with service.new_client() as client:
        yield client


def sign_in(client: httpx.Client, user: int, scheme: str = "Cookies") -> httpx.Response:
    return client.post("/enter", json={"id": user, "scheme": scheme})


def enrolled(client: httpx.Client, user: int) -> tuple[AuthenticatorApp, list[str]]:
    """Sign in and set up an authenticator app. Return it and the recovery codes."""
    assert sign_in(client, user).status_code == 200
    app = AuthenticatorApp(client.post(f"{API}/totp").json()["uri"])
    response = client.post(f"{API}/totp/confirm", json={"code": app.code()})
    assert response.status_code == 200, response.text
    return app, response.json()["recoveryCodes"]


def pending_token(response: httpx.Response, *methods: str) -> str:
    assert response.status_code == 401, response.text
    members = response.json()
    assert (members["type"], members["title"]) == ("second_factor_required", "Second factor required")
    assert members["methods"] == list(methods)
    assert "set-cookie" not in response.headers
    assert response.headers["cache-control"] == "no-store"
    return str(members["token"])


def verify(client: httpx.Client, **content: Any) -> httpx.Response:
    return client.post(f"{API}/verify", json=content)


def refused(response: httpx.Response, status: int, code: str | None, part: str) -> None:
    members = response.json()
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json")
    assert code is None or members["type"] == code
    assert part in members.get("detail", "") + members["title"], members


def wrong(app: AuthenticatorApp) -> str:
    """Return a code that is none of those around now."""
    around = {AuthenticatorApp(f"x://y?secret={app.query['secret']}", behind).code() for behind in range(-40, 40)}
    return next(code for code in (f"{number:06}" for number in count()) if code not in around)


def test_a_user_without_a_second_factor_signs_in_with_the_password_only(browser: httpx.Client, user: int) -> None:
    response = sign_in(browser, user)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert browser.get("/me").text == str(user)
    assert browser.get(API).json() == {"totp": False, "recoveryCodes": 0, "deviceRemembered": False, "devices": []}


def test_an_authenticator_app_is_enrolled_and_its_code_is_required(
    service: Service, browser: httpx.Client, user: int, database: Database
) -> None:
    assert sign_in(browser, user).status_code == 200
    enrolment = browser.post(f"{API}/totp")
    assert enrolment.headers["cache-control"] == "no-store"
    members = enrolment.json()
    app = AuthenticatorApp(members["uri"])
    assert (app.query["issuer"], app.label) == ("Shop", f"/Shop:user%20{user}")
    assert members["secret"] == app.query["secret"]
    # Until a first code, nothing changes.
    assert sign_in(browser, user).status_code == 200
    refused(browser.post(f"{API}/totp/confirm", json={"code": wrong(app)}), 401, "second_factor_invalid", "not valid")
    response = browser.post(f"{API}/totp/confirm", json={"code": app.code()})
    codes = response.json()["recoveryCodes"]
    assert len(set(codes)) == 10
    refused(browser.post(f"{API}/totp/confirm", json={"code": app.code()}), 409, None, "confirmed already")
    refused(browser.post(f"{API}/totp"), 409, None, "set up already")
    with service.new_client() as other:
        token = pending_token(sign_in(other, user), "totp", "recovery_code")
        assert other.get("/me").status_code == 401
        refused(verify(other, token=token, code=wrong(app)), 401, "second_factor_invalid", "not valid")
        response = verify(other, token=token, code=app.code())
        assert response.status_code == 200
        assert (response.json(), response.headers["content-type"]) == ({"hello": "é"}, "application/json")
        assert other.get("/me").text == str(user)
        assert other.post("/pay").text == "paid"
    state = browser.get(API).json()
    assert (state["totp"], state["recoveryCodes"]) == (True, 10)
    stored = database.value(f"select secret from rowcall.second_factor where subject = '{user}'")
    assert app.query["secret"] not in stored
    assert app.secret.hex() not in stored
    assert app.query["secret"] not in service.log


def test_the_qr_code_contains_the_enrolment_address(browser: httpx.Client, user: int) -> None:
    assert sign_in(browser, user).status_code == 200
    members = browser.post(f"{API}/totp").json()
    assert read_qr_code(members["qr"]) == members["uri"]


def test_the_qr_code_of_a_user_with_a_long_name(browser: httpx.Client, user: int, database: Database) -> None:
    database.execute(f"update account set name = repeat('ж', 5000) where user_id = {user}")
    token = sign_in(browser, user, scheme="BearerToken").json()["accessToken"]
    response = browser.post(f"{API}/totp", headers={"authorization": f"Bearer {token}"})
    assert response.status_code == 200, response.text
    members = response.json()
    assert read_qr_code(members["qr"]) == members["uri"]


def read_qr_code(svg: str) -> str:
    """Decode a QR code that is a path of horizontal lines, as a camera would."""
    scale = 8
    side = int(re.search(r'fill="#fff" d="M0 0h(\d+)', svg)[1])  # type: ignore[index]
    path = re.search(r'stroke="#000" d="([^"]+)"', svg)[1]  # type: ignore[index]
    image = bytearray(b"\xff" * (side * scale) ** 2)
    x, y = 0.0, 0.0
    for command, text in re.findall(r"([Mmh])([^Mmh]+)", path):
        numbers = [float(item) for item in re.findall(r"-?\d*\.?\d+", text)]
        if command == "h":
            for row in range(int(y) * scale, (int(y) + 1) * scale):
                start = row * side * scale
                image[start + int(x) * scale : start + int(x + numbers[0]) * scale] = bytes(int(numbers[0]) * scale)
            x += numbers[0]
        else:
            x, y = (numbers[0], numbers[1]) if command == "M" else (x + numbers[0], y + numbers[1])
    shaped = memoryview(bytes(image)).cast("B", (side * scale, side * scale))
    (code,) = zxingcpp.read_barcodes(shaped)
    return str(code.text)


def test_a_code_is_accepted_once(service: Service, browser: httpx.Client, user: int) -> None:
    app, _ = enrolled(browser, user)
    code = app.code()
    token = pending_token(sign_in(browser, user), "totp", "recovery_code")
    assert verify(browser, token=token, code=code).status_code == 200
    refused(verify(browser, token=token, code=code), 401, "second_factor_invalid", "has been used")
    app.step -= 2
    refused(verify(browser, token=token, code=app.code()), 401, "second_factor_invalid", "has been used")


def test_parallel_requests_accept_a_code_once(service: Service, browser: httpx.Client, user: int) -> None:
    app, codes = enrolled(browser, user)
    token = pending_token(sign_in(browser, user), "totp", "recovery_code")
    with ThreadPoolExecutor(25) as pool:
        contents = [{"token": token, "code": app.code()}] * 25 + [{"token": token, "recoveryCode": codes[0]}] * 25
        statuses = [
            *pool.map(lambda content: service.request_once("POST", f"{API}/verify", json=content).status_code, contents)
        ]
    assert Counter(statuses[:25])[200] == 1, statuses
    assert set(statuses[:25]) <= {200, 401, 429}
    assert Counter(statuses[25:]) == {200: 1, 401: 24}, statuses


@pytest.mark.slow
def test_wrong_codes_delay_further_attempts(
    service: Service, browser: httpx.Client, user: int, database: Database
) -> None:
    app, codes = enrolled(browser, user)
    token = pending_token(sign_in(browser, user), "totp", "recovery_code")
    bad = wrong(app)
    with ThreadPoolExecutor(25) as pool:
        responses = [
            *pool.map(
                lambda _: service.request_once("POST", f"{API}/verify", json={"token": token, "code": bad}), range(50)
            )
        ]
    statuses = Counter(response.status_code for response in responses)
    failures = database.value(f"select failures from rowcall.second_factor where subject = '{user}'")
    assert set(statuses) == {401, 429}
    assert statuses[401] == failures, "each counts, also in parallel"
    waiting = next(response for response in responses if response.status_code == 429)
    refused(waiting, 429, None, "too many wrong codes")
    assert 1 <= int(waiting.headers["retry-after"]) <= 3600
    database.execute(
        "update rowcall.second_factor set blocked_until = clock_timestamp() + interval '1 hour' "
        f"where subject = '{user}'"
    )
    blocked = verify(browser, token=token, code=app.code())
    refused(blocked, 429, None, "use a recovery code")
    assert 3500 < int(blocked.headers["retry-after"]) <= 3600
    assert verify(browser, token=token, recoveryCode=codes[0].upper()).status_code == 200
    database.execute(
        "update rowcall.second_factor set blocked_until = clock_timestamp() + interval '1 second' "
        f"where subject = '{user}'"
    )
    code = app.code()
    wait_until(lambda: verify(browser, token=token, code=code).status_code == 200, "the block has ended")
    assert database.fetch(f"select failures, blocked_until from rowcall.second_factor where subject = '{user}'") == [
        (0, None)
    ]


def test_a_recovery_code_is_accepted_once(
    service: Service, browser: httpx.Client, user: int, database: Database
) -> None:
    app, codes = enrolled(browser, user)
    token = pending_token(sign_in(browser, user), "totp", "recovery_code")
    assert verify(browser, token=token, recoveryCode=codes[3]).status_code == 200
    assert browser.post("/pay").text == "paid"
    assert browser.get(API).json()["recoveryCodes"] == 9
    refused(verify(browser, token=token, recoveryCode=codes[3]), 401, "second_factor_invalid", "has been used")
    refused(verify(browser, token=token, recoveryCode="aaaa-aaaa-aaaa-aaaa"), 401, "second_factor_invalid", "not valid")
    refused(browser.post(f"{API}/recovery-codes", json={"code": wrong(app)}), 401, "second_factor_invalid", "not valid")
    new = browser.post(f"{API}/recovery-codes", json={"code": app.code()}).json()["recoveryCodes"]
    assert not set(new) & set(codes)
    refused(verify(browser, token=token, recoveryCode=codes[0]), 401, "second_factor_invalid", "not valid")
    assert verify(browser, token=token, recoveryCode=new[0]).status_code == 200
    stored = database.fetch(f"select encode(hash, 'hex') from rowcall.recovery_code where subject = '{user}'")
    assert len(stored) == 10
    assert not {code.replace("-", "") for code in new} & {text for (text,) in stored}


def test_a_remembered_device_needs_no_code(service: Service, browser: httpx.Client, user: int) -> None:
    app, _ = enrolled(browser, user)
    token = pending_token(sign_in(browser, user), "totp", "recovery_code")
    response = verify(browser, token=token, code=app.code(), remember=True)
    cookie = next(item for item in response.headers.get_list("set-cookie") if item.startswith("rowcall-device="))
    assert "; max-age=2592000" in cookie
    assert cookie.endswith("; httponly")
    assert sign_in(browser, user).status_code == 200
    state = browser.get(API).json()
    assert state["deviceRemembered"]
    assert len(state["devices"]) == 1
    assert state["devices"][0]["description"].startswith("python-httpx/")
    # The password alone is no second factor.
    assert browser.post("/pay").status_code == 401
    with service.new_client() as other:
        pending_token(sign_in(other, user), "totp", "recovery_code")
    # The device of one user is not that of another.
    assert browser.post(f"{API}/devices/revoke", json={"id": state["devices"][0]["id"]}).json() == {"revoked": 1}
    pending_token(sign_in(browser, user), "totp", "recovery_code")


def test_a_remembered_device_is_valid_for_one_user(
    service: Service, database: Database, browser: httpx.Client, user: int
) -> None:
    other = next(_ids)
    database.execute(f"insert into account values ({other}, 'other')")
    with service.new_client() as client:
        enrolled(client, other)
    app, _ = enrolled(browser, user)
    token = pending_token(sign_in(browser, user), "totp", "recovery_code")
    assert verify(browser, token=token, code=app.code(), remember=True).status_code == 200
    pending_token(sign_in(browser, other), "totp", "recovery_code")
    with service.new_client() as client:
        assert sign_in(client, other).status_code == 401
    # The devices of another user cannot be revoked.
    device = browser.get(API).json()["devices"][0]["id"]
    with service.new_client() as client:
        third = next(_ids)
        database.execute(f"insert into account values ({third}, 'third')")
        assert sign_in(client, third).status_code == 200
        assert client.post(f"{API}/devices/revoke", json={"id": device}).json() == {"revoked": 0}
    assert sign_in(browser, user).status_code == 200
    assert database.value(f"select rowcall.revoke_devices('{user}')") == 1
    pending_token(sign_in(browser, user), "totp", "recovery_code")


@pytest.mark.parametrize("scheme", ["Cookies", "BearerToken", "Bearer"])
def test_a_session_is_stepped_up_by_a_second_factor(
    service: Service, browser: httpx.Client, user: int, scheme: str
) -> None:
    """A session that began without a second factor gets one; each scheme issues the session anew."""
    with service.new_client() as other:
        response = sign_in(other, user, scheme)
        headers = {} if scheme == "Cookies" else {"authorization": f"Bearer {response.json()['accessToken']}"}
        app, _ = enrolled(browser, user)
        challenge = other.post("/pay", headers=headers)
        refused(challenge, 401, "insufficient_user_authentication", "Prove your second factor")
        assert challenge.headers["www-authenticate"] == (
            'Bearer error="insufficient_user_authentication", acr_values="mfa"'
        )
        response = other.post(f"{API}/verify", json={"code": app.code()}, headers=headers)
        assert response.status_code == 200, response.text
        if headers:
            headers = {"authorization": f"Bearer {response.json()['accessToken']}"}
        assert other.post("/pay", headers=headers).text == "paid"
        assert other.post("/pay-soon", headers=headers).text == "paid"
        assert other.get("/me", headers=headers).text == str(user)


def test_removing_the_second_factor_requires_a_valid_code(browser: httpx.Client, user: int) -> None:
    app, codes = enrolled(browser, user)
    refused(browser.post(f"{API}/remove", json={}), 400, "invalid_request", "code is missing")
    refused(browser.post(f"{API}/remove", json={"code": wrong(app)}), 401, "second_factor_invalid", "not valid")
    assert browser.post(f"{API}/remove", json={"recoveryCode": codes[0]}).status_code == 204
    assert browser.get(API).json() == {"totp": False, "recoveryCodes": 0, "deviceRemembered": False, "devices": []}
    assert sign_in(browser, user).status_code == 200
    refused(verify(browser, code=app.code()), 409, None, "no authenticator app")


def test_a_login_without_the_annotation_requires_no_second_factor(browser: httpx.Client, user: int) -> None:
    enrolled(browser, user)
    assert browser.post("/enter-plainly", json={"id": user}).status_code == 200
    assert browser.post("/pay").status_code == 401


def test_a_login_without_id_is_refused(service: Service) -> None:
    refused(service.post("/enter-without-id"), 500, None, "the login row cannot be used")
    service.wait_for_log("has no user_id")


def test_a_login_is_refused_if_its_token_would_be_too_large(browser: httpx.Client, user: int) -> None:
    app, _ = enrolled(browser, user)
    response = browser.post("/enter-at-length", json={"id": user, "length": 48_000})
    assert verify(browser, token=pending_token(response, "totp", "recovery_code"), code=app.code()).status_code == 200
    response = browser.post("/enter-at-length", json={"id": user, "length": 49_000})
    refused(response, 500, None, "the request with the second factor may contain 65280")


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "part"),
    [
        ("GET", "", None, 401, "Unauthorized"),
        ("POST", "/totp", None, 401, "Unauthorized"),
        ("POST", "/totp/confirm", {"code": "123456"}, 401, "Unauthorized"),
        ("POST", "/recovery-codes", {"code": "123456"}, 401, "Unauthorized"),
        ("POST", "/remove", {"code": "123456"}, 401, "Unauthorized"),
        ("POST", "/devices/revoke", {}, 401, "Unauthorized"),
        ("POST", "/verify", {"code": "123456"}, 401, "Unauthorized"),
        ("POST", "/verify", {"token": "x", "code": "123456"}, 401, "sign in again"),
        ("POST", "/verify", {"token": "A" * 10_000, "code": "123456"}, 401, "sign in again"),
        ("POST", "/verify", {"token": 7, "code": "123456"}, 401, "sign in again"),
        ("POST", "/verify", [1], 400, "not a JSON object"),
    ],
)
def test_requests_of_anonymous_callers(
    browser: httpx.Client, method: str, path: str, content: Any, status: int, part: str
) -> None:
    response = browser.request(method, API + path, json=content)
    refused(response, status, None, part)


@pytest.mark.parametrize(
    ("path", "content", "part"),
    [
        ("/totp/confirm", {}, "six digits"),
        ("/totp/confirm", {"code": 123456}, "six digits"),
        ("/totp/confirm", {"code": "12345"}, "six digits"),
        ("/verify", {}, "code is missing"),
        ("/verify", {"recoveryCode": 7}, "recoveryCode is not a text"),
        ("/verify", {"recoveryCode": ""}, "recoveryCode is not a text"),
        ("/verify", {"code": "123456", "remember": "yes"}, "neither true nor false"),
        ("/devices/revoke", {"id": "1"}, "not the id of a device"),
        ("/devices/revoke", {"id": 1}, "not the id of a device"),
    ],
)
def test_invalid_requests_are_refused(browser: httpx.Client, user: int, path: str, content: Any, part: str) -> None:
    assert sign_in(browser, user).status_code == 200
    refused(browser.post(API + path, json=content), 400, "invalid_request", part)
    refused(browser.post(API + path, content=b"{", headers={"content-type": "application/json"}), 400, None, "JSON")


def test_callers_with_api_keys_have_no_second_factor(service: Service, browser: httpx.Client) -> None:
    headers = {"x-api-key": "key-of-seven"}
    assert browser.get("/me", headers=headers).text == "7"
    refused(browser.post("/pay", headers=headers), 401, "insufficient_user_authentication", "second factor")
    refused(browser.post(f"{API}/verify", json={"code": "123456"}, headers=headers), 400, None, "no session")
    assert browser.get(API, headers=headers).json()["totp"] is False


@pytest.mark.parametrize("path", ["totp", "totp/confirm", "recovery-codes", "remove", "devices/revoke"])
def test_api_keys_cannot_change_the_second_factor(browser: httpx.Client, path: str) -> None:
    """A stolen key could lock its owner out."""
    response = browser.post(f"{API}/{path}", json={"code": "123456"}, headers={"x-api-key": "key-of-seven"})
    refused(response, 403, None, "an API key cannot set up credentials")


def test_a_cross_site_request_cannot_remove_the_second_factor(browser: httpx.Client, user: int) -> None:
    app, _ = enrolled(browser, user)
    headers = {"origin": "https://attacker.example", "sec-fetch-site": "cross-site"}
    response = browser.post(f"{API}/remove", json={"code": app.code()}, headers=headers)
    assert response.status_code == 403
    assert browser.get(API).json()["totp"]


@pytest.mark.slow
def test_a_pending_sign_in_expires(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    service = serve_once(own_database, SQL, {**SETTINGS, "Auth:SecondFactor:Pending": "1 second"})
    own_database.execute("insert into account values (1, 'ana')")
    with service.new_client() as browser:
        _, codes = enrolled(browser, 1)
        token = pending_token(sign_in(browser, 1), "totp", "recovery_code")
        wait_until(lambda: verify(browser, token=token, code="1").status_code == 401, "the sign-in has expired")
        refused(verify(browser, token=token, recoveryCode=codes[0]), 401, "sign_in_expired", "sign in again")
        assert browser.get(API).json()["recoveryCodes"] == 10


def test_changes_need_a_recent_sign_in_where_configured(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    service = serve_once(own_database, SQL, {**SETTINGS, "Auth:SecondFactor:EnrolWithin": "1 second"})
    own_database.execute("insert into account values (1, 'ana')")
    with service.new_client() as browser:
        assert sign_in(browser, 1).status_code == 200
        wait_until(lambda: browser.post(f"{API}/totp").status_code == 401, "the sign-in is old")
        response = browser.post(f"{API}/totp")
        refused(response, 401, "insufficient_user_authentication", "Sign in again")
        assert "max_age=1" in response.headers["www-authenticate"]


def test_without_the_schema_logins_with_a_second_factor_are_left_out(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, SETTINGS)
    own_database.execute("insert into account values (1, 'ana')")
    assert service.post("/enter", json={"id": 1}).status_code == 404
    assert service.post("/enter-plainly", json={"id": 1}).status_code == 200
    service.wait_for_log("the second factor (Auth:SecondFactor) needs the schema rowcall")
    own_database.execute(install_sql())
    wait_until(lambda: service.post("/enter", json={"id": 1}).status_code == 200, "the schema is found")


# --- passkeys ------------------------------------------------------------------------------------------------------

PASSKEYS = read_page(FOLDER / "passkeys.md")
ORIGIN, HOST = "https://shop.example", "shop.example"
PASSWORD_LOGIN = """
create function enter(_id int) returns table (user_id bigint, user_name text, second_factor text)
language sql as $$ select id, name, 'passkey' from member where id = _id $$;
comment on function enter(int) is 'HTTP POST /enter
login';
create function enter_badly(_id int) returns table (user_id int, second_factor text)
language sql as $$ select _id, 'telepathy' $$;
comment on function enter_badly(int) is 'HTTP POST /enter-badly
login';
create function pay() returns text language sql as $$ select 'paid' $$;
comment on function pay() is 'HTTP POST /pay
second_factor';
"""


@pytest.fixture(scope="module", params=["required", "preferred"])
def verification(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def passkeys(own_database: Database, serve_once: Serve, verification: str) -> Service:
    own_database.execute(install_sql())
    settings = {
        **PASSKEYS.settings,
        "Service:RequiresAuthorization": None,
        "Auth:TrustedOrigins:0": ORIGIN,
        "Auth:SecondFactor:Enabled": "true",
        "Auth:PasskeyAuth:UserVerificationRequirement": verification,
    }
    return serve_once(own_database, PASSKEYS.sql + PASSWORD_LOGIN, settings, workers=2)


def passkey_of(client: httpx.Client, name: str, **details: Any) -> Authenticator:
    authenticator = Authenticator(ORIGIN, HOST, **details)
    options = client.post("/api/passkey/register/options", json={"name": name}).json()
    made = authenticator.made(options)
    assert client.post("/api/passkey/register", json=made).status_code == 200
    return authenticator


def use_passkey(client: httpx.Client, authenticator: Authenticator, **more: Any) -> httpx.Response:
    options = client.post("/api/passkey/login/options", json={}).json()
    return client.post("/api/passkey/login", json={**authenticator.signed(options), **more})


def test_a_passkey_as_second_factor(passkeys: Service, own_database: Database, verification: str) -> None:
    details = {} if verification == "required" else {"flags": PRESENT}
    with passkeys.new_client(headers={"origin": ORIGIN}) as browser:
        ana, ben = (passkey_of(browser, name, **details) for name in ("ana", "ben"))
        number = own_database.value("select id from member where name = 'ana'")
        response = browser.post("/enter", json={"id": number})
        token = pending_token(response, "passkey")
        refused(use_passkey(browser, ben, secondFactorToken=token), 401, "authentication_failed", "another user")
        refused(use_passkey(browser, ana, secondFactorToken="x"), 401, "sign_in_expired", "sign in again")
        assert browser.post("/pay").status_code == 401
        response = use_passkey(browser, ana, secondFactorToken=token)
        assert response.status_code == 200, response.text
        assert browser.post("/pay").text == "paid"
        assert json.loads(browser.get("/who").text)["userId"] == str(number)
        refused(browser.post("/enter-badly", json={"id": 1}), 500, None, "the login row cannot be used")


def test_a_passkey_alone_is_two_factors_if_its_user_is_verified(passkeys: Service, verification: str) -> None:
    with passkeys.new_client(headers={"origin": ORIGIN}) as browser:
        key = passkey_of(browser, "ana")
        assert use_passkey(browser, key).status_code == 200
        assert browser.post("/pay").status_code == (200 if verification == "required" else 401)
