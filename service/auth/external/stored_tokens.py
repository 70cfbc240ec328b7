"""Store a provider's tokens, sealed, in a cookie of the browser, if the provider's configuration says so.

They are renewed only for the user who signed in with them. Signing out revokes them, also without that session.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import orjson

from rowcall.core.auth.cookies import end_session, session_value, set_session
from rowcall.core.auth.external.options import Provider
from rowcall.core.auth.schemes import CookieScheme
from rowcall.service.identity.sessions import Sessions
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys, Protector
from rowcall.service.request_context.header_values import cookie_header


class StoredToken(NamedTuple):
    """The content of the token cookie. refresh, identity: refresh token and ID token of the provider; None if it has
    sent none.
    """

    user: str
    """Digest of the user."""
    refresh: str | None
    identity: str | None
    subject: str | None
    """The user's subject at the issuer."""


class StoredTokens:
    """The token cookie of one provider."""

    def __init__(self, provider: Provider, keys: Keys, sessions: Sessions) -> None:
        self._keys = keys
        self._sessions = sessions
        self._protector = Protector(keys, f"external tokens\0{provider.key}")
        name = hashlib.sha256(provider.key.encode()).hexdigest()[:12]
        self._cookie = CookieScheme(cookie=f"rowcall.tokens.{name}", path=provider.sent_path)

    def keep(self, scope: Any, token: StoredToken) -> list[str]:
        """Return the Set-Cookie headers that store the tokens. Raises `NoKeyError`."""
        value = self._protector.seal(orjson.dumps([*token]))
        return set_session(self._cookie, value, secure=self._sessions.is_secure(scope))

    def forget(self, scope: Any) -> list[str]:
        """Return the Set-Cookie headers that remove the tokens."""
        present = cookie_header(scope.headers)
        return end_session(self._cookie, present, secure=self._sessions.is_secure(scope))

    async def read(self, scope: Any) -> StoredToken | None:
        """Return the tokens in the cookie of a request; None: they are missing or invalid. Whether they belong to the
        present user is left to the caller (`StoredToken.user`)."""
        sealed = session_value(cookie_header(scope.headers), self._cookie.cookie) if "cookie" in scope.headers else None
        if not sealed:
            return None
        try:
            try:
                return StoredToken(*orjson.loads(self._protector.open(sealed)))
            except UnknownKeyError:
                await self._keys.read_again()
                return StoredToken(*orjson.loads(self._protector.open(sealed)))
        except SealError:
            return None
