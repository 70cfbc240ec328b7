"""Attempts to sign in: what the page begins and a code has to bring back, good for every worker and for one use.

What belongs to an attempt (its state, the nonce, the verifier of PKCE) travels in a cookie that only the service can
read, so nothing is kept for whoever begins and never comes back. The cookie is bound to the browser, the state to the
cookie; that an attempt is used once is told by whoever tells it of refresh tokens, for all workers and hosts.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from typing import Any, NamedTuple

import orjson

from rowcall.core.auth.claims import User
from rowcall.core.auth.cookies import EPOCH, cookie_value
from rowcall.core.auth.external.options import Provider
from rowcall.core.auth.token_families import Mark
from rowcall.core.errors.problems import Problem
from rowcall.service.identity.refresh_token_use import RefreshTokenUse
from rowcall.service.identity.sessions import Sessions, cookie_header
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys, Protector

VALID = 900.0
"""Seconds from the page to the code: somebody may have to find a second factor first."""
MOST = 6
"""Attempts that a browser may have open; the oldest make room."""
PREFIX = "rowcall.signin."
_HOST = "__Host-"
"""Keeps other hosts of the domain from setting the cookie (RFC 6265bis, 4.1.3.2); only over https."""
_NAME = re.compile(rf"(?:^|[; ])((?:{_HOST})?{re.escape(PREFIX)}[A-Za-z0-9_-]+)=")
_STATE = re.compile(r"[A-Za-z0-9_-]{43}")


class LoginState(NamedTuple):
    provider: str
    state: str
    redirect_uri: str
    verifier: str | None
    nonce: str | None
    user: str | None
    """Who was signed in when it began, as a digest."""


class LoginStates:
    def __init__(self, keys: Keys, sessions: Sessions, single_use: RefreshTokenUse) -> None:
        self._keys = keys
        self._sessions = sessions
        self._single_use = single_use
        self._protector = Protector(keys, "external sign-in")

    def begin(
        self, scope: Any, provider: Provider, redirect_uri: str, user: User | None
    ) -> tuple[LoginState, list[str]]:
        """The attempt and the Set-Cookie headers that go with it. Raises `NoKeyError`."""
        attempt = LoginState(
            provider.key,
            secrets.token_urlsafe(32),
            redirect_uri,
            secrets.token_urlsafe(48) if provider.pkce else None,
            secrets.token_urlsafe(32) if provider.issuer else None,
            digest_of(user),
        )
        sealed = self._protector.seal(orjson.dumps([*attempt, time.time() + VALID]))
        secure = self._sessions.is_secure(scope)
        value = f"{_cookie(attempt.state, secure=secure)}={sealed}; max-age={int(VALID)}{_attributes(secure=secure)}"
        surplus = self._open(scope)[: 1 - MOST]
        return attempt, [*(self._ended(name) for name in surplus), value]

    def has(self, scope: Any, state: object) -> bool:
        """The sign-in with this state was begun in this browser, and not ended."""
        name = _cookie(state, secure=self._sessions.is_secure(scope)) if isinstance(state, str) else ""
        return name in self._open(scope)

    async def find(self, scope: Any, provider: Provider, state: object) -> tuple[LoginState, str]:
        """The attempt with this state, and the Set-Cookie header that ends it.

        Raises:
            Problem: 400, there is none, or it has expired.
        """
        if not isinstance(state, str) or not _STATE.fullmatch(state):
            raise _refusal("the state of a sign-in that has begun on this page is missing")
        name = _cookie(state, secure=self._sessions.is_secure(scope))
        sealed = cookie_value(cookie_header(scope.headers), name)
        if sealed is None:
            raise _refusal("this sign-in was not begun in this browser, or has been used, or was too long ago")
        try:
            content = await self._opened(sealed)
        except SealError:
            raise _refusal("the cookie of this sign-in does not hold") from None
        *members, expires = content
        attempt = LoginState(*members)
        if not hmac.compare_digest(attempt.state, state) or attempt.provider != provider.key:
            raise _refusal("the state belongs to another sign-in")
        if time.time() >= expires:
            raise _refusal("this sign-in was begun too long ago")
        return attempt, self._ended(name)

    async def use(self, attempt: LoginState) -> None:
        """To be called when the provider has taken the code: what strangers make up is not written down.

        Raises:
            Problem: 400, it has been used before; 503 where that cannot be told.
        """
        if not await self._single_use.is_first(Mark(hashlib.sha256(attempt.state.encode()).hexdigest(), 0), VALID):
            raise _refusal("this sign-in has been used before")

    async def _opened(self, sealed: str) -> list[Any]:
        try:
            content: list[Any] = orjson.loads(self._protector.open(sealed))
        except UnknownKeyError:
            await self._keys.read_again()
            content = orjson.loads(self._protector.open(sealed))
        return content

    def _open(self, scope: Any) -> list[str]:
        """Names of the cookies of attempts; browsers send the oldest first (RFC 6265, 5.4)."""
        return _NAME.findall(cookie_header(scope.headers)) if "cookie" in scope.headers else []

    def _ended(self, name: str) -> str:
        return f"{name}=; expires={EPOCH}{_attributes(secure=name.startswith(_HOST))}"


def digest_of(user: User | None) -> str | None:
    """Who somebody is, without saying it."""
    return None if user is None else hashlib.sha256(orjson.dumps(user.subject)).hexdigest()


def _cookie(state: str, *, secure: bool) -> str:
    """Several tabs may be signing in."""
    return f"{_HOST if secure else ''}{PREFIX}{hashlib.sha256(state.encode()).hexdigest()[:12]}"


def _attributes(*, secure: bool) -> str:
    return f"; path=/{'; secure' if secure else ''}; samesite=lax; httponly"


def _refusal(detail: str) -> Problem:
    return Problem(400, f"{detail}; begin again")
