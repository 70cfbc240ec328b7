"""The provider's own tokens, kept sealed in the browser, where a provider's configuration asks for it.

They are good only for who signed in with them: whoever comes with another session, or none, has found somebody else's.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import orjson

from rowcall.core.auth.cookies import end_session, session_value, set_session
from rowcall.core.auth.external.options import Provider
from rowcall.core.auth.schemes import CookieScheme
from rowcall.service.identity.sessions import Sessions, cookie_header
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys, Protector


class StoredToken(NamedTuple):
    user: str
    """A digest of who it is."""
    refresh: str | None
    identity: str | None
    subject: str | None
    """Who it is at the issuer."""


class StoredTokens:
    """Of one provider."""

    def __init__(self, provider: Provider, keys: Keys, sessions: Sessions) -> None:
        self._keys = keys
        self._sessions = sessions
        self._protector = Protector(keys, f"external tokens\0{provider.key}")
        name = hashlib.sha256(provider.key.encode()).hexdigest()[:12]
        self._cookie = CookieScheme(cookie=f"rowcall.tokens.{name}", path=provider.sent_path)

    def keep(self, scope: Any, kept: StoredToken) -> list[str]:
        """Set-Cookie headers."""
        value = self._protector.seal(orjson.dumps([*kept]))
        return set_session(self._cookie, value, secure=self._sessions.is_secure(scope))

    def forget(self, scope: Any) -> list[str]:
        present = cookie_header(scope.headers)
        return end_session(self._cookie, present, secure=self._sessions.is_secure(scope))

    async def read(self, scope: Any) -> StoredToken | None:
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
