"""The step that counts attempts to sign in, before the routine runs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rowcall.core.accounts.lockout import account_parameter, normalize_account
from rowcall.core.auth.parameter_injection import injected_parameters
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response.headers import argument_text

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")


def count_sign_ins(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that counts a request as an attempt to sign in. It raises `Problem` 429 after too many failures,
    and `NoKeyError`.

    None if `Auth:Lockout` is off, or if the endpoint neither signs in nor consumes tokens. Impersonation is not
    counted, because its callers have signed in before.
    """
    guard = services.auth.guard
    options = endpoint.options
    signs_in = options.login and options.impersonation is None
    if guard is None or not (signs_in or options.consumed_token is not None):
        return None
    name = endpoint.name
    account = _account(endpoint, services, guard.options.parameters) if options.consumed_token is None else None
    if account is None and options.consumed_token is None:
        log.warning(
            "%s: no parameter names the account, so Auth:Lockout counts its sign-ins by address only; declare one "
            "parameter for the name, and one for the password",
            name,
        )

    async def count(context: RequestContext) -> None:
        text = None if account is None else argument_text(context, account)
        known_as = None
        if text is not None and account is not None:
            parameter = endpoint.parameters[account]
            known_as = normalize_account(text, parameter.kind, parameter.cast)
        await guard.begin(context, known_as, name)

    return count


def _account(endpoint: Endpoint, services: Services, parts: tuple[str, ...]) -> int | None:
    """Return the index of the parameter that contains the name of the account; None if there is none. parts: parts of
    the names of such parameters, in lower case.
    """
    auth = services.options.auth
    password = auth.login.password.lower()
    excluded = {item.index for item in injected_parameters(endpoint, auth.login)}
    excluded |= {index for index, item in enumerate(endpoint.parameters) if password in item.db_name.lower()}
    return account_parameter(endpoint.parameters, excluded, parts)
