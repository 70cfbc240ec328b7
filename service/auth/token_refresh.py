"""The refresh endpoints: new tokens for a refresh token, without the database (sign-in-32, sign-in-33).

A refresh token is good for one use (`service.identity.refresh_token_use`), unless the configuration says otherwise.
What is stolen from an opaque scheme is worth nothing alone besides, as the request has to be authenticated: by the
session that the token was issued with, or somebody with an account could make a stolen session last for ever with a
token of his own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import orjson

from rowcall.core.auth.claims import latest_end
from rowcall.core.auth.options import AuthOptions
from rowcall.core.auth.schemes import BearerScheme, JwtScheme
from rowcall.core.auth.token_families import ENDED, Mark, mark_of
from rowcall.core.auth.tokens import BadTokenError
from rowcall.core.errors.problems import Problem, unauthorized
from rowcall.service.auth.credential_issuer import CredentialIssuer
from rowcall.service.identity.encrypted_sessions import EncryptedSession, EncryptedSessions
from rowcall.service.identity.refresh_token_use import RefreshTokenUse
from rowcall.service.identity.sessions import Sessions
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys
from rowcall.service.request.body import read_body
from rowcall.service.request_context.request_context import RequestContext, Step

log = logging.getLogger("rowcall")

LARGEST = 131_072
"""Bytes of a request: anybody may send one."""
NOT_VALID = "the refresh token or the session it belongs to is not valid any more"
_NOT_VALID_JWT = "Invalid or expired refresh token"


def refresh_routes(
    options: AuthOptions, sessions: Sessions, keys: Keys, single_use: RefreshTokenUse
) -> Iterator[tuple[str, Step]]:
    """Path and step of each; all are POST."""
    issuer = CredentialIssuer(options, sessions)
    once = single_use if options.single_use else None
    for bearer in options.schemes.bearers:
        if bearer.refresh_path:
            yield bearer.refresh_path, _opaque(bearer, sessions, issuer, keys, once)
    for signed in options.schemes.jwts:
        if signed.refresh_path:
            yield signed.refresh_path, _signed(signed, sessions, issuer, once)


def _opaque(
    scheme: BearerScheme, sessions: Sessions, issuer: CredentialIssuer, keys: Keys, once: RefreshTokenUse | None
) -> Step:
    """The new tokens are made from the claims of the refresh token; who brings it has to be signed in still."""

    async def refresh(context: RequestContext) -> None:
        token = await _token(context, "refresh")
        waiting = sessions.authenticate(context)
        if waiting is not None:
            await waiting
        user = context.user
        lease = await _read(sessions.refresh[scheme.name], keys, token)
        if user is None or lease is None:
            raise unauthorized("Bearer", NOT_VALID)
        mark = mark_of(lease.mark, token)
        if user.scheme != scheme.name or user.subject != sessions.user(lease.claims, scheme.name).subject:
            if once is not None:
                # Whoever has two credentials that do not belong together has one that is not his.
                await once.is_first(Mark(mark.family, ENDED), scheme.expire)
            log.warning("%s: refused a refresh token that does not belong to the session it came with", scheme.name)
            raise unauthorized("Bearer", NOT_VALID)
        await _use(once, mark, scheme.name, scheme.expire)
        issuer.send_tokens(context, scheme, lease.claims, [], mark.next)

    return refresh


async def _read(tickets: EncryptedSessions, keys: Keys, token: str) -> EncryptedSession | None:
    try:
        try:
            return tickets.read(token, time.time())
        except UnknownKeyError:
            await keys.read_again()
            return tickets.read(token, time.time())
    except SealError:
        return None


def _signed(scheme: JwtScheme, sessions: Sessions, issuer: CredentialIssuer, once: RefreshTokenUse | None) -> Step:
    tokens = sessions.signed[scheme.name]

    async def refresh(context: RequestContext) -> None:
        token = await _token(context, "refreshToken")
        try:
            claims, mark = tokens.verify_refresh(token)
        except BadTokenError:
            raise unauthorized("Bearer", _NOT_VALID_JWT) from None
        if latest_end(claims) <= time.time():
            # Within the clock skew of the token itself, each refresh would give another one.
            raise unauthorized("Bearer", _NOT_VALID_JWT)
        context.user = sessions.user(claims, scheme.name)
        checking = sessions.drop_ended(context)
        if checking is not None:
            await checking
        if context.user is None:
            raise unauthorized("Bearer", _NOT_VALID_JWT)
        await _use(once, mark, scheme.name, scheme.refresh_expire + scheme.clock_skew)
        issuer.send_tokens(context, scheme, claims, [], mark.next)

    return refresh


async def _use(once: RefreshTokenUse | None, mark: Mark, scheme: str, lifetime: float) -> None:
    """Raises `Problem` 401 where the token has been used before, or a later one of its sign-in came twice."""
    if once is None or await once.is_first(mark, lifetime):
        return
    log.warning("%s: refused a refresh token that was used before, or that follows from one used twice", scheme)
    raise unauthorized("Bearer", "this refresh token has been used before; sign in again")


async def _token(context: RequestContext, member: str) -> str:
    body = await read_body(context.scope, context.protocol, LARGEST)
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = None
    token = content.get(member) if isinstance(content, dict) else None
    if not isinstance(token, str):
        raise Problem(400, f"Invalid request body: a JSON object with the text {member} is needed")
    return token
