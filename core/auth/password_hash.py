"""The built-in password hash: PBKDF2-HMAC-SHA256 in the storage format of comparable services (sign-in-24).

`base64(salt ‖ key)`, 64 characters without a prefix, has 600,000 rounds. Other work factors are part of the text:
`$pbkdf2-sha256$i=1000000$…`. Hashing takes a tenth of a second of processor time: never call this on an event loop.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets

ITERATIONS = 600_000
MOST_ITERATIONS = 10_000_000
"""A stored hash with more rounds counts as invalid: it would occupy a thread for seconds."""

_SALT = 16
_KEY = 32
_PREFIXED = re.compile(r"\$pbkdf2-sha256\$i=(\d{1,8})\$([A-Za-z0-9+/]{64})", re.ASCII)


def hash_password(password: str, iterations: int = ITERATIONS) -> str:
    """Return a new hash with a random salt. iterations: rounds of PBKDF2."""
    salt = secrets.token_bytes(_SALT)
    text = base64.b64encode(salt + _derive_key(password, salt, iterations)).decode()
    return text if iterations == ITERATIONS else f"$pbkdf2-sha256$i={iterations}${text}"


def verify_password(password: str | None, stored: str, work: int = 0) -> bool:
    """Return whether the password matches. False also for an empty or missing password and an invalid hash.

    The comparison takes constant time.

    work: fewest rounds to spend. Otherwise, a hash from before the work factor was raised would reveal by its quick
    result that the user exists.
    """
    parts = _parts(stored)
    if not password or parts is None:
        return False
    iterations, salt, key = parts
    matches = hmac.compare_digest(_derive_key(password, salt, iterations), key)
    if extra_rounds := missing_rounds(iterations, work):
        _derive_key(password, salt, extra_rounds)
    return matches


def missing_rounds(iterations: int, work: int) -> int:
    """Return by how many rounds a hash falls short of `work`, 0 if it does not: after verifying the hash, that many
    further rounds are computed. iterations: rounds of the hash. work: as in `verify_password`."""
    return max(0, work - iterations)


def iterations_of(stored: str) -> int | None:
    """Return the work factor of a stored hash, or None for an invalid hash."""
    parts = _parts(stored)
    return None if parts is None else parts[0]


def decoy(iterations: int) -> str:
    """Return a random hash that no password matches. Verifying against it takes as long as against a real hash.
    iterations: rounds of the hash."""
    text = base64.b64encode(secrets.token_bytes(_SALT + _KEY)).decode()
    return text if iterations == ITERATIONS else f"$pbkdf2-sha256$i={iterations}${text}"


def _parts(stored: str) -> tuple[int, bytes, bytes] | None:
    """Return the rounds, the salt and the key of a stored hash; None: it is invalid, or has more rounds than are
    allowed."""
    iterations = ITERATIONS
    if prefixed := _PREFIXED.fullmatch(stored):
        iterations, stored = int(prefixed[1]), prefixed[2]
    try:
        raw = base64.b64decode(stored, validate=True)
    except (binascii.Error, ValueError):
        return None
    if len(raw) != _SALT + _KEY or not 0 < iterations <= MOST_ITERATIONS:
        return None
    return iterations, raw[:_SALT], raw[_SALT:]


def _derive_key(password: str, salt: bytes, iterations: int) -> bytes:
    """Return the key that PBKDF2 derives from a password, by the OpenSSL of cryptography: 0.11 s of processor time
    for 600,000 rounds; hashlib takes 0.25 s."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

    return PBKDF2HMAC(SHA256(), _KEY, salt, iterations).derive(password.encode())
