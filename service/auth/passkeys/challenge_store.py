"""The store of issued challenges, with the purpose of each: subject, flow, user context and expiry.

The configured commands send a user context to the client, which returns it. With a changed user context, the key would
be stored for another account; also, scripts round whole numbers beyond 2^53. So the issued context is stored here,
where all workers of the host see it, and the commands receive the stored one; the client's copy is only compared with
it. Other hosts see it if they share a Redis (`redis_challenge_store`). A new key whose challenge is unknown here is
refused. For logins, which have no user context, `Auth:PasskeyAuth:IssuedChallengesOnly` decides.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import dataclass
from typing import Protocol

import lmdb
import orjson

from rowcall.service.shared_state.environment import Environment, Transaction
from rowcall.service.shared_state.host_state import HostState

ADD, REGISTER, LOGIN = "add", "register", "login"
"""Flows: a further key of a user, the first key of a new user, a login."""
SIZE = 16_777_216
"""Bytes of the environment for signed-in users, and of the one for anonymous callers."""
SWEEP_AT = 10_000
"""Number of challenges from which expired ones are deleted."""
MOST = 50_000
"""Most challenges of an environment."""


@dataclass(frozen=True, slots=True)
class IssuedChallenge:
    """What a challenge was issued for.

    flow: `ADD`, `REGISTER` or `LOGIN`. subject: digest of the user; empty for an anonymous caller. user_context: as
    JSON; None for a login. credentials: digests of the credentials that may respond; empty: any may.
    """

    flow: str
    subject: str
    user_context: str | None = None
    credentials: tuple[str, ...] = ()


class ChallengeStore(Protocol):
    """The interface of a store of issued challenges. challenge_id: as the configured command returned it. flow: `ADD`,
    `REGISTER` or `LOGIN`."""

    async def remember(self, challenge_id: str, issue: IssuedChallenge) -> bool:
        """Store a challenge; return whether there was room for it."""

    async def find(self, challenge_id: str, flow: str) -> IssuedChallenge | None:
        """Return the data with which the challenge was issued. The caller compares its flow with the requested one.

        Raises `LookupError` if it has expired. If it is unknown, a store of one host returns None, because another
        host may have issued it; a store of all hosts raises `LookupError`.
        """

    async def forget(self, challenge_id: str, flow: str) -> None:
        """Delete a challenge that has been used."""


class HostChallengeStore:
    """Challenges of one host, in LMDB environments that are opened on first use. seconds: lifetime of a challenge.

    Challenges for signed-in users (`ADD`) and for anonymous callers are in different environments, so that anonymous
    callers cannot use up the room for users.
    """

    def __init__(self, host: HostState, seconds: float) -> None:
        self._host = host
        self.seconds = seconds

    async def remember(self, challenge_id: str, issue: IssuedChallenge) -> bool:
        """Store a challenge; return whether there was room for it."""
        environment = self._environment(of_users=issue.flow == ADD)
        now = time.time()
        members = [issue.flow, issue.subject, issue.user_context, issue.credentials, now + self.seconds]
        key, value = key_of(challenge_id, issue.flow), orjson.dumps(members)
        try:
            with environment.write() as transaction:
                count = int(transaction.stat()["entries"])
                if count >= SWEEP_AT:
                    expired = [expired_key for expired_key, entry in _all(transaction) if orjson.loads(entry)[-1] < now]
                    for expired_key in expired:
                        transaction.delete(expired_key)
                    count -= len(expired)
                return count < MOST and transaction.put(key, value)
        except lmdb.MapFullError:
            return False

    async def find(self, challenge_id: str, flow: str) -> IssuedChallenge | None:
        """Return what the challenge was issued for, possibly another flow; None if this host does not know it. Raises
        `LookupError` if it has expired.
        """
        key = key_of(challenge_id, flow)
        for of_users in (True, False):
            entry = self._environment(of_users=of_users).get(key)
            if entry is not None:
                name, subject, user_context, credentials, until = orjson.loads(entry)
                if until < time.time():
                    raise LookupError(challenge_id)
                return IssuedChallenge(name, subject, user_context, tuple(credentials))
        return None

    async def forget(self, challenge_id: str, flow: str) -> None:
        with self._environment(of_users=flow == ADD).write() as transaction:
            transaction.delete(key_of(challenge_id, flow))

    def _environment(self, *, of_users: bool) -> Environment:
        return self._host.environment("passkeys" if of_users else "passkeys-of-anonymous", SIZE)


def digest(content: bytes) -> str:
    """Return the SHA-256 digest in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def canonical(content: object) -> str:
    """Return a digest of JSON that is the same for all notations of equal values: scripts write 1.0 as 1."""
    return digest(orjson.dumps(_with_floats(content), option=orjson.OPT_SORT_KEYS))


def is_same(issued: str, brought: object) -> bool:
    """Return whether the client has returned the issued context. Numbers are compared as doubles, as scripts read them.

    issued: the context as JSON text. brought: the parsed copy of the client.
    """
    return canonical(json.loads(issued)) == canonical(brought)


def _with_floats(content: object) -> object:
    """Return JSON in which whole numbers are floats, at any depth: 1 and 1.0 become equal."""
    if isinstance(content, dict):
        return {name: _with_floats(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_with_floats(value) for value in content]
    return float(content) if isinstance(content, int) and not isinstance(content, bool) else content


def key_of(challenge_id: str, flow: str) -> bytes:
    """Return the key of a challenge. Whether the flow is a login is part of it, as logins and new keys may use the same
    challenge ids; `ADD` and `REGISTER` share a key."""
    return hashlib.sha256(f"{'login' if flow == LOGIN else ADD} {challenge_id}".encode()).digest()


def _all(transaction: Transaction) -> list[tuple[bytes, bytes]]:
    with transaction.cursor() as cursor:
        return list(cursor)
