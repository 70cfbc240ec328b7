"""HTTP Basic: a name and a password with each request, verified here or by a command (access-6 to access-11)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from rowcall.core.accounts.lockout import normalize_account
from rowcall.core.auth.claims import User
from rowcall.core.auth.commands import VALID
from rowcall.core.auth.login import LoginRowError, read_login_row
from rowcall.core.endpoint.capabilities import BasicAuth
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem, unauthorized_problem
from rowcall.service.auth.commands import Command
from rowcall.service.request_context.request_context import RequestContext, Step

if TYPE_CHECKING:
    from rowcall.service.identity.sign_in_guard import SignInGuard
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")

T = TypeVar("T")

SCHEME = "Basic"
REALM = "rowcall"
REMEMBERED = 10_000
"""Most verified credentials that an endpoint caches in one worker."""


class Credentials(NamedTuple):
    """User name and password of a request."""

    user: str
    password: str


def basic_header(user: str, password: str) -> str:
    """Return the header line `Authorization: Basic …`, for `--basic_auth`."""
    return f"Authorization: Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def basic_step(endpoint: Endpoint, services: Services) -> Step:
    """Return the step that sets `context.user`. It raises `Problem`: 401 with a challenge for missing or wrong
    credentials, or without TLS where that is required; 429 after too many failed sign-ins; 500 if the row of the
    challenge command cannot be used; 503 if too many passwords are being checked; the errors of `Command.run` if the
    challenge command fails; and `NoKeyError` if sign-ins are counted."""
    return _Basic(endpoint, services).authenticate


class _Basic:
    """HTTP Basic for one endpoint."""

    def __init__(self, endpoint: Endpoint, services: Services) -> None:
        options = services.options.auth.basic
        endpoint_basic = endpoint.access.basic or BasicAuth()
        self._endpoint = endpoint
        self._identity = services.auth
        self._caller_is_preset = services.auth.sessions.caller_is_preset
        self._options = options
        self._realm = endpoint_basic.realm or options.realm or REALM
        self._users = {**options.users, **dict(endpoint_basic.users)}
        sql = endpoint_basic.command or options.command
        self._command = (
            None if sql is None else Command(f"{endpoint.name} challenge", sql, services, {VALID: "boolean"})
        )
        self._login = services.options.auth.login
        self._name_claim = services.options.auth.identity.user_name
        # Fingerprints are keyed, so that the memory of this process does not reveal passwords.
        self._pepper = os.urandom(32)
        self._known: dict[bytes, User] = {}
        self._accepted: dict[bytes, bool] = {}
        """Credentials that were accepted, with the value False: further requests with them are no attempts to guess."""
        self._guard = services.auth.guard

    def authenticate(self, context: RequestContext) -> Awaitable[None] | None:
        if self._caller_is_preset and context.user is not None:
            return None
        context.user = None  # a session does not authenticate here
        self._check_transport(context)
        header: str | None = context.scope.headers.get("authorization")
        credentials = read_credentials(header)
        if header is None or credentials is None:
            log.debug("%s: no usable HTTP Basic credentials", self._endpoint.name)
            raise self._challenge("a user name and a password are needed")
        if self._command is not None and self._guard is None:
            return self._ask(context, credentials, self._command)
        fingerprint = hashlib.blake2b(header.encode(), key=self._pepper).digest()
        cached_user = self._known.get(fingerprint)
        if cached_user is not None:
            context.user = cached_user
            return None
        if self._guard is None:
            return self._check(context, credentials, fingerprint)
        if self._command is None:
            check = partial(self._check, context, credentials, fingerprint)
        else:
            check = partial(self._ask, context, credentials, self._command)
        return self._check_with_guard(self._guard, context, credentials, fingerprint, check)

    async def _check_with_guard(
        self,
        guard: SignInGuard,
        context: RequestContext,
        credentials: Credentials,
        fingerprint: bytes,
        check: Callable[[], Awaitable[None]],
    ) -> None:
        """Run a check. It counts as an attempt to sign in, unless the same credentials were accepted before. Raises
        `Problem` 429 after too many failures, `NoKeyError`, and the errors of the check.

        fingerprint: keyed hash of the credentials. check: verifies them and sets `context.user`, or raises `Problem`.
        """
        attempt = None
        if self._accepted.pop(fingerprint, True):
            attempt = await guard.begin(context, normalize_account(credentials.user), self._endpoint.name)
        await check()
        if attempt is not None:
            await attempt.record_success(context, by_browser=False)
        _remember(self._accepted, fingerprint, False)

    def _check_transport(self, context: RequestContext) -> None:
        """Log a request without TLS, or raise `Problem` 401 for it, as the options say."""
        if self._options.tls == "Ignore" or self._identity.sessions.is_secure(context.scope):
            return
        if self._options.tls == "Warning":
            log.warning("%s: passwords are sent over a connection without TLS", self._endpoint.name)
            return
        log.error(
            "%s: HTTP Basic needs https (Service:AuthenticationOptions:BasicAuth:SslRequirement)", self._endpoint.name
        )
        raise self._challenge("HTTP Basic is accepted over https only")

    async def _check(self, context: RequestContext, credentials: Credentials, fingerprint: bytes) -> None:
        """Verify the password, set `context.user`, and cache the user. Raises `Problem`: 401 for an unknown user or a
        wrong password, 503 if too many passwords are being checked.

        fingerprint: keyed hash of the credentials, under which the user is cached.
        """
        if not await self._is_valid(credentials):
            log.warning("%s: HTTP Basic failed for realm %s", self._endpoint.name, self._realm)
            raise self._challenge("the user name or the password is wrong")
        user = self._identity.sessions.user(((self._name_claim, credentials.user),), SCHEME)
        context.user = user
        _remember(self._known, fingerprint, user)

    async def _is_valid(self, credentials: Credentials) -> bool:
        stored = self._users.get(credentials.user)
        if not self._options.hashed:
            equal = hmac.compare_digest((stored or "").encode(), credentials.password.encode())
            return equal and stored is not None
        if stored is None:
            await self._identity.hasher.pretend(credentials.password)
            return False
        return await self._identity.hasher.verify(credentials.password, stored)

    async def _ask(self, context: RequestContext, credentials: Credentials, command: Command) -> None:
        """Authenticate by the command alone; its `$3` is the validity of the password (access-6 to access-11 step 4).
        Sets `context.user`. Raises `Problem`: 401 if the command does not accept the credentials, 500 if its row cannot
        be used, 503 if too many passwords are being checked, and the errors of `Command.run`."""
        valid = await self._password_validity(credentials) if VALID in command.takes else None
        values = (credentials.user, credentials.password, valid, self._realm, self._endpoint.path)
        rows = await command.run(context, values)
        if not rows or all(cell.text is None for cell in rows[0]):
            raise self._refusal_problem()
        try:
            row = read_login_row(rows[0], self._login)
        except LoginRowError as error:
            log.error("%s: the row of the challenge command cannot be used: %s", self._endpoint.name, error)
            raise Problem(500, "the row of the challenge command cannot be used; the log says why") from None
        if row.refused or row.status != 200:
            raise self._refusal_problem()
        context.user = self._identity.sessions.user(row.claims, SCHEME)

    async def _password_validity(self, credentials: Credentials) -> str | None:
        """Return whether the password is right: "true" or "false"; None for a user who is not configured. Raises
        `Problem` 503 if too many passwords are being checked.

        The check of an unknown user takes as long as that of a wrong password, so the time reveals nothing.
        """
        valid = bool(self._users) and await self._is_valid(credentials)
        if credentials.user not in self._users:
            return None
        return "true" if valid else "false"

    def _refusal_problem(self) -> Problem:
        """Log that the challenge command has refused the credentials, and return the 401 for that."""
        log.warning("%s: the challenge command refused, realm %s", self._endpoint.name, self._realm)
        return self._challenge("the user name or the password is wrong")

    def _challenge(self, detail: str) -> Problem:
        """Return the 401 with the challenge of this realm."""
        escaped = self._realm.replace("\\", "\\\\").replace('"', '\\"')
        return unauthorized_problem(f'Basic realm="{escaped}", charset="UTF-8"', detail)


def _remember(known: dict[bytes, T], fingerprint: bytes, value: T) -> None:
    """Store a value under the fingerprint of credentials; if there are `REMEMBERED` values, the oldest one is
    removed.
    """
    if len(known) >= REMEMBERED:
        known.pop(next(iter(known)))
    known[fingerprint] = value


def has_scheme(header: str | None) -> bool:
    """Return whether the header `Authorization` has the scheme Basic, in any case (RFC 9110, 11.1)."""
    return header is not None and header[: len("Basic ")].lower() == "basic "


def read_credentials(header: str | None) -> Credentials | None:
    """Return name and password, split at the first colon and decoded as UTF-8; None if missing, malformed or empty."""
    if header is None or not has_scheme(header):
        return None
    try:
        user, colon, password = base64.b64decode(header[len("Basic ") :], validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    if not colon or not user or not password or "\0" in user or "\0" in password:
        return None
    return Credentials(user, password)
