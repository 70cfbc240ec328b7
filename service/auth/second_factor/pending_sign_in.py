"""Sign-ins whose first factor is verified, as sealed tokens that clients return with the second one."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import orjson

from rowcall.core.auth.claims import Claim
from rowcall.core.auth.login import LoginRow
from rowcall.core.auth.options import SecondFactorOptions
from rowcall.core.errors.problems import Problem
from rowcall.service.pipeline.services import Services
from rowcall.service.protection.errors import SealError, UnknownKeyError
from rowcall.service.protection.protector import Protector

LONGEST = 65_536
"""Most characters of a token that is read."""
_REST = 256
"""Most bytes of the second request beside the token, if it contains a code."""
_EXPIRED = "The sign-in was too long ago, or did not begin here; sign in again"


class PendingSignIn(NamedTuple):
    """A sign-in that waits for the second factor. subject: user id. scheme: that the login row names; None: it names
    none.
    """

    subject: str
    claims: tuple[Claim, ...]
    scheme: str | None
    body: tuple[str, bytes] | None
    """Content type and content of the response; None: none."""

    @property
    def row(self) -> LoginRow:
        """The login row of the sign-in, as the first factor would have completed it."""
        return LoginRow(claims=self.claims, scheme=self.scheme)


class PendingSignIns:
    """Writes and reads the tokens of sign-ins that wait for the second factor."""

    def __init__(self, options: SecondFactorOptions, services: Services) -> None:
        self._seconds = options.pending
        self._keys = services.auth.keys
        self._body_size = services.options.http.limits.sign_in_body_size
        self._protector = Protector(services.auth.keys, "second factor of a sign-in")

    def token(self, pending: PendingSignIn, *, passkeys: bool) -> str:
        """Return the token of a sign-in. Raises `Problem` 500 if it is too large for the body of the second request,
        and `NoKeyError`. passkeys: the second factor may be a passkey, for which an eighth of the body is left.
        """
        body = None if pending.body is None else [pending.body[0], pending.body[1].decode()]
        members = [time.time() + self._seconds, pending.subject, pending.claims, pending.scheme, body]
        token = self._protector.seal(orjson.dumps(members))
        rest = max(_REST, self._body_size // 8) if passkeys else _REST
        longest = min(LONGEST, self._body_size - rest)
        if len(token) > longest:
            raise Problem(
                500,
                f"this sign-in forms a token of {len(token)} characters, and the request with the second factor may "
                f"contain {longest}: it holds every column of the login row and the response of the login; let the "
                "login return fewer columns or a smaller response, or raise HttpServer:Limits:MaxSignInBodySize (a "
                f"token of more than {LONGEST} characters is never read)",
            )
        return token

    async def read(self, token: object) -> PendingSignIn:
        """Return the sign-in of a token. Raises `Problem` 401 if the token is not valid, or not any more."""
        if not isinstance(token, str) or len(token) > LONGEST:
            raise _refusal()
        try:
            try:
                content: list[Any] = orjson.loads(self._protector.open(token))
            except UnknownKeyError:
                await self._keys.read_again()
                content = orjson.loads(self._protector.open(token))
        except SealError:
            raise _refusal() from None
        until, subject, claims, scheme, body = content
        if until < time.time():
            raise _refusal()
        sent = None if body is None else (body[0], body[1].encode())
        return PendingSignIn(subject, tuple((kind, value) for kind, value in claims), scheme, sent)


def _refusal() -> Problem:
    """Return the 401 for a token that is not valid, or not any more."""
    return Problem(401, title=_EXPIRED, code="sign_in_expired")
