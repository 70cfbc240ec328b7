"""Store of challenges for several hosts that share a Redis.

A challenge that neither Redis nor this host knows is refused. While Redis is unavailable, each host knows only its own
challenges; other challenges lead to 503. Redis expires entries by its own clock, so the clocks of the hosts may differ.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from rowcall.core.errors.problems import unavailable
from rowcall.service.auth.passkeys.challenge_store import HostChallengeStore, IssuedChallenge, key_of
from rowcall.service.shared_state.redis_link import LateLink, RedisUnavailableError

PREFIX = b"rowcall:passkeys:"


class RedisChallengeStore:
    """Stores each challenge twice, in Redis and on this host. `find` reads Redis first, and this host if Redis is
    unavailable or does not know the challenge. To be created in the running event loop.

    host: the store of this host. address: of Redis. application: distinguishes services in the same Redis, whose
    challenges may have the same ids.
    """

    def __init__(self, host: HostChallengeStore, address: str, application: str) -> None:
        self._host = host
        self._application = hashlib.sha256(application.encode()).hexdigest()[:16].encode()
        self._redis = LateLink(
            address, "Auth:PasskeyAuth:RedisConfiguration", "each host accepts only the challenges it has issued"
        )

    async def remember(self, challenge_id: str, issue: IssuedChallenge) -> bool:
        """Store a challenge in Redis and on this host. Return whether at least one of them has stored it: Redis does
        not if it is unavailable, and this host does not if it has no room.
        """
        stored = await self._host.remember(challenge_id, issue)
        members = orjson.dumps([issue.flow, issue.subject, issue.user_context, issue.credentials])
        try:
            await self._ask("set", self._key(challenge_id, issue.flow), members, px=int(self._host.seconds * 1000))
        except RedisUnavailableError:
            return stored
        return True

    async def find(self, challenge_id: str, flow: str) -> IssuedChallenge | None:
        """Return what the challenge was issued for.

        Raises:
            LookupError: it was never issued or has expired.
            Problem: 503, Redis is unavailable and this host does not know it.
        """
        try:
            stored = await self._read(self._key(challenge_id, flow))
        except RedisUnavailableError:
            local_issue = await self._host.find(challenge_id, flow)
            if local_issue is None:
                raise unavailable(
                    "the challenge cannot be checked, as Redis is unavailable; try again in a moment"
                ) from None
            return local_issue
        if stored is not None:
            issue = _issue_of(stored)
            if issue is not None:
                return issue
        # It may have been issued while Redis was unavailable.
        local_issue = await self._host.find(challenge_id, flow)
        if local_issue is None:
            raise LookupError(challenge_id)
        return local_issue

    async def forget(self, challenge_id: str, flow: str) -> None:
        """Delete a challenge on this host, and in Redis if that is available."""
        await self._host.forget(challenge_id, flow)
        try:
            await self._ask("delete", self._key(challenge_id, flow))
        except RedisUnavailableError:
            # The verify command has consumed the challenge as well.
            return

    async def _read(self, key: bytes) -> Any:
        """Return the stored entry; None: there is none. Raises `RedisUnavailableError` if Redis is unavailable."""
        link = await self._redis.link()
        if link is None:
            raise RedisUnavailableError
        return await link.run("return redis.call('GET', KEYS[1])", [key], [])

    async def _ask(self, command: str, *arguments: Any, **options: Any) -> Any:
        """Run a command of the Redis client, and return its reply. Raises `RedisUnavailableError` if Redis is
        unavailable.
        """
        link = await self._redis.link()
        if link is None:
            raise RedisUnavailableError
        return await link.ask(lambda: getattr(link.client, command)(*arguments, **options))

    def _key(self, challenge_id: str, flow: str) -> bytes:
        return PREFIX + self._application + b":" + key_of(challenge_id, flow).hex().encode()


def _issue_of(stored: bytes) -> IssuedChallenge | None:
    """Return what a challenge was issued for, or None if the stored bytes are corrupt."""
    try:
        name, subject, user_context, credentials = orjson.loads(stored)
        return IssuedChallenge(name, subject, user_context, tuple(credentials))
    except (ValueError, TypeError):
        return None
