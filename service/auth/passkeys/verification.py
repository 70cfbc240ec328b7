"""Verify responses of authenticators as WebAuthn requires (level 3, 7.1 and 7.2; passkeys-8).

The library only parses. Each check is made here, in the order and with the texts of passkeys-8. Only workers that offer
passkeys import this module: it takes 20 MB of memory.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, HashAlgorithm
from webauthn.helpers import (
    decode_credential_public_key,
    decoded_public_key_to_cryptography,
    encode_cbor,
    parse_authenticator_data,
    parse_cbor,
    parse_client_data_json,
)
from webauthn.helpers.structs import AuthenticatorData

from rowcall.core.auth.passkeys import ALGORITHMS, REQUIRED

LONGEST_ID = 1023
"""Most bytes of a credential id (WebAuthn level 3, 7.1 step 25)."""
RSA_BITS = range(2048, 8193)
"""Accepted sizes of RSA keys. With a huge modulus, anonymous callers could occupy a worker."""
SHORTEST_DATA = 37
"""Fewest bytes of authenticator data: hash of the relying party, flags, counter."""
DECOY_ALGORITHM = -7
"""COSE algorithm of the decoy key: ES256."""


class RefusedError(Exception):
    """The verification failed. The text is the title of the response."""


@dataclass(frozen=True, slots=True)
class ExpectedResponse:
    """The values of the service that a response of an authenticator has to match.

    These are the challenge that was issued, origins and relying party of the configuration, and the user verification
    that was requested.
    """

    challenge: bytes
    origins: frozenset[str]
    relying_party: str
    user_verification: str


@dataclass(frozen=True, slots=True)
class NewCredential:
    """The credential of a verified registration. algorithm: its COSE number."""

    id: bytes
    public_key: bytes
    """As COSE."""
    algorithm: int
    backup_eligible: bool


def verify_registration(client_data: bytes, attestation: bytes, expected: ExpectedResponse) -> NewCredential:
    """Verify a registration and return its credential. Raises `RefusedError`. client_data, attestation:
    `clientDataJSON` and `attestationObject` of the response.

    The attestation statement is not verified: the make of the authenticator is of no interest.
    """
    _check_client_data(client_data, "webauthn.create", expected)
    try:
        data = _authenticator_data(_unpack_attestation(attestation))
    except Exception:
        raise RefusedError("Invalid attestation object") from None
    _check_data(data, expected)
    credential = data.attested_credential_data
    if credential is None:
        raise RefusedError("Attested credential data missing")
    if not 0 < len(credential.credential_id) <= LONGEST_ID:
        raise RefusedError("Invalid credential id")
    algorithm = _supported_algorithm(credential.credential_public_key)
    return NewCredential(credential.credential_id, credential.credential_public_key, algorithm, data.flags.be)


@dataclass(frozen=True, slots=True)
class StoredCredential:
    """A credential as the commands of the configuration have stored it."""

    public_key: bytes
    algorithm: int | None
    """None: the algorithm of the key itself."""
    count: int | None
    """None: the counter is not checked."""


def verify_assertion(
    client_data: bytes,
    authenticator_data: bytes,
    signature: bytes,
    stored: StoredCredential,
    expected: ExpectedResponse,
) -> int:
    """Verify the response to a login and return the new counter. Raises `RefusedError`, also if the counter has not
    increased, unless the stored and the new counter are 0 or `stored.count` is None. client_data: `clientDataJSON` of
    the response. stored: the credential that has to have signed it."""
    _check_client_data(client_data, "webauthn.get", expected)
    if len(authenticator_data) < SHORTEST_DATA:
        raise RefusedError("Authenticator data too short")
    try:
        data = _authenticator_data(authenticator_data)
    except Exception:
        raise RefusedError("Invalid authenticator data") from None
    _check_data(data, expected)
    if not _is_signed(stored, signature, authenticator_data + hashlib.sha256(client_data).digest()):
        raise RefusedError("Invalid signature")
    if stored.count is not None and (stored.count or data.sign_count) and data.sign_count <= stored.count:
        raise RefusedError("Sign count not incremented - possible cloned authenticator")
    return int(data.sign_count)


# --- CBOR ----------------------------------------------------------------------------------------------------------

_TAG = 6
"""Major type of tags."""
_STRINGS = (2, 3)
"""Major types with content behind their length: bytes and text."""
_FLAGS_AT = 32
"""Where authenticator data has its flags."""
_ID_LENGTH_AT = SHORTEST_DATA + 16
"""Where authenticator data with a credential has the length of its id, in two bytes: behind the AAGUID."""
_WITH_CREDENTIAL = 0x40
"""Flag of authenticator data that has a credential."""


def _unpack_attestation(attestation: bytes) -> bytes:
    """Return the authenticator data in an attestation object. Raises an exception if it is not one."""
    _check_cbor(attestation)
    members = parse_cbor(attestation)
    if not isinstance(members, dict) or "fmt" not in members or not isinstance(members.get("authData"), bytes):
        raise ValueError("not an attestation object")
    data: bytes = members["authData"]
    return data


def _authenticator_data(data: bytes) -> AuthenticatorData:
    """Return parsed authenticator data. Raises an exception if it is malformed."""
    begin = SHORTEST_DATA
    if data[_FLAGS_AT] & _WITH_CREDENTIAL:
        begin = _ID_LENGTH_AT + 2 + int.from_bytes(data[_ID_LENGTH_AT : _ID_LENGTH_AT + 2], "big")
    _check_cbor(data[begin:])
    return parse_authenticator_data(data)


def _check_cbor(data: bytes) -> None:
    """Raise ValueError for CBOR with tags, which authenticators do not send (CTAP 2.1, 8). From tagged content the
    library would make patterns, decimals and others: a few kilobytes from an anonymous caller would occupy a worker for
    seconds.

    All items, also nested ones, are visited in one pass, since the items of an array or map directly follow its head.
    Other errors are left to the library.
    """
    at = 0
    while at < len(data):
        kind, extra = data[at] >> 5, data[at] & 0x1F
        if kind == _TAG:
            raise ValueError("tags are not accepted")
        size = 1 << (extra - 24) if 24 <= extra <= 27 else 0
        length = int.from_bytes(data[at + 1 : at + 1 + size], "big") if size else extra if extra < 24 else 0
        at += 1 + size + (length if kind in _STRINGS else 0)


# --- checks --------------------------------------------------------------------------------------------------------


def _check_client_data(text: bytes, kind: str, expected: ExpectedResponse) -> None:
    """Raise `RefusedError` unless type, challenge and origin are the expected ones, and the page is not in a frame of
    another site. text: `clientDataJSON`. kind: `webauthn.create` or `webauthn.get`.
    """
    try:
        client = parse_client_data_json(text)
    except Exception:
        raise RefusedError("Invalid clientDataJSON") from None
    if client.type != kind:
        raise RefusedError(f"Invalid type: expected {kind}")
    if not hmac.compare_digest(client.challenge, expected.challenge):
        raise RefusedError("Challenge mismatch")
    origin = client.origin if isinstance(client.origin, str) else ""
    if origin.lower() not in expected.origins:
        raise RefusedError(f"Origin mismatch: {origin[:200]}")
    if client.cross_origin:
        # A page of this service in a frame of another site: users do not see where they click (WebAuthn level 3,
        # 13.4.2).
        raise RefusedError("Cross-origin use is not allowed")


def _check_data(data: AuthenticatorData, expected: ExpectedResponse) -> None:
    """Raise `RefusedError` unless relying party and flags of the authenticator data are acceptable."""
    expected_hash = hashlib.sha256(expected.relying_party.encode()).digest()
    if not hmac.compare_digest(data.rp_id_hash, expected_hash):
        raise RefusedError("RP ID hash mismatch")
    if not data.flags.up:
        raise RefusedError("User not present")
    if expected.user_verification == REQUIRED and not data.flags.uv:
        raise RefusedError("User verification required but not performed")
    if data.flags.bs and not data.flags.be:
        raise RefusedError("Backed up without backup eligibility")


# --- keys ----------------------------------------------------------------------------------------------------------

_HASHES: dict[int, Callable[[], HashAlgorithm]] = {
    -7: SHA256, -35: SHA384, -36: SHA512,
    -37: SHA256, -38: SHA384, -39: SHA512,
    -257: SHA256, -258: SHA384, -259: SHA512,
}  # fmt: skip
"""Hash functions by COSE algorithm."""
_PSS = frozenset({-37, -38, -39})
"""COSE algorithms with the padding PSS."""
_CURVES = {-7: ec.SECP256R1, -35: ec.SECP384R1, -36: ec.SECP521R1}
"""Curves by COSE algorithm."""


def _supported_algorithm(cose: bytes) -> int:
    """Return the COSE number of a key's algorithm. Raises `RefusedError` for a key that must not be stored: it is
    malformed, its algorithm is not accepted, or its kind, curve or size does not fit the algorithm. cose: the key."""
    try:
        decoded = decode_credential_public_key(cose)
        algorithm = int(decoded.alg)
    except Exception:
        raise RefusedError("Invalid public key") from None
    if algorithm not in ALGORITHMS:
        raise RefusedError(f"Unsupported algorithm: {algorithm}")
    key = _load_public_key(cose)
    curve = _CURVES.get(algorithm)
    if curve is not None and not (isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, curve)):
        raise RefusedError(f"The key does not fit the algorithm {algorithm}")
    if curve is None and not (isinstance(key, rsa.RSAPublicKey) and key.key_size in RSA_BITS):
        raise RefusedError(f"The key does not fit the algorithm {algorithm}")
    return algorithm


def _load_public_key(cose: bytes) -> Any:
    """Return the public key as an object of `cryptography`. Raises `RefusedError`, also for a point that is not on its
    curve. cose: the key.
    """
    try:
        return decoded_public_key_to_cryptography(decode_credential_public_key(cose))
    except Exception:
        raise RefusedError("Invalid public key") from None


def _is_signed(stored: StoredCredential, signature: bytes, data: bytes) -> bool:
    """Return whether the credential has signed the data. False also for a key or algorithm that cannot be used."""
    try:
        key = _load_public_key(stored.public_key)
        algorithm = stored.algorithm
        if algorithm is None:
            algorithm = int(decode_credential_public_key(stored.public_key).alg)
        hashing = _HASHES.get(algorithm)
        if hashing is None:
            return False
        if isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, data, ec.ECDSA(hashing()))
        elif isinstance(key, rsa.RSAPublicKey) and algorithm in _PSS:
            # RFC 8230, 2: the salt has the length of the hash.
            pss = padding.PSS(padding.MGF1(hashing()), hashing().digest_size)
            key.verify(signature, data, pss, hashing())
        elif isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, data, padding.PKCS1v15(), hashing())
        else:
            return False
    except (InvalidSignature, UnsupportedAlgorithm, RefusedError, ValueError):
        return False
    return True


@cache
def decoy() -> StoredCredential:
    """Return a stored credential with a random public key, to verify against if the requested one does not exist."""
    numbers = ec.generate_private_key(ec.SECP256R1()).public_key().public_numbers()
    point = {-2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
    return StoredCredential(encode_cbor({1: 2, 3: DECOY_ALGORITHM, -1: 1, **point}), DECOY_ALGORITHM, 0)
