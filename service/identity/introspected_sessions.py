"""Sessions of which the database is asked: API keys, which it looks up, and sessions that it may have ended.

Only where the configuration asks for one of them; the sessions of all other services are `sessions.Sessions`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from rowcall.core.auth.claims import Claim, User
from rowcall.core.auth.options import ApiKeys, AuthOptions, SessionCheck
from rowcall.core.http.forwarded_headers import Forwarding
from rowcall.service.identity.introspection_cache import IntrospectionCache
from rowcall.service.identity.sessions import Sessions
from rowcall.service.protection.protector import Keys
from rowcall.service.request_context.request_context import RequestContext

API_KEY = "ApiKey"
"""What stands for the scheme of who has sent a key."""
LONGEST_KEY = 1024

Address = Callable[[Any], bytes | None]
"""Of the client, given the scope of a request."""
LookUp = Callable[[RequestContext, str], Awaitable[tuple[Claim, ...] | None]]
"""Claims for the digest of a key; None: nobody has it."""
WatchKey = Callable[[str, str | None], Awaitable[bool]]
"""Whether the key of this digest, sent from this address, still is somebody's, for nobody's request."""
Watch = Callable[[str, str], Awaitable[bool]]
"""The same as the next one, for nobody's request."""
Check = Callable[[RequestContext, str, str], Awaitable[bool]]
"""Whether the session of this id, of the user with this id, still holds."""


class _Sent(NamedTuple):
    """A key as the database is asked about it."""

    digest: str
    address: str | None
    """None: it is asked about the key alone."""

    @property
    def text(self) -> str:
        return self.digest if self.address is None else f"{self.digest} {self.address}"


class IntrospectedSessions(Sessions):
    """look_up and check: given by whoever can ask the database, before the first request."""

    look_up: LookUp
    watch_key: WatchKey
    looks_at: Address | None = None
    """What else the command of keys is told: its answer holds for no other."""
    check: Check
    watch: Watch

    def __init__(self, options: AuthOptions, keys: Keys, forwarding: Forwarding) -> None:
        super().__init__(options, keys, forwarding)
        self._keys_asked = options.api_keys
        self._check_asked = options.session_check
        self._users: IntrospectionCache[User] = IntrospectionCache(
            0.0 if options.api_keys is None else options.api_keys.seconds
        )
        self._sent: WeakKeyDictionary[User, _Sent] = WeakKeyDictionary()
        """By which key somebody was found."""
        # Once for all streams of a key, and anew before the answer is as old as one for a request may be.
        self._keys_holding: IntrospectionCache[bool] = IntrospectionCache(
            0.0 if options.api_keys is None else max(1.0, options.api_keys.seconds) / 2
        )
        self._holding: IntrospectionCache[bool] = IntrospectionCache(
            0.0 if options.session_check is None else options.session_check.seconds
        )

    @property
    def watched(self) -> float:
        """Seconds after which it is asked again whether somebody's stream may go on."""
        asked = (self._keys_asked, self._check_asked)
        return max(1.0, min((one.seconds for one in asked if one is not None), default=1.0))

    def authenticate(self, context: RequestContext) -> Awaitable[None] | None:
        api_keys = self._keys_asked
        if api_keys is not None and (key := context.scope.headers.get(api_keys.header)) is not None:
            return self._by_key(context, key, api_keys)
        waiting = super().authenticate(context)
        if self._check_asked is None:
            return waiting
        return self._checked(context, self._check_asked) if waiting is None else self._later(context, waiting)

    def drop_ended(self, context: RequestContext) -> Awaitable[None] | None:
        return None if self._check_asked is None else self._checked(context, self._check_asked)

    # --- keys ----------------------------------------------------------------------------------------------------

    def _by_key(self, context: RequestContext, key: str, options: ApiKeys) -> Awaitable[None] | None:
        """A request with a key is that of its owner or of nobody, whatever it brings along besides."""
        context.user = None
        if not 0 < len(key) <= LONGEST_KEY:
            return None
        digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
        address = None if self.looks_at is None else self.looks_at(context.scope)
        sent = _Sent(digest, None if address is None else address.decode())
        known = self._users.known(sent.text)
        if known is None:
            return self._look_up(context, sent)
        context.user = known[0]
        return None

    async def _look_up(self, context: RequestContext, sent: _Sent) -> None:
        async def question() -> User | None:
            claims = await self.look_up(context, sent.digest)
            if claims is None:
                return None
            user = self.user(claims, API_KEY)
            self._sent[user] = sent
            return user

        context.user = await self._users.ask(sent.text, question)

    async def _key_holds(self, sent: _Sent) -> bool:
        known = self._keys_holding.known(sent.text)
        if known is not None:
            return known[0] is not None

        async def question() -> bool | None:
            return await self.watch_key(*sent) or None

        return await self._keys_holding.ask(sent.text, question) is not None

    def forget_checks(self) -> None:
        """Some sessions have ended: the next request asks again."""
        self._holding.forget()

    # --- sessions that may have ended ----------------------------------------------------------------------------

    async def _later(self, context: RequestContext, waiting: Awaitable[None]) -> None:
        await waiting
        if self._check_asked is not None and (more := self._checked(context, self._check_asked)) is not None:
            await more

    def _checked(self, context: RequestContext, options: SessionCheck) -> Awaitable[None] | None:
        user: User | None = context.user
        number = None if user is None else user.first(options.claim)
        if user is None or number is None:
            return None
        owner = next(iter(user.ids), "")
        known = self._holding.known(f"{number}\0{owner}")
        if known is None:
            return self._check_now(context, number, owner)
        if known[0] is None:
            context.user = None
        return None

    async def holds(self, user: User) -> bool:
        """Of somebody whose request lasts. Raises what asking the database raises."""
        if (sent := self._sent.get(user)) is not None:
            return await self._key_holds(sent)
        number = None if self._check_asked is None else user.first(self._check_asked.claim)
        if number is None:
            return True
        owner = next(iter(user.ids), "")
        key = f"{number}\0{owner}"
        known = self._holding.known(key)
        if known is not None:
            return known[0] is not None

        async def question() -> bool | None:
            return await self.watch(number, owner) or None

        return await self._holding.ask(key, question) is not None

    async def _check_now(self, context: RequestContext, number: str, owner: str) -> None:
        async def question() -> bool | None:
            return await self.check(context, number, owner) or None

        if await self._holding.ask(f"{number}\0{owner}", question) is None:
            context.user = None
