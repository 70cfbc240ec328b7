"""Signed tokens (JWT): issued with one key, verified with that key and the keys of other accepted issuers.

The algorithm follows from the key and never from the token. So neither `none` nor an HMAC made with a public key is
accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jwt
import orjson
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey, Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

from rowcall.core.auth.claims import ACTOR, Claim
from rowcall.core.auth.schemes import JwtScheme
from rowcall.core.auth.token_families import Mark, mark_of
from rowcall.core.auth.tokens import REGISTERED, BadTokenError, VerifiedToken
from rowcall.service.startup_error import StartupError

TOKEN_TYPE = "token_type"  # noqa: S105 (a claim)
_REFRESH = "refresh"
_MARK = "refresh_id"
_SCHEME = "refresh_of"
_ACTOR = "actor"
"""Header with the claims of `ACTOR`. In the payload, claims of another issuer could have the same names."""
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512", "secp256k1": "ES256K"}
"""Algorithms by curve of the key."""
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")


class SignedTokens:
    """Signs and verifies the tokens of one scheme."""

    def __init__(self, scheme: JwtScheme, *, shares_key: bool = False) -> None:
        """shares_key: another scheme signs with the same key, so that tokens have to name their scheme. Raises
        `StartupError` for an unusable signing key.
        """
        self.scheme = scheme
        self._shares_key = shares_key
        self._keys = list(_verification_keys(scheme))
        self._own_key = self._keys[0][1]
        self._algorithm, self._key = _signing_key(scheme)

    def sign(self, claims: tuple[Claim, ...], now: float, lifetime: float) -> str:
        """Return an access token. A claim that occurs once is a text, a repeated one an array (sign-in-30). Registered
        claims and `token_type` among `claims` are omitted, and those of an impersonation (`ACTOR`) are in the header.
        now: in seconds since 1970. lifetime: in seconds."""
        return self._sign_payload(_by_kind(claims), now, lifetime, _actor_header(claims))

    def sign_refresh(self, claims: tuple[Claim, ...], now: float, lifetime: float, mark: str | None) -> str:
        """Return a refresh token. claims, now, lifetime: as for `sign`. mark: identifies the token; it is in the
        header, where no claim can have its name; None: the token has none."""
        header = _actor_header(claims)
        if mark is not None:
            header[_MARK] = mark
        if mark is not None or self._shares_key:
            header[_SCHEME] = self.scheme.name
        return self._sign_payload({**_by_kind(claims), TOKEN_TYPE: _REFRESH}, now, lifetime, header)

    def _sign_payload(self, payload: dict[str, Any], now: float, lifetime: float, header: dict[str, Any]) -> str:
        """Return a token with this payload, with begin and end of validity, issuer and audience. now, lifetime: as for
        `sign`. header: further members of its header.
        """
        payload |= {"nbf": int(now), "exp": int(now + lifetime), "iat": int(now)}
        payload |= {"iss": self.scheme.issuer} if self.scheme.issuer else {}
        payload |= {"aud": self.scheme.audience} if self.scheme.audience else {}
        return jwt.encode(payload, self._key, algorithm=self._algorithm, headers=header)

    def verify(self, token: str) -> VerifiedToken:
        """Verify an access token with the keys of the scheme, and return its claims and validity. Raises
        `BadTokenError`, also for a refresh token."""
        for algorithms, key in self._keys:
            try:
                payload = _decode_token(token, key, algorithms, self.scheme, lifetime=self.scheme.validate_lifetime)
            except _WrongKeyError:
                continue
            return self._verified_token(
                payload, _claims_with_actor(payload, token) if key is self._own_key else _claims_without_actor(payload)
            )
        raise BadTokenError("no key verifies the token")

    def verify_with(self, token: str, key: Any, algorithms: tuple[str, ...]) -> VerifiedToken:
        """Verify an access token of another issuer. key: a public key of the issuer. algorithms: those that the key
        allows. Raises `BadTokenError`.
        """
        lifetime = self.scheme.validate_lifetime
        payload = _decode_token(token, key, algorithms, self.scheme, lifetime=lifetime)
        return self._verified_token(payload, _claims_without_actor(payload))

    def verify_refresh(self, token: str) -> tuple[tuple[Claim, ...], Mark]:
        """Return the claims of a refresh token of this scheme, without registered ones, and its mark.

        Keys of other issuers are not used: a refresh token is accepted only by its issuer.

        Raises:
            BadTokenError: it is not a refresh token or not valid.
        """
        algorithms, own_key = self._keys[0]
        payload = _decode_token(token, own_key, algorithms, self.scheme, lifetime=True)
        if payload.get(TOKEN_TYPE) != _REFRESH:
            raise BadTokenError("not a refresh token")
        claims = tuple(
            claim
            for claim in _claims_with_actor(payload, token)
            if claim[0] not in REGISTERED and claim[0] != TOKEN_TYPE
        )
        header = jwt.get_unverified_header(token)
        if header.get(_SCHEME, None if self._shares_key else self.scheme.name) != self.scheme.name:
            raise BadTokenError("issued by another scheme with the same key, perhaps for a shorter time")
        # The signature has several base64 forms; the signed text has only one.
        return claims, mark_of(header.get(_MARK), token.rpartition(".")[0])

    def _verified_token(self, payload: dict[str, Any], claims: tuple[Claim, ...]) -> VerifiedToken:
        """Return the verified token with its validity. claims: of the payload. Raises `BadTokenError` for a refresh
        token.
        """
        if payload.get(TOKEN_TYPE) == _REFRESH:
            raise BadTokenError("a refresh token gives no access")
        scheme = self.scheme
        expires = payload["exp"] + scheme.clock_skew if scheme.validate_lifetime else float("inf")
        begins = payload.get("nbf") if scheme.validate_lifetime else None
        if not isinstance(begins, int | float):
            return VerifiedToken(claims, float(expires))
        return VerifiedToken(claims, float(expires), float(begins) - scheme.clock_skew)


class _WrongKeyError(BadTokenError):
    """The token is not signed by this key; another key may verify it."""


def _decode_token(
    token: str, key: Any, algorithms: tuple[str, ...], scheme: JwtScheme, *, lifetime: bool
) -> dict[str, Any]:
    """Return the payload of a token. lifetime: begin and expiry are checked too.

    Raises `_WrongKeyError` if another key may have signed the token, `BadTokenError` for other faults.
    """
    try:
        payload: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(algorithms),
            audience=scheme.audience if scheme.validate_audience else None,
            issuer=scheme.issuer if scheme.validate_issuer else None,
            leeway=scheme.clock_skew,
            options={
                "require": ["exp"],
                "verify_exp": lifetime,
                "verify_nbf": lifetime,
                "verify_iat": False,
                "verify_aud": bool(scheme.validate_audience),
                "verify_iss": bool(scheme.validate_issuer),
                "verify_sub": False,
                "verify_jti": False,
            },
        )
    except (jwt.InvalidSignatureError, jwt.InvalidAlgorithmError, jwt.InvalidKeyError):
        raise _WrongKeyError("not signed by this key") from None
    except (jwt.PyJWTError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise BadTokenError(type(error).__name__) from None
    if not isinstance(payload.get("exp"), int | float) or isinstance(payload["exp"], bool):
        raise BadTokenError("its expiry is no number")
    return payload


def _by_kind(claims: tuple[Claim, ...]) -> dict[str, Any]:
    """Return claims as members of a payload: a claim that occurs once as text, a repeated one as list. Registered
    claims, those of `ACTOR` and the token type are omitted.
    """
    values: dict[str, list[str]] = {}
    for kind, value in claims:
        if kind not in REGISTERED and kind not in ACTOR and kind != TOKEN_TYPE:
            values.setdefault(kind, []).append(value)
    return {kind: items[0] if len(items) == 1 else items for kind, items in values.items()}


def _claims(payload: dict[str, Any]) -> Iterator[Claim]:
    """Yield the claims of a payload, one for each item of a list. Raises `BadTokenError` for a claim that cannot be
    stored.
    """
    for kind, value in payload.items():
        for single in value if isinstance(value, list) else [value]:
            yield _storable(kind), _text(single)


def _actor_header(claims: tuple[Claim, ...]) -> dict[str, Any]:
    """Return the header with the claims of `ACTOR`; empty if there are none."""
    actor = {kind: value for kind, value in claims if kind in ACTOR}
    return {_ACTOR: actor} if actor else {}


def _claims_with_actor(payload: dict[str, Any], token: str) -> tuple[Claim, ...]:
    """Return the claims of a token that the scheme's own key verifies, with those of its actor header.

    Raises:
        BadTokenError: the payload contains claims of the actor. The token comes from an earlier version, and without
            these claims its impersonation would not end; or from another issuer with the same secret.
    """
    if not ACTOR.isdisjoint(payload):
        raise BadTokenError("its payload has claims that only the header may have")
    actor = jwt.get_unverified_header(token).get(_ACTOR) or {}
    if not isinstance(actor, dict) or not all(kind in ACTOR and isinstance(actor[kind], str) for kind in actor):
        raise BadTokenError("its actor header is not valid")
    return (*_claims(payload), *((kind, _storable(value)) for kind, value in actor.items()))


def _claims_without_actor(payload: dict[str, Any]) -> tuple[Claim, ...]:
    """Return the claims of a token of another issuer, without those that only this service sets. Raises `BadTokenError`
    for a claim that cannot be stored.
    """
    return tuple(claim for claim in _claims(payload) if claim[0] not in ACTOR)


def _text(value: Any) -> str:
    """Return a claim as text: a text unchanged, an empty text for null, else its JSON. Raises `BadTokenError`."""
    if isinstance(value, str):
        return _storable(value)
    try:
        return "" if value is None else orjson.dumps(value).decode()
    except TypeError:
        raise BadTokenError("a claim is no JSON that could be passed on") from None


def share_a_key(first: JwtScheme, other: JwtScheme) -> bool:
    """Return whether both schemes sign with the same key."""
    return (first.signing_key or first.secret) == (other.signing_key or other.secret)


def _storable(text: str) -> str:
    """Return the text. Raises `BadTokenError` if PostgreSQL cannot store it.

    Such a text must not be altered on its way to the database, because it could then identify another user.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadTokenError("a claim is no Unicode text") from None
    if "\0" in text:
        raise BadTokenError("a claim holds a NUL")
    return text


