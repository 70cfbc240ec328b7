"""Forged and altered cookies are no session, and a session cannot be used for another purpose."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator

import httpx
import jwt
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, SECRET, bearer, cookie_of, member_sql, sign_in, tokens, with_cookie

pytestmark = pytest.mark.attack

SETTINGS = {
    **EVERY_SCHEME,
    "Auth:JwtIssuer": "yard",
    "Auth:JwtAudience": "till",
    "Auth:JwtValidateIssuer": "true",
    "Auth:JwtValidateAudience": "true",
    "Auth:JwtClockSkew": "10 seconds",
    "Auth:Schemes:short:Type": "Cookies",
    "Auth:Schemes:short:CookieValid": "2 seconds",
    "Auth:Schemes:other:Type": "BearerToken",
    "Auth:Schemes:other:BearerTokenRefreshPath": "/api/other/refresh",
    "Auth:Schemes:brief:Type": "BearerToken",
    "Auth:Schemes:brief:BearerTokenExpire": "1 second",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, member_sql(), SETTINGS)


@pytest.fixture(autouse=True)
def _no_cookies(service: Service) -> Iterator[None]:
    service.client.cookies.clear()
    yield
    service.client.cookies.clear()


def is_let_in(service: Service, headers: dict[str, str]) -> bool:
    response = service.get("/api/closed", headers=headers)
    if response.status_code != 200:
        problem(response, 401)
    return response.status_code == 200


def signed_token(changes: dict[str, object] | None = None, key: str | bytes = SECRET, algorithm: str = "HS256") -> str:
    now = int(time.time())
    payload: dict[str, object] = {
        "user_id": "41",
        "nbf": now,
        "exp": now + 60,
        "iat": now,
        "iss": "yard",
        "aud": "till",
    }
    payload |= changes or {}
    return jwt.encode({name: value for name, value in payload.items() if value is not None}, key, algorithm)


def test_a_token_signed_with_the_secret_is_accepted(service: Service) -> None:
    """Or the tests below would show nothing."""
    assert is_let_in(service, bearer(signed_token()))


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": int(time.time()) - 11},
        {"exp": None},
        {"exp": "tomorrow"},
        {"nbf": int(time.time()) + 3600},
        {"iss": "elsewhere"},
        {"iss": None},
        {"aud": "elsewhere"},
        {"aud": None},
        {"token_type": "refresh"},
    ],
    # Not the values: processes that share the tests must give them the same names.
    ids=["expired", "no-expiry", "words", "not-yet", "issuer", "no-issuer", "audience", "no-audience", "refresh"],
)
def test_a_token_with_invalid_claims_is_refused(service: Service, changes: dict[str, object]) -> None:
    assert not is_let_in(service, bearer(signed_token(changes)))


def nested(depth: int) -> object:
    """More than a JSON parser may be willing to follow."""
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "changes",
    [
        {"user_id": "41\0evil"},
        {"user_id": ["41", "\0"]},
        {"user\0id": "41"},
        {"user_id": "\ud800"},
        {"other": {"text": "\ud800"}},
        {"other": 10**30},
        {"exp": 10**30},
        {"other": [nested(300)]},
    ],
    ids=["nul", "nul-in-list", "nul-in-name", "surrogate", "surrogate-below", "integer", "expiry", "nested"],
)
def test_a_claim_with_a_nul_is_refused(service: Service, changes: dict[str, object]) -> None:
    """`41` and a NUL would become user 41 on its way to a routine."""
    assert not is_let_in(service, bearer(signed_token(changes)))
    refused = service.post(
        "/api/jwt/refresh", json={"refreshToken": signed_token({**changes, "token_type": "refresh"})}
    )
    problem(refused, 401)


def test_a_token_signed_with_another_secret_is_refused(service: Service) -> None:
    assert not is_let_in(service, bearer(signed_token(key=SECRET.upper())))
    assert not is_let_in(service, bearer(signed_token(algorithm="HS384")))


def part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE", "", None])
def test_a_token_without_signature_is_refused(service: Service, algorithm: str | None) -> None:
    body = signed_token().split(".")[1]
    for signature in ("", "x", signed_token().split(".")[2]):
        assert not is_let_in(service, bearer(f"{part({'alg': algorithm, 'typ': 'JWT'})}.{body}.{signature}"))


def test_a_token_with_changed_claims_is_refused(service: Service) -> None:
    head, body, signature = signed_token().split(".")
    payload = json.loads(base64.urlsafe_b64decode(body + "=="))
    assert not is_let_in(service, bearer(f"{head}.{part({**payload, 'user_roles': 'boss'})}.{signature}"))


@pytest.mark.parametrize("scheme", ["BearerToken", "Bearer"])
def test_a_truncated_or_modified_token_is_refused(service: Service, scheme: str) -> None:
    token = str(tokens(service, scheme)["accessToken"])
    assert is_let_in(service, bearer(token))
    for position in range(1, len(token), 7):
        other = "A" if token[position] != "A" else "B"
        if token[position] != ".":
            changed = f"{token[:position]}{other}{token[position + 1 :]}"
            assert not is_let_in(service, bearer(changed)), position
        assert not is_let_in(service, bearer(token[:position])), position
    assert not is_let_in(service, bearer(token + "A"))


@pytest.mark.parametrize(
    "header",
    [
        "Bearer",
        "Bearer  x",
        "Bearer .",
        "Bearer ..",
        "Bearer a.b.c",
        "Bearer a.b.c.d",
        "Bearer " + "x" * 20_000,
        "Basic a2lyaTpvcGVu",
        "Negotiate x",
        "Bearer \u00e4\u00f6".encode().decode("latin-1"),
    ],
)
def test_malformed_authorization_headers_are_401(service: Service, header: str) -> None:
    response = service.get("/api/closed", headers={"Authorization": header.encode("latin-1")})
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")


def test_the_challenge_distinguishes_a_bad_token_from_none(service: Service) -> None:
    assert service.get("/api/closed").headers["www-authenticate"] == "Bearer"
    assert service.get("/api/closed", headers=bearer("x")).headers["www-authenticate"] == 'Bearer error="invalid_token"'


# --- one thing for another -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["BearerToken", "Bearer"])
def test_a_refresh_token_gives_no_access(service: Service, scheme: str) -> None:
    assert not is_let_in(service, bearer(tokens(service, scheme)["refreshToken"]))


def test_cookies_and_tokens_are_not_interchangeable(service: Service) -> None:
    name, _, value = with_cookie(service)["Cookie"].partition("=")
    assert not is_let_in(service, bearer(value))
    assert not is_let_in(service, {"Cookie": f"{name}={tokens(service, 'BearerToken')['accessToken']}"})


def test_a_cookie_of_one_scheme_is_none_of_another(service: Service) -> None:
    value = with_cookie(service)["Cookie"].partition("=")[2]
    assert not is_let_in(service, {"Cookie": f".AspNetCore.short={value}"})


def test_tokens_of_a_named_scheme_are_accepted_by_it(service: Service) -> None:
    assert is_let_in(service, bearer(tokens(service, "other")["accessToken"]))


def test_a_cookie_does_not_replace_an_invalid_bearer_token(service: Service) -> None:
    assert not is_let_in(service, {**with_cookie(service), **bearer("x")})


# --- cookies -------------------------------------------------------------------------------------------------------


def test_a_cookie_changed_in_any_character(service: Service) -> None:
    cookie = with_cookie(service)["Cookie"]
    assert is_let_in(service, {"Cookie": cookie})
    start = cookie.index("=") + 1
    for position in range(start, len(cookie)):
        other = "A" if cookie[position] != "A" else "B"
        changed = f"{cookie[:position]}{other}{cookie[position + 1 :]}"
        assert not is_let_in(service, {"Cookie": changed}), position


def test_a_cookie_changed_in_any_bit_of_its_bytes(service: Service) -> None:
    name, _, value = with_cookie(service)["Cookie"].partition("=")
    raw = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
    for position in range(len(raw)):
        changed = bytearray(raw)
        changed[position] ^= 1 << position % 8
        text = base64.urlsafe_b64encode(bytes(changed)).rstrip(b"=").decode()
        assert not is_let_in(service, {"Cookie": f"{name}={text}"}), position


def test_sign_in_replaces_a_session_cookie_of_the_browser(service: Service) -> None:
    """Session fixation: whatever cookie comes along, the new session has a value of its own."""
    planted = with_cookie(service)["Cookie"]
    body = {"nick": "mo", "passphrase": "swordfish", "scheme": "Cookies"}
    response = service.post("/api/sign-in", json=body, headers={"Cookie": planted})
    fresh = cookie_of(response)
    assert fresh != planted
    assert service.get("/api/who", headers={"Cookie": fresh}).json()["userName"] == "mo"
    assert service.get("/api/who", headers={"Cookie": planted}).json()["userName"] == "kiri"


# --- expiry --------------------------------------------------------------------------------------------------------


def until_refused(service: Service, headers: dict[str, str], since: float) -> float:
    """Seconds after which a session, used all the time and so remembered, is no longer taken."""
    while is_let_in(service, headers):
        assert time.time() - since < 20
    return time.time() - since


@pytest.mark.slow
def test_a_remembered_token_ends_when_it_expires(service: Service) -> None:
    began = time.time()
    headers = bearer(tokens(service, "brief")["accessToken"])
    assert until_refused(service, headers, began) >= 1


def until_it_sets_a_cookie(service: Service, headers: dict[str, str]) -> httpx.Response:
    """Or refuses: on a busy machine no check may have run during the second half of a session's life."""
    while True:
        response = service.get("/api/closed", headers=headers)
        if "set-cookie" in response.headers or response.status_code != 200:
            return response


