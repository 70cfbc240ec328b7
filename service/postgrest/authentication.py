"""Authentication of requests: a signed token gives claims, and the claims give the role.

The texts of errors are those of PostgREST. A token that was verified is remembered by its text; its claims are checked
at every request.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt
from jwt.algorithms import Algorithm, get_default_algorithms

from rowcall.core.auth.claims import IdentityClaims, User
from rowcall.core.postgrest.claim_path import ClaimPath, ClaimPathError, parse_claim_path
from rowcall.core.postgrest.options import InvalidOptionError, PostgRestOptions

SCHEME = "PostgREST"
"""Authentication scheme of users of the interface, for the audit trail."""
TOLERANCE = 30
"""Seconds by which clocks may differ."""
SHORTEST_SECRET = 32
"""Minimum length of a secret in bytes."""
_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "oct": ("HS256", "HS384", "HS512"),
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""Algorithms by the type of a JWK (`kty`)."""


class TokenError(Exception):
    """A request cannot be authenticated. code: error code of PostgREST. message, details: of the error body."""

    def __init__(self, code: str, message: str, details: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


@dataclass(frozen=True, slots=True)
class Authenticated:
    """The caller of a request.

    role: database role. claims: of the token; empty without one. settings: the claims with the role as a JSON object,
    for `request.jwt.claims`.
    """

    role: str
    claims: Mapping[str, Any]
    settings: bytes


@dataclass(frozen=True, slots=True)
class _Key:
    """One key of `jwt-secret`: the key of the library, the algorithms that it may verify, and its id."""

    key: Any
    algorithms: tuple[str, ...]
    id: str | None = None


class Authentication:
    """Authenticates the requests of one worker."""

    def __init__(self, options: PostgRestOptions, clock: Callable[[], float] = time.time) -> None:
        """Raises `InvalidOptionError` if the key or the path of the role cannot be read. clock: returns the current
        time in seconds since the epoch.
        """
        self._options = options
        self._clock = clock
        self._keys = verification_keys(options)
        self._role_path = role_path(options)
        self._algorithms: Mapping[str, Algorithm] = get_default_algorithms()
        self._verified: dict[str, tuple[Mapping[str, Any], Authenticated | None]] = {}
        """Claims and callers of verified tokens, by text of the token."""
        self._anonymous = self._caller({})

    def authenticate(self, authorization: str | None) -> Authenticated:
        """Return the role and claims. authorization: the header; None: the request has none. Raises `TokenError`, also
        for an anonymous caller if there is no anonymous role.
        """
        token = None if authorization is None else bearer_token(authorization)
        return _require_caller(self._anonymous if token is None else self._caller_of(token))

    def caller_of(self, claims: Mapping[str, Any]) -> Authenticated:
        """Return the caller with these claims, without checking them. Raises `TokenError`."""
        return _require_caller(self._caller(claims))

    def _caller(self, claims: Mapping[str, Any]) -> Authenticated | None:
        """Return the caller with these claims. If they name no role, it is the anonymous role; None if there is none. A
        role that is no string is used as its JSON text. Raises `TokenError` for claims that PostgreSQL cannot read as
        JSON: numbers that are infinite or NaN, or values that are nested too deeply."""
        try:
            value = self._role_path.first(claims)
            if value is None:
                value = self._options.anonymous_role
            if value is None:
                return None
            role = value if isinstance(value, str) else _json_text(value)
            return Authenticated(role, claims, _json_text({**claims, "role": role}).encode())
        except (ValueError, RecursionError):
            raise TokenError("PGRST303", "Parsing claims failed") from None

    def _caller_of(self, token: str) -> Authenticated | None:
        """Return the caller with this token, if it is valid now. None: the token names no role, and there is no
        anonymous role. The signature is verified only if the token is not remembered. Raises `TokenError`."""
        known = self._verified.get(token)
        if known is None:
            claims = self._verify(token)
            known = claims, self._caller(claims)
            self._remember(token, known)
        self._check(known[0])
        return known[1]

    def _remember(self, token: str, verified: tuple[Mapping[str, Any], Authenticated | None]) -> None:
        """Remember a verified token, and drop the oldest ones beyond `jwt-cache-max-entries`. verified: its claims and
        its caller.
        """
        most = self._options.jwt_cache_max_entries
        if most:
            while len(self._verified) >= most:
                del self._verified[next(iter(self._verified))]
            self._verified[token] = verified

    def _verify(self, token: str) -> dict[str, Any]:
        """Verify the signature of a token and return its claims, unchecked. Raises `TokenError`."""
        if not token:
            raise TokenError("PGRST301", "Empty JWT is sent in Authorization header")
        if self._keys is None:
            raise TokenError("PGRST300", "Server lacks JWT secret")
        parts = token.split(".")
        if len(parts) != 3:
            raise TokenError("PGRST301", f"Expected 3 parts in JWT; got {len(parts)}")
        header = _json_part(parts[0])
        if not isinstance(header, dict) or header.get("alg") not in ("none", *self._algorithms):
            raise TokenError("PGRST301", "JWT cryptographic operation failed")
        self._check_signature(parts, header)
        claims = _json_part(parts[1])
        if not isinstance(claims, dict):
            raise TokenError("PGRST303", "Parsing claims failed")
        return claims

    def _check_signature(self, parts: Sequence[str], header: Mapping[str, Any]) -> None:
        """Verify the signature. parts: the three of the token, in base64. header: the first part, decoded. Raises
        `TokenError`.
        """
        name = header["alg"]
        if name == "none":
            raise TokenError(
                "PGRST301",
                "Wrong or unsupported encoding algorithm",
                "JWT is unsecured but expected 'alg' was not 'none'",
            )
        algorithm = self._algorithms[name]
        keys = [key for key in self._keys or () if name in key.algorithms and _has_id(key, header.get("kid"))]
        if not keys:
            raise TokenError(
                "PGRST301", "No suitable key or wrong key type", "No suitable key was found to decode the JWT"
            )
        signature = _decode_base64(parts[2])
        readable = signature is not None and _decode_base64(parts[1]) is not None
        if not readable or not any(
            _verifies(algorithm, f"{parts[0]}.{parts[1]}".encode(), key, signature or b"") for key in keys
        ):
            raise TokenError(
                "PGRST301", "No suitable key or wrong key type", "None of the keys was able to decode the JWT"
            )

    def _check(self, claims: Mapping[str, Any]) -> None:
        """Check the claims `exp`, `nbf`, `iat` and `aud`, in whole seconds. Raises `TokenError` for the first one that
        fails.
        """
        now = int(self._clock())
        expires = _number(claims, "exp")
        if expires is not None and now - TOLERANCE > expires:
            raise TokenError("PGRST303", "JWT expired")
        begins = _number(claims, "nbf")
        if begins is not None and begins > now + TOLERANCE:
            raise TokenError("PGRST303", "JWT not yet valid")
        issued = _number(claims, "iat")
        if issued is not None and issued > now + TOLERANCE:
            raise TokenError("PGRST303", "JWT issued at future")
        self._check_audience(claims.get("aud"))

    def _check_audience(self, audience: Any) -> None:
        """Check the claim `aud`; None: the token has none, so it is for every audience. Raises `TokenError`."""
        if audience is None:
            return
        values = [audience] if isinstance(audience, str) else audience
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise TokenError("PGRST303", "The JWT 'aud' claim must be a string or an array of strings")
        expected = self._options.jwt_audience
        if expected is not None and values and expected not in values:
            raise TokenError("PGRST303", "JWT not in audience")


def _require_caller(caller: Authenticated | None) -> Authenticated:
    """Return the caller. Raises `TokenError` for None: there is no anonymous role."""
    if caller is None:
        raise TokenError("PGRST302", "Anonymous access is disabled")
    return caller


def user_of(user: Authenticated, identity: IdentityClaims) -> User:
    """Return the user of a token, with those of its claims that are texts or numbers; booleans are left out.

    identity: names of the claims for id and roles. If the token has no claim of the name for the id, the claim `sub` is
    the id. The claim for the roles is replaced by the database role.
    """
    claims = {
        name: str(value)
        for name, value in user.claims.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool)
    }
    if "sub" in claims:
        claims.setdefault(identity.user_id, claims["sub"])
    claims[identity.roles] = user.role
    return User(tuple(claims.items()), identity, SCHEME)


