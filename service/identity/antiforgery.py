"""Antiforgery tokens: a random token in a cookie, and a token that is sealed for this cookie and the signed-in user.

A page of another site can make the browser send the cookie, but cannot read the sealed token, which must come in a
header or a form field. It is sealed with the key ring, so every worker and host accepts it (browsers-8).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import Any, NamedTuple

import orjson

from rowcall.core.auth.antiforgery import AntiforgeryOptions
from rowcall.core.auth.claims import User
from rowcall.core.auth.cookies import cookie_value
from rowcall.service.identity.sessions import Sessions
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys, Protector
from rowcall.service.request_context.header_values import cookie_header
from rowcall.service.request_context.protocols import Headers

_RANDOM = re.compile(r"[A-Za-z0-9_-]{43}")
LONGEST = 1024
"""Most characters of a token that is verified."""


class IssuedToken(NamedTuple):
    """A sealed token and the headers of its response."""

    token: str
    headers: Headers
    """Headers of the response that carries the token."""


class Antiforgery:
    """Issues and verifies the tokens of one worker."""

    def __init__(self, options: AntiforgeryOptions, keys: Keys, sessions: Sessions) -> None:
        self.options = options
        self._keys = keys
        self._sessions = sessions
        self._protector = Protector(keys, "antiforgery")

    def issue(self, scope: Any, user: User | None) -> IssuedToken:
        """Return a new token and the headers to send with it. user: the caller, to whom the token is bound; None:
        anonymous. Raises `NoKeyError`.

        An existing cookie is reused, so that all open pages of the browser stay valid.
        """
        headers: Headers = [("cache-control", "no-cache, no-store"), ("pragma", "no-cache")]
        if self.options.refuses_frames:
            headers.append(("x-frame-options", "SAMEORIGIN"))
        cookie = self._cookie(scope)
        if cookie is None:
            cookie = secrets.token_urlsafe(32)
            secure = "; secure" if self._sessions.is_secure(scope) else ""
            attributes = f"; path=/{secure}; samesite=strict; httponly"
            headers.append(("set-cookie", f"{self.options.cookie}={cookie}{attributes}"))
        return IssuedToken(self._protector.seal(_bond(cookie, user)), headers)

    async def fault(self, scope: Any, user: User | None, token: str) -> str | None:
        """Return the fault of a token of a request, as text for the response, or None if it is valid. user: the caller;
        None: anonymous.
        """
        cookie = self._cookie(scope)
        if cookie is None:
            return f"the cookie {self.options.cookie} that belongs to the antiforgery token is missing"
        if len(token) > LONGEST:
            return "the antiforgery token is not valid"
        try:
            try:
                bond = self._protector.open(token)
            except UnknownKeyError:
                await self._keys.read_again()
                bond = self._protector.open(token)
        except SealError:
            return "the antiforgery token is not valid"
        if not hmac.compare_digest(bond, _bond(cookie, user)):
            return "the antiforgery token belongs to another browser or to another user; fetch a new one"
        return None

    def _cookie(self, scope: Any) -> str | None:
        """Return the random token in the cookie of a request; None: it is missing or malformed."""
        value = cookie_value(cookie_header(scope.headers), self.options.cookie) if "cookie" in scope.headers else None
        return value if value is not None and _RANDOM.fullmatch(value) else None


def _bond(cookie: str, user: User | None) -> bytes:
    """Return the digest of cookie and user to which a token is bound."""
    return hashlib.sha256(orjson.dumps([cookie, None if user is None else user.subject])).digest()