@pytest.mark.slow
def test_a_cookie_is_renewed_after_half_of_its_life_and_ends(service: Service) -> None:
    for _ in range(10):
        began = time.time()
        first = with_cookie(service, scheme="short")
        response = until_it_sets_a_cookie(service, first)
        if response.status_code == 200:
            break
    renewed = response.headers.get("set-cookie", "")
    assert renewed.startswith(".AspNetCore.short=")
    assert "max-age=2" in renewed
    assert response.headers["cache-control"] == "no-cache,no-store"
    assert response.text == "in"
    assert until_refused(service, first, began) >= 2
    assert renewed.partition(";")[0] != first["Cookie"]


# --- refresh -------------------------------------------------------------------------------------------------------


def test_refreshing_signed_tokens(service: Service) -> None:
    first = tokens(service, "Bearer")
    response = service.post("/api/jwt/refresh", json={"refreshToken": first["refreshToken"]})
    assert list(response.json()) == ["accessToken", "refreshToken", "tokenType", "expiresIn", "refreshExpiresIn"]
    assert service.get("/api/who", headers=bearer(response.json()["accessToken"])).json()["userId"] == "41"
    claims = jwt.decode(response.json()["accessToken"], SECRET, algorithms=["HS256"], audience="till")
    assert "token_type" not in claims


