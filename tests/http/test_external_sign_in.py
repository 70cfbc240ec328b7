"""External sign-in: the page and paths of NpgsqlRest, any OpenID Connect issuer, two workers (external-sign-in-1 to
external-sign-in-11)."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import OctKey
from joserfc.jws import JWSRegistry

from rowcall.service.auth.external.provider_client import MOST
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.identity_provider import ALMA, CLIENT, SECRET, IdentityProvider
from tests.harness.node import node
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.external import (
    LINKING,
    SQL,
    begin,
    finish,
    fresh,
    granted,
    issuer_settings,
    options_of,
    provider_settings,
    session_of,
    sign_in,
)

UNCACHED = {
    "cache-control": "no-store, no-cache, must-revalidate, proxy-revalidate",
    "pragma": "no-cache",
    "expires": "0",
}
TOKEN_SECRET = "a secret of the service, of more than 32 characters"
ANY_HEADER = JWSRegistry(strict_check_header=False)
ME = {"id": hashlib.md5(b"alma@example.com").hexdigest(), "name": "Alma Dahl", "roles": ["member"]}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, provider: IdentityProvider) -> Service:
    settings = {
        "Auth:CookieAuth": "true",
        "Auth:BearerTokenAuth": "true",
        "Auth:ApiKey:Enabled": "true",
        "Auth:ApiKey:Command": "select 1 as user_id where $1 = encode(sha256('key'), 'hex')",
        "Auth:Schemes:Signed:Type": "Jwt",
        "Auth:JwtSecret": TOKEN_SECRET,
        "Service:AuthenticationOptions:NoteSignInTime": "true",
        "Auth:External:Enabled": "true",
        "Auth:External:ReturnToPath": "/welcome",
        "Auth:External:LoginCommand": LINKING,
        **provider_settings("Acme", provider),
        **provider_settings("Plain", provider, Pkce="false", EmailUrl=f"{provider.url}/emails"),
        **provider_settings("Down", provider, TokenUrl="http://127.0.0.1:9/token"),
        **issuer_settings("Id", provider, KeepTokens="true"),
        **provider_settings("Nørre By", provider, Pkce="false"),
        "Auth:External:GitHub:Enabled": "true",
        "Auth:External:GitHub:ClientId": "octo",
        "Auth:External:Google:Enabled": "false",
    }
    service = serve(database, SQL, settings, workers=2)
    provider.client.redirect_uris |= {f"{service.url}/signin-{name}" for name in ("acme", "plain", "id", "down")}
    provider.client.redirect_uris.add(f"{service.url}/signin-n%C3%B8rre%20by")
    return service


def last_call(database: Database) -> dict[str, object]:
    body: dict[str, object] = json.loads(
        str(database.value("select to_json(c)::text from external_call c order by n desc limit 1"))
    )
    return body


# --- the page ------------------------------------------------------------------------------------------------------


def test_sign_in_page_of_a_provider_is_served(service: Service) -> None:
    response = service.get("/signin-acme?return_to=/here")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html"
    assert {name: response.headers[name] for name in UNCACHED} == UNCACHED
    assert "<title>Talking To Acme</title>" in response.text
    assert "<body>Loading...<script>" in response.text
    text = options_of(response.text)
    assert {name: text[name] for name in ("provider", "statusKey", "messageKey", "returnTo", "returnKey")} == {
        "provider": "Acme",
        "statusKey": "__external_status",
        "messageKey": "__external_message",
        "returnTo": "/welcome",
        "returnKey": "return_to",
    }


@pytest.mark.parametrize(("page_query", "expected_path"), [("", "/welcome"), ("?return_to=/here", "/here")])
def test_browser_returns_to_the_configured_or_requested_path(
    service: Service, tmp_path: Path, page_query: str, expected_path: str
) -> None:
    """Run the scripts of both pages in Node, with the few browser objects that they use."""
    begins = service.get(f"/signin-acme{page_query}").text
    returns = service.get("/signin-acme?error=access_denied&state=x").text
    scripts = [re.findall(r"<script>(.*?)</script>", page, re.DOTALL)[0] for page in (begins, returns)]
    program = tmp_path / "browser.cjs"
    program.write_text(
        f"""
        const kept = new Map();
        globalThis.sessionStorage = {{
            getItem: key => kept.get(key) ?? null,
            setItem: (key, value) => kept.set(key, String(value)),
            removeItem: key => kept.delete(key),
        }};
        globalThis.window = globalThis;
        globalThis.history = {{ replaceState() {{}} }};
        const visit = (search, script) => {{
            const gone = [];
            globalThis.location = {{
                origin: {service.url!r}, protocol: "http:", pathname: "/signin-acme", search, hash: "",
                href: {service.url!r} + search,
                replace: to => gone.push(to),
            }};
            (0, eval)(script);
            return gone[0];
        }};
        visit({page_query!r}, {json.dumps(scripts[0])});
        console.log(visit("?error=access_denied&state=x", {json.dumps(scripts[1])}));
        """
    )
    ran = subprocess.run([node(), program], capture_output=True, text=True, check=False)
    assert (ran.stdout.strip(), ran.stderr) == (service.url + expected_path, "")


def test_sign_in_page_redirects_to_the_provider(service: Service, provider: IdentityProvider) -> None:
    begun = begin(service, "/signin-acme")
    assert begun.url.startswith(f"{provider.url}/authorize?response_type=code&client_id={CLIENT}&redirect_uri=http%3A")
    assert " " not in begun.url
    assert begun.query == {
        "response_type": "code",
        "client_id": CLIENT,
        "redirect_uri": f"{service.url}/signin-acme",
        "scope": "profile email",
        "state": begun.state,
        "code_challenge": begun.query["code_challenge"],
        "code_challenge_method": "S256",
    }
    another = begin(service, "/signin-acme")
    assert another.state != begun.state
    assert another.query["code_challenge"] != begun.query["code_challenge"]


def test_authorization_request_to_an_issuer_has_openid_scope_and_nonce(
    service: Service, provider: IdentityProvider
) -> None:
    query = begin(service, "/signin-id").query
    assert query["scope"] == "openid profile email"
    assert query["nonce"]
    assert query["redirect_uri"] == f"{service.url}/signin-id"


def test_known_providers_have_built_in_urls(service: Service) -> None:
    begun = begin(service, "/signin-github")
    assert begun.url.startswith("https://github.com/login/oauth/authorize?client_id=octo&redirect_uri=http%3A%2F%2F")
    assert begun.query["allow_signup"] == "false"
    assert "response_type" not in begun.query


@pytest.mark.parametrize("query", ["?state=x&code=y", "?error=access_denied", "?state="])
def test_callback_page_does_not_begin_a_sign_in(service: Service, query: str) -> None:
    with fresh(service) as client:
        response = client.get(f"/signin-acme{query}")
    assert options_of(response.text)["authUrl"] is None
    assert "set-cookie" not in response.headers


def test_login_state_cookie_is_httponly_and_samesite(service: Service) -> None:
    with fresh(service) as client:
        (cookie,) = client.get("/signin-acme").headers.get_list("set-cookie")
    assert cookie.endswith("; max-age=900; path=/; samesite=lax; httponly")


def test_number_of_login_state_cookies_is_limited(service: Service) -> None:
    with fresh(service) as client:
        for _ in range(9):
            assert client.get("/signin-acme").status_code == 200
        assert len([name for name in client.cookies if name.startswith("rowcall.signin.")]) == 6


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/signin-Acme", 404),
        ("POST", "/SIGNIN-ACME", 404),
        ("GET", "/signin-google", 404),
        ("PUT", "/signin-acme", 405),
        ("POST", "/signin-acme/refresh", 404),
    ],
)
def test_other_paths_and_methods_of_providers_are_refused(
    service: Service, method: str, path: str, status: int
) -> None:
    problem(service.request(method, path), status)


# --- the code ------------------------------------------------------------------------------------------------------


def test_provider_name_may_contain_any_characters(service: Service, database: Database) -> None:
    """The path of its callback is a valid URL."""
    assert sign_in(service, "/signin-n%C3%B8rre%20by").status_code == 200
    assert last_call(database)["provider"] == "Nørre By"


@pytest.mark.parametrize("path", ["/signin-acme", "/signin-plain", "/signin-id"])
def test_sign_in_creates_a_session_with_claims(service: Service, database: Database, path: str) -> None:
    response = sign_in(service, path)
    assert response.status_code == 200, response.text
    assert response.content == b""
    assert response.headers["cache-control"] == "no-cache,no-store"
    assert service.get("/api/me", headers=session_of(response)).json() == ME
    call = last_call(database)
    assert call["provider"] == path.removeprefix("/signin-").capitalize()
    assert (call["email"], call["name"], call["analytics"], call["claims"]) == (ALMA["email"], ALMA["name"], None, None)
    info = call["info"]
    assert isinstance(info, dict)
    assert {name: info[name] for name in ALMA} == ALMA
    assert ("iss" in info) is (path == "/signin-id")


def test_sign_in_can_end_on_another_worker(service: Service) -> None:
    for _ in range(6):
        begun = begin(service, "/signin-id")
        assert finish(service, begun.path, dict(granted(begun.url)), begun.cookie).status_code == 200


def test_program_can_sign_in_with_a_code_without_state(service: Service, provider: IdentityProvider) -> None:
    """As in NpgsqlRest; a code that a browser has requested is bound to it, so this one was requested without PKCE."""
    query = f"response_type=code&client_id={CLIENT}&redirect_uri={service.url}/signin-acme&scope=profile&state=mine"
    code = granted(f"{provider.url}/authorize?{query}")["code"]
    with fresh(service) as client:
        response = client.post("/signin-acme", json={"code": code, "state": "mine"})
    assert response.status_code == 200, response.text
    form = provider.forms("/token")[-1]
    assert form == {
        "redirect_uri": f"{service.url}/signin-acme",
        "code": code,
        "client_id": CLIENT,
        "client_secret": SECRET,
        "grant_type": "authorization_code",
    }


def test_the_login_command_gets_the_analytics_data_of_the_browser(service: Service, database: Database) -> None:
    begun = begin(service, "/signin-acme")
    finish(service, '/signin-acme?analyticsData={"zone":"Europe/Oslo"}', dict(granted(begun.url)), begun.cookie)
    assert last_call(database)["analytics"] == {"zone": "Europe/Oslo", "ip": "127.0.0.1"}


@pytest.mark.parametrize("analytics_data", ["[1]", "junk", ""])
def test_invalid_analytics_data_is_null(service: Service, database: Database, analytics_data: str) -> None:
    begun = begin(service, "/signin-acme")
    path = f"/signin-acme?analyticsData={analytics_data}"
    assert finish(service, path, dict(granted(begun.url)), begun.cookie).status_code == 200
    assert last_call(database)["analytics"] is None


@pytest.mark.parametrize(
    ("email", "status"),
    [
        ("unknown@example.com", 401),
        ("locked@example.com", 423),
        ("broken@example.com", 500),
        ("nowhere@x.example", 404),
    ],
)
def test_login_command_determines_status_and_body(
    service: Service, provider: IdentityProvider, email: str, status: int
) -> None:
    with provider.bent(user={**ALMA, "email": email}):
        response = sign_in(service, "/signin-id")
    assert response.status_code == status
    assert ".AspNetCore" not in response.headers.get("set-cookie", "")
    assert response.headers["cache-control"] == UNCACHED["cache-control"]
    assert "secret of the database" not in response.text
    if status == 500:
        assert response.text == "Error talking to Id"


def test_login_command_row_can_select_bearer_tokens(service: Service, provider: IdentityProvider) -> None:
    with provider.bent(user={**ALMA, "email": "token@example.com"}):
        body = sign_in(service, "/signin-acme").json()
    assert list(body) == ["tokenType", "accessToken", "expiresIn", "refreshToken"]
    with fresh(service) as client:
        document = client.get("/api/me", headers={"Authorization": f"Bearer {body['accessToken']}"}).json()
    assert document["name"] == ALMA["name"]


def test_code_requested_by_a_browser_is_refused_for_a_program(service: Service) -> None:
    """PKCE: the provider requires the verifier, which only the browser's cookie contains."""
    code = granted(begin(service, "/signin-acme").url)["code"]
    with fresh(service) as client:
        assert client.post("/signin-acme", json={"code": code}).text == "Error talking to Acme"