def bearer_token(authorization: str | None) -> str | None:
    """Return the token of the header `Authorization`; empty if nothing follows the scheme `Bearer`, whose letter case
    does not matter.

    None: the header is absent or has another scheme.
    """
    scheme, *rest = (authorization or "").split(None, 1)[:2] or [""]
    return (rest[0] if rest else "") if scheme.lower() == "bearer" else None


def role_path(options: PostgRestOptions) -> ClaimPath:
    """Return the path of the role in the claims. Raises `InvalidOptionError`."""
    try:
        return parse_claim_path(options.jwt_role_claim_key)
    except ClaimPathError as error:
        raise InvalidOptionError(str(error)) from None


def verification_keys(options: PostgRestOptions) -> tuple[_Key, ...] | None:
    """Return the keys of `jwt-secret`, or None without one. Raises `InvalidOptionError`."""
    secret = options.jwt_secret
    if secret is None:
        return None
    try:
        value = json.loads(secret)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return tuple(_jwks(value))
    # The environment may have any bytes, which Python maps to surrogates.
    key = _from_base64(secret) if options.jwt_secret_is_base64 else secret.encode(errors="surrogateescape")
    if len(key) < SHORTEST_SECRET:
        raise InvalidOptionError("The JWT secret must be at least 32 characters long.")
    return (_Key(key, ("HS256",)),)


