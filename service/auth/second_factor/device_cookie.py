"""The cookie by which a remembered device is recognized. The database has only its hash."""

from __future__ import annotations

import secrets
from typing import Any

from rowcall.core.accounts.one_time_codes import device_hash
from rowcall.core.auth.cookies import cookie_value, set_session
from rowcall.core.auth.options import SecondFactorOptions
from rowcall.core.auth.schemes import CookieScheme
from rowcall.service.identity.sessions import Sessions
from rowcall.service.request_context.header_values import cookie_header

_LONGEST = 100


class DeviceCookie:
    """Creates and reads the cookie of remembered devices."""

    def __init__(self, options: SecondFactorOptions, sessions: Sessions) -> None:
        self._name = options.cookie
        self._scheme = CookieScheme(cookie=options.cookie, valid=options.remember or 0.0)
        self._sessions = sessions

    def present(self, scope: Any) -> bytes | None:
        """Return the hash of the cookie of a request; None: there is none."""
        value = cookie_value(cookie_header(scope.headers), self._name) if "cookie" in scope.headers else None
        return device_hash(value) if value and len(value) <= _LONGEST else None

    def new(self, scope: Any) -> tuple[bytes, list[str]]:
        """Return the hash of a new cookie, and the values of its `Set-Cookie` headers."""
        value = secrets.token_urlsafe(32)
        return device_hash(value), set_session(self._scheme, value, secure=self._sessions.is_secure(scope))