def test_email_is_read_from_a_separate_url(service: Service, provider: IdentityProvider, database: Database) -> None:
    with provider.bent(user={"id": 7, "name": "Alma", "email": None}):
        assert sign_in(service, "/signin-plain").status_code == 200
    assert last_call(database)["email"] == "first@example.com"


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/signin-acme", b"", "the request is no JSON object"),
        ("/signin-acme", b"[1]", "the request is no JSON object"),
        ("/signin-acme", b"{}", "the request holds no code"),
        ("/signin-acme", b'{"code":7}', "the request holds no code"),
        ("/signin-acme", b'{"code":"unknown"}', "answered 400: invalid_grant"),
        ("/signin-down", b'{"code":"any"}', "http://127.0.0.1:9/token"),
    ],
)
def test_invalid_callback_bodies_get_500(service: Service, path: str, body: bytes, message: str) -> None:
    with fresh(service) as client:
        response = client.post(path, content=body)
    assert response.status_code == 500
    assert response.headers["content-type"] == "text/plain"
    assert {name: response.headers[name] for name in UNCACHED} == UNCACHED
    assert response.text == f"Error talking to {path.removeprefix('/signin-').capitalize()}"
    assert message in service.wait_for_log(message)
    assert SECRET not in service.log


def test_profile_without_email_is_refused(service: Service, provider: IdentityProvider) -> None:
    with provider.bent(user={"sub": "1"}):
        assert sign_in(service, "/signin-acme").text == "Error talking to Acme"


