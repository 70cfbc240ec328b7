"""Login states of sign-ins at providers: created when a sign-in begins, and required with the code at its end. Any
worker accepts a login state, but only once.

A login state (state, nonce, PKCE verifier) travels in a sealed cookie, so the service stores nothing for sign-ins that
are never completed. The cookie is bound to the browser and the state to the cookie. The store of used refresh tokens
ensures, for all workers and hosts, that a login state is used once.
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
from rowcall.service.identity.sessions import Sessions
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys, Protector
from rowcall.service.request_context.header_values import cookie_header

VALID = 900.0
"""Seconds from the page to the code. The user may need time for a second factor."""
MOST = 6
"""Most login states that a browser may have open; the oldest are removed."""
PREFIX = "rowcall.signin."
"""Prefix of the cookies' names."""
_HOST = "__Host-"
"""Prevents other hosts of the domain from setting the cookie (RFC 6265bis, 4.1.3.2); only over https."""
_NAME = re.compile(rf"(?:^|[; ])((?:{_HOST})?{re.escape(PREFIX)}[A-Za-z0-9_-]+)=")
_STATE = re.compile(r"[A-Za-z0-9_-]{43}")


class LoginState(NamedTuple):
    """The state of one sign-in that has begun. verifier: of PKCE. nonce: for the ID token. None: not used with this
    provider.
    """

    provider: str
    state: str
    redirect_uri: str
    verifier: str | None
    nonce: str | None
    user: str | None
    """Digest of the user who was signed in when the sign-in began; None: no user was."""


class LoginStates:
    """Creates, finds and uses login states."""

    def __init__(self, keys: Keys, sessions: Sessions, single_use: RefreshTokenUse) -> None:
        self._keys = keys
        self._sessions = sessions
        self._single_use = single_use
        self._protector = Protector(keys, "external sign-in")

    def begin(
        self, scope: Any, provider: Provider, redirect_uri: str, user: User | None
    ) -> tuple[LoginState, list[str]]:
        """Return a new login state and its Set-Cookie headers, which also remove the first login states of the browser
        if it has `MOST` or more. Raises `NoKeyError`.

        redirect_uri: to which the provider sends the code. user: who is signed in already, or None; the login state is
        bound to this user.
        """
        login_state = LoginState(
            provider.key,
            secrets.token_urlsafe(32),
            redirect_uri,
            secrets.token_urlsafe(48) if provider.pkce else None,
            secrets.token_urlsafe(32) if provider.issuer else None,
            digest_of(user),
        )
        sealed = self._protector.seal(orjson.dumps([*login_state, time.time() + VALID]))
        secure = self._sessions.is_secure(scope)
        value = (
            f"{_cookie(login_state.state, secure=secure)}={sealed}; max-age={int(VALID)}{_attributes(secure=secure)}"
        )
        surplus = self._cookie_names(scope)[: 1 - MOST]
        return login_state, [*(self._removal_cookie(name) for name in surplus), value]

    def has(self, scope: Any, state: object) -> bool:
        """Return whether the sign-in with this state began in this browser and has not been completed."""
        name = _cookie(state, secure=self._sessions.is_secure(scope)) if isinstance(state, str) else ""
        return name in self._cookie_names(scope)

    async def find(self, scope: Any, provider: Provider, state: object) -> tuple[LoginState, str]:
        """Return the login state with this state, and the Set-Cookie header that removes it.

        Raises:
            Problem: 400, it does not exist or has expired.
        """
        if not isinstance(state, str) or not _STATE.fullmatch(state):
            raise _refusal("the state of a sign-in that has begun on this page is missing")
        name = _cookie(state, secure=self._sessions.is_secure(scope))
        sealed = cookie_value(cookie_header(scope.headers), name)
        if sealed is None:
            raise _refusal("this sign-in was not begun in this browser, or has been used, or was too long ago")
        try:
            content = await self._decrypt_cookie(sealed)
        except SealError:
            raise _refusal("the cookie of this sign-in is not valid") from None
        *members, expires = content
        login_state = LoginState(*members)
        if not hmac.compare_digest(login_state.state, state) or login_state.provider != provider.key:
            raise _refusal("the state belongs to another sign-in")
        if time.time() >= expires:
            raise _refusal("this sign-in was begun too long ago")
        return login_state, self._removal_cookie(name)

    async def use(self, attempt: LoginState) -> None:
        """Mark a login state as used. To be called after the provider has accepted the code, so that invented states
        are not recorded.

        Raises:
            Problem: 400, it was used before; 503 if this cannot be determined.
        """
        if not await self._single_use.is_first(Mark(hashlib.sha256(attempt.state.encode()).hexdigest(), 0), VALID):
            raise _refusal("this sign-in has been used before")

    async def _decrypt_cookie(self, sealed: str) -> list[Any]:
        """Return the content of a sealed cookie: the members of a `LoginState`, and the time in seconds since 1970 at
        which it expires. If the key is unknown, the key ring is read again. Raises `SealError`.
        """
        try:
            content: list[Any] = orjson.loads(self._protector.open(sealed))
        except UnknownKeyError:
            await self._keys.read_again()
            content = orjson.loads(self._protector.open(sealed))
        return content

    def _cookie_names(self, scope: Any) -> list[str]:
        """Return the names of the login state cookies; browsers send the oldest first (RFC 6265, 5.4)."""
        return _NAME.findall(cookie_header(scope.headers)) if "cookie" in scope.headers else []

    def _removal_cookie(self, name: str) -> str:
        """Return the Set-Cookie header that removes the cookie with this name."""
        return f"{name}=; expires={EPOCH}{_attributes(secure=name.startswith(_HOST))}"


def digest_of(user: User | None) -> str | None:
    """Return a digest that identifies the user without revealing the identity; None for an anonymous caller."""
    return None if user is None else hashlib.sha256(orjson.dumps(user.subject)).hexdigest()


def _cookie(state: str, *, secure: bool) -> str:
    """Return the cookie's name, which depends on the state, because several tabs may sign in at the same time. secure:
    the client uses https, so the name has the prefix `__Host-`.
    """
    return f"{_HOST if secure else ''}{PREFIX}{hashlib.sha256(state.encode()).hexdigest()[:12]}"


def _attributes(*, secure: bool) -> str:
    """Return the attributes of a cookie that all paths of this host receive. secure: only over https."""
    return f"; path=/{'; secure' if secure else ''}; samesite=lax; httponly"


def _refusal(detail: str) -> Problem:
    """Return the 400 for a login state that cannot be used."""
    return Problem(400, f"{detail}; begin again")
