"""Passkeys as second factor of a sign-in, and as two factors in one: the key, and the PIN or fingerprint for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rowcall.core.auth.claims import PASSKEY, with_second_factor
from rowcall.core.auth.login import LoginRow
from rowcall.core.auth.options import SecondFactorOptions
from rowcall.core.errors.problems import Problem
from rowcall.service.auth.second_factor.pending_sign_in import PendingSignIn, PendingSignIns
from rowcall.service.pipeline.services import Services

Body = tuple[str, bytes] | None
"""Content type and content of a response."""


class PasskeyFactor:
    """Completes sign-ins with a passkey as second factor.

    user_verified: the service accepts only passkeys that their user has unlocked (PIN, fingerprint), so that a passkey
    alone counts as two factors.
    """

    def __init__(self, options: SecondFactorOptions, services: Services, *, user_verified: bool) -> None:
        self._pending = PendingSignIns(options, services)
        self._user_id = services.options.auth.identity.user_id
        self._user_verified = user_verified

    async def read_pending_sign_in(self, content: Mapping[str, Any]) -> PendingSignIn | None:
        """Return the sign-in that the request completes; None: it has no token. Raises `Problem` 401 for a token that
        is not valid, or not any more."""
        token = content.get("secondFactorToken")
        return None if token is None else await self._pending.read(token)

    def complete_sign_in(self, row: LoginRow, body: Body, pending: PendingSignIn | None) -> tuple[LoginRow, Body]:
        """Return the login row and the body with which the sign-in is completed: those of `pending`, or, if that is
        None, `row` and `body`. The claim of a second factor is added for a pending sign-in, and otherwise if passkeys
        need user verification (`user_verified`).

        row, body: of the command that completes a login by passkey. Raises `Problem` 401 if the passkey is that of
        another user than `pending`.
        """
        if pending is None:
            return (replace(row, claims=with_second_factor(row.claims, PASSKEY)) if self._user_verified else row), body
        if (self._user_id, pending.subject) not in row.claims:
            raise Problem(401, title="The passkey is that of another user", code="authentication_failed")
        return replace(pending.row, claims=with_second_factor(pending.claims, PASSKEY)), pending.body
