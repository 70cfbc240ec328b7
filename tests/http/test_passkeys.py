"""Passkeys, with the SQL of the manual's page and an authenticator in software (passkeys-1 to passkeys-10)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cbor2
import httpx
import pytest

from tests.docs.pages import FOLDER, read_page
from tests.harness.database import Database
from tests.harness.passkeys import (
    ATTESTED,
    BACKED_UP,
    EXTENDED,
    PRESENT,
    VERIFIED,
    Authenticator,
    base64url,
    from_base64url,
)
from tests.harness.service import Service
from tests.http.conftest import Serve

PAGE = read_page(FOLDER / "passkeys.md")
ORIGIN, HOST = "https://shop.example", "shop.example"
PROBLEM = "application/problem+json"
API = "/api/passkey/"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    settings = {
        **PAGE.settings,
        "Service:RequiresAuthorization": None,
        "Auth:BearerTokenAuth": "true",
        "Auth:ApiKey:Enabled": "true",
        "Auth:ApiKey:Command": "select 1 as user_id where $1 = encode(sha256('key'), 'hex')",
    }
    return serve(database, PAGE.sql, settings, workers=2)


@pytest.fixture
def caller(service: Service) -> Iterator[httpx.Client]:
    """A browser: it keeps cookies, and says where its pages come from."""
    with service.new_client(headers={"origin": ORIGIN}) as client:
        yield client


_names = iter(range(1_000_000))


def new_name() -> str:
    return f"user-{next(_names)}"


def post(client: httpx.Client, path: str, content: Any = None) -> httpx.Response:
    return client.post(API + path, json=content) if content is not None else client.post(API + path)


def options_of(client: httpx.Client, path: str, content: Any) -> dict[str, Any]:
    response = post(client, path + "/options", content)
    assert response.status_code == 200, response.text
    members: dict[str, Any] = response.json()
    return members


def registered(client: httpx.Client, name: str | None = None, **details: Any) -> Authenticator:
    authenticator = Authenticator(ORIGIN, HOST, **details)
    response = post(
        client, "register", authenticator.made(options_of(client, "register", {"name": name or new_name()}))
    )
    assert response.json() == {"success": True, "credentialId": base64url(authenticator.id)}
    return authenticator


def signed_in(client: httpx.Client, authenticator: Authenticator) -> httpx.Response:
    return post(client, "login", authenticator.signed(options_of(client, "login", {})))


def refusal(response: httpx.Response) -> tuple[int, str, str]:
    assert response.headers["content-type"] == PROBLEM, response.text
    members = response.json()
    assert list(members) == ["type", "title", "status"]
    assert members["status"] == response.status_code
    return members["status"], members["type"], members["title"]


# --- what is offered -----------------------------------------------------------------------------------------------


def test_options_of_a_registration_in_their_order(caller: httpx.Client) -> None:
    name = new_name()
    members = options_of(caller, "register", {"name": name, "displayName": "N"})
    assert list(members) == [
        "challenge", "challengeId", "rp", "user", "pubKeyCredParams", "timeout", "attestation",
        "authenticatorSelection", "userContext",
    ]  # fmt: skip
    assert members["rp"] == {"id": HOST, "name": "The shop"}
    assert members["user"] == {"id": members["userContext"]["userHandle"], "name": name, "displayName": "N"}
    assert members["pubKeyCredParams"] == [{"type": "public-key", "alg": -7}, {"type": "public-key", "alg": -257}]
    assert (members["timeout"], members["attestation"]) == (300_000, "none")
    assert members["authenticatorSelection"] == {"residentKey": "required", "userVerification": "required"}
    assert len(from_base64url(members["challenge"])) == 32


def test_options_of_a_login_in_their_order(caller: httpx.Client) -> None:
    assert list(options_of(caller, "login", {})) == ["challenge", "challengeId", "rpId", "timeout", "userVerification"]
    name = new_name()
    authenticator = registered(caller, name)
    members = options_of(caller, "login", {"userName": name})
    assert list(members)[-1] == "allowCredentials"
    assert members["allowCredentials"][0]["id"] == base64url(authenticator.id)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"userName": 1}', b'{"userName": null}'])
def test_login_options_take_any_body(caller: httpx.Client, body: bytes) -> None:
    response = caller.post(API + "login/options", content=body)
    assert (response.status_code, response.json()["rpId"]) == (200, HOST)
    assert response.headers["cache-control"] == "no-store"


def test_unknown_and_known_user_names_get_equal_responses(caller: httpx.Client) -> None:
    first, again = (options_of(caller, "login", {"userName": "unknown user"}) for _ in range(2))
    assert first["allowCredentials"] == again["allowCredentials"]
    name = new_name()
    registered(caller, name)
    assert list(options_of(caller, "login", {"userName": name})) == list(first)


def test_other_methods_than_post_are_refused(caller: httpx.Client) -> None:
    response = caller.get(API + "login")
    assert (response.status_code, response.headers["allow"]) == (405, "OPTIONS, POST")


@pytest.mark.parametrize("path", ["add/options", "add"])
def test_api_keys_cannot_add_passkeys(caller: httpx.Client, path: str) -> None:
    """A passkey would still be valid when the key has ended."""
    response = caller.post(API + path, json={}, headers={"x-api-key": "key"})
    assert (response.status_code, response.headers["content-type"]) == (403, PROBLEM)
    assert response.json()["detail"] == "an API key cannot set up credentials of its owner; sign in"


# --- the ways through ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [-7, -35, -36, -257, -37])
def test_register_and_sign_in(caller: httpx.Client, database: Database, algorithm: int) -> None:
    name = new_name()
    authenticator = registered(caller, name, algorithm=algorithm)
    assert caller.get("/who").status_code == 401, "a registration does not sign in"
    response = signed_in(caller, authenticator)
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["set-cookie"].startswith(".AspNetCore.Cookies=")
    assert caller.get("/who").json()["userName"] == name
    stored = database.fetch(
        "select algorithm, transports, backup_eligible, public_key from passkey where credential_id = %s",
        authenticator.id,
    )
    assert stored == [(algorithm, ["internal"], False, cbor2.dumps(authenticator.public()))]


def test_a_signed_in_user_adds_another_key(caller: httpx.Client) -> None:
    name = new_name()
    first = registered(caller, name)
    signed_in(caller, first)
    members = options_of(caller, "add", {"device": "phone"})
    assert members["excludeCredentials"] == [
        {"type": "public-key", "id": base64url(first.id), "transports": ["internal"]}
    ]
    assert list(members)[-2:] == ["excludeCredentials", "userContext"]
    second = Authenticator(ORIGIN, HOST)
    context = json.dumps(members["userContext"])
    assert post(caller, "add", second.made(members, userContext=context)).json()["success"] is True
    caller.cookies.clear()
    assert signed_in(caller, second).status_code == 200
    assert caller.get("/who").json()["userName"] == name


def test_base64_in_either_alphabet_and_with_padding(caller: httpx.Client) -> None:
    authenticator = registered(caller, id=b"\xfb\xff\xbe" * 5 + b"\xff")
    request = authenticator.signed(options_of(caller, "login", {}))
    request["credentialId"] = request["credentialId"].replace("-", "+").replace("_", "/") + "=="
    assert "+" in request["credentialId"]
    assert "/" in request["credentialId"]
    assert post(caller, "login", request).status_code == 200


def test_signature_counters_must_increase(caller: httpx.Client, database: Database) -> None:
    authenticator = registered(caller, count=3)
    assert signed_in(caller, authenticator.but(count=4)).status_code == 200
    count = "select sign_count from passkey where credential_id = %s"
    assert database.value(count, authenticator.id) == 4
    clone = signed_in(caller, authenticator.but(count=4))
    assert refusal(clone) == (
        401, "assertion_invalid", "Sign count not incremented - possible cloned authenticator"
    )  # fmt: skip
    assert refusal(signed_in(caller, authenticator.but(count=0)))[1] == "assertion_invalid"
    assert database.value(count, authenticator.id) == 4
    assert signed_in(caller, authenticator.but(count=9)).status_code == 200


def test_challenges_are_valid_on_every_worker_and_only_once(service: Service) -> None:
    """Each request on a connection of its own, so that the workers take turns; all at the same time, one succeeds."""
    assert len(service.pids()) == 2

    def ask(path: str, content: Any) -> httpx.Response:
        with service.new_client() as client:
            return post(client, path, content)

    authenticator = Authenticator(ORIGIN, HOST)
    made = authenticator.made(ask("register/options", {"name": new_name()}).json())
    assert ask("register", made).status_code == 200
    with ThreadPoolExecutor(4) as threads:
        for _ in range(4):
            request = authenticator.signed(ask("login/options", {}).json())
            responses = list(threads.map(lambda content: ask("login", content), [request] * 4))
            codes = sorted(response.status_code for response in responses)
            assert codes == [200, 400, 400, 400]


# --- attacks: registrations ----------------------------------------------------------------------------------------

WRONG_POINT = {1: 2, 3: -7, -1: 1, -2: bytes(31) + b"\1", -3: bytes(31) + b"\1"}
GIANT = {1: 3, 3: -257, -1: b"\xff" * 4096, -2: b"\1\0\1"}
WEAK = {1: 3, 3: -257, -1: b"\xff" * 128, -2: b"\1\0\1"}
OTHER_CURVE = {**Authenticator(ORIGIN, HOST, algorithm=-35).public(), 3: -7}


@pytest.mark.parametrize(
    ("wrong", "title"),
    [
        ({"origin": "https://evil.example"}, "Origin mismatch: https://evil.example"),
        ({"origin": "http://shop.example"}, "Origin mismatch: http://shop.example"),
        ({"origin": "https://shop.example.evil.example"}, "Origin mismatch: https://shop.example.evil.example"),
        ({"relying_party": "evil.example"}, "RP ID hash mismatch"),
        ({"flags": VERIFIED}, "User not present"),
        ({"flags": PRESENT}, "User verification required but not performed"),
        ({"flags": PRESENT | VERIFIED | BACKED_UP}, "Backed up without backup eligibility"),
        ({"kind": "webauthn.get"}, "Invalid type: expected webauthn.create"),
        ({"cross_origin": True}, "Cross-origin use is not allowed"),
        ({"cose": {1: 1, 3: -8, -1: 6, -2: bytes(32)}}, "Unsupported algorithm: -8"),
        ({"cose": WRONG_POINT}, "Invalid public key"),
        ({"cose": {1: 2, 3: -257, -1: 1, -2: b"\1", -3: b"\1"}}, "Invalid public key"),
        ({"cose": GIANT}, "The key does not fit the algorithm -257"),
        ({"cose": WEAK}, "The key does not fit the algorithm -257"),
        ({"cose": OTHER_CURVE}, "The key does not fit the algorithm -7"),
        ({"cose": {1: 2}}, "Invalid public key"),
        ({"id": bytes(1024)}, "Invalid credential id"),
        ({"id": b""}, "Missing required fields"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_registrations_with_unacceptable_attestations_store_no_key(
    caller: httpx.Client, database: Database, wrong: dict[str, Any], title: str
) -> None:
    name = new_name()
    authenticator = Authenticator(ORIGIN, HOST).but(**wrong)
    response = post(caller, "register", authenticator.made(options_of(caller, "register", {"name": name})))
    code = "invalid_request" if title == "Missing required fields" else "attestation_invalid"
    assert refusal(response) == (400, code, title)
    assert database.value("select count(*) from member where name = %s", name) == 0


def test_origins_are_compared_without_case(caller: httpx.Client) -> None:
    authenticator = Authenticator("HTTPS://Shop.Example", HOST)
    assert post(caller, "register", authenticator.made(options_of(caller, "register", {"name": new_name()}))).is_success


@pytest.mark.parametrize(
    ("attestation", "title"),
    [
        (b"", "Missing required fields"),
        (b"\xff", "Invalid attestation object"),
        (b"\x81" * 40_000, "Invalid attestation object"),
        (b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff", "Invalid attestation object"),
        (cbor2.dumps([]), "Invalid attestation object"),
        (cbor2.dumps({"fmt": "none", "authData": bytes(36)}), "Invalid attestation object"),
        (cbor2.dumps({"fmt": "none", "authData": "text"}), "Invalid attestation object"),
    ],
    ids=["empty", "no-cbor", "deep", "giant-length", "array", "short", "text"],
)
def test_malformed_attestations_are_refused(caller: httpx.Client, attestation: bytes, title: str) -> None:
    request = Authenticator(ORIGIN, HOST).made(options_of(caller, "register", {"name": new_name()}))
    response = post(caller, "register", {**request, "attestationObject": base64url(attestation)})
    assert refusal(response)[2] == title


@pytest.mark.parametrize("place", ["attestation", "key", "extensions"])
def test_tags_in_attestations_are_refused(caller: httpx.Client, place: str) -> None:
    """The library compiles patterns, for example: 10 kB of one took three seconds of the worker."""
    authenticator = Authenticator(ORIGIN, HOST)
    tagged = {"pattern": cbor2.CBORTag(35, "[a-z]")}
    if place == "key":
        authenticator = authenticator.but(cose={**authenticator.public(), **tagged})
    request = authenticator.made(options_of(caller, "register", {"name": new_name()}))
    members = cbor2.loads(from_base64url(request["attestationObject"]))
    if place == "extensions":
        data = bytearray(members["authData"] + cbor2.dumps(tagged))
        data[32] |= EXTENDED
        members["authData"] = bytes(data)
    content = cbor2.dumps(members | (tagged if place == "attestation" else {}))
    response = post(caller, "register", {**request, "attestationObject": base64url(content)})
    assert refusal(response) == (400, "attestation_invalid", "Invalid attestation object")


def test_tags_in_data_of_a_login_are_refused(caller: httpx.Client) -> None:
    authenticator = registered(caller)
    tagged = authenticator.but(extensions={"pattern": cbor2.CBORTag(35, "[a-z]")})
    assert refusal(signed_in(caller, tagged)) == (401, "assertion_invalid", "Invalid authenticator data")
    assert signed_in(caller, authenticator.but(extensions={"credProps": {"rk": True}})).is_success


def test_an_attestation_without_attested_data_is_refused(caller: httpx.Client) -> None:
    authenticator = Authenticator(ORIGIN, HOST)
    request = authenticator.made(options_of(caller, "register", {"name": new_name()}))
    data = authenticator._data(PRESENT | VERIFIED)
    plain = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
    response = post(caller, "register", {**request, "attestationObject": base64url(plain)})
    assert refusal(response)[2] == "Attested credential data missing"
    cut = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": authenticator._data(PRESENT | ATTESTED) + bytes(20)})
    response = post(caller, "register", {**request, "attestationObject": base64url(cut)})
    assert refusal(response)[2] == "Invalid attestation object"


def test_an_oversized_attestation_is_not_read(caller: httpx.Client) -> None:
    response = caller.post(API + "register", content=b'{"attestationObject":"' + b"A" * 70_000 + b'"}')
    assert response.status_code == 413


def test_a_credential_id_that_differs_from_the_attestation_is_refused(caller: httpx.Client) -> None:
    request = Authenticator(ORIGIN, HOST).made(options_of(caller, "register", {"name": new_name()}))
    response = post(caller, "register", {**request, "credentialId": base64url(b"another")})
    assert refusal(response) == (400, "attestation_invalid", "Credential id mismatch")


def test_a_challenge_of_another_registration_is_refused(caller: httpx.Client) -> None:
    item, other = (options_of(caller, "register", {"name": new_name()}) for _ in range(2))
    request = Authenticator(ORIGIN, HOST).made(other)
    response = post(
        caller, "register", {**request, "challengeId": item["challengeId"], "userContext": item["userContext"]}
    )
    assert refusal(response) == (400, "attestation_invalid", "Challenge mismatch")


def test_registrations_are_not_replayed(caller: httpx.Client) -> None:
    request = Authenticator(ORIGIN, HOST).made(options_of(caller, "register", {"name": new_name()}))
    assert post(caller, "register", request).is_success
    assert refusal(post(caller, "register", request)) == (400, "challenge_invalid", "Challenge not found")


def test_a_user_context_cannot_be_changed(caller: httpx.Client, database: Database) -> None:
    """The key of a signed-in user must not be stored for another user."""
    victim = new_name()
    registered(caller, victim)
    victims_id = database.value("select id from member where name = %s", victim)
    signed_in(caller, registered(caller))
    members = options_of(caller, "add", None or {})
    forged = {**members["userContext"], "user_id": victims_id}
    mismatch = (400, "challenge_invalid", "User context mismatch")
    own = Authenticator(ORIGIN, HOST)
    assert refusal(post(caller, "add", own.made(members, userContext=forged))) == mismatch
    assert refusal(post(caller, "add", own.made(members, userContext=json.dumps(forged)))) == mismatch
    no_json = (400, "invalid_request", "Invalid JSON in request body")
    assert refusal(post(caller, "add", own.made(members, userContext="no json"))) == no_json
    # The challenge of a new user carries a context that the client chooses.
    strange = options_of(caller, "register", {"name": new_name()})
    response = post(caller, "add", own.made(strange, userContext=forged))
    assert refusal(response) == (400, "challenge_invalid", "Challenge not found")
    for number in (members["challengeId"].upper(), f" {members['challengeId']}", f"{{{members['challengeId']}}}"):
        response = post(caller, "add", own.made(members, userContext={"name": victim}, challengeId=number))
        assert refusal(response) == (400, "challenge_invalid", "Challenge not found"), number
    keys = "select count(*) from passkey where member_id = %s"
    assert database.value(keys, victims_id) == 1
    assert post(caller, "add", own.made(members)).is_success


def test_a_key_belongs_to_the_issued_account_beyond_the_numbers_of_scripts(
    database: Database, caller: httpx.Client
) -> None:
    """Two accounts whose ids are the same double: what the client brings back, rounded or not, names none of them."""
    own, others = 9_007_199_254_740_993, 9_007_199_254_740_992
    database.execute(f"alter table member alter column id restart with {others}")
    registered(caller)
    authenticator = registered(caller)
    signed_in(caller, authenticator)
    members = options_of(caller, "add", {})
    assert str(members["userContext"]["user_id"]) == str(own)
    rounded = {**members["userContext"], "user_id": others}
    response = post(caller, "add", Authenticator(ORIGIN, HOST).made(members, userContext=rounded))
    assert response.is_success, response.text
    keys = "select count(*) from passkey where member_id = %s"
    assert (database.value(keys, own), database.value(keys, others)) == (2, 1)


def test_a_challenge_of_another_user_is_refused(service: Service, caller: httpx.Client) -> None:
    signed_in(caller, registered(caller))
    members = options_of(caller, "add", {})
    with service.new_client() as other:
        signed_in(other, registered(other))
        response = post(other, "add", Authenticator(ORIGIN, HOST).made(members))
    assert refusal(response) == (400, "challenge_invalid", "Challenge not found")


def test_a_challenge_for_an_additional_key_cannot_register_a_user(caller: httpx.Client) -> None:
    signed_in(caller, registered(caller))
    response = post(caller, "register", Authenticator(ORIGIN, HOST).made(options_of(caller, "add", {})))
    assert refusal(response) == (400, "challenge_invalid", "Challenge not found")


def test_a_user_context_of_another_user_is_refused(caller: httpx.Client, database: Database) -> None:
    """A command that lets the body choose the account gives no keys of others."""
    signed_in(caller, registered(caller))
    written = database.value("select pg_get_functiondef('passkey_challenge_add_existing'::regproc)")
    assert "'user_id', m.id" in written
    try:
        database.execute(written.replace("'user_id', m.id", "'user_id', m.id + 1"))
        members = options_of(caller, "add", {})
    finally:
        database.execute(written)
    response = post(caller, "add", Authenticator(ORIGIN, HOST).made(members))
    assert refusal(response) == (400, "challenge_invalid", "User context mismatch")


def test_a_registration_refused_by_sql_stores_nothing(caller: httpx.Client) -> None:
    taken = registered(caller)
    again = Authenticator(ORIGIN, HOST, id=taken.id)
    request = again.made(options_of(caller, "register", {"name": new_name()}))
    assert post(caller, "register", request).status_code == 409
    members = options_of(caller, "register", {"name": new_name()})
    wrong = Authenticator(ORIGIN, HOST).but(flags=PRESENT).made(members)
    assert refusal(post(caller, "register", wrong))[1] == "attestation_invalid"
    right = Authenticator(ORIGIN, HOST).made(members)
    assert post(caller, "register", right).is_success, "the challenge is still good"


# --- attacks: logins -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "title"),
    [
        ({"origin": "https://evil.example"}, "Origin mismatch: https://evil.example"),
        ({"relying_party": "evil.example"}, "RP ID hash mismatch"),
        ({"flags": VERIFIED}, "User not present"),
        ({"flags": PRESENT}, "User verification required but not performed"),
        ({"kind": "webauthn.create"}, "Invalid type: expected webauthn.get"),
        ({"cross_origin": True}, "Cross-origin use is not allowed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_signatures_are_refused(caller: httpx.Client, wrong: dict[str, Any], title: str) -> None:
    authenticator = registered(caller)
    response = signed_in(caller, authenticator.but(**wrong))
    assert refusal(response) == (401, "assertion_invalid", title)
    assert "set-cookie" not in response.headers


def test_a_signature_by_another_key_is_refused(caller: httpx.Client) -> None:
    mine, yours = registered(caller), registered(caller)
    forged = mine.signed(options_of(caller, "login", {}), credentialId=base64url(yours.id), userHandle=None)
    assert refusal(post(caller, "login", forged)) == (401, "assertion_invalid", "Invalid signature")
    request = mine.signed(options_of(caller, "login", {}), signature=base64url(b"none"))
    assert refusal(post(caller, "login", request)) == (401, "assertion_invalid", "Invalid signature")


def test_malformed_authenticator_and_client_data_is_refused(caller: httpx.Client) -> None:
    authenticator = registered(caller)
    for name, content, title in (
        ("authenticatorData", bytes(36), "Authenticator data too short"),
        ("clientDataJSON", b"[]", "Invalid clientDataJSON"),
        ("clientDataJSON", b"\xff", "Invalid clientDataJSON"),
        ("clientDataJSON", b'{"type":1,"challenge":2,"origin":3}', "Invalid clientDataJSON"),
    ):
        request = authenticator.signed(options_of(caller, "login", {}), **{name: base64url(content)})
        assert refusal(post(caller, "login", request)) == (401, "assertion_invalid", title)


@pytest.mark.parametrize("change", [{}, {"origin": "https://evil.example"}, {"flags": PRESENT}], ids=str)
def test_unknown_and_known_credentials_get_equal_responses(caller: httpx.Client, change: dict[str, Any]) -> None:
    """Otherwise, the `allowCredentials` of a name would show whether there is an account."""
    name = new_name()
    registered(caller, name)
    options = [options_of(caller, "login", {"userName": user}) for user in (name, "unknown " + name)]
    assert [[sorted(item) for item in each["allowCredentials"]] for each in options] == [[["id", "type"]]] * 2
    forger = Authenticator(ORIGIN, HOST).but(**change)
    known, unknown = (
        refusal(post(caller, "login", forger.signed(each, credentialId=each["allowCredentials"][0]["id"])))
        for each in options
    )
    assert known == unknown
    assert known[:2] == (401, "assertion_invalid")


def test_a_credential_of_a_user_other_than_the_requested_one_is_refused(caller: httpx.Client) -> None:
    name = new_name()
    registered(caller, name)
    foreign = registered(caller)
    response = post(caller, "login", foreign.signed(options_of(caller, "login", {"userName": name})))
    assert refusal(response) == (401, "assertion_invalid", "Credential not allowed")


def test_the_user_handle_of_another_user_is_refused(caller: httpx.Client) -> None:
    authenticator = registered(caller)
    request = authenticator.signed(options_of(caller, "login", {}), userHandle=base64url(b"another user"))
    assert refusal(post(caller, "login", request)) == (401, "assertion_invalid", "User handle mismatch")


def test_logins_are_not_replayed(caller: httpx.Client, database: Database) -> None:
    authenticator = registered(caller)
    request = authenticator.signed(options_of(caller, "login", {}))
    assert post(caller, "login", request).is_success
    gone = (400, "challenge_invalid", "Challenge not found")
    assert refusal(post(caller, "login", request)) == gone
    late = authenticator.signed(options_of(caller, "login", {}))
    database.execute("update passkey_challenge set expires_at = now()")
    assert refusal(post(caller, "login", late)) == gone
    registration = options_of(caller, "register", {"name": new_name()})
    assert refusal(post(caller, "login", authenticator.signed(registration))) == gone


@pytest.mark.slow
@pytest.mark.parametrize("issued_only", [False, True])
def test_challenges_issued_by_other_hosts_are_accepted_only_if_configured(
    own_database: Database, serve_once: Serve, issued_only: bool
) -> None:
    settings = {"Auth:PasskeyAuth:IssuedChallengesOnly": str(issued_only), "Service:RequiresAuthorization": None}
    service = serve_once(own_database, PAGE.sql, {**PAGE.settings, **settings})
    with service.new_client(headers={"origin": ORIGIN}) as caller:
        authenticator = registered(caller)
        ((number, challenge),) = own_database.fetch(
            "insert into passkey_challenge (operation) values ('authentication') returning id, challenge"
        )
        options = {"challengeId": str(number), "challenge": base64url(challenge)}
        response = post(caller, "login", authenticator.signed(options))
    if issued_only:
        assert refusal(response) == (400, "challenge_invalid", "Challenge not found")
    else:
        assert response.is_success


def test_pages_of_other_sites_cannot_sign_in(caller: httpx.Client) -> None:
    authenticator = registered(caller)
    request = authenticator.signed(options_of(caller, "login", {}))
    foreign = caller.post(API + "login", json=request, headers={"origin": "https://evil.example"})
    assert foreign.status_code == 403
    assert post(caller, "login", request).is_success


# --- requests that are none ----------------------------------------------------------------------------------------

REQUESTS = [
    ("register/options", b"", "Request body is required for standalone registration"),
    ("register/options", b"{", "Invalid JSON in request body"),
    ("register/options", b"[]", "Invalid JSON in request body"),
    ("register", b"", "Invalid request body"),
    ("register", b"[1]", "Invalid request body"),
    ("register", b"{}", "Missing required fields"),
    ("login", b"nonsense", "Invalid request body"),
    ("login", b'{"challengeId": "1"}', "Missing required fields"),
    ("login", b'{"challengeId": [], "credentialId": "A", "authenticatorData": "A", "clientDataJSON": "A", '
              b'"signature": "A"}', "Missing required fields|Invalid request body"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "title"), REQUESTS)
def test_malformed_request_bodies_are_refused(caller: httpx.Client, path: str, body: bytes, title: str) -> None:
    status, code, message = refusal(caller.post(API + path, content=body))
    assert (status, code) == (400, "invalid_request")
    assert message in title.split("|")


@pytest.mark.parametrize("body", [None, b"", b" \r\n", b"{}", b"[1]"])
def test_adding_needs_no_body(caller: httpx.Client, body: bytes | None) -> None:
    signed_in(caller, registered(caller))
    assert caller.post(API + "add/options", content=body).status_code == 200


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


DEEP = nested(300)


@pytest.mark.parametrize(("path", "name"), [("register", "analyticsData"), ("register", "userContext"),
                                            ("login", "analyticsData")])  # fmt: skip
@pytest.mark.parametrize("value", ["{nonsense", json.dumps(DEEP), DEEP], ids=["nonsense", "deep text", "deep"])
def test_invalid_json_members_do_not_consume_the_challenge(
    caller: httpx.Client, path: str, name: str, value: Any
) -> None:
    """The challenge stays valid for a correct request."""
    authenticator = registered(caller) if path == "login" else Authenticator(ORIGIN, HOST)
    options = options_of(caller, path, {} if path == "login" else {"name": new_name()})
    request = authenticator.signed(options) if path == "login" else authenticator.made(options)
    assert refusal(post(caller, path, {**request, name: value})) == (
        400,
        "invalid_request",
        "Invalid JSON in request body",
    )
    assert post(caller, path, request).status_code == 200


def test_texts_with_nul_characters_are_refused(caller: httpx.Client) -> None:
    """PostgreSQL cannot store them. The challenge stays valid for a correct request."""
    refused = (400, "invalid_request", "A value holds a NUL character")
    assert refusal(post(caller, "login/options", {"userName": "ann\0"})) == refused
    request = Authenticator(ORIGIN, HOST).made(options_of(caller, "register", {"name": new_name()}))
    assert refusal(post(caller, "register", {**request, "transports": ["inter\0nal"]})) == refused
    assert post(caller, "register", request).status_code == 200


@pytest.mark.parametrize("name", ["credentialId", "authenticatorData", "clientDataJSON", "signature", "userHandle"])
@pytest.mark.parametrize("value", ["a b", "A", 7])
def test_invalid_base64url_is_refused(caller: httpx.Client, name: str, value: object) -> None:
    request = dict.fromkeys(("credentialId", "authenticatorData", "clientDataJSON", "signature"), "AAAA")
    response = post(caller, "login", {"challengeId": "x", **request, name: value})
    assert refusal(response) == (400, "invalid_request", "Invalid base64url encoding")


@pytest.mark.parametrize("number", ["x", "7", 7, "0b5f3c52-7e0c-4e0a-9a51-3a2f6a3a8f10", "9" * 30, "'; select 1"])
def test_unknown_challenges_are_refused(caller: httpx.Client, number: object) -> None:
    request = dict.fromkeys(("credentialId", "authenticatorData", "clientDataJSON", "signature"), "AAAA")
    response = post(caller, "login", {"challengeId": number, **request})
    assert refusal(response) == (400, "challenge_invalid", "Challenge not found")


def test_adding_a_key_requires_a_signed_in_user(caller: httpx.Client) -> None:
    for path in ("add/options", "add"):
        assert refusal(post(caller, path, {})) == (
            401, "authentication_required", "Authentication required to add a passkey"
        )  # fmt: skip