def _from_base64(text: str) -> bytes:
    """Decode a secret in base64, also in the alphabet for URLs or without padding. Raises `InvalidOptionError`."""
    plain = text.strip().replace("-", "+").replace("_", "/").replace(".", "=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError as error:
        raise InvalidOptionError(f"jwt-secret is not base64: {error}") from None


def _jwks(value: Mapping[str, Any]) -> Iterator[_Key]:
    """Yield the keys of a JWK, or of a set of JWKs, that can verify a signature. value: its parsed JSON. Raises
    `InvalidOptionError`.
    """
    members = value["keys"] if isinstance(value.get("keys"), list) else [value]
    for member in members:
        family = _FAMILIES.get(str(member.get("kty"))) if isinstance(member, dict) else None
        if family is None:
            raise InvalidOptionError("jwt-secret: a JWK has an unknown type of key")
        if member.get("kty") == "EC":
            family = ({"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}.get(str(member.get("crv")), "ES256"),)
        algorithms = family if member.get("alg") is None else tuple(name for name in family if name == member["alg"])
        if not algorithms or member.get("use") == "enc":
            # Sets of identity providers have keys for encryption as well.
            continue
        try:
            key = _public(jwt.PyJWK(dict(member), algorithm=algorithms[0]).key)
        except jwt.PyJWTError as error:
            raise InvalidOptionError(f"jwt-secret: {error}") from None
        except KeyError as error:
            raise InvalidOptionError(f"jwt-secret: a JWK has no member {error}") from None
        yield _Key(key, algorithms, member.get("kid"))


def _public(key: Any) -> Any:
    """Return the public key of a private one, and any other key unchanged."""
    public = getattr(key, "public_key", None)
    return key if public is None else public()


def _has_id(key: _Key, requested: object) -> bool:
    """Return whether a key may verify a token. requested: the `kid` of the token; None: any key may."""
    return requested is None or key.id == requested


def _verifies(algorithm: Algorithm, message: bytes, key: _Key, signature: bytes) -> bool:
    try:
        return algorithm.verify(message, key.key, signature)
    except (jwt.PyJWTError, ValueError, TypeError):
        return False


def _decode_base64(part: str) -> bytes | None:
    """Decode a part of a token, in URL-safe base64; None if it is invalid."""
    try:
        return base64.b64decode(part + "=" * (-len(part) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return None


def _json_part(part: str) -> Any:
    """Return the value of a part of a token; None if it is no JSON, or is nested too deeply."""
    content = _decode_base64(part)
    try:
        return None if content is None else json.loads(content)
    except (ValueError, RecursionError):
        return None


def _json_text(value: Any) -> str:
    """Return the JSON of a value that `json.loads` has made; orjson refuses integers beyond 64 bits. Raises
    `ValueError` for a number that is infinite or NaN, and `RecursionError` for a value that is nested too deeply."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _number(claims: Mapping[str, Any], name: str) -> int | None:
    """Return a claim that is a time in seconds; None if it is absent or null, 0 for a number that is no 64-bit integer.
    Raises `TokenError`.
    """
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenError("PGRST303", f"The JWT '{name}' claim must be a number")
    return int(value) if value == value and abs(value) < 2**63 and int(value) == value else 0
