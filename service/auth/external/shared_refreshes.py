"""Tabs of one browser that renew a sign-in at once: the provider is asked for one of them, and all get what it says.

A provider that gives a new refresh token each time takes the old one back, and may end the sign-in of whoever brings it
once more (RFC 9700, 4.14.2). The tab that came second would be refused, and take the new tokens out of the browser. So
what a token was exchanged for is kept for a moment, sealed, where all workers of the host see it.
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

KEPT_FOR = 30.0
"""Seconds: tabs that a timer wakes ask at nearly the same time, and a slow one has sent its cookie before."""
ASKED_WITHIN = 60.0
"""Seconds after which whoever asks is thought to be gone."""
BETWEEN_LOOKS = 0.05
SIZE = 4_194_304
"""Bytes of all of them."""
LARGEST = 65_536
"""Characters of one that is kept."""
SWEEP_AT = 500


class SharedRefreshes:
    """Of one provider, in one worker."""

    def __init__(self, host: HostState, keys: Keys, provider: str) -> None:
        self._host = host
        self._provider = provider
        self._protector = Protector(keys, f"external refreshes\0{provider}")
        self._background = Background()

    async def once(self, token: str, ask: Callable[[], Awaitable[Profile]]) -> Profile:
        """What `ask` gives, or has given a moment ago for this refresh token. Raises what it raises."""
        key = hashlib.sha256(f"{self._provider}\0{token}".encode()).digest()
        while not self._is_mine(key):
            if (known := self._known(key)) is not None:
                return known
            await asyncio.sleep(BETWEEN_LOOKS)
        answer: asyncio.Future[Profile] = asyncio.get_running_loop().create_future()
        self._background.start(self._context(key, token, ask, answer))
        return await answer

    async def _context(
        self, key: bytes, token: str, ask: Callable[[], Awaitable[Profile]], answer: asyncio.Future[Profile]
    ) -> None:
        """Goes on when the tab is closed: the provider may have taken the token by then."""
        try:
            profile = await ask()
        except Exception as error:
            self._keep(key, None)
            if not answer.done():
                answer.set_exception(error)
            return
        # One that stays the same may be brought by anybody at any time.
        self._keep(key, None if profile.refresh == token else profile)
        if not answer.done():
            answer.set_result(profile)

    def _is_mine(self, key: bytes) -> bool:
        """Nobody has asked, or is asking: whoever finds it so is the one who does."""
        now = time.time()
        try:
            with self._environment.write() as transaction:
                found = transaction.get(key)
                if found is not None and now < orjson.loads(found)[0]:
                    return False
                if transaction.stat()["entries"] >= SWEEP_AT:
                    _sweep(transaction, now)
                transaction.put(key, orjson.dumps([now + ASKED_WITHIN, None]))
        except lmdb.MapFullError:
            pass
        return True

    def _known(self, key: bytes) -> Profile | None:
        """None: there is no answer, or not yet."""
        found = self._environment.get(key)
        sealed = None if found is None else orjson.loads(found)[1]
        try:
            return None if sealed is None else Profile(*orjson.loads(self._protector.open(sealed)))
        except SealError:
            return None

    def _keep(self, key: bytes, profile: Profile | None) -> None:
        """None: whoever waits asks for himself."""
        sealed = None if profile is None else self._protector.seal(orjson.dumps([*profile]))
        try:
            with self._environment.write() as transaction:
                if sealed is None or len(sealed) > LARGEST:
                    transaction.delete(key)
                else:
                    transaction.put(key, orjson.dumps([time.time() + KEPT_FOR, sealed]))
        except lmdb.MapFullError:
            return

    @property
    def _environment(self) -> Environment:
        return self._host.environment("external-refreshes", SIZE)


def _sweep(transaction: Transaction, now: float) -> None:
    with transaction.cursor() as cursor:
        old = [key for key, value in cursor if orjson.loads(value)[0] <= now]
    for key in old:
        transaction.delete(key)
