"""What a challenge was issued for: to whom, in which flow, with which user context, and until when.

The commands of the sheet give the client a user context to bring back. A client that brings another one would have its
key stored for another account, and scripts round whole numbers beyond 2^53. So the issued context is stored here, where
all workers of the host see it, and it is what the commands get; the client's copy is only compared with it. Other
hosts see it where they share a Redis (`issued_by_hosts`). A key whose challenge is not known here is refused; for
logins, which have no user context, `Auth:PasskeyAuth:IssuedChallengesOnly` decides.
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
SIZE = 16_777_216
"""Bytes, for signed-in users and for strangers each."""
SWEEP_AT = 10_000
"""Challenges from which those that are out of date are looked for."""
MOST = 50_000


@dataclass(frozen=True, slots=True)
class IssuedChallenge:
    """context: the user context as JSON. credentials: digests of those that may answer, where only some may."""

    flow: str
    subject: str
    user_context: str | None = None
    credentials: tuple[str, ...] = ()


class ChallengeStore(Protocol):
    """Where it is written down."""

    async def remember(self, challenge_id: str, issue: IssuedChallenge) -> bool:
        """Whether there was room for it."""

    async def find(self, challenge_id: str, flow: str) -> IssuedChallenge | None:
        """What it was issued for, perhaps for another flow than this one; None: it is not known here. Raises
        `LookupError`: it is out of date, or nobody has issued it."""

    async def forget(self, challenge_id: str, flow: str) -> None:
        """It has been answered."""


class HostChallengeStore:
    """Opened when it is first needed. strangers: challenges for who is not signed in have a place of their own, so that
    nobody can fill that of the others.
    """

    def __init__(self, host: HostState, seconds: float) -> None:
        self._host = host
        self.seconds = seconds

    async def remember(self, challenge_id: str, issue: IssuedChallenge) -> bool:
        """Whether there was room for it."""
        environment = self._environment(of_users=issue.flow == ADD)
        now = time.time()
        members = [issue.flow, issue.subject, issue.user_context, issue.credentials, now + self.seconds]
        key, value = key_of(challenge_id, issue.flow), orjson.dumps(members)
        try:
            with environment.write() as transaction:
                count = int(transaction.stat()["entries"])
                if count >= SWEEP_AT:
                    old = [known for known, kept in _all(transaction) if orjson.loads(kept)[-1] < now]
                    for known in old:
                        transaction.delete(known)
                    count -= len(old)
                return count < MOST and transaction.put(key, value)
        except lmdb.MapFullError:
            return False

    async def find(self, challenge_id: str, flow: str) -> IssuedChallenge | None:
        """What it was issued for, perhaps for another flow than this one. Raises `LookupError`: it is out of date."""
        key = key_of(challenge_id, flow)
        for of_users in (True, False):
            kept = self._environment(of_users=of_users).get(key)
            if kept is not None:
                name, subject, user_context, credentials, until = orjson.loads(kept)
                if until < time.time():
                    raise LookupError(challenge_id)
                return IssuedChallenge(name, subject, user_context, tuple(credentials))
        return None

    async def forget(self, challenge_id: str, flow: str) -> None:
        with self._environment(of_users=flow == ADD).write() as transaction:
            transaction.delete(key_of(challenge_id, flow))

    def _environment(self, *, of_users: bool) -> Environment:
        return self._host.environment("passkeys" if of_users else "passkeys-of-strangers", SIZE)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def canonical(content: object) -> str:
    """Of JSON, however it is written: scripts have one kind of number, and write 1.0 as 1."""
    return digest(orjson.dumps(_plain(content), option=orjson.OPT_SORT_KEYS))


def is_same(issued: str, brought: object) -> bool:
    """Whether the client has brought the issued context back, as far as a script can: it reads numbers as doubles."""
    return canonical(json.loads(issued)) == canonical(brought)


def _plain(content: object) -> object:
    if isinstance(content, dict):
        return {name: _plain(value) for name, value in content.items()}
    if isinstance(content, list):
        return [_plain(value) for value in content]
    return float(content) if isinstance(content, int) and not isinstance(content, bool) else content


def key_of(challenge_id: str, flow: str) -> bytes:
    """Those of logins and of registrations may be numbered alike."""
    return hashlib.sha256(f"{'login' if flow == LOGIN else ADD} {challenge_id}".encode()).digest()


def _all(transaction: Transaction) -> list[tuple[bytes, bytes]]:
    with transaction.cursor() as cursor:
        return list(cursor)
