"""The paths of each provider: its page, the code that comes back, refresh and sign-out (reference 04, 11).

GET shows the page, at the start and when the provider leads back. The page's script sends the code by POST; the
service makes a profile of it, asks the operator's command who that is, and signs that user in.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs

import orjson

from rowcall.core.auth.claims import User
from rowcall.core.auth.cookies import end_session
from rowcall.core.auth.external.authorization import authorization_url, with_query
from rowcall.core.auth.external.options import ExternalOptions, Provider
from rowcall.core.auth.external.page import sign_in_page, sign_in_script
from rowcall.core.auth.external.profile import with_address
from rowcall.core.auth.login import LoginRow, LoginRowError, read_login_row, row_json
from rowcall.core.auth.schemes import CookieScheme
from rowcall.core.errors.problems import Problem, unauthorized
from rowcall.service.auth.antiforgery import caller
from rowcall.service.auth.commands import Command
from rowcall.service.auth.cross_site import foreign_refusal
from rowcall.service.auth.external.attempts import Attempts, digest_of
from rowcall.service.auth.external.kept_tokens import Kept, KeptTokens
from rowcall.service.auth.external.profiles import Profile, Profiles
from rowcall.service.auth.external.talking import RefusedByProviderError, Talker, TalkError
from rowcall.service.auth.issuing import Issuer
from rowcall.service.auth.login import NOBODY
from rowcall.service.exchange.client_address import client_reader
from rowcall.service.exchange.exchange import Exchange, Step
from rowcall.service.exchange.protocols import Headers
from rowcall.service.identity.refresh_token_use import RefreshTokenUse
from rowcall.service.identity.session_cookies import cookie_headers
from rowcall.service.identity.sessions import cookie_header
from rowcall.service.log.entry import one_line
from rowcall.service.pipeline.services import Services
from rowcall.service.protection.protector import Keys
from rowcall.service.request.body import read_body

log = logging.getLogger("rowcall")

UNCACHED: Headers = [
    ("cache-control", "no-store, no-cache, must-revalidate, proxy-revalidate"),
    ("pragma", "no-cache"),
    ("expires", "0"),
]
_OF_PAGE: Headers = [
    ("content-type", "text/html"),
    # The address of the page holds a code when the provider leads back.
    ("referrer-policy", "same-origin"),
    ("content-security-policy", "frame-ancestors 'none'"),
]
UNTYPED = {4: "", 5: "", 6: ""}
"""Values of the command that json, jsonb and text take alike (reference 04, pitfall 19)."""

Route = tuple[str, str, tuple[Step, ...]]


def external_routes(services: Services, keys: Keys, single_use: RefreshTokenUse) -> Iterator[Route]:
    """Method, path and steps of all. To be asked for in the running event loop."""
    options = services.options.auth.external
    if options is None:
        return
    talker = services.host.once("external sign-in", lambda: Talker(services.options.outbound.client))
    attempts = Attempts(keys, services.auth.sessions, single_use)
    limited = None if services.limiting is None else services.limiting(options.rate_limiter)
    first = () if limited is None else (limited,)
    for provider in options.providers:
        signing = _SignIn(options, provider, services, Profiles(provider, talker), attempts, keys)
        for method, path, step in signing.routes():
            yield method, path, (_exactly(path), *first, step)


def _exactly(path: str) -> Step:
    """Routes are found in any case; what a provider leads back to is one address (reference 04, 11)."""

    def look(exchange: Exchange) -> None:
        if exchange.scope.path != path:
            raise Problem(404, f"there is no endpoint at {exchange.scope.path[:200]}")

    return look


class _SignIn:
    """One provider in one worker."""

    def __init__(
        self,
        options: ExternalOptions,
        provider: Provider,
        services: Services,
        profiles: Profiles,
        attempts: Attempts,
        keys: Keys,
    ) -> None:
        auth = services.options.auth
        self._options = options
        self._provider = provider
        self._auth = auth
        self._camel = services.options.camel_case
        self._identity = services.auth
        self._sessions = services.auth.sessions
        self._largest = services.options.http.sign_in_body_limit
        self._client = client_reader(services.options.forwarding)
        self._profiles = profiles
        self._attempts = attempts
        self._kept = KeptTokens(provider, keys, services.auth.sessions)
        self._issuer = Issuer(auth, services.auth.sessions)
        self._command = Command(f"sign-in with {provider.key}", options.command, services, UNTYPED)
        policies = (name.lower() for name, _ in services.options.http.security_headers)
        self._script_path = f"{provider.path}/script.js" if "content-security-policy" in policies else None
        self._refuse_foreign = None if auth.cross_site is None else foreign_refusal(auth, services.options.forwarding)

    def routes(self) -> Iterator[tuple[str, str, Step]]:
        path = self._provider.path
        yield "GET", path, self.show
        yield "POST", path, self.finish
        if self._script_path is not None:
            yield "GET", self._script_path, self.script
        if self._provider.keeps_tokens:
            yield "POST", f"{path}/refresh", self.refresh
        if self._provider.signs_out:
            yield "POST", f"{path}/logout", self.leave

    # --- the page --------------------------------------------------------------------------------------------------

    async def show(self, exchange: Exchange) -> None:
        """Where the query says nothing of a way back, an attempt begins."""
        query = parse_qs(exchange.scope.query_string, keep_blank_values=True)
        cookies: list[str] = []
        url = state = None
        if "state" not in query and "error" not in query:
            try:
                url, state, cookies = await self._begun(exchange)
            except TalkError as error:
                self._fail(exchange, error, [])
                return
        body = sign_in_page(self._options, self._provider, url, state, self._script_path)
        headers = [*_OF_PAGE, *UNCACHED, *(("set-cookie", cookie) for cookie in cookies)]
        exchange.protocol.response_bytes(200, headers, body)

    def script(self, exchange: Exchange) -> None:
        """Of the page, where a policy of the operator's lets no script stand in it."""
        headers = [("content-type", "text/javascript; charset=utf-8"), ("cache-control", "no-cache")]
        exchange.protocol.response_bytes(200, headers, sign_in_script(self._options))

    async def _begun(self, exchange: Exchange) -> tuple[str, str, list[str]]:
        """Where the browser goes, the state, and cookies. Raises `TalkError`."""
        addresses = await self._profiles.addresses()
        redirect_uri = self._origin(exchange.scope) + self._provider.path
        user = await caller(exchange, self._identity)
        attempt, cookies = self._attempts.begin(exchange.scope, self._provider, redirect_uri, user)
        url = authorization_url(
            self._provider, addresses.authorize, redirect_uri, attempt.state, attempt.verifier, attempt.nonce
        )
        return url, attempt.state, cookies

    def _origin(self, scope: Any) -> str:
        if self._options.redirect_url is not None:
            return self._options.redirect_url
        client = self._client(scope)
        return f"{client.scheme}://{client.host or scope.authority or scope.headers.get('host') or ''}"

    # --- the code --------------------------------------------------------------------------------------------------

    async def finish(self, exchange: Exchange) -> None:
        scope = exchange.scope
        ended: list[str] = []
        try:
            if self._refuse_foreign is not None:
                self._refuse_foreign(scope)
            profile, user, ended = await self._profile(exchange)
            row, cells = await self._row(exchange, profile, user, self._analytics(scope))
            self._sign_in(exchange, row, cells, profile, ended)
        except TalkError as error:
            self._fail(exchange, error, ended)
        except Problem as problem:
            problem.headers = (*problem.headers, *UNCACHED, *(("set-cookie", cookie) for cookie in ended))
            raise

    async def _profile(self, exchange: Exchange) -> tuple[Profile, User | None, list[str]]:
        """Who it is, who is signed in already, and Set-Cookie headers. Raises `TalkError` or `Problem`."""
        scope = exchange.scope
        sent = _object(await read_body(scope, exchange.protocol, self._largest))
        code, state = sent.get("code"), sent.get("state")
        if not isinstance(code, str) or not code:
            raise TalkError("the request holds no code")
        user = await caller(exchange, self._identity)
        if not self._needs_state(scope) and not self._attempts.has(scope, state):
            redirect_uri = self._origin(scope) + self._provider.path
            return await self._profiles.by_code(code, redirect_uri, None, None, sent.get("iss")), user, []
        attempt, ended = await self._attempts.take(scope, self._provider, state)
        if attempt.user != digest_of(user):
            # Whoever began it did not ask for this user to be linked with anything.
            user = None
        profile = await self._profiles.by_code(
            code, attempt.redirect_uri, attempt.verifier, attempt.nonce, sent.get("iss")
        )
        return profile, user, [ended]

    def _needs_state(self, scope: Any) -> bool:
        """A page of somebody else can make a browser send his code, and nothing but a browser."""
        headers = scope.headers
        by_browser = headers.get("origin") is not None or headers.get("sec-fetch-site") is not None
        return by_browser or self._options.requires_state or self._provider.issuer is not None

    def _analytics(self, scope: Any) -> str | None:
        given = parse_qs(scope.query_string).get("analyticsData", [""])[0]
        address = self._identity.address(scope)
        return with_address(given, self._options.ip_key, None if address is None else address.decode())

    async def _row(
        self, exchange: Exchange, profile: Profile, user: User | None, analytics: str | None
    ) -> tuple[LoginRow, list[Any]]:
        """What the operator's command says. Raises `TalkError` where it fails, `Problem` where it knows nobody."""
        claims = None if user is None else user.json.decode()
        values = [self._provider.key, profile.email, profile.name, profile.info, analytics, claims]
        try:
            rows = await self._command.run(exchange, values)
        except Problem as problem:
            if problem.status == 503:
                raise
            raise TalkError(f"the LoginCommand failed: {problem.title}") from None
        cells = rows[0] if rows else []
        if all(cell.text is None for cell in cells):
            raise Problem(401, NOBODY)
        try:
            row = read_login_row(cells, self._auth.login)
        except LoginRowError as error:
            log.error("sign-in with %s: the row of the LoginCommand cannot be used: %s", self._provider.key, error)
            raise Problem(500, "the login row cannot be used; the log of the service says why") from None
        if row.refused:
            raise Problem(401, NOBODY)
        return row, cells

    def _sign_in(
        self, exchange: Exchange, row: LoginRow, cells: list[Any], profile: Profile, cookies: list[str]
    ) -> None:
        options = self._auth.login
        if row.status != 200:
            self._answer_status(exchange, row, cookies)
            return
        if self._provider.keeps_tokens:
            digest = digest_of(self._sessions.user(row.claims, "")) or ""
            kept = Kept(digest, profile.refresh, profile.identity, profile.subject)
            cookies = [*cookies, *self._kept.keep(exchange.scope, kept)]
        body = None if row.body is None else (options.content_type, row.body.encode())
        if body is None and options.serialize:
            body = "application/json", f"[{row_json(cells, options, camel=self._camel)}]".encode()
        self._issuer.sign_in(exchange, row, [("set-cookie", cookie) for cookie in cookies], body)

    def _answer_status(self, exchange: Exchange, row: LoginRow, cookies: list[str]) -> None:
        headers = [*UNCACHED, *(("set-cookie", cookie) for cookie in cookies)]
        if row.body is not None:
            content_type = ("content-type", self._auth.login.content_type)
            exchange.protocol.response_bytes(row.status, [content_type, *headers], row.body.encode())
        elif row.status >= 400:
            raise Problem(row.status, "the routine has refused to sign anybody in")
        else:
            exchange.protocol.response_empty(row.status, headers)

    def _fail(self, exchange: Exchange, error: TalkError, cookies: list[str]) -> None:
        """The reason is for the log: a stranger may have caused it (reference 04, 11)."""
        log.error("Error talking to %s: %s", self._provider.key, one_line(str(error)))
        headers = [("content-type", "text/plain"), *UNCACHED, *(("set-cookie", cookie) for cookie in cookies)]
        exchange.protocol.response_bytes(500, headers, f"Error talking to {self._provider.key}".encode())

    # --- afterwards ------------------------------------------------------------------------------------------------

    async def refresh(self, exchange: Exchange) -> None:
        """The provider is asked again who it is, and the operator's command what he may do."""
        scope = exchange.scope
        if self._refuse_foreign is not None:
            self._refuse_foreign(scope)
        user = await caller(exchange, self._identity)
        kept = await self._kept.read(scope)
        if user is None or kept is None or kept.refresh is None or kept.user != digest_of(user):
            raise unauthorized(self._auth.schemes.challenge, "no token of the provider belongs to this session")
        try:
            profile = await self._profiles.by_refresh_token(kept.refresh, kept.identity, kept.subject)
            row, cells = await self._row(exchange, profile, user, None)
            self._sign_in(exchange, row, cells, profile, [])
        except RefusedByProviderError as error:
            log.warning("%s does not renew a sign-in: %s", self._provider.key, one_line(str(error)))
            problem = unauthorized(self._auth.schemes.challenge, "the provider does not renew this sign-in")
            problem.headers = (*problem.headers, *(("set-cookie", cookie) for cookie in self._kept.forget(scope)))
            raise problem from None
        except TalkError as error:
            self._fail(exchange, error, [])

    async def leave(self, exchange: Exchange) -> None:
        """Ends the session here, the tokens at the provider, and leads the browser to where it ends the one there."""
        scope = exchange.scope
        if self._refuse_foreign is not None:
            self._refuse_foreign(scope)
        kept = await self._kept.read(scope)
        location = await self._told_goodbye(kept, self._origin(scope) + self._options.return_to)
        cookies = self._kept.forget(scope) if kept is not None else []
        scheme = self._sessions.scheme_of(scope)
        if isinstance(scheme, CookieScheme):
            secure = self._sessions.secures(scheme, scope)
            cookies += end_session(scheme, cookie_header(scope.headers), secure=secure)
        headers = cookie_headers(cookies)
        if "application/json" in (scope.headers.get("accept") or ""):
            body = orjson.dumps({"location": location})
            exchange.protocol.response_bytes(200, [("content-type", "application/json"), *headers], body)
        else:
            exchange.protocol.response_empty(303, [("location", location), *headers])

    async def _told_goodbye(self, kept: Kept | None, home: str) -> str:
        """Where the browser goes next. A provider that does not answer keeps nobody signed in here."""
        try:
            addresses = await self._profiles.addresses()
            if kept is not None and kept.refresh is not None:
                await self._profiles.revoke(kept.refresh)
        except TalkError as error:
            log.warning("%s has not been told of a sign-out: %s", self._provider.key, one_line(str(error)))
            return home
        if addresses.logout is None:
            return home
        asked = {"client_id": self._provider.client_id, "post_logout_redirect_uri": home}
        hint = {"id_token_hint": kept.identity} if kept is not None and kept.identity is not None else {}
        return with_query(addresses.logout, {**hint, **asked})


def _object(body: bytes) -> Mapping[str, Any]:
    """Raises `TalkError`."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict):
        raise TalkError("the request is no JSON object")
    return content
