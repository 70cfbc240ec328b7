"""The endpoints of each provider: its page, the OAuth callback, refresh and sign-out (external-sign-in-2 to
external-sign-in-10).

GET shows the page, at the start and as OAuth callback. The script of the page sends the code by POST. The service reads
the profile, passes it to the operator's command, and signs in the user of the command's row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs

import orjson

from rowcall.core.auth.external.authorization import authorization_url
from rowcall.core.auth.external.options import ExternalOptions, Provider
from rowcall.core.auth.external.page import sign_in_page, sign_in_script
from rowcall.core.auth.external.profile import with_address
from rowcall.core.endpoint.access import ANYONE
from rowcall.core.errors.problems import Problem
from rowcall.service.auth.antiforgery import caller
from rowcall.service.auth.external.back_channel import BackChannel
from rowcall.service.auth.external.login_state import LoginState, LoginStates, digest_of
from rowcall.service.auth.external.profiles import Profile, Profiles
from rowcall.service.auth.external.provider_client import ProviderClient, ProviderError
from rowcall.service.auth.external.refresh_and_logout import RefreshAndLogout
from rowcall.service.auth.external.sign_in_result import UNCACHED, SignInResult
from rowcall.service.auth.external.stored_tokens import StoredTokens
from rowcall.service.identity.introspected_sessions import API_KEY
from rowcall.service.identity.refresh_token_use import RefreshTokenUse
from rowcall.service.pipeline.fixed_route import FixedRoute, with_limit
from rowcall.service.pipeline.services import Services
from rowcall.service.protection.protector import Keys
from rowcall.service.request.body import read_body
from rowcall.service.request_context.protocols import Headers
from rowcall.service.request_context.request_context import RequestContext, Step

_OF_PAGE: Headers = [
    ("content-type", "text/html"),
    # In an OAuth callback, the URL of the page contains a code.
    ("referrer-policy", "same-origin"),
    ("content-security-policy", "frame-ancestors 'none'"),
]
"""Headers of the page."""


def external_routes(services: Services, keys: Keys, single_use: RefreshTokenUse) -> Iterator[FixedRoute]:
    """Yield the routes of all providers. To be called in the running event loop. single_use: records which login states
    and logout tokens were used.
    """
    options = services.options.auth.external
    if options is None:
        return
    provider_client = services.host.get_or_create(
        "external sign-in", lambda: ProviderClient(services.options.outbound.client)
    )
    login_states = LoginStates(keys, services.auth.sessions, single_use)
    limiting = with_limit(services, options.rate_limiter, ())
    for provider in options.providers:
        signing = _SignIn(
            options, provider, services, Profiles(provider, provider_client), login_states, keys, single_use
        )
        for method, path, step in signing.routes():
            yield FixedRoute(method, path, ANYONE, (_exactly(path), *limiting, step))


def _exactly(path: str) -> Step:
    """Return a step that raises `Problem` 404 unless the path matches in case.

    Routing ignores case, but a provider redirects to exactly one URL (external-sign-in-2).
    """

    def check_path(context: RequestContext) -> None:
        if context.scope.path != path:
            raise Problem(404, f"there is no endpoint at {context.scope.path[:200]}")

    return check_path


class _SignIn:
    """The endpoints of one provider in one worker."""

    def __init__(
        self,
        options: ExternalOptions,
        provider: Provider,
        services: Services,
        profiles: Profiles,
        login_states: LoginStates,
        keys: Keys,
        single_use: RefreshTokenUse,
    ) -> None:
        self._options = options
        self._provider = provider
        self._identity = services.auth
        self._largest = services.options.http.limits.sign_in_body_size
        self._profiles = profiles
        self._login_states = login_states
        stored_tokens = StoredTokens(provider, keys, services.auth.sessions)
        self._outcome = SignInResult(options, provider, services, stored_tokens)
        self._refresh_and_logout = RefreshAndLogout(
            options, provider, services, profiles, self._outcome, stored_tokens, keys
        )
        self._back_channel = (
            BackChannel(options, provider, services, profiles, single_use) if provider.back_channel else None
        )
        policies = (name.lower() for name, _ in services.options.http.security_headers)
        self._script_path = f"{provider.path}/script.js" if "content-security-policy" in policies else None

    def routes(self) -> Iterator[tuple[str, str, Step]]:
        """Yield method, path and step of each endpoint."""
        path = self._provider.path
        yield "GET", path, self.show
        yield "POST", path, self.finish
        if self._script_path is not None:
            yield "GET", self._script_path, self.script
        if self._provider.keeps_tokens:
            yield "POST", f"{path}/refresh", self._refresh_and_logout.refresh
        if self._provider.signs_out:
            yield "POST", f"{path}/logout", self._refresh_and_logout.leave
        if self._back_channel is not None:
            yield "POST", f"{path}/backchannel-logout", self._back_channel.end_sessions

    # --- the page --------------------------------------------------------------------------------------------------

    async def show(self, context: RequestContext) -> None:
        """Respond with the page. Unless the request is an OAuth callback, a sign-in begins; if the provider fails,
        respond 500. Raises `Problem` 503 if too many requests to providers are in progress, `NoKeyError`, and the
        errors of `caller`."""
        query = parse_qs(context.scope.query_string, keep_blank_values=True)
        cookies: list[str] = []
        url = state = None
        if "state" not in query and "error" not in query:
            try:
                url, state, cookies = await self._begin_sign_in(context)
            except ProviderError as error:
                self._outcome.fail(context, error, [])
                return
        body = sign_in_page(self._options, self._provider, url, state, self._script_path)
        headers = [*_OF_PAGE, *UNCACHED, *(("set-cookie", cookie) for cookie in cookies)]
        context.protocol.response_bytes(200, headers, body)

    def script(self, context: RequestContext) -> None:
        """Respond with the script of the page, for a configured content security policy that forbids inline scripts."""
        headers = [("content-type", "text/javascript; charset=utf-8"), ("cache-control", "no-cache")]
        context.protocol.response_bytes(200, headers, sign_in_script(self._options))

    async def _begin_sign_in(self, context: RequestContext) -> tuple[str, str, list[str]]:
        """Begin a sign-in: return the provider's URL, the state, and Set-Cookie headers. Raises `ProviderError`,
        `Problem` 503 if too many requests to providers are in progress, `NoKeyError`, and the errors of `caller`."""
        addresses = await self._profiles.addresses()
        redirect_uri = self._outcome.origin(context.scope) + self._provider.sent_path
        user = await caller(context, self._identity)
        login_state, cookies = self._login_states.begin(context.scope, self._provider, redirect_uri, user)
        url = authorization_url(
            self._provider,
            addresses.authorize,
            redirect_uri,
            login_state.state,
            login_state.verifier,
            login_state.nonce,
        )
        return url, login_state.state, cookies

    # --- the code --------------------------------------------------------------------------------------------------

    async def finish(self, context: RequestContext) -> None:
        """Redeem the code for a profile, sign the user in, and remove the login state's cookie. Respond 500 if the
        provider fails or refuses, if the operator's command fails, and if the body is no JSON object or has no code.

        Raises `Problem`: 400 for a login state that is not valid or was used before, 403 for a page of another site,
        503 if it cannot be determined whether the login state was used before or if too many requests to providers are
        in progress, and the errors of `read_body` (413 for a body that is too large) and those of
        `SignInResult.complete`, except `ProviderError`.
        """
        scope = context.scope
        ended: list[str] = []
        try:
            self._outcome.refuse_foreign(scope)
            code, sent = _code_in(await read_body(scope, context.protocol, self._largest))
            user = await caller(context, self._identity)
            if user is not None and (user.impersonates or user.scheme == API_KEY):
                # A user who impersonates another must not link identities with the other's account. An identity that an
                # API key links would still be valid when the key has ended.
                user = None
            login_state, state = None, sent.get("state")
            if self._needs_state(scope) or self._login_states.has(scope, state):
                login_state, cookie = await self._login_states.find(scope, self._provider, state)
                ended = [cookie]
                if login_state.user != digest_of(user):
                    # The sign-in began for another user, who has not agreed to link this identity with the present one.
                    user = None
            profile = await self._profile(scope, code, login_state, sent.get("iss"))
            await self._outcome.complete(context, profile, user, self._analytics(scope), ended)
        except ProviderError as error:
            self._outcome.fail(context, error, ended)
        except Problem as problem:
            problem.headers = (*problem.headers, *UNCACHED, *(("set-cookie", cookie) for cookie in ended))
            raise

    async def _profile(self, scope: Any, code: str, login_state: LoginState | None, issuer: object) -> Profile:
        """Return the profile for the code. Raises `ProviderError` if there is no profile, and `Problem` if the login
        state was used before, if this cannot be determined, or if too many requests to providers are in progress.

        login_state: of the state in the request; None: it has none and needs none. issuer: the `iss` in the request, or
        None.
        """
        if login_state is None:
            redirect_uri = self._outcome.origin(scope) + self._provider.sent_path
            return await self._profiles.by_code(code, redirect_uri, None, None, issuer)
        profile = await self._profiles.by_code(
            code, login_state.redirect_uri, login_state.verifier, login_state.nonce, issuer
        )
        await self._login_states.use(login_state)
        return profile

    def _needs_state(self, scope: Any) -> bool:
        """Return whether the request must have a login state: it comes from a browser, the options demand it, or the
        provider has an issuer.

        Browsers need one because a page of an attacker could make them send the code of the attacker's sign-in.
        """
        headers = scope.headers
        by_browser = headers.get("origin") is not None or headers.get("sec-fetch-site") is not None
        return by_browser or self._options.requires_state or self._provider.issuer is not None

    def _analytics(self, scope: Any) -> str | None:
        """Return the client's analytics data of the request as JSON, or None."""
        text = parse_qs(scope.query_string).get("analyticsData", [""])[0]
        address = self._identity.address(scope)
        return with_address(text, self._options.ip_key, None if address is None else address.decode())


def _code_in(body: bytes) -> tuple[str, Mapping[str, Any]]:
    """Return the code and all members of the request. Raises `ProviderError` if the body is no JSON object or has no
    code.
    """
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict):
        raise ProviderError("the request is no JSON object")
    code = content.get("code")
    if not isinstance(code, str) or not code:
        raise ProviderError("the request holds no code")
    return code, content
