"""Send the response of a sign-in, a refresh and a sign-out: cookies, or tokens as JSON (sign-in-27 to sign-in-34)."""

from __future__ import annotations

import time
from dataclasses import replace

import orjson

from rowcall.core.auth.claims import SIGNED_IN_AT, Claim, lifetime
from rowcall.core.auth.cookies import end_session, set_session
from rowcall.core.auth.login import LoginRow
from rowcall.core.auth.options import AuthOptions
from rowcall.core.auth.schemes import BearerScheme, CookieScheme, JwtScheme, Scheme
from rowcall.core.auth.token_families import Mark
from rowcall.core.errors.problems import Problem
from rowcall.service.identity.refresh_token_use import new_mark
from rowcall.service.identity.session_cookies import cancel_renewal, cookie_headers, with_fields
from rowcall.service.identity.sessions import Sessions
from rowcall.service.request_context.header_values import cookie_header
from rowcall.service.request_context.protocols import Headers
from rowcall.service.request_context.request_context import RequestContext

NOT_STORED: Headers = [("cache-control", "no-store"), ("pragma", "no-cache")]
"""Headers of every response with a token (RFC 6749, section 5.1)."""


class CredentialIssuer:
    """Issues and ends the sessions of all sign-in schemes."""

    def __init__(self, options: AuthOptions, sessions: Sessions) -> None:
        self._schemes = options.schemes
        self._single_use = options.refresh_tokens.single_use
        self._records_sign_in_time = options.records_sign_in_time
        self._longest = options.longest_session
        self._sessions = sessions

    def sign_in(
        self,
        context: RequestContext,
        row: LoginRow,
        headers: Headers,
        body: tuple[str, bytes] | None,
        *,
        anew: bool = True,
    ) -> None:
        """Sign the user of the row in and send the response. From here on the request has that user, and its former
        session is not renewed.

        headers: further headers of the response. body: content type and content of the response to a sign-in by cookie;
        None: it is empty. anew: the user has proved their identity in this request, so the time of the sign-in is set.

        Raises `Problem`: 404 if the row names an unknown scheme, 500 if no scheme is configured or the session is too
        large; `NoKeyError` (503) for a cookie or an opaque token.
        """
        scheme = self._select_scheme(context, row)
        if self._records_sign_in_time and anew:
            other_claims = tuple(claim for claim in row.claims if claim[0] != SIGNED_IN_AT)
            row = replace(row, claims=(*other_claims, (SIGNED_IN_AT, str(int(time.time())))))
        context.user = self._sessions.user(row.claims, scheme.name)
        cancel_renewal(context)
        if not isinstance(scheme, CookieScheme):
            self.send_tokens(context, scheme, row.claims, headers)
            return
        now = time.time()
        value = self._sessions.cookies[scheme.name].issue(row.claims, now, lifetime(row.claims, now, scheme.valid))
        secure = self._sessions.secures(scheme, context.scope)
        cookies = set_session(scheme, value, secure=secure)
        self._check_size(sum(len(cookie.partition(";")[0]) + len("; ") for cookie in cookies))
        fields = with_fields(headers, cookie_headers(cookies))
        if body is None:
            context.protocol.response_empty(200, fields)
        else:
            context.protocol.response_bytes(200, [("content-type", body[0]), *fields], body[1])

    def _select_scheme(self, context: RequestContext, row: LoginRow) -> Scheme:
        """Return the scheme that the row names, else the main JWT scheme, else the scheme of the request. Raises
        `Problem`: 404 if the row names an unknown scheme, 500 if there is no scheme.
        """
        if row.scheme is not None:
            named = self._schemes.find(row.scheme)
            if named is None:
                raise Problem(404, f"there is no sign-in scheme {row.scheme[:100]!r}")
            return named
        main_jwt = None if self._schemes.main_jwt is None else self._schemes.find(self._schemes.main_jwt)
        scheme = main_jwt or self._sessions.scheme_of(context.scope)
        if scheme is None:
            raise Problem(
                500, "no sign-in scheme is on: Auth:CookieAuth, Auth:BearerTokenAuth and Auth:JwtAuth are off"
            )
        return scheme

    def send_tokens(
        self,
        context: RequestContext,
        scheme: BearerScheme | JwtScheme,
        claims: tuple[Claim, ...],
        headers: Headers,
        mark: Mark | None = None,
    ) -> None:
        """Send an access token and a refresh token as JSON. Raises `Problem` 500 if the access token is too large, and
        `NoKeyError` (503) for a scheme with opaque tokens.

        headers: further headers of the response. mark: identifies the refresh token, so that it can be used once only;
        None: a new one, for the first refresh token of a sign-in.
        """
        mark_text = (mark or new_mark()).text if self._single_use else None
        if isinstance(scheme, JwtScheme):
            content_type, content = "application/json", self._jwt_response(scheme, claims, mark_text)
        else:
            content_type, content = "application/json; charset=utf-8", self._opaque(scheme, claims, mark_text)
        fields = [("content-type", content_type), *with_fields(headers, NOT_STORED)]
        context.protocol.response_bytes(200, fields, orjson.dumps(content))

    def _check_size(self, size: int) -> None:
        """Raise `Problem` 500 for a session that is too large for the headers of a request. size: in characters."""
        if size > self._longest:
            raise Problem(
                500,
                f"the claims of this sign-in form a session of {size} characters, and a request may contain "
                f"{self._longest}: every column of the login row is a claim",
            )

    def _opaque(self, scheme: BearerScheme, claims: tuple[Claim, ...], mark: str | None) -> dict[str, object]:
        """Return the members of the response for a scheme with opaque tokens. Raises `Problem` 500 if the access token
        is too large, and `NoKeyError`. mark: text of the mark of the refresh token; None: it has none."""
        now = time.time()
        expire = lifetime(claims, now, scheme.expire)
        access = self._sessions.access[scheme.name].issue(claims, now, expire)
        self._check_size(len(access))
        return {
            "tokenType": "Bearer",
            "accessToken": access,
            "expiresIn": int(expire),
            "refreshToken": self._sessions.refresh[scheme.name].issue(claims, now, expire, mark),
        }

    def _jwt_response(self, scheme: JwtScheme, claims: tuple[Claim, ...], mark: str | None) -> dict[str, object]:
        """Return the members of the response for a JWT scheme. Raises `Problem` 500 if the access token is too large.

        The lifetimes in the response are the whole seconds that remain after signing: usually one second less
        (sign-in-30). mark: text of the mark of the refresh token; None: it has none.
        """
        tokens = self._sessions.signed[scheme.name]
        start = time.time()
        expire, refresh_expire = (
            lifetime(claims, start, seconds) for seconds in (scheme.expire, scheme.refresh_expire)
        )
        access = tokens.sign(claims, start, expire)
        self._check_size(len(access))
        refresh = tokens.sign_refresh(claims, start, refresh_expire, mark)
        elapsed = time.time() - start
        return {
            "accessToken": access,
            "refreshToken": refresh,
            "tokenType": "Bearer",
            "expiresIn": max(0, int(expire - elapsed)),
            "refreshExpiresIn": max(0, int(refresh_expire - elapsed)),
        }

    def sign_out(self, context: RequestContext, names: list[str], headers: Headers) -> None:
        """End the sessions of the schemes with these names, or of the scheme that authenticates this request if there
        are no names, and send the response, which renews no session.

        Only cookies are removed. Tokens remain valid until they expire. headers: further headers of the response.

        Raises:
            Problem: 500 for a scheme that does not exist.
        """
        named: list[Scheme | None] = [self._scheme_by_name(name) for name in dict.fromkeys(names)]
        schemes = named or [self._sessions.scheme_of(context.scope)]
        cancel_renewal(context)
        present = cookie_header(context.scope.headers)
        cookies = [
            cookie
            for scheme in schemes
            if isinstance(scheme, CookieScheme)
            for cookie in end_session(scheme, present, secure=self._sessions.secures(scheme, context.scope))
        ]
        context.protocol.response_empty(200, with_fields(headers, cookie_headers(cookies)) if cookies else headers)

    def _scheme_by_name(self, name: str) -> Scheme:
        """Return the scheme of this name. Raises `Problem` 500 if it does not exist."""
        scheme = self._schemes.find(name)
        if scheme is None:
            raise Problem(500, f"the routine signs out of {name[:100]!r}, and there is no such scheme")
        return scheme
