"""Share one refresh at the provider between the tabs of a browser that refresh at the same time.

A provider with rotating refresh tokens invalidates the old one, and may end the sign-in if it is used again (RFC 9700,
4.14.2). Without sharing, the second tab would be refused and would remove the new tokens from the browser. So the
result for a token is stored for a short time, sealed, where all workers of the host see it.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable

import lmdb
import orjson

from rowcall.service.auth.external.profiles import Profile
from rowcall.service.background import Background
from rowcall.service.protection.errors import SealError
from rowcall.service.protection.protector import Keys, Protector
from rowcall.service.shared_state.environment import Environment, Transaction
from rowcall.service.shared_state.host_state import HostState

STORED_SECONDS = 30.0
"""Seconds for which a result is stored. Tabs with a timer refresh at nearly the same time, and a slow tab may have sent
the old cookie."""
ASKED_WITHIN = 60.0
"""Seconds after which a worker that began a refresh is considered gone."""
BETWEEN_LOOKS = 0.05
"""Seconds between two checks for the result of another worker."""
SIZE = 4_194_304
"""Bytes of the environment with all results."""
LARGEST = 65_536
"""Most characters of a sealed result that is stored."""
SWEEP_AT = 500
"""Entries from which expired ones are deleted."""


class SharedRefreshes:
    """Shared refreshes of one provider in one worker."""

    def __init__(self, host: HostState, keys: Keys, provider: str) -> None:
        self._host = host
        self._provider = provider
        self._protector = Protector(keys, f"external refreshes\0{provider}")
        self._background = Background()

    async def refresh_once(self, token: str, ask: Callable[[], Awaitable[Profile]]) -> Profile:
        """Return the profile for a refresh token of the provider. If another request has refreshed the token a moment
        ago or is doing so, the result is that of this refresh; otherwise `ask` is called, which refreshes the token at
        the provider. `ask` is also called if the other refresh fails, if the provider has returned the same refresh
        token, or if the other result cannot be stored. Raises what `ask` raises."""
        key = hashlib.sha256(f"{self._provider}\0{token}".encode()).digest()
        while not self._is_mine(key):
            if (stored := self._stored_result(key)) is not None:
                return stored
            await asyncio.sleep(BETWEEN_LOOKS)
        result: asyncio.Future[Profile] = asyncio.get_running_loop().create_future()
        self._background.start(self._run(key, token, ask, result))
        return await result

    async def _run(
        self, key: bytes, token: str, ask: Callable[[], Awaitable[Profile]], answer: asyncio.Future[Profile]
    ) -> None:
        """Call `ask`, set `answer` to its result or error, and store the result for other tabs. This continues if the
        tab is closed, because the provider may have used the token.

        After an error, the entry is deleted, so that other tabs refresh by themselves; also if the refresh token has
        not changed, because it can then be used again at any time. key: as for `_is_mine`. token: the refresh token.
        """
        try:
            profile = await ask()
        except Exception as error:
            try:
                self._keep(key, None)
            finally:
                if not answer.done():
                    answer.set_exception(error)
            return
        # The request is answered also if storing fails.
        try:
            # A refresh token that stays the same can be used at any time, so its result is not shared.
            self._keep(key, None if profile.refresh == token else profile)
        finally:
            if not answer.done():
                answer.set_result(profile)

    def _is_mine(self, key: bytes) -> bool:
        """Acquire the right to refresh. Return False if another refresh is in progress or its result is stored. If
        there is no room to record the refresh, it is not shared, and the result is True. key: digest of provider and
        refresh token.
        """
        now = time.time()
        try:
            with self._environment.write() as transaction:
                entry = transaction.get(key)
                if entry is not None and now < orjson.loads(entry)[0]:
                    return False
                if transaction.stat()["entries"] >= SWEEP_AT:
                    _sweep(transaction, now)
                transaction.put(key, orjson.dumps([now + ASKED_WITHIN, None]))
        except lmdb.MapFullError:
            pass
        return True

    def _stored_result(self, key: bytes) -> Profile | None:
        """Return the stored result; None if there is none yet, or if it cannot be decrypted. key: as for `_is_mine`."""
        entry = self._environment.get(key)
        sealed = None if entry is None else orjson.loads(entry)[1]
        try:
            return None if sealed is None else Profile(*orjson.loads(self._protector.open(sealed)))
        except SealError:
            return None

    def _keep(self, key: bytes, profile: Profile | None) -> None:
        """Store the result of a refresh. profile: None: the entry is deleted, so that a waiting request refreshes by
        itself; the same happens if the sealed result is longer than `LARGEST`. If there is no room, the entry stays as
        it is. Raises `NoKeyError`. key: as for `_is_mine`."""
        sealed = None if profile is None else self._protector.seal(orjson.dumps([*profile]))
        try:
            with self._environment.write() as transaction:
                if sealed is None or len(sealed) > LARGEST:
                    transaction.delete(key)
                else:
                    transaction.put(key, orjson.dumps([time.time() + STORED_SECONDS, sealed]))
        except lmdb.MapFullError:
            return

    @property
    def _environment(self) -> Environment:
        return self._host.environment("external-refreshes", SIZE)


def _sweep(transaction: Transaction, now: float) -> None:
    """Delete entries that have expired before `now`, in seconds since 1970."""
    with transaction.cursor() as cursor:
        expired = [key for key, value in cursor if orjson.loads(value)[0] <= now]
    for key in expired:
        transaction.delete(key)
