"""End sessions when the issuer reports a sign-out (OpenID Connect Back-Channel Logout 1.0).

The operator's command finds the sessions to end. All workers of the host discard cached introspection results of
sessions at once; other hosts check the sessions again after `SessionCheckInterval`.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from urllib.parse import parse_qs

import jwt
import orjson

from rowcall.core.auth.external.options import ExternalOptions, Provider
from rowcall.core.auth.external.provider_tokens import LogoutToken, LogoutTokenError, read_logout_token
from rowcall.core.auth.token_families import Mark
from rowcall.core.errors.problems import Problem
from rowcall.service.auth.commands import Command
from rowcall.service.auth.external.issuers import CLOCK_SKEW, signed_claims
from rowcall.service.auth.external.profiles import Profiles
from rowcall.service.auth.external.provider_client import ProviderError
from rowcall.service.auth.session_introspection import SESSIONS_ENDED
from rowcall.service.identity.refresh_token_use import RefreshTokenUse
from rowcall.service.log.entry import escape_unprintable
from rowcall.service.pipeline.services import Services
from rowcall.service.request.body import read_body
from rowcall.service.request.form_fields import kind_of
from rowcall.service.request.forms import URLENCODED
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext

log = logging.getLogger("rowcall")

UNCACHED = [("cache-control", "no-store")]
REQUIRED = ["iss", "aud", "iat", "exp", "jti", "events"]
"""Claims that a logout token must have."""
LONGEST_LIFE = 3600.0
"""Most seconds from `iat` to `exp`."""
RECORDED = LONGEST_LIFE + 2 * CLOCK_SKEW
"""Seconds for which it is recorded that a token has been used."""


class BackChannel:
    """Back-channel logout of one provider in one worker."""

    def __init__(
        self,
        options: ExternalOptions,
        provider: Provider,
        services: Services,
        profiles: Profiles,
        single_use: RefreshTokenUse,
    ) -> None:
        self._provider = provider
        self._profiles = profiles
        self._single_use = single_use
        self._largest = services.options.http.limits.sign_in_body_size
        self._message_bus = services.host.message_bus
        self._command = Command(f"logout at {provider.key}", options.logout_command, services)

    async def end_sessions(self, context: RequestContext) -> None:
        """Respond 200 when the sessions have ended, else 400 with the error of OAuth 2 (Back-Channel Logout, 2.8). If
        the command fails, the issuer may send the token again.

        Raises `Problem`: 500 or 503 if the operator's command fails, 503 if it is unknown whether the token was used or
        if too many requests to providers are in progress, and the errors of `read_body`.
        """
        try:
            token = await self._token(context)
        except (ProviderError, LogoutTokenError) as error:
            log.warning("%s: a logout token is not accepted: %s", self._provider.key, escape_unprintable(str(error)))
            _refuse(context, str(error))
            return
        mark = Mark(hashlib.sha256(orjson.dumps([self._provider.key, token.number])).hexdigest(), 0)
        if not await self._single_use.is_first(mark, RECORDED):
            log.warning("%s: a logout token was used twice", self._provider.key)
            _refuse(context, "it has been used before")
            return
        try:
            await self._command.run(context, [self._provider.key, token.subject, token.session])
        except (ClientDisconnectedError, asyncio.CancelledError):
            self._single_use.allow_again(mark, RECORDED)
            raise
        except Problem as problem:
            self._single_use.allow_again(mark, RECORDED)
            raise Problem(
                503 if problem.status == 503 else 500,
                "the sessions could not be ended; the log of the service says why",
                headers=(("cache-control", "no-store"),),
            ) from None
        self._message_bus.publish(SESSIONS_ENDED, b"")
        log.info("%s has ended sessions: subject %s, session %s", self._provider.key, *map(_format_value, token[:2]))
        context.protocol.response_empty(200, UNCACHED)

    async def _token(self, context: RequestContext) -> LogoutToken:
        """Read and verify the logout token of the request. Raises `ProviderError` or `LogoutTokenError`, `Problem` 503
        if too many requests to providers are in progress, and the errors of `read_body`."""
        body = await read_body(context.scope, context.protocol, self._largest)
        form = kind_of(context.scope) == URLENCODED
        tokens = parse_qs(body.decode("ascii", "replace")).get("logout_token", []) if form else []
        if len(tokens) != 1:
            raise LogoutTokenError("the form has no logout_token")
        addresses = await self._profiles.addresses()
        assert addresses.keys is not None  # noqa: S101 (an issuer has them)
        claims = await signed_claims(self._provider, addresses.keys, tokens[0], REQUIRED)
        # PyJWT also accepts numbers in texts.
        if int(claims["exp"]) - int(claims["iat"]) > LONGEST_LIFE:
            raise LogoutTokenError("its lifetime is too long")
        return read_logout_token(jwt.get_unverified_header(tokens[0]), claims)


def _refuse(context: RequestContext, reason: str) -> None:
    """Respond 400 with an error of OAuth 2. reason: why the logout token is not accepted."""
    body = orjson.dumps(
        {"error": "invalid_request", "error_description": f"the logout token is not accepted: {reason}"}
    )
    context.protocol.response_bytes(400, [("content-type", "application/json"), *UNCACHED], body)


def _format_value(text: str | None) -> str:
    """Return the text for the log, in one line and shortened to 200 characters; `not given` for None."""
    return "not given" if text is None else escape_unprintable(text[:200])
