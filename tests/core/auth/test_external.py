"""Profiles, the way to a provider, the page, and what an ID token must say (external-sign-in-1 to
external-sign-in-11)."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.auth.commands import number_placeholders
from rowcall.core.auth.external.authorization import authorization_url, code_challenge, with_query
from rowcall.core.auth.external.options import ExternalOptions, Provider
from rowcall.core.auth.external.page import sign_in_page
from rowcall.core.auth.external.profile import email_of, name_of, with_address
from rowcall.core.auth.external.provider_tokens import fault_of

PROVIDER = Provider("Acme", "/signin-acme", "client", auth_url="https://id.example/a?c={0}&r={1}&s={2}&scope=a b")


@pytest.mark.parametrize(
    ("info", "email"),
    [
        ({"email": "a@x"}, "a@x"),
        ({"email": None, "userPrincipalName": "b@x"}, "b@x"),
        ({"email": "", "userPrincipalName": "b@x"}, "b@x"),
        ({"email": "a@x", "userPrincipalName": "b@x"}, "a@x"),
        ({"elements": [{"handle~": {"emailAddress": "c@x"}}]}, "c@x"),
        ({"elements": []}, None),
        ({"elements": [{"handle~": "c@x"}]}, None),
        ({"elements": "none"}, None),
        ({"email": ["a@x"]}, None),
        ([{"email": "a@x"}, {"email": "b@x", "primary": True}], "b@x"),
        ([{"email": "a@x", "verified": False}, {"email": "b@x", "verified": True}], "b@x"),
        ([{"email": "a@x", "primary": True, "verified": False}], None),
        ([], None),
        ("a@x", None),
        (None, None),
    ],
)
def test_emails_are_found_in_profiles_of_providers(info: object, email: str | None) -> None:
    assert email_of(info) == email


@pytest.mark.parametrize(
    ("info", "name"),
    [
        ({"name": "Alma"}, "Alma"),
        ({"localizedFirstName": "Alma", "localizedLastName": "Dahl", "name": "x"}, "Alma Dahl"),
        ({"localizedLastName": "Dahl"}, "Dahl"),
        ({"localizedFirstName": "Alma", "name": "A. Dahl"}, "A. Dahl"),
        ({"name": None}, None),
        ({"name": ""}, None),
        ({}, None),
    ],
)
def test_names_are_found_in_profiles_of_providers(info: dict[str, object], name: str | None) -> None:
    assert name_of(info) == name


@pytest.mark.parametrize(
    ("given_", "key", "address", "kept"),
    [
        ('{"a":1}', "ip", "1.2.3.4", '{"a":1,"ip":"1.2.3.4"}'),
        ('{"ip":"forged"}', "ip", "1.2.3.4", '{"ip":"1.2.3.4"}'),
        ('{"a":1}', "", "1.2.3.4", '{"a":1}'),
        ('{"a":1}', "ip", None, '{"a":1}'),
        ("[]", "ip", "1.2.3.4", None),
        ("{", "ip", "1.2.3.4", None),
        ('{"a":' + "[" * 300 + "]" * 300 + "}", "ip", "1.2.3.4", None),
        ("", "ip", "1.2.3.4", None),
        (None, "ip", "1.2.3.4", None),
    ],
)
def test_the_client_address_is_added_to_analytics(
    given_: str | None, key: str, address: str | None, kept: str | None
) -> None:
    assert with_address(given_, key, address) == kept


def test_the_authorization_url_follows_the_template_of_the_provider() -> None:
    url = authorization_url(PROVIDER, None, "https://me.example/signin-acme?x=1", "st&te", None, None)
    assert url == "https://id.example/a?c=client&r=https%3A%2F%2Fme.example%2Fsignin-acme%3Fx%3D1&s=st%26te&scope=a%20b"


def test_the_authorization_url_of_an_issuer_has_the_parameters_of_openid_connect() -> None:
    provider = Provider("Id", "/signin-id", "me", issuer="https://id.example", scope="openid email")
    url = authorization_url(provider, "https://id.example/auth?tenant=7", "https://me/cb", "s", "verifier", "n")
    assert url == (
        "https://id.example/auth?tenant=7&response_type=code&client_id=me&redirect_uri=https%3A%2F%2Fme%2Fcb"
        "&scope=openid%20email&state=s"
        f"&code_challenge={code_challenge('verifier')}&code_challenge_method=S256&nonce=n"
    )


def test_the_code_challenge_equals_the_example_of_rfc_7636() -> None:
    """Its appendix B."""
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert code_challenge(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("https://x", "https://x?a=1"),
        ("https://x?", "https://x?a=1"),
        ("https://x?b=2", "https://x?b=2&a=1"),
        ("https://x?b=2&", "https://x?b=2&a=1"),
        ("https://x#part", "https://x?a=1#part"),
    ],
)
def test_parameters_are_added_to_a_url(url: str, wanted: str) -> None:
    assert with_query(url, {"a": "1"}) == wanted
    assert with_query(url, {}) == url


def _message_of(page: bytes) -> object:
    match = re.search(r"const options = (\{.*\});\n", page.decode())
    assert match is not None
    return json.loads(match[1])


@given(st.text(min_size=1), st.text(), st.text())
def test_values_cannot_end_the_script_of_the_sign_in_page(key: str, url: str, state: str) -> None:
    """Whatever the texts hold, the script ends where it ends and reads what was meant."""
    provider = Provider(key, "/signin", "client")
    page = sign_in_page(ExternalOptions((provider,)), provider, url, state)
    result = _message_of(page)
    assert isinstance(result, dict)
    assert (result["provider"], result["authUrl"], result["state"]) == (key, url, state)
    assert page.count(b"</script>") == 1
    assert page.count(b"<script>") == 1
    assert b"<!--" not in page


@given(st.text(min_size=1), st.text())
def test_values_cannot_end_the_json_of_the_sign_in_page(key: str, url: str) -> None:
    provider = Provider(key, "/signin", "client")
    page = sign_in_page(ExternalOptions((provider,)), provider, url, "s", "/signin/script.js")
    match = re.search(
        r'<script type="application/json" id="external-sign-in">(.*?)</script><script src=', page.decode()
    )
    assert match is not None
    body = json.loads(match[1])
    assert (body["provider"], body["authUrl"]) == (key, url)
    assert page.count(b"</script>") == 2


def test_a_custom_sign_in_page_is_used() -> None:
    options = ExternalOptions((PROVIDER,), template="<p>{0}, {0} {2} {{x}}</p>{1}", analytics="{ a: 1 }")
    page = sign_in_page(options, Provider("A<b", "/s", "c"), None, None).decode()
    assert page.startswith("<p>A&lt;b, A&lt;b {2} {{x}}</p><script>")
    assert "const analytics = ({ a: 1 });" in page
    assert "const analytics = null;" in sign_in_page(ExternalOptions((PROVIDER,)), PROVIDER, None, None).decode()


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({}, None),
        ({"aud": ["client"]}, None),
        ({"aud": ["client", "other"], "azp": "client"}, None),
        ({"aud": ["client", "other"]}, "several audiences"),
        ({"azp": "other"}, "another client"),
        ({"azp": 7}, "another client"),
        ({"sub": ""}, "who it is about"),
        ({"sub": 7}, "who it is about"),
        ({"nonce": "other"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"nonce": "ü"}, "nonce"),
        ({"at_hash": "77QmUPtjPfzWtF2AnpK9RQ"}, None),
        ({"at_hash": "77QmUPtjPfzWtF2AnpK9RA"}, "access token"),
        ({"at_hash": 7}, "access token"),
    ],
)
def test_an_id_token_with_invalid_claims_is_refused(changes: dict[str, object], fault: str | None) -> None:
    """The access token and its digest are those of OpenID Connect Core, A.3."""
    claims = {"aud": "client", "sub": "248289761001", "nonce": "n", **changes}
    result = fault_of(PROVIDER, claims, "n", "RS256", "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y")
    assert (result is None) if fault is None else (fault in str(result))


def test_parameters_of_a_command_without_a_type_are_text() -> None:
    """json, jsonb and text parameters all take them (external-sign-in-6)."""
    assert number_placeholders("f($1,$4,$2)", {4: ""}) == ("f($1::text,$2,$3::text)", (1, 4, 2))