def _nested(levels: int) -> dict[str, Any]:
    return {"a": _nested(levels - 1)} if levels else {}


@pytest.mark.parametrize(
    ("claim", "reason"),
    [(_nested(300), "Recursion limit reached"), (2**64, "Integer exceeds 64-bit range")],
    ids=["nested", "number"],
)
def test_profile_that_cannot_be_serialized_is_refused(
    service: Service, provider: IdentityProvider, claim: Any, reason: str
) -> None:
    with provider.bent(claims=lambda claims: {**claims, "claim": claim}):
        assert sign_in(service, "/signin-id").text == "Error talking to Id"
    assert service.wait_for_log(f"the profile cannot be written as JSON: {reason}")


# --- accounts ------------------------------------------------------------------------------------------------------


def test_sign_in_links_the_identity_to_the_current_session(service: Service, database: Database) -> None:
    session = session_of(sign_in(service, "/signin-acme"))
    begun = begin(service, "/signin-id", session)
    finish(service, begun.path, dict(granted(begun.url)), f"{begun.cookie}; {session['Cookie']}")
    claims = last_call(database)["claims"]
    assert isinstance(claims, dict)
    assert claims["user_id"] == ME["id"]
    assert claims["provider"] == "Acme"


def test_an_api_key_links_no_identity(service: Service, database: Database) -> None:
    """The identity would still be valid when the key has ended."""
    key = {"X-Api-Key": "key"}
    begun = begin(service, "/signin-id", key)
    assert finish(service, begun.path, dict(granted(begun.url)), begun.cookie, **key).status_code == 200
    assert last_call(database)["claims"] is None


