"""The built-in password hasher: PBKDF2-HMAC-SHA256 in the storage format of the field (sign-in-24).

`base64(salt ‖ key)`, 64 characters without a prefix, stands for 600,000 rounds. Other work factors say themselves what
they are: `$pbkdf2-sha256$i=1000000$…`. Hashing takes a tenth of a second of a processor: never call this on an
event loop.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets

ITERATIONS = 600_000
MOST_ITERATIONS = 10_000_000
"""A stored hash that asks for more is taken for none: it would hold up a thread for seconds."""

_SALT = 16
_KEY = 32
_PREFIXED = re.compile(r"\$pbkdf2-sha256\$i=(\d{1,8})\$([A-Za-z0-9+/]{64})")


def hash_password(password: str, iterations: int = ITERATIONS) -> str:
    """A new hash with a salt of its own."""
    salt = secrets.token_bytes(_SALT)
    text = base64.b64encode(salt + _derived(password, salt, iterations)).decode()
    return text if iterations == ITERATIONS else f"$pbkdf2-sha256$i={iterations}${text}"


def verify_password(password: str | None, stored: str, work: int = 0) -> bool:
    """False as well for an empty or missing password and for what is no hash. Compares in constant time.

    work: rounds to spend at least. A hash of less work, from before the work factor was raised, would otherwise tell
    by its quick answer that somebody is known by this name.
    """
    parts = _parts(stored)
    if not password or parts is None:
        return False
    iterations, salt, key = parts
    fits = hmac.compare_digest(_derived(password, salt, iterations), key)
    if missing := missing_rounds(iterations, work):
        _derived(password, salt, missing)
    return fits


def missing_rounds(iterations: int, work: int) -> int:
    """What a check against a hash of so many rounds has to spend besides."""
    return max(0, work - iterations)


def iterations_of(stored: str) -> int | None:
    """The work factor of a stored hash; None for what is no hash."""
    parts = _parts(stored)
    return None if parts is None else parts[0]


def decoy(iterations: int) -> str:
    """A hash that no password has: checking against it takes as long as checking a real one."""
    text = base64.b64encode(secrets.token_bytes(_SALT + _KEY)).decode()
    return text if iterations == ITERATIONS else f"$pbkdf2-sha256$i={iterations}${text}"


def _parts(stored: str) -> tuple[int, bytes, bytes] | None:
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


def _derived(password: str, salt: bytes, iterations: int) -> bytes:
    """By the OpenSSL that cryptography brings: 0.11 s of a processor for 600,000 rounds, where hashlib takes 0.25."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

    return PBKDF2HMAC(SHA256(), _KEY, salt, iterations).derive(password.encode())
