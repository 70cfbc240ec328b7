"""The logout endpoint: the routine runs and selects the sessions to end (sign-in-34)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowcall.core.auth.login import scheme_names
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.auth.credential_issuer import CredentialIssuer
from rowcall.service.database.call import Call
from rowcall.service.identity.session_cookies import RenewingProtocol
from rowcall.service.pipeline.own_call import rows_of
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response.headers import comment_fields

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services


def logout_steps(_endpoint: Endpoint, services: Services, call: Call) -> tuple[Step, ...]:
    """Return the steps behind the call of the routine. call: renders `CellRows` if the routine returns something."""
    call.rows = False
    issuer = CredentialIssuer(services.options.auth, services.auth.sessions)

    def finish(context: RequestContext) -> None:
        names = [] if call.renderer is None else list(scheme_names(rows_of(context)))
        if isinstance(context.protocol, RenewingProtocol):
            # A session that ends must not be renewed by the same response.
            context.protocol = context.protocol.inner
        issuer.sign_out(context, names, list(comment_fields(context)))

    return (finish,)
