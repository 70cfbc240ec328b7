"""Turn a profile into a sign-in: the row of the operator's command identifies the user (external-sign-in-6,
sign-in-23)."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from rowcall.core.auth.claims import User, refreshed_claims
from rowcall.core.auth.external.options import UNTYPED, ExternalOptions, Provider
from rowcall.core.auth.login import LoginRow, LoginRowError, read_login_row, row_json
from rowcall.core.errors.problems import Problem
from rowcall.service.auth.commands import Command
from rowcall.service.auth.credential_issuer import CredentialIssuer
from rowcall.service.auth.cross_site import foreign_refusal
from rowcall.service.auth.external.login_state import digest_of
from rowcall.service.auth.external.profiles import Profile
from rowcall.service.auth.external.provider_client import ProviderError
from rowcall.service.auth.external.stored_tokens import StoredToken, StoredTokens
from rowcall.service.auth.login import ANONYMOUS
from rowcall.service.log.entry import escape_unprintable
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.client_address import client_reader
from rowcall.service.request_context.protocols import Headers
from rowcall.service.request_context.request_context import RequestContext

log = logging.getLogger("rowcall")

UNCACHED: Headers = [
    ("cache-control", "no-store, no-cache, must-revalidate, proxy-revalidate"),
    ("pragma", "no-cache"),
    ("expires", "0"),
]


class SignInResult:
    """Completes a sign-in, or its refresh, at one provider: runs the operator's command with the user's profile, and
    issues the session."""

    def __init__(self, options: ExternalOptions, provider: Provider, services: Services, stored: StoredTokens) -> None:
        auth = services.options.auth
        self._options = options
        self._provider = provider
        self._login = auth.login
        self._identity = auth.identity
        self._camel = services.options.camel_case
        self._sessions = services.auth.sessions
        self._client = client_reader(services.options.forwarding)
        self._stored_tokens = stored
        self._issuer = CredentialIssuer(auth, services.auth.sessions)
        self._command = Command(f"sign-in with {provider.key}", options.command, services, UNTYPED)
        self._refuse_foreign = None if auth.cross_site is None else foreign_refusal(auth, services.options.forwarding)

    def refuse_foreign(self, scope: Any) -> None:
        """Raise `Problem` 403 if a page of another site has sent the request."""
        if self._refuse_foreign is not None:
            self._refuse_foreign(scope)

    def origin(self, scope: Any) -> str:
        """Return scheme and host of the callback URL that is registered at the provider: `redirect_url` of the options,
        or those of the request."""
        if self._options.redirect_url is not None:
            return self._options.redirect_url
        client = self._client(scope)
        return f"{client.scheme}://{client.host or scope.authority or scope.headers.get('host') or ''}"

    async def complete(
        self,
        context: RequestContext,
        profile: Profile,
        user: User | None,
        analytics: str | None,
        cookies: list[str],
        *,
        anew: bool = True,
    ) -> None:
        """Run the operator's command with the profile, sign in the user of its row, and send the response. If the
        status of the row is not 200, status and body of the row are the response, and no user is signed in.

        user: the user who is signed in already, or None. cookies: further Set-Cookie headers. analytics: data of the
        client as JSON, or None. anew: the user has signed in at the provider; otherwise, the session of `user` is
        refreshed, whose time of the sign-in and proved second factor the new one has. Raises `ProviderError` if the
        command failed; `Problem`: 401 if it finds no user or refuses the sign-in, the status of the row if that is 400
        or above and the row has no body, 500 if the row cannot be used, 503 without a database, and the errors of
        `CredentialIssuer.sign_in`.
        """
        row, cells = await self._row(context, profile, user, analytics)
        if row.status != 200:
            self._answer_status(context, row, cookies)
            return
        if self._provider.keeps_tokens:
            digest = digest_of(self._sessions.user(row.claims, "")) or ""
            stored = StoredToken(digest, profile.refresh, profile.identity, profile.subject)
            cookies = [*cookies, *self._stored_tokens.keep(context.scope, stored)]
        body = None if row.body is None else (self._login.content_type, row.body.encode())
        if body is None and self._login.serialize:
            body = "application/json", f"[{row_json(cells, self._login, camel=self._camel)}]".encode()
        if not anew and user is not None:
            row = replace(row, claims=refreshed_claims(row.claims, user, self._identity))
        self._issuer.sign_in(context, row, [("set-cookie", cookie) for cookie in cookies], body, anew=anew)

    async def _row(
        self, context: RequestContext, profile: Profile, user: User | None, analytics: str | None
    ) -> tuple[LoginRow, list[Any]]:
        """Run the operator's command. Return the login row, and its cells. Raises `ProviderError` if it fails, and
        `Problem`: 401 if it finds no user or refuses the sign-in, 500 if its row cannot be used, 503 if the database
        cannot be reached. analytics: as for `complete`.
        """
        claims = None if user is None else user.json.decode()
        values = [self._provider.key, profile.email, profile.name, profile.info, analytics, claims]
        try:
            rows = await self._command.run(context, values)
        except Problem as problem:
            if problem.status == 503:
                raise
            raise ProviderError(f"the LoginCommand failed: {problem.title}") from None
        cells = rows[0] if rows else []
        if all(cell.text is None for cell in cells):
            raise Problem(401, ANONYMOUS)
        try:
            row = read_login_row(cells, self._login)
        except LoginRowError as error:
            log.error("sign-in with %s: the row of the LoginCommand cannot be used: %s", self._provider.key, error)
            raise Problem(500, "the login row cannot be used; the log of the service says why") from None
        if row.refused:
            raise Problem(401, ANONYMOUS)
        return row, cells

    def _answer_status(self, context: RequestContext, row: LoginRow, cookies: list[str]) -> None:
        """Respond with status and body of the row, without a sign-in. If the row has no body, a status of 400 or above
        is raised as `Problem`. cookies: Set-Cookie headers."""
        headers = [*UNCACHED, *(("set-cookie", cookie) for cookie in cookies)]
        if row.body is not None:
            content_type = ("content-type", self._login.content_type)
            context.protocol.response_bytes(row.status, [content_type, *headers], row.body.encode())
        elif row.status >= 400:
            raise Problem(row.status, "the routine has refused the sign-in")
        else:
            context.protocol.response_empty(row.status, headers)

    def fail(self, context: RequestContext, error: ProviderError, cookies: list[str]) -> None:
        """Respond 500 without a reason, which is only logged: an anonymous caller may have caused it
        (external-sign-in-7). cookies: further Set-Cookie headers.
        """
        log.error("Error talking to %s: %s", self._provider.key, escape_unprintable(str(error)))
        headers = [("content-type", "text/plain"), *UNCACHED, *(("set-cookie", cookie) for cookie in cookies)]
        context.protocol.response_bytes(500, headers, f"Error talking to {self._provider.key}".encode())
