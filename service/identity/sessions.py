"""Authenticate a request: from the Authorization header or a cookie to the claims, which are verified once and then
cached.

Each request uses one scheme, selected by the kind of its credentials (sign-in-9, sign-in-10). With an invalid
credential, the request is anonymous; whether that suffices is decided by authorization.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Any

from rowcall.core.auth.claims import Claim, User, latest_end, lifetime
from rowcall.core.auth.cookies import cookie_value, session_value, set_session
from rowcall.core.auth.options import LONGEST_SESSION, AuthOptions
from rowcall.core.auth.schemes import BearerScheme, CookieScheme, JwtScheme, Scheme
from rowcall.core.auth.tokens import BadTokenError, VerifiedToken
from rowcall.core.http.forwarded_headers import Forwarding
from rowcall.core.outgoing.options import ClientOptions
from rowcall.service.identity.encrypted_sessions import EncryptedSessions
from rowcall.service.identity.session_cookies import RenewingProtocol
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys
from rowcall.service.request_context.client_address import client_reader
from rowcall.service.request_context.head_protocol import is_head
from rowcall.service.request_context.header_values import cookie_header
from rowcall.service.request_context.protocols import find_wrapper
from rowcall.service.request_context.request_context import RequestContext

if TYPE_CHECKING:
    from rowcall.service.identity.key_set import KeySet
    from rowcall.service.identity.signed_tokens import SignedTokens

REMEMBERED = 10_000
"""Most verified tokens and cookies that a worker caches, the latest ones."""
BEARER = "Bearer "


def is_bearer(header: str) -> bool:
    """Return whether an Authorization header has the scheme `Bearer`, in any case (RFC 9110, 11.1)."""
    return header.startswith(BEARER) or header[: len(BEARER)].lower() == "bearer "


NEVER = float("inf")


class Session:
    """A verified token, valid from `begins` to `expires`. renew_at: from when a request renews the cookie; infinity: it
    is never renewed. Times in seconds since 1970. The constructor also sets `user.expires`."""

    __slots__ = ("begins", "expires", "renew_at", "scheme", "user")

    def __init__(self, user: User, scheme: Scheme, begins: float, expires: float, renew_at: float = NEVER) -> None:
        self.user = user
        self.scheme = scheme
        self.begins = begins
        self.expires = user.expires = expires
        self.renew_at = renew_at


class Sessions:
    """Authenticates the requests of one worker by bearer tokens and session cookies; the latest verified ones are
    cached."""

    caller_is_preset = False
    """Whether the caller is set from outside, without credentials."""

    def __init__(self, options: AuthOptions, keys: Keys, forwarding: Forwarding, client: ClientOptions) -> None:
        """Raises `StartupError` for an unusable signing key of a JWT scheme. client: options of the HTTP client that
        downloads key sets."""
        schemes = options.schemes
        self._options = options
        self._keys = keys
        self._client = client_reader(forwarding)
        self._known: dict[str, Session] = {}
        self.cookies = {scheme.name: EncryptedSessions(keys, "cookie", scheme.name) for scheme in schemes.cookies}
        self.access = {scheme.name: EncryptedSessions(keys, "access", scheme.name) for scheme in schemes.bearers}
        self.refresh = {scheme.name: EncryptedSessions(keys, "refresh", scheme.name) for scheme in schemes.bearers}
        self.signed: dict[str, SignedTokens] = {}
        self._key_sets: dict[str, KeySet] = {}
        for scheme in schemes.jwts:
            self._add_signed(scheme, client)
        self._takes_tokens = bool(schemes.bearers or schemes.jwts)

    def _add_signed(self, scheme: JwtScheme, client: ClientOptions) -> None:
        """Prepare the verification of a JWT scheme, with the key set of another issuer if it has a URL. Raises
        `StartupError` for an unusable signing key.
        """
        # pyjwt imports cryptography: 10 MB in each worker, only if JWT schemes are configured.
        from rowcall.service.identity.signed_tokens import SignedTokens, share_a_key

        other_schemes = (other for other in self._options.schemes.jwts if other is not scheme)
        shares_key = any(share_a_key(scheme, other) for other in other_schemes)
        self.signed[scheme.name] = SignedTokens(scheme, shares_key=shares_key)
        if scheme.key_set_url:
            from rowcall.service.identity.key_set import KeySet, download

            self._key_sets[scheme.name] = KeySet(
                scheme.key_set_url, scheme.key_set_fresh, scheme.key_set_longest, partial(download, client)
            )

    def drop_ended(self, context: RequestContext) -> Awaitable[None] | None:
        """Clear `context.user` if the database reports that the session has ended (`Auth:SessionCheckCommand`); without
        this command, do nothing. None: this needs no waiting. The awaitable raises `Problem` if the command fails."""
        return None

    # --- the step --------------------------------------------------------------------------------------------------

    def authenticate(self, context: RequestContext) -> Awaitable[None] | None:
        """Set `context.user` from the credentials of the request, and renew a session cookie that is due. With invalid
        credentials the caller is anonymous, even if the request has further ones. Returns an awaitable if keys have to
        be read first, else None."""
        context.user = None
        headers = context.scope.headers
        if self._takes_tokens:
            header = headers.get("authorization")
            if header is not None and is_bearer(header):
                session = self._known.get(header)
                # The begin is checked too, because clocks can be set back.
                if session is not None and session.begins <= time.time() < session.expires:
                    context.user = session.user
                    return None
                kinds = self._kinds(header[len(BEARER) :])
                if kinds:
                    return self._by_token(context, header, kinds)
            elif header is None and "authorization" in headers:
                return None  # a malformed token: it is not ASCII
        if self._options.schemes.cookies:
            return self._by_cookie(context, cookie_header(headers))
        return None

    def scheme_of(self, scope: Any) -> Scheme | None:
        """Return the scheme by which the credentials of a request are authenticated, valid or not: that of the bearer
        token, of a cookie, else the default one; None: there is no default. A token is not verified: if several schemes
        have tokens of its kind, the first configured one is returned. A sign-out without names ends the session of this
        scheme."""
        header = scope.headers.get("authorization")
        if header is not None and is_bearer(header) and (kinds := self._kinds(header[len(BEARER) :])):
            return kinds[0]
        cookies = cookie_header(scope.headers)
        schemes_with_cookie = (
            scheme for scheme in self._options.schemes.cookies if cookie_value(cookies, scheme.cookie) is not None
        )
        default = self._options.schemes.default
        return next(schemes_with_cookie, None) or (None if default is None else self._options.schemes.find(default))

    def is_secure(self, scope: Any) -> bool:
        """Return whether the client uses https, possibly to a proxy."""
        return self._client(scope).scheme in ("https", "wss")

    def secures(self, scheme: CookieScheme, scope: Any) -> bool:
        """Return whether a cookie of the scheme gets the attribute `secure`."""
        return scheme.secure == "Always" or (scheme.secure == "SameAsRequest" and self.is_secure(scope))

    # --- tokens ----------------------------------------------------------------------------------------------------

    def _kinds(self, token: str) -> tuple[JwtScheme, ...] | tuple[BearerScheme, ...]:
        """Return the schemes that may have issued a token of this form."""
        schemes = self._options.schemes
        if schemes.jwts and _has_three_parts(token):
            return schemes.jwts
        return schemes.bearers

    def _by_token(
        self, context: RequestContext, header: str, schemes: tuple[JwtScheme, ...] | tuple[BearerScheme, ...]
    ) -> Awaitable[None] | None:
        """Authenticate by a bearer token. header: `Authorization`, with the token. schemes: those that may have issued
        it. Returns an awaitable if keys have to be read first, else None.
        """
        token = header[len(BEARER) :]
        if len(token) > LONGEST_SESSION:
            return None
        unknown = False
        for scheme in schemes:
            try:
                session = self._verify(scheme, token)
            except UnknownKeyError:
                unknown = True
            except (SealError, BadTokenError):
                continue
            else:
                context.user = self._remember(header, session).user
                return None
        if unknown or any(scheme.name in self._key_sets for scheme in schemes):
            return self._by_token_later(context, header, schemes)
        return None

    async def _by_token_later(
        self, context: RequestContext, header: str, schemes: tuple[JwtScheme, ...] | tuple[BearerScheme, ...]
    ) -> None:
        """Verify a token after the key ring or the key sets have been read again, and set the user of the request if
        one of the schemes accepts it. header, schemes: as for `_by_token`.
        """
        token = header[len(BEARER) :]
        if schemes is self._options.schemes.bearers:
            await self._keys.read_again()
        for scheme in schemes:
            try:
                session = await self._verify_foreign(scheme, token)
            except (SealError, BadTokenError):
                continue
            context.user = self._remember(header, session).user
            return

    def _verify(self, scheme: Scheme, token: str) -> Session:
        """Return the session of a bearer token. Raises `BadTokenError` or `SealError`; `UnknownKeyError` if its key is
        not known.
        """
        if isinstance(scheme, JwtScheme):
            return self._session(scheme, self.signed[scheme.name].verify(token))
        session = self.access[scheme.name].read(token, time.time())
        return self._session(scheme, VerifiedToken(session.claims, session.expires, session.begins))

    async def _verify_foreign(self, scheme: Scheme, token: str) -> Session:
        """Verify a token with the key set of its scheme, or with the scheme's own keys if it has none. The session
        ends, at the latest, when the key has to be checked again. Raises `BadTokenError` or `SealError`.
        """
        key_set = self._key_sets.get(scheme.name)
        if key_set is None or not isinstance(scheme, JwtScheme):
            return self._verify(scheme, token)
        for key, algorithms in await key_set.candidates(token):
            try:
                verified = self.signed[scheme.name].verify_with(token, key, algorithms)
            except BadTokenError:
                continue
            until = time.time() + key_set.valid_for
            return self._session(scheme, verified._replace(expires=min(verified.expires, until)))
        raise BadTokenError("no key of the issuer verifies the token")

    def _session(self, scheme: Scheme, verified: VerifiedToken) -> Session:
        """Return the session of a verified token, which ends with its impersonation at the latest. Raises
        `BadTokenError` if that has ended.
        """
        ends = latest_end(verified.claims)
        if ends <= time.time():
            raise BadTokenError("acting as another user has ended")
        return Session(self.user(verified.claims, scheme.name), scheme, verified.begins, min(verified.expires, ends))

    # --- cookies ---------------------------------------------------------------------------------------------------

    def _by_cookie(self, context: RequestContext, header: str) -> Awaitable[None] | None:
        """Authenticate by the session cookie of the first scheme that has one. header: all cookies of the request.
        Returns an awaitable if keys have to be read first, else None.
        """
        if not header:
            return None
        for scheme in self._options.schemes.cookies:
            if cookie_value(header, scheme.cookie) is None:
                continue
            # The presence of a cookie selects the scheme, not its validity (sign-in-9, sign-in-10).
            value = session_value(header, scheme.cookie)
            return None if value is None or len(value) > LONGEST_SESSION else self._by_ticket(context, scheme, value)
        return None

    def _by_ticket(self, context: RequestContext, scheme: CookieScheme, value: str) -> Awaitable[None] | None:
        """Authenticate by the value of a session cookie, and renew the cookie if it is due. Returns an awaitable if
        keys have to be read first, else None.
        """
        session = self._known.get(value)
        now = time.time()
        if session is None or session.scheme is not scheme or not session.begins <= now < session.expires:
            try:
                session = self._remember(value, self._read_cookie(scheme, value, now))
            except UnknownKeyError:
                return self._by_ticket_later(context, scheme, value)
            except SealError:
                return None
        context.user = session.user
        if now > session.renew_at:
            self._renew(context, scheme, session.user.claims)
        return None

    async def _by_ticket_later(self, context: RequestContext, scheme: CookieScheme, value: str) -> None:
        """Read the key ring again, and authenticate by the value of a session cookie. The cookie is not renewed."""
        await self._keys.read_again()
        try:
            session = self._remember(value, self._read_cookie(scheme, value, time.time()))
        except SealError:
            return
        context.user = session.user

    def _read_cookie(self, scheme: CookieScheme, value: str, now: float) -> Session:
        """Return the session in the value of a cookie. now: in seconds since 1970. Raises `SealError`;
        `UnknownKeyError` if its key is not known.
        """
        session = self.cookies[scheme.name].read(value, now)
        capped = latest_end(session.claims) <= session.expires  # a new cookie would not be valid for longer
        renew_at = NEVER if capped else (session.issued + session.expires) / 2
        return Session(self.user(session.claims, scheme.name), scheme, session.begins, session.expires, renew_at)

    def _renew(self, context: RequestContext, scheme: CookieScheme, claims: tuple[Claim, ...]) -> None:
        """Add a session cookie with these claims and a full lifetime to the response, whatever its status (sign-in-28),
        unless the request is HEAD, its cookie is renewed already, or it follows one of its batch that has set the
        cookie. Raises `NoKeyError`."""
        if is_head(context) or find_wrapper(context.protocol, RenewingProtocol) is not None:
            return
        if not getattr(context.scope, "renews_sessions", True):
            return
        now = time.time()
        value = self.cookies[scheme.name].issue(claims, now, lifetime(claims, now, scheme.valid))
        cookies = set_session(scheme, value, secure=self.secures(scheme, context.scope))
        context.protocol = RenewingProtocol(context.protocol, cookies)

    # --- users -----------------------------------------------------------------------------------------------------

    def user(self, claims: tuple[Claim, ...], scheme: str) -> User:
        return User(claims, self._options.identity, scheme)

    def _remember(self, credential: str, session: Session) -> Session:
        """Cache the session, and return it; if `REMEMBERED` sessions are cached, the oldest one is removed. credential:
        header `Authorization`, or value of the cookie.
        """
        if len(self._known) >= REMEMBERED:
            self._known.pop(next(iter(self._known)))
        self._known[credential] = session
        return session


def _has_three_parts(token: str) -> bool:
    parts = token.split(".", 3)
    return len(parts) == 3 and all(parts)