def _signing_key(scheme: JwtScheme) -> tuple[str, Any]:
    """Return algorithm and key with which the scheme signs. Raises `StartupError` for an unusable kind of key."""
    if scheme.signing_key is None:
        return "HS256", (scheme.secret or "").encode()
    key: Any = serialization.load_pem_private_key(scheme.signing_key, None)
    algorithms = algorithms_for(key)
    if not algorithms:
        raise StartupError(f"the signing key of the scheme {scheme.name} is neither RSA nor EC nor Ed25519")
    return algorithms[0], key


def _verification_keys(scheme: JwtScheme) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the keys that verify tokens of the scheme, each with its algorithms; the scheme's own key comes first.
    Raises `StartupError` for an unusable signing key.
    """
    algorithm, key = _signing_key(scheme)
    yield (algorithm,), key if algorithm == "HS256" else key.public_key()
    if scheme.verification_key is not None:
        foreign: Any = serialization.load_pem_public_key(scheme.verification_key)
        yield algorithms_for(foreign), foreign


def algorithms_for(key: object) -> tuple[str, ...]:
    """Return the algorithms of an asymmetric key, the usual one first; empty for another kind of key, and for an EC key
    of an unsupported curve."""
    if isinstance(key, RSAPrivateKey | RSAPublicKey):
        return _RSA
    if isinstance(key, EllipticCurvePrivateKey | EllipticCurvePublicKey):
        return (_CURVES[key.curve.name],) if key.curve.name in _CURVES else ()
    if isinstance(key, Ed25519PrivateKey | Ed25519PublicKey | Ed448PrivateKey | Ed448PublicKey):
        return ("EdDSA",)
    return ()
