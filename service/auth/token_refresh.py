"""The refresh endpoints: new tokens for a refresh token, without a login command (sign-in-32, sign-in-33). The database
is used only to check the session, if `Auth:SessionCheckCommand` is configured.

A refresh token can be used once (`service.identity.refresh_token_use`), unless the configuration says otherwise. A
stolen opaque refresh token is worthless alone, because the request has to be authenticated as well: as the same user,
by the same scheme. If any user could send it, an attacker with an account could extend a stolen session without end.
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
from rowcall.core.endpoint.access import ANYONE
from rowcall.core.errors.problems import Problem, unauthorized_problem
from rowcall.service.auth.credential_issuer import CredentialIssuer
from rowcall.service.identity.encrypted_sessions import EncryptedSession, EncryptedSessions
from rowcall.service.identity.refresh_token_use import RefreshTokenUse
from rowcall.service.identity.sessions import Sessions
from rowcall.service.pipeline.fixed_route import FixedRoute
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys
from rowcall.service.request.body import read_body
from rowcall.service.request_context.request_context import RequestContext, Step

log = logging.getLogger("rowcall")

LARGEST = 131_072
"""Most bytes of a request. Anonymous callers can send one."""
NOT_VALID = "the refresh token or the session it belongs to is not valid any more"
_NOT_VALID_JWT = "Invalid or expired refresh token"


def refresh_routes(
    options: AuthOptions, sessions: Sessions, keys: Keys, single_use: RefreshTokenUse
) -> Iterator[FixedRoute]:
    """Yield the route of each refresh endpoint. Anonymous callers reach it: the request carries the credentials.
    single_use: records uses, if refresh tokens can be used once.
    """
    issuer = CredentialIssuer(options, sessions)
    once = single_use if options.refresh_tokens.single_use else None
    for bearer in options.schemes.bearers:
        if bearer.refresh_path:
            step = _bearer_refresh_step(bearer, sessions, issuer, keys, once)
            yield FixedRoute("POST", bearer.refresh_path, ANYONE, (step,))
    for signed in options.schemes.jwts:
        if signed.refresh_path:
            step = _jwt_refresh_step(signed, sessions, issuer, once)
            yield FixedRoute("POST", signed.refresh_path, ANYONE, (step,))


def _bearer_refresh_step(
    scheme: BearerScheme, sessions: Sessions, issuer: CredentialIssuer, keys: Keys, once: RefreshTokenUse | None
) -> Step:
    """Return the step of an opaque bearer scheme. It raises `Problem`: 400 if the body has no refresh token, 401 if the
    token is not valid (any more), was used before, or does not belong to the caller, 503 if it is unknown whether it
    was used; and the errors of `read_body`, of `Sessions.authenticate` and of `CredentialIssuer.send_tokens`. once: as
    for `_use`.

    The new tokens carry the claims of the refresh token. The caller must still be signed in as the same user. If the
    caller is another user, one of the credentials is stolen: the request is refused, and all tokens that descend from
    the refresh token become invalid.
    """

    async def refresh(context: RequestContext) -> None:
        token = await _token(context, "refresh")
        authentication = sessions.authenticate(context)
        if authentication is not None:
            await authentication
        user = context.user
        session = await _read(sessions.refresh[scheme.name], keys, token)
        if user is None or session is None:
            raise unauthorized_problem("Bearer", NOT_VALID)
        mark = mark_of(session.mark, token)
        if user.scheme != scheme.name or user.subject != sessions.user(session.claims, scheme.name).subject:
            if once is not None:
                # Two credentials of different users: one of them is stolen, so the family of the refresh token ends.
                await once.is_first(Mark(mark.family, ENDED), scheme.expire)
            log.warning("%s: refused a refresh token that does not belong to the session it came with", scheme.name)
            raise unauthorized_problem("Bearer", NOT_VALID)
        await _use(once, mark, scheme.name, scheme.expire)
        issuer.send_tokens(context, scheme, session.claims, [], mark.next)

    return refresh


async def _read(sessions: EncryptedSessions, keys: Keys, token: str) -> EncryptedSession | None:
    """Return the content of a refresh token, or None if it is not valid. If its key is unknown, the key ring is read
    again.
    """
    try:
        try:
            return sessions.read(token, time.time())
        except UnknownKeyError:
            await keys.read_again()
            return sessions.read(token, time.time())
    except SealError:
        return None


def _jwt_refresh_step(
    scheme: JwtScheme, sessions: Sessions, issuer: CredentialIssuer, once: RefreshTokenUse | None
) -> Step:
    """Return the step of a JWT scheme. It raises `Problem`: 400 if the body has no refresh token, 401 if the token is
    not valid (any more), was used before, or belongs to a session that has ended, 503 if it is unknown whether it was
    used; and the errors of `read_body`, of the session check and of `CredentialIssuer.send_tokens`. once: as for
    `_use`."""
    tokens = sessions.signed[scheme.name]

    async def refresh(context: RequestContext) -> None:
        token = await _token(context, "refreshToken")
        try:
            claims, mark = tokens.verify_refresh(token)
        except BadTokenError:
            raise unauthorized_problem("Bearer", _NOT_VALID_JWT) from None
        if latest_end(claims) <= time.time():
            # Within the clock skew, each refresh of an expired token would issue another valid one.
            raise unauthorized_problem("Bearer", _NOT_VALID_JWT)
        context.user = sessions.user(claims, scheme.name)
        introspection = sessions.drop_ended(context)
        if introspection is not None:
            await introspection
        if context.user is None:
            raise unauthorized_problem("Bearer", _NOT_VALID_JWT)
        await _use(once, mark, scheme.name, scheme.refresh_expire + scheme.clock_skew)
        issuer.send_tokens(context, scheme, claims, [], mark.next)

    return refresh


async def _use(once: RefreshTokenUse | None, mark: Mark, scheme: str, lifetime: float) -> None:
    """Mark the refresh token as used. once: None if refresh tokens may be used several times; nothing happens then.
    scheme: its name, for the log. lifetime: seconds for which a token that is issued now is accepted.

    Raises `Problem`: 401 if it was used before, or if it descends from a token that was used twice; 503 if that is
    unknown (`RefreshTokenUse`).
    """
    if once is None or await once.is_first(mark, lifetime):
        return
    log.warning("%s: refused a refresh token that was used before, or that follows from one used twice", scheme)
    raise unauthorized_problem("Bearer", "this refresh token has been used before; sign in again")


async def _token(context: RequestContext, member: str) -> str:
    """Return the refresh token: the text in this member of the JSON body. Raises `Problem` 400 if there is none, and
    the errors of `read_body`."""
    body = await read_body(context.scope, context.protocol, LARGEST)
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = None
    token = content.get(member) if isinstance(content, dict) else None
    if not isinstance(token, str):
        raise Problem(400, f"Invalid request body: a JSON object with the text {member} is needed")
    return token
