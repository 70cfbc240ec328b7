"""Attacks on sign-in through others that RFC 9700 and OpenID Connect name: each is refused (external-sign-in-1 to
external-sign-in-11)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from joserfc.jwk import RSAKey

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.identity_provider import ALMA, CLIENT, IdentityProvider
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.external import (
    SQL,
    begin,
    finish,
    fresh,
    granted,
    issuer_settings,
    options_of,
    provider_settings,
    sign_in,
)

pytestmark = pytest.mark.attack


@pytest.fixture(scope="module")
def attacker() -> Iterator[IdentityProvider]:
    """Another provider of the same service, whose operator is an attacker."""
    provider = IdentityProvider()
    yield provider
    provider.close()


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, provider: IdentityProvider, attacker: IdentityProvider) -> Service:
    settings = {
        "Auth:CookieAuth": "true",
        "Auth:External:Enabled": "true",
        "Auth:External:RequireState": "true",
        "Auth:External:RateLimiterPolicy": "few",
        "RateLimiterOptions:Enabled": "true",
        "RateLimiterOptions:Policies:few:Type": "FixedWindow",
        "RateLimiterOptions:Policies:few:Enabled": "true",
        "RateLimiterOptions:Policies:few:PermitLimit": "30",
        "RateLimiterOptions:Policies:few:WindowSeconds": "3600",
        "RateLimiterOptions:Policies:few:QueueLimit": "0",
        "RateLimiterOptions:Policies:few:Partition:Sources:0:Type": "Header",
        "RateLimiterOptions:Policies:few:Partition:Sources:0:Name": "X-Caller",
        "ForwardedHeaders:Enabled": "true",
        "SecurityHeaders:Enabled": "true",
        "SecurityHeaders:ContentSecurityPolicy": "default-src 'self'",
        **issuer_settings("Honest", provider),
        **issuer_settings("Mallory", attacker),
        **issuer_settings("Liar", provider, Issuer=f"{provider.url}/"),
        **provider_settings("Plain", provider),
    }
    service = serve(database, SQL, settings, workers=2)
    for item in (provider, attacker):
        item.client.redirect_uris |= {f"{service.url}/signin-{name}" for name in ("honest", "mallory", "plain")}
    return service


# --- state ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/signin-honest", "/signin-plain"])
def test_login_state_is_accepted_once(service: Service, path: str) -> None:
    """On any worker, with the cookie of the first time, and with a code that is good."""
    begun = begin(service, path)
    assert finish(service, path, dict(granted(begun.url)), begun.cookie).status_code == 200
    for _ in range(6):
        again = finish(service, path, dict(granted(begun.url)), begun.cookie)
        assert "used before" in str(problem(again, 400)["detail"])
        assert ".AspNetCore" not in again.headers.get("set-cookie", "")


@pytest.mark.parametrize("path", ["/signin-honest", "/signin-plain"])
def test_login_state_without_its_cookie_is_refused(service: Service, path: str) -> None:
    """Login CSRF: code and state of another user, in a browser that did not begin the sign-in."""
    begun, other = begin(service, path), begin(service, path)
    sent = dict(granted(begun.url))
    for cookie in (None, other.cookie):
        problem(finish(service, path, sent, cookie), 400)
    assert finish(service, path, sent, begun.cookie).status_code == 200


@pytest.mark.parametrize("state", [None, "", "x", 7, "A" * 43])
def test_callback_with_missing_or_wrong_state_is_refused(service: Service, state: object) -> None:
    begun = begin(service, "/signin-plain")
    sent = {**granted(begun.url), "state": state}
    problem(finish(service, "/signin-plain", sent, begun.cookie), 400)


@pytest.mark.parametrize("path", ["/signin-honest", "/signin-plain"])
def test_program_request_without_state_is_refused(service: Service, path: str) -> None:
    """To an issuer always, to the others with RequireState."""
    with fresh(service) as client:
        problem(client.post(path, json={"code": "stolen"}), 400)


def test_login_state_cookie_has_a_host_prefix_behind_https_proxies(
    service: Service, provider: IdentityProvider
) -> None:
    """Over https no host beside this one can put it into a browser, and the provider knows the outer address."""
    outer = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "shop.example"}
    begun = begin(service, "/signin-plain", outer)
    assert begun.cookie.startswith("__Host-rowcall.signin.")
    assert begun.query["redirect_uri"] == "https://shop.example/signin-plain"
    provider.client.redirect_uris.add("https://shop.example/signin-plain")
    sent = dict(granted(begun.url))
    problem(finish(service, begun.path, sent, begun.cookie.removeprefix("__Host-"), **outer), 400)
    response = finish(service, begun.path, sent, begun.cookie, **outer)
    assert response.status_code == 200, response.text
    assert all("; secure; " in cookie for cookie in response.headers.get_list("set-cookie"))


@pytest.mark.slow
def test_login_state_is_valid_once_across_hosts_with_shared_keys(
    own_database: Database, serve_once: Serve, provider: IdentityProvider, tmp_path: Path
) -> None:
    """A sign-in begins on one and ends on another, once over all of them."""
    settings = {
        "Auth:CookieAuth": "true",
        "Auth:External:Enabled": "true",
        **issuer_settings("Honest", provider),
        "DataProtection:Storage": "FileSystem",
        "DataProtection:FileSystemPath": str(tmp_path / "keys"),
        "DataProtection:CustomApplicationName": "shop",
    }
    first = serve_once(own_database, SQL, settings)
    second = serve_once(own_database, "", settings)
    provider.client.redirect_uris.add(f"{first.url}/signin-honest")
    begun = begin(first, "/signin-honest")
    assert finish(second, begun.path, dict(granted(begun.url)), begun.cookie).status_code == 200
    for host in (first, second):
        refusal = problem(finish(host, begun.path, dict(granted(begun.url)), begun.cookie), 400)
        assert "used before" in str(refusal["detail"])


def test_sign_in_attempts_are_rate_limited(service: Service) -> None:
    """Over all workers."""
    with fresh(service) as client:
        statuses = []
        for _ in range(31):
            client.cookies.clear()
            statuses.append(client.get("/signin-plain", headers={"Connection": "close"}).status_code)
    assert statuses == [*[200] * 30, 429]


def test_modified_login_state_cookie_is_refused(service: Service) -> None:
    begun = begin(service, "/signin-honest")
    name, _, value = begun.cookie.partition("=")
    changed = value[:-1] + ("A" if value[-1] != "A" else "B")
    sent = dict(granted(begun.url))
    assert "is not valid" in str(problem(finish(service, begun.path, sent, f"{name}={changed}"), 400)["detail"])


def test_login_state_cookie_of_another_attempt_is_refused(service: Service) -> None:
    """A host with the same parent domain could set such a cookie."""
    begun, other = begin(service, "/signin-honest"), begin(service, "/signin-honest")
    tossed = f"{begun.cookie.partition('=')[0]}={other.cookie.partition('=')[2]}"
    detail = problem(finish(service, begun.path, dict(granted(begun.url)), tossed), 400)["detail"]
    assert "belongs to another sign-in" in str(detail)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "https://beside.example", "Sec-Fetch-Site": "same-site"},
    ],
)
def test_cross_site_callback_post_is_refused(service: Service, headers: dict[str, str]) -> None:
    begun = begin(service, "/signin-plain")
    problem(finish(service, begun.path, dict(granted(begun.url)), begun.cookie, **headers), 403)


# --- mix-up --------------------------------------------------------------------------------------------------------


def test_the_code_of_one_provider_is_not_sent_to_another(
    service: Service, provider: IdentityProvider, attacker: IdentityProvider
) -> None:
    """The browser was sent to the honest one by the attacker's, and comes back to the attacker's path."""
    begun = begin(service, "/signin-mallory")
    honest = begin(service, "/signin-honest")
    code = granted(honest.url)["code"]
    requested = len(attacker.forms("/token"))
    for sent, cookie in (
        ({"code": code, "state": honest.state}, honest.cookie),
        ({"code": code, "state": begun.state, "iss": provider.url}, begun.cookie),
    ):
        assert finish(service, "/signin-mallory", sent, cookie).status_code in (400, 500)
    assert len(attacker.forms("/token")) == requested


@pytest.mark.parametrize("issuer", [None, "https://elsewhere.example", 7])
def test_callback_with_missing_or_wrong_iss_is_refused(
    service: Service, provider: IdentityProvider, issuer: object
) -> None:
    """RFC 9207: this issuer always says so."""
    begun = begin(service, "/signin-honest")
    requested = len(provider.forms("/token"))
    sent = {**granted(begun.url), "iss": issuer}
    assert finish(service, begun.path, sent, begun.cookie).text == "Error talking to Honest"
    assert len(provider.forms("/token")) == requested


def test_discovery_document_of_another_issuer_is_refused(service: Service) -> None:
    response = service.get("/signin-liar")
    assert (response.status_code, response.text) == (500, "Error talking to Liar")
    assert "Issuer must be equal to the one in this document" in service.wait_for_log("Error talking to Liar")


# --- codes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/signin-honest", "/signin-plain"])
def test_injected_authorization_code_is_refused(service: Service, path: str) -> None:
    """Code injection: the attacker begins a sign-in and puts the code of another user into the callback."""
    victim, thief = begin(service, path), begin(service, path)
    stolen = granted(victim.url)["code"]
    sent = {**granted(thief.url), "code": stolen}
    assert finish(service, path, sent, thief.cookie).status_code == 500
    with fresh(service) as client:
        assert client.post(path, json={"code": stolen}).status_code in (400, 500)


def test_code_requested_without_pkce_is_refused(service: Service, provider: IdentityProvider) -> None:
    """A downgrade: the digest is taken out on the way to the provider."""
    begun = begin(service, "/signin-plain")
    url = begun.url.partition("&code_challenge=")[0]
    assert finish(service, begun.path, dict(granted(url)), begun.cookie).text == "Error talking to Plain"


def test_pkce_method_is_always_s256(service: Service) -> None:
    for path in ("/signin-honest", "/signin-plain"):
        assert begin(service, path).query["code_challenge_method"] == "S256"


# --- ID tokens -----------------------------------------------------------------------------------------------------


def without_claims(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda claims: {name: value for name, value in claims.items() if name not in names}


def with_claims(**members: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda claims: {**claims, **members}


BENT = {
    "another issuer": (with_claims(iss="https://elsewhere.example"), "Invalid issuer"),
    "no issuer": (without_claims("iss"), 'missing the "iss" claim'),
    "another audience": (with_claims(aud="another client"), "Audience doesn't match"),
    "no audience": (without_claims("aud"), 'missing the "aud" claim'),
    "several audiences": (with_claims(aud=[CLIENT, "another client"]), "it is for several audiences"),
    "another party": (with_claims(aud=[CLIENT, "another client"], azp="another client"), "another client asked for it"),
    "another nonce": (with_claims(nonce="of another sign-in"), "its nonce is not that of this sign-in"),
    "no nonce": (without_claims("nonce"), "its nonce is not that of this sign-in"),
    "expired": (with_claims(exp=int(time.time()) - 600), "Signature has expired"),
    "no expiry": (without_claims("exp"), 'missing the "exp" claim'),
    "from the future": (with_claims(iat=int(time.time()) + 3600), "not yet valid"),
    "without a subject": (with_claims(sub=""), "who it is about"),
    "about no text": (with_claims(sub=7), "Subject must be a string"),
    "another access token": (with_claims(at_hash="AAAAAAAAAAAAAAAAAAAAAA"), "together with the access token"),
    "unverified e-mail": (with_claims(email_verified=False), "has not verified the e-mail"),
    "another user than the profile": (with_claims(sub="another user"), "about another user than the ID token"),
}


@pytest.mark.parametrize(("claims", "reason"), BENT.values(), ids=BENT)
def test_id_token_with_wrong_claims_is_refused(
    service: Service, provider: IdentityProvider, claims: Callable[[dict[str, Any]], dict[str, Any]], reason: str
) -> None:
    info = {name: value for name, value in ALMA.items() if name != "email_verified"}
    with provider.bent(claims=claims, info=info):
        check_sign_in_refused(service, reason)


def test_profile_without_subject_is_refused(service: Service, provider: IdentityProvider) -> None:
    with provider.bent(info={"name": "Alma", "email": "alma@example.com"}):
        check_sign_in_refused(service, "the profile does not name its user (sub)")


def check_sign_in_refused(service: Service, reason: str) -> None:
    """The browser learns nothing of the reason, which stands in the log."""
    before = len(service.log)
    assert sign_in(service, "/signin-honest").text == "Error talking to Honest"
    wait_until(lambda: reason in service.log[before:], f"the log says {reason!r}: {service.log[before:]}")


def _encoded(part: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def unsigned(_provider: IdentityProvider, claims: dict[str, Any]) -> str:
    return f"{_encoded({'alg': 'none', 'typ': 'JWT'})}.{_encoded(claims)}."


def by_public_key(provider: IdentityProvider, claims: dict[str, Any]) -> str:
    """An HMAC with a public secret."""
    pem = provider.key.as_pem(private=False)
    signed = f"{_encoded({'alg': 'HS256', 'kid': provider.key.kid})}.{_encoded(claims)}"
    digest = hmac.new(pem, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def by_unknown_key(provider: IdentityProvider, claims: dict[str, Any]) -> str:
    """With the attacker's key under the name of the right one, included in the header."""
    key = RSAKey.generate_key(2048)
    private = serialization.load_pem_private_key(key.as_pem(private=True), None)
    headers = {"kid": provider.key.kid, "jwk": key.as_dict(private=False)}
    return jwt.encode(claims, private, "RS256", headers=headers)  # type: ignore[arg-type]