def test_refreshing_opaque_tokens_needs_the_session_too(service: Service) -> None:
    first = tokens(service, "BearerToken")
    body = {"refresh": first["refreshToken"]}
    response = service.post("/api/token/refresh", json=body, headers=bearer(first["accessToken"]))
    assert list(response.json()) == ["tokenType", "accessToken", "expiresIn", "refreshToken"]
    assert is_let_in(service, bearer(response.json()["accessToken"]))
    refused = service.post("/api/token/refresh", json=body)
    assert refused.headers["www-authenticate"] == "Bearer"
    problem(refused, 401)


def test_a_refresh_token_is_good_for_its_own_scheme_only(service: Service) -> None:
    main, other = tokens(service, "BearerToken"), tokens(service, "other")
    headers = bearer(main["accessToken"])
    problem(service.post("/api/token/refresh", json={"refresh": other["refreshToken"]}, headers=headers), 401)
    problem(service.post("/api/other/refresh", json={"refresh": main["refreshToken"]}, headers=headers), 401)
    problem(service.post("/api/token/refresh", json={"refresh": main["accessToken"]}, headers=headers), 401)
    own = bearer(other["accessToken"])
    assert service.post("/API/Other/Refresh", json={"refresh": other["refreshToken"]}, headers=own).status_code == 200


@pytest.mark.parametrize(
    "token",
    [
        signed_token(),
        signed_token({"token_type": "refresh", "exp": 1}),
        signed_token({"token_type": "refresh"}, SECRET.upper()),
        "x",
        "a.b.c",
        "",
    ],
    ids=["access", "expired", "forged", "word", "dots", "empty"],
)
def test_an_invalid_refresh_token_is_refused(service: Service, token: str) -> None:
    problem(service.post("/api/jwt/refresh", json={"refreshToken": token}), 401)


@pytest.mark.parametrize("path", ["/api/jwt/refresh", "/api/token/refresh"])
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"refreshToken":null,"refresh":null}', b'{"refresh":1,"refreshToken":1}']
)
def test_a_refresh_without_token_is_400(service: Service, path: str, body: bytes) -> None:
    problem(service.post(path, content=body), 400)


def test_other_methods_of_a_refresh_path(service: Service) -> None:
    assert service.get("/api/jwt/refresh").status_code == 405


# --- claims cannot make a token something else ------------------------------------------------------------------------


def test_no_secret_is_shown(service: Service) -> None:
    service.get("/api/closed", headers=bearer(signed_token(key="x" * 40)))
    sign_in(service, passphrase="hush-hush-hush")
    assert SECRET not in service.log
    assert "hush-hush" not in service.log
    assert str(tokens(service, "Bearer")["accessToken"]) not in service.log