def test_identity_is_not_linked_if_the_session_has_changed(service: Service, database: Database) -> None:
    """The session is another one than at the beginning of the sign-in."""
    session = session_of(sign_in(service, "/signin-acme"))
    begun = begin(service, "/signin-id")
    finish(service, begun.path, dict(granted(begun.url)), f"{begun.cookie}; {session['Cookie']}")
    assert last_call(database)["claims"] is None


# --- afterwards ----------------------------------------------------------------------------------------------------


def test_refresh_calls_the_provider_and_the_login_command(service: Service, provider: IdentityProvider) -> None:
    session = session_of(sign_in(service, "/signin-id"))
    with fresh(service) as client:
        problem(client.post("/signin-id/refresh"), 401)
        with provider.bent(user={**ALMA, "name": "Alma Lund"}):
            response = client.post("/signin-id/refresh", headers=session)
        assert response.status_code == 200, response.text
        client.cookies.clear()
        renewed = session_of(response)
        assert client.get("/api/me", headers=renewed).json()["name"] == "Alma Lund"
        client.cookies.clear()
        # The provider revokes the tokens of this sign-in.
        provider.refreshing.clear()
        refused = client.post("/signin-id/refresh", headers=renewed)
        problem(refused, 401)
        assert any(
            "rowcall.tokens." in cookie and "expires=" in cookie for cookie in refused.headers.get_list("set-cookie")
        )