def by_client_secret(_provider: IdentityProvider, claims: dict[str, Any]) -> str:
    return jwt.encode(claims, "a secret of the tests, filled up", "HS256")


@pytest.mark.parametrize("signed", [unsigned, by_public_key, by_unknown_key, by_client_secret])
def test_id_token_with_invalid_signature_is_refused(
    service: Service, provider: IdentityProvider, signed: Callable[[IdentityProvider, dict[str, Any]], str]
) -> None:
    with provider.bent(sign=lambda claims: signed(provider, claims)):
        check_sign_in_refused(service, "no key of the issuer verifies it")


def test_valid_id_token_is_accepted(service: Service, provider: IdentityProvider) -> None:
    """The unmodified token, as a control of the tests above."""
    with provider.bent(claims=with_claims(aud=[CLIENT], azp=CLIENT), info=dict(ALMA)):
        assert sign_in(service, "/signin-honest").status_code == 200


# --- where the browser goes ----------------------------------------------------------------------------------------


def test_request_values_are_not_inserted_into_the_sign_in_script(service: Service) -> None:
    response = service.get("/signin-honest?return_to=</script><script>alert(1)</script>&x=<!--")
    assert "alert" not in response.text
    assert response.headers.get_list("content-security-policy") == ["default-src 'self'", "frame-ancestors 'none'"]
    assert options_of(response.text)["returnTo"] == "/"


def test_sign_in_page_complies_with_a_policy_without_inline_scripts(service: Service) -> None:
    page = service.get("/signin-honest").text
    assert '</script><script src="/signin-honest/script.js"></script>' in page
    script = service.get("/signin-honest/script.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert 'const options = JSON.parse(document.getElementById("external-sign-in").textContent);' in script.text
