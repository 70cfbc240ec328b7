"""Sessions that the database checks: an SQL command of the configuration finds the owner of an API key, and another one
reports whether a session has been ended.

Used only if the configuration has one of the commands; otherwise, the sessions of a worker are `sessions.Sessions`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from rowcall.core.auth.claims import Claim, User
from rowcall.core.auth.options import ApiKeys, AuthOptions, SessionCheck
from rowcall.core.errors.problems import Problem
from rowcall.core.http.forwarded_headers import Forwarding
from rowcall.core.outgoing.options import ClientOptions
from rowcall.service.identity.introspection_cache import IntrospectionCache
from rowcall.service.identity.session_cookies import cancel_renewal
from rowcall.service.identity.sessions import Sessions
from rowcall.service.protection.protector import Keys
from rowcall.service.request_context.header_values import read_header
from rowcall.service.request_context.request_context import RequestContext

API_KEY = "ApiKey"
"""Scheme of a user who was authenticated by an API key."""
LONGEST_KEY = 1024
"""Most characters of an API key."""

Address = Callable[[Any], bytes | None]
"""Returns the client address, given the scope of a request."""
LookUp = Callable[[RequestContext, str], Awaitable[tuple[Claim, ...] | None]]
"""Returns the claims of the owner of the API key with this digest, or None if there is no owner."""
WatchKey = Callable[[str, str | None], Awaitable[bool]]
"""Returns whether the API key with this digest, sent from this address, is still valid. Runs without a request."""
Watch = Callable[[str, str], Awaitable[bool]]
"""Returns, as `Check` does, whether a session is still valid. Runs without a request."""
Check = Callable[[RequestContext, str, str], Awaitable[bool]]
"""Returns whether the session with this id, of the user with this id, is still valid."""


class _KeyArguments(NamedTuple):
    """The arguments of the command for API keys. digest: SHA-256 of the key, in hexadecimal digits."""

    digest: str
    address: str | None
    """None if the command does not take the address."""

    @property
    def text(self) -> str:
        """Key of the cache."""
        return self.digest if self.address is None else f"{self.digest} {self.address}"


class IntrospectedSessions(Sessions):
    """Sessions with introspection. These functions are set before the first request
    (`service.auth.session_introspection`): `look_up` finds the owner of an API key, `check` whether a session is still
    valid; `watch_key` and `watch` do the same for requests that last long, such as streams.
    """

    look_up: LookUp
    watch_key: WatchKey
    looks_at: Address | None = None
    """Set if the command for API keys takes the client address; its result is then valid for that address only."""
    check: Check
    watch: Watch

    def __init__(self, options: AuthOptions, keys: Keys, forwarding: Forwarding, client: ClientOptions) -> None:
        super().__init__(options, keys, forwarding, client)
        self._keys_asked = options.api_keys
        self._check_asked = options.session_check
        self._users: IntrospectionCache[User] = IntrospectionCache(
            0.0 if options.api_keys is None else options.api_keys.seconds
        )
        self._sent: WeakKeyDictionary[User, _KeyArguments] = WeakKeyDictionary()
        """The API key by which each user was authenticated."""
        # Shared by all streams with the same key. Checked again before a result is older than one for a request may be.
        self._keys_holding: IntrospectionCache[bool] = IntrospectionCache(
            0.0 if options.api_keys is None else max(1.0, options.api_keys.seconds) / 2
        )
        self._holding: IntrospectionCache[bool] = IntrospectionCache(
            0.0 if options.session_check is None else options.session_check.seconds
        )
        """Results of `check` and `watch`, by the ids of session and user; None: the session has ended."""

    @property
    def watched(self) -> float:
        """Seconds after which the session of an open stream is checked again, at least 1."""
        introspections = (self._keys_asked, self._check_asked)
        return max(
            1.0,
            min((introspection.seconds for introspection in introspections if introspection is not None), default=1.0),
        )

    def authenticate(self, context: RequestContext) -> Awaitable[None] | None:
        """Set `context.user` from an API key if the request has one; else authenticate as `Sessions` does, and clear
        `context.user` if the session has ended. None: this needs no waiting. The awaitable raises `Problem` if a
        command of the configuration fails."""
        api_keys = self._keys_asked
        if api_keys is not None and (key := read_header(context.scope.headers, api_keys.header)) is not None:
            return self._by_key(context, key, api_keys)
        waiting = super().authenticate(context)
        if self._check_asked is None:
            return waiting
        return (
            self._check_session(context, self._check_asked)
            if waiting is None
            else self._wait_and_check(context, waiting)
        )

    def drop_ended(self, context: RequestContext) -> Awaitable[None] | None:
        return None if self._check_asked is None else self._check_session(context, self._check_asked)

    # --- keys ----------------------------------------------------------------------------------------------------

    def _by_key(self, context: RequestContext, key: str, options: ApiKeys) -> Awaitable[None] | None:
        """Authenticate by the API key in the header. A request with a key is that of its owner or anonymous; other
        credentials are ignored. Returns an awaitable if the database has to be asked, else None.
        """
        context.user = None
        if not 0 < len(key) <= LONGEST_KEY:
            return None
        digest = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
        address = None if self.looks_at is None else self.looks_at(context.scope)
        key_of_request = _KeyArguments(digest, None if address is None else address.decode())
        cached = self._users.cached_result(key_of_request.text)
        if cached is None:
            return self._look_up(context, key_of_request)
        context.user = cached[0]
        return None

    async def _look_up(self, context: RequestContext, sent: _KeyArguments) -> None:
        """Set `context.user` to the owner of an API key, whom the database finds; None if it has no owner."""

        async def find_user() -> User | None:
            claims = await self.look_up(context, sent.digest)
            if claims is None:
                return None
            user = self.user(claims, API_KEY)
            self._sent[user] = sent
            return user

        context.user = await self._users.ask(sent.text, find_user)

    async def _is_key_valid(self, sent: _KeyArguments) -> bool:
        """Return whether an API key is still valid; a recent result is used again."""
        cached = self._keys_holding.cached_result(sent.text)
        if cached is not None:
            return cached[0] is not None

        async def check_key() -> bool | None:
            return await self.watch_key(*sent) or None

        return await self._keys_holding.ask(sent.text, check_key) is not None

    def forget_checks(self) -> None:
        """Discard the cached results of session checks after some sessions have ended, so that the next request checks
        again. Results about API keys stay cached."""
        self._holding.forget()

    # --- sessions that may have ended ----------------------------------------------------------------------------

    async def _wait_and_check(self, context: RequestContext, waiting: Awaitable[None]) -> None:
        """Wait for the authentication, then clear `context.user` if the session has ended."""
        await waiting
        if self._check_asked is not None and (more := self._check_session(context, self._check_asked)) is not None:
            await more

    def _check_session(self, context: RequestContext, options: SessionCheck) -> Awaitable[None] | None:
        """Clear `context.user` if the session has ended. None: this needs no waiting. Users without the claim that
        contains the session id are not checked.
        """
        user: User | None = context.user
        session_id = None if user is None else user.first(options.claim)
        if user is None or session_id is None:
            return None
        user_id = next(iter(user.ids), "")
        cached = self._holding.cached_result(f"{session_id}\0{user_id}")
        if cached is None:
            return self._check_now(context, session_id, user_id)
        if cached[0] is None:
            self._drop(context)
        return None

    @staticmethod
    def _drop(context: RequestContext) -> None:
        """Make the caller of a session that has ended anonymous, without a renewal of the session."""
        context.user = None
        cancel_renewal(context)

    async def is_still_valid(self, user: User) -> bool:
        """Return whether the API key or the session of a user with a long request, such as a stream, is still valid.
        True for users without a session id. A recent result is used again. Raises the errors of the database."""
        if (sent := self._sent.get(user)) is not None:
            return await self._is_key_valid(sent)
        session_id = None if self._check_asked is None else user.first(self._check_asked.claim)
        if session_id is None:
            return True
        user_id = next(iter(user.ids), "")
        key = f"{session_id}\0{user_id}"
        cached = self._holding.cached_result(key)
        if cached is not None:
            return cached[0] is not None

        async def check_session() -> bool | None:
            return await self.watch(session_id, user_id) or None

        return await self._holding.ask(key, check_session) is not None

    async def _check_now(self, context: RequestContext, session_id: str, user_id: str) -> None:
        """Ask the database, and clear `context.user` if the session has ended. If the check fails, the session is not
        renewed. session_id: id of the session. user_id: id of its user; empty if it has none.
        """

        async def check_session() -> bool | None:
            return await self.check(context, session_id, user_id) or None

        try:
            valid = await self._holding.ask(f"{session_id}\0{user_id}", check_session)
        except Problem:
            cancel_renewal(context)
            raise
        if valid is None:
            self._drop(context)