@pytest.mark.parametrize("factors", [{}, {"amr": ["otp", "mfa"]}], ids=["one factor", "two factors"])
def test_refresh_is_no_sign_in(service: Service, factors: dict[str, list[str]]) -> None:
    """It neither changes the time of the sign-in, which `authorize within` requires, nor forgets the second factor."""
    cookies = session_of(sign_in(service, "/signin-id"))["Cookie"].split("; ")
    tokens = next(cookie for cookie in cookies if "tokens" in cookie)
    key = OctKey.import_key(TOKEN_SECRET)
    claims = {"user_id": ME["id"], "auth_time": "1000000000", "exp": int(time.time()) + 600, **factors}
    session = {"Cookie": tokens, "Authorization": f"Bearer {jwt.encode({'alg': 'HS256'}, claims, key)}"}
    with fresh(service) as client:
        response = client.post("/signin-id/refresh", headers=session)
    assert response.status_code == 200, response.text
    renewed = jwt.decode(response.json()["accessToken"], key).claims
    assert {name: renewed.get(name) for name in ("user_name", "auth_time", "amr")} == {
        "user_name": "Alma Dahl",
        "auth_time": "1000000000",
        "amr": factors.get("amr"),
    }


def test_a_user_who_acts_as_another_cannot_refresh(service: Service) -> None:
    """The refreshed session would be that of the other user."""
    cookies = session_of(sign_in(service, "/signin-id"))["Cookie"].split("; ")
    tokens = next(cookie for cookie in cookies if "tokens" in cookie)
    actor = {"alg": "HS256", "actor": {"impersonator_id": "7"}}
    claims = {"user_id": ME["id"], "exp": int(time.time()) + 600}
    session = {
        "Cookie": tokens,
        "Authorization": f"Bearer {jwt.encode(actor, claims, OctKey.import_key(TOKEN_SECRET), registry=ANY_HEADER)}",
    }
    with fresh(service) as client:
        problem(client.post("/signin-id/refresh", headers=session), 401)


def test_concurrent_refreshes_share_one_provider_request(service: Service, provider: IdentityProvider) -> None:
    """The provider accepts each refresh token once; on any worker, before and after its response."""
    session = session_of(sign_in(service, "/signin-id"))
    requested = len(provider.forms("/token"))

    def refresh(headers: dict[str, str]) -> httpx.Response:
        with fresh(service) as client:
            return client.post("/signin-id/refresh", headers=headers)

    with ThreadPoolExecutor(6) as tabs:
        responses = [*tabs.map(refresh, [session] * 6), refresh(session)]
    assert [response.status_code for response in responses] == [200] * 7
    assert len(provider.forms("/token")) == requested + 1
    assert not any("expires=" in cookie for response in responses for cookie in response.headers.get_list("set-cookie"))
    assert refresh(session_of(responses[3])).status_code == 200
    assert len(provider.forms("/token")) == requested + 2


def test_refresh_requires_tokens_of_the_same_user(service: Service, provider: IdentityProvider) -> None:
    """Tokens that another user has left in the browser neither renew this session nor give this user theirs."""
    values = [part for part in session_of(sign_in(service, "/signin-id"))["Cookie"].split("; ") if "tokens" in part]
    with provider.bent(user={**ALMA, "sub": "9", "email": "bo@example.com"}):
        other = session_of(sign_in(service, "/signin-acme"))["Cookie"]
    with fresh(service) as client:
        problem(client.post("/signin-id/refresh", headers={"Cookie": "; ".join(values)}), 401)
        problem(client.post("/signin-id/refresh", headers={"Cookie": "; ".join([*values, other])}), 401)


def test_refreshed_tokens_of_another_user_are_refused(service: Service, provider: IdentityProvider) -> None:
    session = session_of(sign_in(service, "/signin-id"))
    with provider.bent(user={**ALMA, "sub": "another user"}), fresh(service) as client:
        assert client.post("/signin-id/refresh", headers=session).text == "Error talking to Id"


def test_logout_ends_the_session_and_redirects_to_the_provider(service: Service, provider: IdentityProvider) -> None:
    session = session_of(sign_in(service, "/signin-id"))
    with fresh(service) as client:
        response = client.post("/signin-id/logout", headers=session)
    assert response.status_code == 303
    location = urlsplit(response.headers["location"])
    assert f"{location.scheme}://{location.netloc}{location.path}" == f"{provider.url}/logout"
    query = parse_qs(location.query)
    assert query["post_logout_redirect_uri"] == [f"{service.url}/welcome"]
    assert query["id_token_hint"][0].count(".") == 2
    assert query["client_id"] == [CLIENT]
    assert provider.forms("/revoke")[-1]["token_type_hint"] == "refresh_token"
    ended = [cookie for cookie in response.headers.get_list("set-cookie") if "expires=Thu, 01 Jan 1970" in cookie]
    assert len(ended) == 2
    with fresh(service) as client:
        problem(client.post("/signin-id/refresh", headers=session), 401)


