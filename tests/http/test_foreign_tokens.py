"""Tokens of other issuers: a public key or a JWKS verifies them, never their own content (RFC 7517, RFC 8725)."""

from __future__ import annotations

import functools
import http.server
import json
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import SECRET, bearer, member_sql, tokens

pytestmark = pytest.mark.attack

ISSUER, AUDIENCE = "https://id.example", "shop"
LEFT_OUT = "left out"
UNKNOWN_KEY = "unknown"

PrivateKey = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@functools.cache
def signer(name: str) -> PrivateKey:
    """Return the key of the issuer for an algorithm, or that of another issuer."""
    if name == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    if name == "ES384":
        return ec.generate_private_key(ec.SECP384R1())
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(key: PrivateKey) -> bytes:
    """Return the PEM of the public key."""
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(encoding, form)


def private_pem(key: PrivateKey) -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())


def token(key: PrivateKey | str, algorithm: str, name: str | None = None, **changes: object) -> str:
    now = int(time.time())
    made_for = {"iss": ISSUER, "aud": AUDIENCE, "iat": now, "exp": now + 60}
    payload = {"user_id": "41", "user_name": "kiri", "user_roles": "boss", **made_for, **changes}
    payload = {name: value for name, value in payload.items() if value != LEFT_OUT}
    return jwt.encode(payload, key, algorithm, headers={} if name is None else {"kid": name})


