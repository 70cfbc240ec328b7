"""What a challenge was issued for, where several hosts ask for passkeys together: written down in Redis too.

A challenge that neither Redis nor this host knows is refused. While Redis is gone each host knows its own; of others
it cannot be told. Redis forgets by its own clock, so hosts need not agree on the time.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from rowcall.core.errors.problems import unavailable
from rowcall.service.auth.passkeys.challenge_store import HostChallengeStore, IssuedChallenge, key_of
from rowcall.service.shared_state.redis_link import GoneError, LateLink

PREFIX = b"rowcall:passkeys:"


class RedisChallengeStore:
    """To be made in the running event loop. application: others in this Redis may number their challenges alike."""

    def __init__(self, host: HostChallengeStore, address: str, application: str) -> None:
        self._host = host
        self._application = hashlib.sha256(application.encode()).hexdigest()[:16].encode()
        self._redis = LateLink(
            address, "Auth:PasskeyAuth:RedisConfiguration", "each host takes only the challenges it has issued"
        )

    async def remember(self, challenge_id: str, issue: IssuedChallenge) -> bool:
        """Whether there was room for it."""
        here = await self._host.remember(challenge_id, issue)
        members = orjson.dumps([issue.flow, issue.subject, issue.user_context, issue.credentials])
        try:
            await self._ask("set", self._key(challenge_id, issue.flow), members, px=int(self._host.seconds * 1000))
        except GoneError:
            return here
        return True

    async def find(self, challenge_id: str, flow: str) -> IssuedChallenge | None:
        """What it was issued for.

        Raises:
            LookupError: nobody has issued it, or it is out of date.
            Problem: 503, it cannot be told.
        """
        try:
            kept = await self._read(self._key(challenge_id, flow))
        except GoneError:
            here = await self._host.find(challenge_id, flow)
            if here is None:
                raise unavailable("it cannot be told what this challenge was issued for") from None
            return here
        if kept is not None:
            found = _issue_of(kept)
            if found is not None:
                return found
        # Issued while Redis was gone.
        here = await self._host.find(challenge_id, flow)
        if here is None:
            raise LookupError(challenge_id)
        return here

    async def forget(self, challenge_id: str, flow: str) -> None:
        await self._host.forget(challenge_id, flow)
        try:
            await self._ask("delete", self._key(challenge_id, flow))
        except GoneError:
            # The command that verifies it has consumed it, too.
            return

    async def _read(self, key: bytes) -> Any:
        """Raises `GoneError`."""
        link = await self._redis.link()
        if link is None:
            raise GoneError
        return await link.run("return redis.call('GET', KEYS[1])", [key], [])

    async def _ask(self, command: str, *arguments: Any, **options: Any) -> Any:
        """Raises `GoneError`."""
        link = await self._redis.link()
        if link is None:
            raise GoneError
        return await link.ask(lambda: getattr(link.client, command)(*arguments, **options))

    def _key(self, challenge_id: str, flow: str) -> bytes:
        return PREFIX + self._application + b":" + key_of(challenge_id, flow).hex().encode()


def _issue_of(stored: bytes) -> IssuedChallenge | None:
    """Return the issue, or None if the stored bytes are corrupt."""
    try:
        name, subject, user_context, credentials = orjson.loads(stored)
        return IssuedChallenge(name, subject, user_context, tuple(credentials))
    except (ValueError, TypeError):
        return None
