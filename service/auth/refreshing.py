"""The refresh endpoints: new tokens for a refresh token, without the database (reference 04, 6).

Refresh tokens are stateless like all others: one may be used again until it expires. What is stolen from an opaque
scheme is worth nothing alone, as the request has to be authenticated besides.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import orjson

from rowcall.core.auth.options import AuthOptions
from rowcall.core.auth.schemes import BearerScheme, JwtScheme
from rowcall.core.auth.tokens import REGISTERED, BadTokenError
from rowcall.core.problems import Problem, unauthorized
from rowcall.service.auth.issuing import Issuer
from rowcall.service.auth.sessions import Sessions
from rowcall.service.body import read_body
from rowcall.service.exchange import Exchange, Step
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Keys

LARGEST = 262_144
"""Bytes of a request."""


def refresh_routes(options: AuthOptions, sessions: Sessions, keys: Keys) -> Iterator[tuple[str, Step]]:
    """Path and step of each; all are POST."""
    issuer = Issuer(options, sessions)
    for bearer in options.schemes.bearers:
        if bearer.refresh_path:
            yield bearer.refresh_path, _opaque(bearer, sessions, issuer, keys)
    for signed in options.schemes.jwts:
        if signed.refresh_path:
            yield signed.refresh_path, _signed(signed, sessions, issuer)


def _opaque(scheme: BearerScheme, sessions: Sessions, issuer: Issuer, keys: Keys) -> Step:
    """The new tokens are made from the claims of the current user, who has to be signed in still."""

    async def refresh(exchange: Exchange) -> None:
        token = await _token(exchange, "refresh")
        waiting = sessions.authenticate(exchange)
        if waiting is not None:
            await waiting
        user = exchange.user
        tickets = sessions.refresh[scheme.name]
        try:
            try:
                tickets.read(token, time.time())
            except UnknownKeyError:
                await keys.read_again()
                tickets.read(token, time.time())
        except SealError:
            user = None
        if user is None:
            raise unauthorized("Bearer", "the refresh token or the session it belongs to is not valid any more")
        claims = tuple(claim for claim in user.claims if claim[0] not in REGISTERED)
        issuer.send_tokens(exchange, scheme, claims, [])

    return refresh


def _signed(scheme: JwtScheme, sessions: Sessions, issuer: Issuer) -> Step:
    tokens = sessions.signed[scheme.name]

    async def refresh(exchange: Exchange) -> None:
        token = await _token(exchange, "refreshToken")
        try:
            claims = tokens.verify_refresh(token)
        except BadTokenError:
            raise unauthorized("Bearer", "Invalid or expired refresh token") from None
        issuer.send_tokens(exchange, scheme, claims, [])

    return refresh


async def _token(exchange: Exchange, member: str) -> str:
    body = await read_body(exchange.scope, exchange.protocol, LARGEST)
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        content = None
    token = content.get(member) if isinstance(content, dict) else None
    if not isinstance(token, str):
        raise Problem(400, f"Invalid request body: a JSON object with the text {member} is needed")
    return token