class Issuer(http.server.ThreadingHTTPServer):
    """Publishes keys like an identity provider."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.keys: list[dict[str, object]] = []
        self.asked = 0
        self.responds = threading.Event()
        self.responds.set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def publish(self, algorithm: str, name: str) -> None:
        made = jwt.get_algorithm_by_name(algorithm).to_jwk(signer(algorithm).public_key(), as_dict=True)
        self.keys.append({**made, "kid": name, "use": "sig", "alg": algorithm})


class _Answer(http.server.BaseHTTPRequestHandler):
    server: Issuer

    def do_GET(self) -> None:
        self.server.asked += 1
        self.server.responds.wait()
        body = json.dumps({"keys": self.server.keys}).encode()
        if self.path == "/large":
            body += b" " * 1_048_577
        self.send_response(302 if self.path == "/moved" else 200)
        self.send_header("Location", "/keys")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    issuer.publish("RS256", "first")
    issuer.publish("ES384", "second")
    # A shared secret must not be in a public document: everyone could sign with it.
    secret = jwt.get_algorithm_by_name("HS256").to_jwk(b"x" * 32, as_dict=True)
    issuer.keys.append({**secret, "kid": "shared", "alg": "HS256"})
    yield issuer
    issuer.shutdown()
    issuer.server_close()


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder: Path = tmp_path_factory.mktemp("keys")
    (folder / "public.pem").write_bytes(pem(signer("EdDSA")))
    (folder / "private.pem").write_bytes(private_pem(signer("RS256")))
    settings = {
        "Auth:JwtAuth": "true",
        "Auth:JwtSecret": SECRET,
        "Auth:JwtIssuer": ISSUER,
        "Auth:JwtAudience": AUDIENCE,
        "Auth:JwtVerificationKeyPath": str(folder / "public.pem"),
        "Auth:JwtKeySetUrl": f"http://127.0.0.1:{issuer.server_port}/keys",
        "Auth:Schemes:own:Type": "Jwt",
        "Auth:Schemes:own:JwtSigningKeyPath": str(folder / "private.pem"),
    }
    return serve(database, member_sql(), settings)


def is_accepted(service: Service, text: str) -> bool:
    response = service.get("/api/for-bosses", headers=bearer(text))
    if response.status_code != 200:
        problem(response, 401)
    return response.status_code == 200


@pytest.mark.parametrize(("algorithm", "name"), [("RS256", "first"), ("ES384", "second"), ("RS256", None)])
def test_token_signed_by_a_jwks_key_is_accepted(service: Service, algorithm: str, name: str | None) -> None:
    assert is_accepted(service, token(signer(algorithm), algorithm, name))


def test_token_signed_by_a_configured_public_key_is_accepted(service: Service) -> None:
    assert is_accepted(service, token(signer("EdDSA"), "EdDSA"))


def test_claims_of_foreign_tokens_are_used(service: Service) -> None:
    text = token(signer("RS256"), "RS256", "first", user_id=41, user_roles=["boss", "x"], depot=None, flag=True)
    body = service.get("/api/who", headers=bearer(text)).json()
    assert body["userId"] == "41"
    assert body["userRoles"] == ["boss", "x"]
    assert body["claims"]["depot"] is None
    assert body["claims"]["flag"] == "true"


@pytest.mark.parametrize("issuer_key", [("RS256", "first"), ("EdDSA", None)])
def test_claims_that_only_the_service_sets_are_dropped(service: Service, issuer_key: tuple[str, str | None]) -> None:
    algorithm, name = issuer_key
    result = {"impersonator_id": "1", "impersonator_name": "root", "impersonation_ends_at": "99999999999"}
    text = token(signer(algorithm), algorithm, name, **result)
    claims = service.get("/api/who", headers=bearer(text)).json()["claims"]
    assert (claims["user_id"], result.keys() & claims.keys()) == ("41", set())


def test_scheme_can_sign_with_a_private_key(service: Service) -> None:
    made = str(tokens(service, "own")["accessToken"])
    assert jwt.get_unverified_header(made)["alg"] == "RS256"
    result = jwt.decode(made, pem(signer("RS256")), algorithms=["RS256"], audience=AUDIENCE)
    assert result["user_name"] == "kiri"
    assert is_accepted(service, made)


@pytest.mark.parametrize("name", ["first", "second", "nowhere", None, "shared"])
def test_a_token_with_an_unknown_key_is_refused(service: Service, name: str | None) -> None:
    assert not is_accepted(service, token(signer(UNKNOWN_KEY), "RS256", name))
    assert not is_accepted(service, token("x" * 32, "HS256", name))


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_public_key_is_not_accepted_as_an_hmac_secret(service: Service, algorithm: str) -> None:
    """Key confusion: an HMAC with the bytes of a public key."""
    for key in (signer("EdDSA"), signer("RS256")):
        for secret in (pem(key), pem(key).strip()):
            assert not is_accepted(service, _hmac(secret, algorithm))


def _hmac(secret: bytes, algorithm: str) -> str:
    """Sign a token that pyjwt refuses to create."""
    import base64
    import hmac

    def part(raw: bytes) -> str:
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    claims = {"user_id": "41", "user_roles": "boss", "exp": int(time.time()) + 60, "iss": ISSUER, "aud": AUDIENCE}
    signed = f"{part(json.dumps({'alg': algorithm, 'kid': 'first'}).encode())}.{part(json.dumps(claims).encode())}"
    return f"{signed}.{part(hmac.digest(secret, signed.encode(), algorithm.replace('HS', 'sha')))}"


def test_expired_or_refresh_foreign_token_is_refused(service: Service) -> None:
    assert not is_accepted(service, token(signer("RS256"), "RS256", "first", exp=int(time.time()) - 301))
    assert not is_accepted(service, token(signer("RS256"), "RS256", "first", token_type="refresh"))


def test_unknown_key_ids_cause_few_jwks_requests(service: Service, issuer: Issuer) -> None:
    before = issuer.asked
    for number in range(20):
        assert not is_accepted(service, token(signer(UNKNOWN_KEY), "RS256", f"made-up-{number}"))
    assert issuer.asked - before <= 2


# --- audience of a token ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "another shop"},
        {"aud": ["another shop"]},
        {"aud": LEFT_OUT},
        {"iss": "https://evil.example"},
        {"iss": LEFT_OUT},
        {"iss": ISSUER + "/"},
    ],
    ids=str,
)
@pytest.mark.parametrize(("algorithm", "name"), [("RS256", "first"), ("EdDSA", None)])
def test_token_for_another_issuer_or_audience_is_refused(
    service: Service, algorithm: str, name: str | None, changes: dict[str, object]
) -> None:
    """The issuer's keys sign for all of its applications: a token for another one is invalid here."""
    assert not is_accepted(service, token(signer(algorithm), algorithm, name, **changes))


def test_token_with_several_audiences_is_accepted(service: Service) -> None:
    assert is_accepted(service, token(signer("RS256"), "RS256", "first", aud=["another shop", AUDIENCE]))


def issuer_settings(issuer: Issuer, **settings: str) -> dict[str, str]:
    return {
        "Auth:JwtAuth": "true",
        "Auth:JwtSecret": SECRET,
        "Auth:JwtKeySetUrl": f"http://127.0.0.1:{issuer.server_port}/keys",
        **{f"Auth:{name}": value for name, value in settings.items()},
    }


@pytest.mark.parametrize("missing", ["JwtIssuer", "JwtAudience"])
def test_missing_issuer_or_audience_setting_stops_the_start(
    own_database: Database, serve_once: Serve, issuer: Issuer, missing: str
) -> None:
    settings = issuer_settings(issuer, JwtIssuer=ISSUER, JwtAudience=AUDIENCE)
    del settings[f"Auth:{missing}"]
    with pytest.raises(AssertionError, match=f"Auth:{missing}"):
        serve_once(own_database, settings=settings)


