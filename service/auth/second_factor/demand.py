"""Ask for the second factor at a login: between the verified first factor and the session."""

from __future__ import annotations

import logging

from rowcall.core.auth.login import LoginRow
from rowcall.core.auth.options import SecondFactorOptions
from rowcall.core.errors.problems import Problem
from rowcall.service.auth.second_factor.device_cookie import DeviceCookie
from rowcall.service.auth.second_factor.factor_store import FactorStore
from rowcall.service.auth.second_factor.pending_sign_in import PendingSignIn, PendingSignIns
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext

log = logging.getLogger("rowcall")

REQUIRED = "second_factor_required"


class SecondFactorDemand:
    """Decides for each login whether the second factor is needed."""

    def __init__(self, options: SecondFactorOptions, services: Services) -> None:
        self._store = FactorStore(options, services)
        self._pending = PendingSignIns(options, services)
        self._device = DeviceCookie(options, services.auth.sessions)
        self._user_id = services.options.auth.identity.user_id

    async def require(self, context: RequestContext, name: str, row: LoginRow, body: tuple[str, bytes] | None) -> None:
        """Refuse a sign-in until the second factor is proved, unless the user has none or the device is remembered.
        Raises `Problem`: 401 with a token and the possible methods, 500 if the row has no user id or forms too large a
        token, 503 if there is no key to seal the token with, and if the second factors cannot be read from the
        database.

        name: of the endpoint. body: content type and content of the response to the login, which the second request
        gets.
        """
        subject = next((value for kind, value in row.claims if kind == self._user_id and value), None)
        if subject is None:
            log.error("%s: the login row has no %s, so the user's second factor is unknown", name, self._user_id)
            raise Problem(500, "the login row cannot be used; the log of the service says why")
        state = await self._store.state(context, subject, self._device.present(context.scope))
        methods = (["totp"] if state.confirmed else []) + (["recovery_code"] if state.recovery_codes else [])
        methods += row.second_factors
        if not methods or state.remembered:
            return
        pending = PendingSignIn(subject, row.claims, row.scheme, body)
        token = self._pending.token(pending, passkeys=bool(row.second_factors))
        raise Problem(
            401,
            title="Second factor required",
            code=REQUIRED,
            headers=(("cache-control", "no-store"),),
            others={"methods": methods, "token": token},
        )