@pytest.fixture
def other_provider() -> Iterator[IdentityProvider]:
    server = IdentityProvider()
    yield server
    server.close()


@pytest.mark.usefixtures("service")  # with its SQL
def test_logout_ends_the_session_while_too_many_sign_ins_wait(
    database: Database, serve_once: Serve, other_provider: IdentityProvider
) -> None:
    """The provider is not informed, but the session ends here."""
    settings = {
        "Auth:CookieAuth": "true",
        "Auth:External:Enabled": "true",
        "Auth:External:LoginCommand": LINKING,
        **provider_settings("Acme", other_provider),
        **issuer_settings("Id", other_provider, KeepTokens="true"),
    }
    service = serve_once(database, "", settings)
    other_provider.client.redirect_uris.add(f"{service.url}/signin-id")
    session = session_of(sign_in(service, "/signin-id"))
    answered, waiting, released = other_provider.answer, list[str](), threading.Event()

    def respond_after_release(method: str, target: str, headers: Any, body: bytes) -> Any:
        waiting.append(target)
        released.wait(30)
        return answered(method, target, headers, body)

    with other_provider.bent(answer=respond_after_release), ThreadPoolExecutor(MOST) as programs:
        try:
            for _ in range(MOST):
                programs.submit(finish, service, "/signin-acme", {"code": "unknown"}, as_program="yes")
            wait_until(lambda: len(waiting) == MOST, "the provider has all requests")
            with fresh(service) as client:
                response = client.post("/signin-id/logout", headers=session)
        finally:
            released.set()
    assert (response.status_code, response.headers["location"]) == (303, f"{service.url}/")
    ended = [cookie for cookie in response.headers.get_list("set-cookie") if "expires=Thu, 01 Jan 1970" in cookie]
    assert len(ended) == 2
    service.wait_for_log("Id could not be informed of a sign-out: too many sign-ins are waiting for their provider")
    assert other_provider.forms("/revoke") == []


def test_logout_by_script_returns_the_provider_location(service: Service) -> None:
    with fresh(service) as client:
        response = client.post("/signin-id/logout", headers={"Accept": "application/json"})
        assert response.status_code == 200
        assert "/logout?" in response.json()["location"]
        problem(client.post("/signin-id/logout", headers={"Origin": "https://elsewhere.example"}), 403)


# --- keys ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rotated_issuer_keys_are_fetched(service: Service, provider: IdentityProvider) -> None:
    """By every worker, at the earliest a second after its last fetch; the old keys are dropped then."""
    sign_in(service, "/signin-id")
    old = provider.key
    provider.rotate()

    def old_is_refused() -> bool:
        """On any worker: one that has not seen the new key still accepts the old one."""
        wait_until(lambda: sign_in(service, "/signin-id").status_code == 200, "the new key is known")
        with provider.bent(sign=lambda claims: jwt.encode({"alg": "RS256", "kid": old.kid}, claims, old)):
            return sign_in(service, "/signin-id").text == "Error talking to Id"

    wait_until(old_is_refused, "the old key is dropped", 30)


def test_pkce_challenge_is_the_digest_of_the_verifier(service: Service, provider: IdentityProvider) -> None:
    begun = begin(service, "/signin-acme")
    finish(service, begun.path, dict(granted(begun.url)), begun.cookie)
    verifier = provider.forms("/token")[-1]["code_verifier"]
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    assert digest == begun.query["code_challenge"]
    assert len(verifier) == 64


def test_discovery_document_is_fetched_once_by_each_worker(service: Service, provider: IdentityProvider) -> None:
    for _ in range(4):
        begin(service, "/signin-id")
    values = [path for _, path, _ in provider.seen if path.startswith("/.well-known/")]
    assert 1 <= len(values) <= 2


def test_provider_of_the_tests_checks_secret_and_verifier(provider: IdentityProvider) -> None:
    """The server of these tests refuses a code without its verifier, and a wrong secret."""
    form = {"grant_type": "authorization_code", "code": "none", "client_id": CLIENT, "client_secret": "wrong"}
    response = httpx.post(f"{provider.url}/token", data=form, trust_env=False, timeout=60)
    assert response.json()["error"] == "invalid_client"