def test_issuer_and_audience_checks_can_be_switched_off(
    own_database: Database, serve_once: Serve, issuer: Issuer
) -> None:
    settings = issuer_settings(issuer, JwtValidateIssuer="false", JwtValidateAudience="false")
    service = serve_once(own_database, member_sql(), settings)
    assert is_accepted(service, token(signer("RS256"), "RS256", "first", iss=LEFT_OUT, aud=LEFT_OUT))
    assert "WRN" in service.wait_for_log("Auth:JwtValidateIssuer")
    assert "WRN" in service.wait_for_log("Auth:JwtValidateAudience")


@pytest.fixture
def own_issuer() -> Iterator[Issuer]:
    made = Issuer()
    made.publish("RS256", "first")
    yield made
    made.shutdown()
    made.server_close()


BRIEF = {"JwtIssuer": ISSUER, "JwtAudience": AUDIENCE, "JwtKeySetRefreshInterval": "1s", "JwtKeySetMaxAge": "3s"}


@pytest.mark.slow
def test_tokens_of_a_withdrawn_key_are_refused(own_database: Database, serve_once: Serve, own_issuer: Issuer) -> None:
    """Also cached tokens; a document without any key withdraws them all."""
    service = serve_once(own_database, member_sql(), issuer_settings(own_issuer, **BRIEF))
    text = token(signer("RS256"), "RS256", "first", exp=int(time.time()) + 3600)
    assert is_accepted(service, text)
    own_issuer.keys.clear()
    wait_until(lambda: not is_accepted(service, text), "the token of a withdrawn key is refused")
    own_issuer.publish("RS256", "first")
    wait_until(lambda: is_accepted(service, text), "the key is back")


@pytest.mark.slow
def test_cached_jwks_keys_expire(own_database: Database, serve_once: Serve, own_issuer: Issuer) -> None:
    service = serve_once(own_database, member_sql(), issuer_settings(own_issuer, **BRIEF))
    text = token(signer("RS256"), "RS256", "first", exp=int(time.time()) + 3600)
    assert is_accepted(service, text)
    own_issuer.shutdown()
    own_issuer.server_close()
    wait_until(lambda: not is_accepted(service, text), "unconfirmed keys are given up")


@pytest.mark.slow
def test_an_issuer_that_does_not_respond_delays_no_requests(
    own_database: Database, serve_once: Serve, own_issuer: Issuer
) -> None:
    """Except for the first fetch that fails. Later ones go on meanwhile, and the keys stay valid."""
    options = {**BRIEF, "JwtKeySetMaxAge": "10 minutes"}
    service = serve_once(own_database, member_sql(), issuer_settings(own_issuer, **options))
    text = token(signer("RS256"), "RS256", "first", exp=int(time.time()) + 3600)
    assert is_accepted(service, text)
    own_issuer.responds.clear()
    failure = "at most: TimeoutError"
    wait_until(lambda: is_accepted(service, text) and failure in service.log, "a fetch has failed")
    asked, failures = own_issuer.asked, service.log.count(failure)
    wait_until(lambda: is_accepted(service, text) and own_issuer.asked > asked, "another fetch has begun")
    assert service.log.count(failure) == failures, "the request has waited for the fetch"
    own_issuer.keys.clear()
    own_issuer.responds.set()
    wait_until(lambda: not is_accepted(service, text), "the keys have been withdrawn")


@pytest.mark.slow
def test_jwks_is_fetched_by_the_http_client(
    own_database: Database, serve_once: Serve, own_issuer: Issuer, certificate: tuple[Path, Path]
) -> None:
    """An authority of the configuration is trusted, as it is for other requests."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    own_issuer.socket = context.wrap_socket(own_issuer.socket, server_side=True)
    settings = issuer_settings(own_issuer, JwtIssuer=ISSUER, JwtAudience=AUDIENCE)
    settings["Auth:JwtKeySetUrl"] = f"https://127.0.0.1:{own_issuer.server_port}/keys"
    settings["Service:HttpClientOptions:CaFile"] = str(certificate[0])
    service = serve_once(own_database, member_sql(), settings)
    assert is_accepted(service, token(signer("RS256"), "RS256", "first"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "reason"),
    [("moved", "the response has status 302"), ("large", "the response is larger than 1048576 bytes")],
)
def test_invalid_jwks_documents_are_refused(
    own_database: Database, serve_once: Serve, own_issuer: Issuer, path: str, reason: str
) -> None:
    settings = issuer_settings(own_issuer, JwtIssuer=ISSUER, JwtAudience=AUDIENCE)
    settings["Auth:JwtKeySetUrl"] = f"http://127.0.0.1:{own_issuer.server_port}/{path}"
    service = serve_once(own_database, member_sql(), settings)
    assert not is_accepted(service, token(signer("RS256"), "RS256", "first"))
    assert service.wait_for_log("cannot be read").partition("at most: ")[2].startswith(reason)
