"""Password hashes by Argon2id (RFC 9106) in the PHC format, `$argon2id$v=19$m=65536,t=3,p=1$salt$hash`, for the extra
`rowcall[argon2]`. Hashing takes a tenth of a second of processor time: never call this on an event loop.
"""

from __future__ import annotations

import base64
import re
import secrets
from dataclasses import dataclass

from rowcall.core.data.record import Record

LEAST_MEMORY = 19_456
"""KiB: the least that OWASP recommends."""
MOST_MEMORY, MOST_ROUNDS, MOST_THREADS = 1_048_576, 50, 16
"""A stored hash with more counts as invalid: it would occupy a thread for seconds, or take the memory of the worker."""
_SALT, _KEY = 16, 32
_HASH = re.compile(
    r"\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$[A-Za-z0-9+/]{11,64}\$[A-Za-z0-9+/]{22,86}", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Argon2(Record):
    """The work factor of a hash. memory: in KiB. rounds: passes over the memory. threads: the degree of
    parallelism (`p`)."""

    memory: int = 65_536
    rounds: int = 3
    threads: int = 1


def work_of(stored: str) -> Argon2 | None:
    """Return the work factor of a stored hash; None: it is no Argon2id hash, or its memory, rounds or threads are not
    within the accepted bounds."""
    match = _HASH.fullmatch(stored)
    if match is None:
        return None
    memory, rounds, threads = (int(number) for number in match.groups())
    if not (8 * threads <= memory <= MOST_MEMORY and 0 < rounds <= MOST_ROUNDS and 0 < threads <= MOST_THREADS):
        return None
    return Argon2(memory, rounds, threads)


def hash_password(password: str, work: Argon2) -> str:
    """Return a new hash with a random salt. Needs the extra `rowcall[argon2]`."""
    from argon2 import PasswordHasher

    return PasswordHasher(work.rounds, work.memory, work.threads, _KEY, _SALT).hash(password)


def verify_password(password: str | None, stored: str) -> bool:
    """Return whether the password matches. False also for an empty or missing password and an invalid hash. Needs the
    extra `rowcall[argon2]`."""
    from argon2 import PasswordHasher
    from argon2.exceptions import Argon2Error, InvalidHashError

    if not password or work_of(stored) is None:
        return False
    try:
        return PasswordHasher().verify(stored, password)
    except (Argon2Error, InvalidHashError):
        return False


def decoy(work: Argon2) -> str:
    """Return a random hash without a password. Verifying against it takes as long as against a real one."""
    salt, key = (base64.b64encode(secrets.token_bytes(size)).decode().rstrip("=") for size in (_SALT, _KEY))
    return f"$argon2id$v=19$m={work.memory},t={work.rounds},p={work.threads}${salt}${key}"
