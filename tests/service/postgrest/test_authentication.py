"""Tokens of PostgREST's interface: every row of the tables of keys, claims and failures."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from rowcall.core.auth.claims import IdentityClaims
from rowcall.core.postgrest.options import InvalidOptionError, PostgRestOptions
from rowcall.service.postgrest.authentication import Authentication, TokenError, bearer_token, user_of

SECRET = "reallyreallyreallyreallyverysafe"
NOW = 1_700_000_000
OPTIONS = PostgRestOptions(jwt_secret=SECRET, anonymous_role="anon")


def authenticated(token: str | None, options: PostgRestOptions = OPTIONS) -> Any:
    header = None if token is None else f"Bearer {token}"
    return Authentication(options, lambda: NOW).authenticate(header)


def signed(claims: Any, secret: Any = SECRET, algorithm: str = "HS256", **headers: str) -> str:
    return jwt.encode(claims, secret, algorithm, headers or None)


def test_a_token_gives_role_and_claims() -> None:
    result = authenticated(signed({"role": "author", "id": 7}))
    assert (result.role, dict(result.claims)) == ("author", {"role": "author", "id": 7})


def jws(payload: bytes) -> str:
    """Return a signed token of any content."""
    return jwt.PyJWS().encode(payload, SECRET, "HS256")


@pytest.mark.parametrize("token", [None, signed({"id": 7})])
def test_without_a_role_the_request_is_anonymous(token: str | None) -> None:
    assert authenticated(token).role == "anon"


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("BEARER   abc", "abc"),
        ("Bearer", ""),
        ("Basic abc", None),
        ("", None),
        (None, None),
    ],
)
def test_the_bearer_scheme_of_authorization_is_read(header: str | None, token: str | None) -> None:
    assert bearer_token(header) == token


@pytest.mark.parametrize(
    ("token", "code", "message", "details"),
    [
        ("", "PGRST301", "Empty JWT is sent in Authorization header", None),
        ("a.b", "PGRST301", "Expected 3 parts in JWT; got 2", None),
        ("a.b.c.d.e", "PGRST301", "Expected 3 parts in JWT; got 5", None),
        (
            signed({}, "another secret of sufficient size"),
            "PGRST301",
            "No suitable key or wrong key type",
            "None of the keys was able to decode the JWT",
        ),
        (
            signed({}, "another secret of sufficient size" * 2, "HS512"),
            "PGRST301",
            "No suitable key or wrong key type",
            "No suitable key was found to decode the JWT",
        ),
        (
            jwt.encode({}, "", "none"),
            "PGRST301",
            "Wrong or unsupported encoding algorithm",
            "JWT is unsecured but expected 'alg' was not 'none'",
        ),
        (signed({"exp": NOW - 31}), "PGRST303", "JWT expired", None),
        (signed({"nbf": NOW + 31}), "PGRST303", "JWT not yet valid", None),
        (signed({"iat": NOW + 31}), "PGRST303", "JWT issued at future", None),
        (signed({"exp": "soon"}), "PGRST303", "The JWT 'exp' claim must be a number", None),
        (signed({"nbf": "soon"}), "PGRST303", "The JWT 'nbf' claim must be a number", None),
        (signed({"exp": 0.5}), "PGRST303", "JWT expired", None),
        (signed({"iat": "soon"}), "PGRST303", "The JWT 'iat' claim must be a number", None),
        (signed({"exp": True}), "PGRST303", "The JWT 'exp' claim must be a number", None),
        (jws(b"[1]"), "PGRST303", "Parsing claims failed", None),
        (jws(b"text"), "PGRST303", "Parsing claims failed", None),
        (jws(b"[" * 2_000), "PGRST303", "Parsing claims failed", None),
        (jws(b'{"a":"\\ud800"}'), "PGRST303", "Parsing claims failed", None),
        (jws(b'{"a":NaN}'), "PGRST303", "Parsing claims failed", None),
        (jws(b'{"a":1e400}'), "PGRST303", "Parsing claims failed", None),
        ("a.b.c", "PGRST301", "JWT cryptographic operation failed", None),
        *(
            (token, "PGRST301", "No suitable key or wrong key type", "None of the keys was able to decode the JWT")
            for token in (f"{signed({})}!", ".!.".join(signed({}).split(".")[::2]), "eyJhbGciOiJIUzI1NiJ9.\xe9.x")
        ),
        (f"{'W1tb' * 2_000}.e30.e30", "PGRST301", "JWT cryptographic operation failed", None),
    ],
)  # fmt: skip
def test_invalid_tokens_are_refused(token: str, code: str, message: str, details: str | None) -> None:
    with pytest.raises(TokenError) as failure:
        authenticated(token)
    error = failure.value
    assert (error.code, error.message, error.details) == (code, message, details)


@pytest.mark.parametrize(
    "claims",
    [{"n": 2**64}, {"n": -1.5}, {"n": 1e22}, {"a": 'é"\n'}, json.loads('{"a":' * 300 + "1" + "}" * 300)],
)
def test_claims_reach_the_database_unchanged(claims: Any) -> None:
    assert json.loads(authenticated(signed(claims)).settings) == {**claims, "role": "anon"}


def test_claims_of_users_are_texts_and_numbers() -> None:
    claims = {"sub": "u1", "level": 7, "share": 0.5, "admin": True, "none": None, "tags": ["a"], "app": {"a": 1}}
    user = user_of(authenticated(signed(claims)), IdentityClaims())
    assert dict(user.claims) == {"sub": "u1", "level": "7", "share": "0.5", "user_id": "u1", "user_roles": "anon"}


@pytest.mark.parametrize("claims", [{"exp": NOW - 30}, {"nbf": NOW + 30}, {"iat": NOW + 30}, {"exp": None}])
def test_clocks_may_differ_by_thirty_seconds(claims: Any) -> None:
    """Times are whole seconds, so a fraction of the current one does not count."""
    authentication = Authentication(OPTIONS, lambda: NOW + 0.9)
    assert authentication.authenticate(f"Bearer {signed(claims)}").role == "anon"


@pytest.mark.parametrize(
    ("audience", "accepted"),
    [("me", True), (["you", "me"], True), ([], True), (None, True), ("you", False), (["you"], False)],
)
def test_the_audience_is_checked(audience: Any, accepted: bool) -> None:
    options = PostgRestOptions(jwt_secret=SECRET, anonymous_role="anon", jwt_audience="me")
    if accepted:
        assert authenticated(signed({"aud": audience}), options).role == "anon"
    else:
        with pytest.raises(TokenError, match="JWT not in audience"):
            authenticated(signed({"aud": audience}), options)


@pytest.mark.parametrize("audience", [5, ["a", 5], {"a": 1}])
def test_an_invalid_audience_is_refused(audience: Any) -> None:
    with pytest.raises(TokenError, match="must be a string or an array of strings"):
        authenticated(signed({"aud": audience}))


def test_without_a_secret_tokens_are_an_error() -> None:
    options = PostgRestOptions(anonymous_role="anon")
    with pytest.raises(TokenError) as failure:
        authenticated("a.b.c", options)
    assert failure.value.code == "PGRST300"
    assert authenticated(None, options).role == "anon"


def test_without_an_anonymous_role_a_token_is_needed() -> None:
    with pytest.raises(TokenError, match="Anonymous access is disabled"):
        authenticated(None, PostgRestOptions(jwt_secret=SECRET))


def jwk(key: Any, **members: str) -> dict[str, Any]:
    algorithm: Any = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPublicKey) else jwt.algorithms.ECAlgorithm
    return {**json.loads(algorithm.to_jwk(key)), **members}


def test_keys_are_selected_by_id() -> None:
    first = rsa.generate_private_key(65537, 2048)
    second = ec.generate_private_key(ec.SECP256R1())
    keys = {"keys": [jwk(first.public_key(), kid="one"), jwk(second.public_key(), kid="two")]}
    options = PostgRestOptions(jwt_secret=json.dumps(keys), anonymous_role="anon")
    assert authenticated(signed({"role": "a"}, first, "RS256"), options).role == "a"
    assert authenticated(signed({"role": "b"}, second, "ES256", kid="two"), options).role == "b"
    with pytest.raises(TokenError, match="No suitable key"):
        authenticated(signed({"role": "b"}, second, "ES256", kid="one"), options)


@pytest.mark.parametrize(
    ("name", "generate"),
    [
        ("HS512", lambda: b"x" * 64),
        ("RS384", lambda: rsa.generate_private_key(65537, 2048)),
        ("ES384", lambda: ec.generate_private_key(ec.SECP384R1())),
    ],
)
def test_a_single_key_with_its_algorithm(name: str, generate: Callable[[], Any]) -> None:
    key = generate()
    if isinstance(key, bytes):
        value = {"kty": "oct", "k": base64.urlsafe_b64encode(key).decode().rstrip("=")}
    else:
        value = jwk(key.public_key())
    options = PostgRestOptions(jwt_secret=json.dumps({**value, "alg": name}), anonymous_role="anon")
    assert authenticated(signed({"role": "a"}, key, name), options).role == "a"
    with pytest.raises(TokenError, match="No suitable key"):
        authenticated(signed({"role": "a"}), options)


def test_a_token_without_an_id_is_checked_with_every_key() -> None:
    keys = [
        {"kty": "oct", "k": base64.urlsafe_b64encode(bytes([number]) * 32).decode(), "kid": str(number)}
        for number in (1, 2)
    ]
    options = PostgRestOptions(jwt_secret=json.dumps({"keys": keys}), anonymous_role="anon")
    assert authenticated(signed({"role": "a"}, b"\2" * 32), options).role == "a"
    with pytest.raises(TokenError, match="No suitable key"):
        authenticated(signed({"role": "a"}, b"\2" * 32, kid="3"), options)


def test_keys_for_encryption_verify_no_token() -> None:
    """As in the key set of an identity provider."""
    key = rsa.generate_private_key(65537, 2048)
    token = signed({"role": "a"}, key, "RS256")
    signing = jwk(key.public_key(), use="sig", alg="RS256")
    for other in (jwk(key.public_key(), use="enc"), jwk(key.public_key(), alg="RSA-OAEP")):
        options = PostgRestOptions(jwt_secret=json.dumps({"keys": [other]}), anonymous_role="anon")
        with pytest.raises(TokenError) as failure:
            authenticated(token, options)
        assert failure.value.details == "No suitable key was found to decode the JWT"
        options = PostgRestOptions(jwt_secret=json.dumps({"keys": [other, signing]}), anonymous_role="anon")
        assert authenticated(token, options).role == "a"


def test_a_private_key_verifies_like_its_public_key() -> None:
    key = rsa.generate_private_key(65537, 2048)
    secret = jwt.algorithms.RSAAlgorithm.to_jwk(key)
    options = PostgRestOptions(jwt_secret=secret, anonymous_role="anon")
    assert authenticated(signed({"role": "a"}, key, "RS256"), options).role == "a"


def test_base64_secret_in_either_alphabet() -> None:
    key = bytes(range(220, 256)) * 2
    for encoded in (base64.b64encode(key), base64.urlsafe_b64encode(key)):
        options = PostgRestOptions(jwt_secret=encoded.decode(), jwt_secret_is_base64=True)
        assert authenticated(signed({"role": "a"}, key), options).role == "a"


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(InvalidOptionError, match="at least 32 characters"):
        Authentication(PostgRestOptions(jwt_secret="short"))


@pytest.mark.parametrize(
    ("secret", "message"),
    [
        ("ü" * 40, "jwt-secret is not base64"),
        ("\udcff" * 40, "jwt-secret is not base64"),
        ("a", "jwt-secret is not base64"),
        ("[" * 5_000, "jwt-secret is not base64"),
        ('{"kty": "oct"}', "jwt-secret: a JWK has no member 'k'"),
        ('{"kty": "oct", "k": 5}', "jwt-secret: Unable to construct key"),
        ('{"kty": "RSA"}', "jwt-secret: "),
        ('{"keys": [5]}', "jwt-secret: a JWK has an unknown type of key"),
    ],
)
def test_an_unusable_secret_is_refused(secret: str, message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        Authentication(PostgRestOptions(jwt_secret=secret, jwt_secret_is_base64=True))


def test_a_secret_of_the_environment_may_be_any_bytes() -> None:
    key = bytes(range(200, 240))
    options = PostgRestOptions(jwt_secret=key.decode(errors="surrogateescape"))
    assert authenticated(signed({"role": "a"}, key), options).role == "a"


CLAIMS = {
    "app": {"roles": ["reader", "ops", "admin-x"]},
    "https://x/role": {"key": "web"},
    "b-c": [{"name": "one", "rank": 1}, {"name": "two", "rank": 2, "leads": True}],
    "first": 1,
    "number": 5,
}


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("$.app.roles[1]", "ops"),
        ("$.app.roles[-1]", "admin-x"),
        ("$['https://x/role'].key", "web"),
        ("$.app.roles[?(@ == 'ops')]", "ops"),
        ("$.app.roles[?@ == 'ops']", "ops"),
        ("$.app.roles[?search(@, '^adm')]", "admin-x"),
        ("$['b-c'][?@.name == 'two'].name", "two"),
        (".app.roles[1]", "ops"),
        ('."b-c"[0].name', "one"),
        ('.app.roles[?(@ == "reader")]', "reader"),
        ('.app.roles[?(@ ^== "adm")]', "admin-x"),
        ('.app.roles[?(@ ==^ "-x")]', "admin-x"),
        ('.app.roles[?(@ *== "eade")]', "reader"),
        ("$.number", "5"),
        ("$.app.roles[9]", "anon"),
        ("$.nothing", "anon"),
        ("$.app.roles[1:]", "ops"),
        ("$.app.roles[-1:]", "admin-x"),
        ("$.app.roles[::-1]", "admin-x"),
        ("$.app.roles[3:]", "anon"),
        ("$.app.roles[::0]", "anon"),
        ("$.app.roles[9, 1]", "ops"),
        ("$['nothing', 'number']", "5"),
        ("$..key", "web"),
        ("$..[?@ == 'two']", "two"),
        ("$.app.roles[?(!(@ == 'reader') && @ != 'ops')]", "admin-x"),
        ("$.app.roles[?@ > 'ops']", "reader"),
        ("$['b-c'][?@.rank >= 2].name", "two"),
        ("$['b-c'][?@.rank == $.first].name", "one"),
        ("$['b-c'][?@.leads == true].name", "two"),
        ("$['b-c'][?@.name][1].name", "anon"),
        ("$['b-c'][?!@.leads].name", "one"),
        ("$['b-c'][?@.leads == null].name", "anon"),
        (".app.roles[2][6:]", "x"),
        ('.app.roles[?(@ ^== "adm")][:5]', "admin"),
        (".app.roles[0][-3:-1]", "de"),
    ],
)
def test_path_of_the_role(path: str, role: str) -> None:
    options = PostgRestOptions(jwt_secret=SECRET, anonymous_role="anon", jwt_role_claim_key=path)
    assert authenticated(signed(CLAIMS), options).role == role


@pytest.mark.parametrize(
    "path",
    [
        "role",
        "$.a[",
        "$.a[?(x)]",
        "$[",
        "$.a[]",
        "$.a[1,]",
        "$.a[?@ ==]",
        "$.a[?(@]",
        "$..",
        ".a##",
        ".a;;b",
        ".#$%",
        "1",
    ],
)
def test_an_invalid_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidOptionError):
        Authentication(PostgRestOptions(jwt_role_claim_key=path))


@pytest.mark.parametrize(("most", "verifications"), [(0, 6), (1, 6), (2, 2)])
def test_the_number_of_cached_verified_tokens_is_limited(most: int, verifications: int) -> None:
    verified: list[str] = []

    class Counting(Authentication):
        def _verify(self, token: str) -> dict[str, Any]:
            verified.append(token)
            return super()._verify(token)

    options = PostgRestOptions(jwt_secret=SECRET, anonymous_role="anon", jwt_cache_max_entries=most)
    authentication = Counting(options, lambda: NOW)
    for _ in range(3):
        for role in ("a", "b"):
            assert authentication.authenticate(f"Bearer {signed({'role': role})}").role == role
    assert len(verified) == verifications
