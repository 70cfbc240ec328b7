"""Antiforgery tokens: a random one in a cookie, and one that is sealed for it and for whoever is signed in.

A page of another site can have the cookie sent along, but cannot read the other one, which has to come in a header or
a form field. It is sealed with the key ring, so it is good on every worker and host (browsers-8).
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
from rowcall.service.identity.sessions import Sessions, cookie_header
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys, Protector
from rowcall.service.request_context.protocols import Headers

_RANDOM = re.compile(r"[A-Za-z0-9_-]{43}")
LONGEST = 1024
"""Characters of a token that is looked at."""


class Issued(NamedTuple):
    token: str
    headers: Headers
    """With which it has to go out."""


class Antiforgery:
    """The tokens of one worker."""

    def __init__(self, options: AntiforgeryOptions, keys: Keys, sessions: Sessions) -> None:
        self.options = options
        self._keys = keys
        self._sessions = sessions
        self._protector = Protector(keys, "antiforgery")

    def issue(self, scope: Any, user: User | None) -> Issued:
        """A browser keeps its cookie, so that all of its pages stay good. Raises `NoKeyError`."""
        headers: Headers = [("cache-control", "no-cache, no-store"), ("pragma", "no-cache")]
        if self.options.refuses_frames:
            headers.append(("x-frame-options", "SAMEORIGIN"))
        cookie = self._cookie(scope)
        if cookie is None:
            cookie = secrets.token_urlsafe(32)
            secure = "; secure" if self._sessions.is_secure(scope) else ""
            attributes = f"; path=/{secure}; samesite=strict; httponly"
            headers.append(("set-cookie", f"{self.options.cookie}={cookie}{attributes}"))
        return Issued(self._protector.seal(_bond(cookie, user)), headers)

    async def fault(self, scope: Any, user: User | None, token: str) -> str | None:
        """What is wrong with a token that came with a request; None: nothing."""
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
        value = cookie_value(cookie_header(scope.headers), self.options.cookie) if "cookie" in scope.headers else None
        return value if value is not None and _RANDOM.fullmatch(value) else None


def _bond(cookie: str, user: User | None) -> bytes:
    """What the cookie and the user have in common with their token."""
    return hashlib.sha256(orjson.dumps([cookie, None if user is None else user.subject])).digest()
