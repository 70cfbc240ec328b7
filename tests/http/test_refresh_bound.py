"""A refresh token is accepted only from the user to whom it was issued."""

from __future__ import annotations

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, SECRET, bearer, member_sql, tokens, with_cookie

pytestmark = pytest.mark.attack

OPAQUE = "/api/token/refresh"
NAMED = "/api/till/refresh"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    till = {"Auth:Schemes:till:Type": "BearerToken", "Auth:Schemes:till:BearerTokenRefreshPath": NAMED}
    return serve(database, member_sql(), {**EVERY_SCHEME, **till})


@pytest.fixture(autouse=True)
def _no_cookies(service: Service) -> None:
    service.client.cookies.clear()


def refresh(service: Service, token: object, headers: dict[str, str], path: str = OPAQUE) -> httpx.Response:
    return service.post(path, json={"refresh": token}, headers=headers)


def of(service: Service, nick: str, scheme: str = "BearerToken") -> dict[str, object]:
    return tokens(service, scheme, nick)


def test_a_stolen_access_token_cannot_be_refreshed_with_another_users_token(service: Service) -> None:
    """The caller has an account (mo) and a stolen access token of kiri; the refresh token of mo does not extend it."""
    stolen, own = of(service, "kiri"), of(service, "mo")
    problem(refresh(service, own["refreshToken"], bearer(stolen["accessToken"])), 401)


def test_a_stolen_cookie_cannot_be_refreshed_with_another_users_token(service: Service) -> None:
    cookie, own = with_cookie(service), of(service, "mo")
    problem(refresh(service, own["refreshToken"], cookie), 401)


def test_a_stolen_signed_token_cannot_be_refreshed_with_another_users_token(service: Service) -> None:
    stolen, own = of(service, "kiri", "Bearer"), of(service, "mo")
    problem(refresh(service, own["refreshToken"], bearer(stolen["accessToken"])), 401)


def test_a_stolen_refresh_token_is_refused_with_the_session_of_another_user(service: Service) -> None:
    stolen, own = of(service, "kiri"), of(service, "mo")
    problem(refresh(service, stolen["refreshToken"], bearer(own["accessToken"])), 401)


def test_a_refresh_token_used_with_another_session_ends_its_sign_in(service: Service) -> None:
    """A caller with two credentials of different users is refused: one of them is stolen."""
    first, other = of(service, "kiri"), of(service, "mo")
    problem(refresh(service, first["refreshToken"], bearer(other["accessToken"])), 401)
    service.wait_for_log("does not belong to the session")
    problem(refresh(service, first["refreshToken"], bearer(first["accessToken"])), 401)
    assert refresh(service, other["refreshToken"], bearer(other["accessToken"])).status_code == 200


def test_the_new_tokens_have_the_claims_of_the_sign_in(service: Service) -> None:
    made = of(service, "kiri")
    again = refresh(service, made["refreshToken"], bearer(made["accessToken"])).json()
    body = service.get("/api/who", headers=bearer(again["accessToken"])).json()
    assert (body["userId"], body["userName"], body["userRoles"]) == ("41", "kiri", ["boss", "gate"])


def test_an_older_access_token_of_the_same_sign_in_is_accepted(service: Service) -> None:
    made = of(service, "open")
    second = refresh(service, made["refreshToken"], bearer(made["accessToken"])).json()
    assert refresh(service, second["refreshToken"], bearer(made["accessToken"])).status_code == 200


def test_refresh_tokens_are_refused_by_other_schemes(service: Service) -> None:
    main, till = of(service, "kiri"), of(service, "kiri", "till")
    problem(refresh(service, main["refreshToken"], bearer(till["accessToken"])), 401)
    problem(refresh(service, till["refreshToken"], bearer(main["accessToken"]), NAMED), 401)
    main, till = of(service, "kiri"), of(service, "kiri", "till")
    problem(refresh(service, main["refreshToken"], bearer(main["accessToken"]), NAMED), 401)
    assert refresh(service, till["refreshToken"], bearer(till["accessToken"]), NAMED).status_code == 200


def test_a_session_of_another_scheme_does_not_suffice(service: Service) -> None:
    cookie, made = with_cookie(service), of(service, "kiri")
    problem(refresh(service, made["refreshToken"], cookie), 401)


# --- signed tokens -------------------------------------------------------------------------------------------------


def test_a_refresh_token_of_another_issuer_is_accepted_by_that_issuer_only(
    own_database: Database, serve_once: Serve, tmp_path_factory: pytest.TempPathFactory
) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    pem = tmp_path_factory.mktemp("keys") / "public.pem"
    pem.write_bytes(key.public_key().public_bytes(encoding, form))
    foreign = {
        "Auth:JwtAuth": "true",
        "Auth:JwtSecret": SECRET,
        "Auth:JwtVerificationKeyPath": str(pem),
        "Auth:JwtIssuer": "https://id.example",
        "Auth:JwtAudience": "shop",
    }
    service = serve_once(own_database, member_sql(), foreign)
    claims = jwt.decode(str(tokens(service, "Bearer")["refreshToken"]), SECRET, algorithms=["HS256"], audience="shop")
    theirs = jwt.encode(claims, key, algorithm="EdDSA")
    problem(service.post("/api/jwt/refresh", json={"refreshToken": theirs}), 401)
    ours = tokens(service, "Bearer")["refreshToken"]
    assert service.post("/api/jwt/refresh", json={"refreshToken": ours}).status_code == 200


def test_refresh_tokens_of_schemes_with_one_key_are_distinguished_without_single_use(
    own_database: Database, serve_once: Serve
) -> None:
    settings = {
        **EVERY_SCHEME,
        "Auth:RefreshTokenSingleUse": "false",
        "Auth:Schemes:brief:Type": "Jwt",
        "Auth:Schemes:brief:JwtRefreshExpire": "1 hour",
        "Auth:Schemes:brief:JwtRefreshPath": "/api/brief/refresh",
    }
    service = serve_once(own_database, member_sql(), settings)
    brief = tokens(service, "brief")["refreshToken"]
    problem(service.post("/api/jwt/refresh", json={"refreshToken": brief}), 401)
    assert service.post("/api/brief/refresh", json={"refreshToken": brief}).status_code == 200
