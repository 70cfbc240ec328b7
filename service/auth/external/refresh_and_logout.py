"""After a sign-in at a provider: refresh the profile there, and end the session there (RP-Initiated Logout)."""

from __future__ import annotations

import logging

import orjson

from rowcall.core.auth.cookies import end_session
from rowcall.core.auth.external.authorization import with_query
from rowcall.core.auth.external.options import ExternalOptions, Provider
from rowcall.core.auth.schemes import CookieScheme
from rowcall.core.errors.problems import UnavailableError, unauthorized_problem
from rowcall.service.auth.antiforgery import caller
from rowcall.service.auth.external.login_state import digest_of
from rowcall.service.auth.external.profiles import Profile, Profiles
from rowcall.service.auth.external.provider_client import ProviderError, RefusedByProviderError
from rowcall.service.auth.external.shared_refreshes import SharedRefreshes
from rowcall.service.auth.external.sign_in_result import SignInResult
from rowcall.service.auth.external.stored_tokens import StoredToken, StoredTokens
from rowcall.service.identity.session_cookies import cookie_headers
from rowcall.service.log.entry import escape_unprintable
from rowcall.service.pipeline.services import Services
from rowcall.service.protection.protector import Keys
from rowcall.service.request_context.header_values import cookie_header
from rowcall.service.request_context.request_context import RequestContext

log = logging.getLogger("rowcall")


class RefreshAndLogout:
    """Refresh and sign-out for one provider in one worker."""

    def __init__(
        self,
        options: ExternalOptions,
        provider: Provider,
        services: Services,
        profiles: Profiles,
        outcome: SignInResult,
        stored: StoredTokens,
        keys: Keys,
    ) -> None:
        self._options = options
        self._provider = provider
        self._challenge = services.options.auth.schemes.challenge
        self._identity = services.auth
        self._sessions = services.auth.sessions
        self._profiles = profiles
        self._outcome = outcome
        self._stored_tokens = stored
        self._shared = SharedRefreshes(services.host, keys, provider.key)

    async def refresh(self, context: RequestContext) -> None:
        """Read the profile from the provider again, and renew the session with the row of the operator's command for
        it. If the command fails, or the provider fails otherwise than by refusing the token, the response is 500.

        Raises:
            Problem: 401 if the session has no token of the provider, or the provider refuses it, which removes the
                stored one, and for a user who acts as another one; 403 for a page of another site; 503 if too many
                requests to providers are in progress; and the errors of `SignInResult.complete`, except
                `ProviderError`.
        """
        scope = context.scope
        self._outcome.refuse_foreign(scope)
        user = await caller(context, self._identity)
        stored = await self._stored_tokens.read(scope)
        if user is not None and user.impersonates:
            # The refreshed session would be that of the other user, without the real one.
            user = None
        if user is None or stored is None or stored.refresh is None or stored.user != digest_of(user):
            raise unauthorized_problem(self._challenge, "no token of the provider belongs to this session")
        token, identity, subject = stored.refresh, stored.identity, stored.subject

        async def refresh_profile() -> Profile:
            return await self._profiles.by_refresh_token(token, identity, subject)

        try:
            profile = await self._shared.refresh_once(token, refresh_profile)
            await self._outcome.complete(context, profile, user, None, [], anew=False)
        except RefusedByProviderError as error:
            log.warning("%s does not renew a sign-in: %s", self._provider.key, escape_unprintable(str(error)))
            problem = unauthorized_problem(self._challenge, "the provider does not renew this sign-in")
            problem.headers = (
                *problem.headers,
                *(("set-cookie", cookie) for cookie in self._stored_tokens.forget(scope)),
            )
            raise problem from None
        except ProviderError as error:
            self._outcome.fail(context, error, [])

    async def leave(self, context: RequestContext) -> None:
        """End the session here, revoke the tokens at the provider, and redirect the browser to its end-session
        endpoint; clients that accept JSON get the URL instead. If the provider fails, or too many requests to providers
        are in progress, the browser is led to `ReturnToPath` of this service.

        Raises `Problem` 403 for a page of another site.
        """
        scope = context.scope
        self._outcome.refuse_foreign(scope)
        stored = await self._stored_tokens.read(scope)
        location = await self._sign_out_at_provider(stored, self._outcome.origin(scope) + self._options.return_to)
        cookies = self._stored_tokens.forget(scope) if stored is not None else []
        scheme = self._sessions.scheme_of(scope)
        if isinstance(scheme, CookieScheme):
            secure = self._sessions.secures(scheme, scope)
            cookies += end_session(scheme, cookie_header(scope.headers), secure=secure)
        headers = cookie_headers(cookies)
        if "application/json" in (scope.headers.get("accept") or ""):
            body = orjson.dumps({"location": location})
            context.protocol.response_bytes(200, [("content-type", "application/json"), *headers], body)
        else:
            context.protocol.response_empty(303, [("location", location), *headers])

    async def _sign_out_at_provider(self, stored: StoredToken | None, home: str) -> str:
        """Revoke the refresh token and return the URL to which the browser goes next: the end-session endpoint of the
        provider, or `home` (a page of this service) if the provider does not respond, has no such endpoint, or too
        many requests to providers are in progress. The user is signed out here in any case. stored: the tokens of the
        session; None: there are none.
        """
        try:
            addresses = await self._profiles.addresses()
            if stored is not None and stored.refresh is not None:
                await self._profiles.revoke(stored.refresh)
        except (ProviderError, UnavailableError) as error:
            reason = str(error.detail if isinstance(error, UnavailableError) else error)
            log.warning("%s could not be informed of a sign-out: %s", self._provider.key, escape_unprintable(reason))
            return home
        if addresses.logout is None:
            return home
        query = {"client_id": self._provider.client_id, "post_logout_redirect_uri": home}
        hint = {"id_token_hint": stored.identity} if stored is not None and stored.identity is not None else {}
        return with_query(addresses.logout, {**hint, **query})
