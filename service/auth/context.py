"""Set claims as session variables of the transaction in which a routine runs (access-17, access-18)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowcall.core.auth.claims import User
from rowcall.core.auth.options import LoginOptions
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.database.preamble import Preamble
from rowcall.service.request_context.request_context import RequestContext

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services


def user_context(endpoint: Endpoint, services: Services) -> Preamble | None:
    """Return the preamble with the settings, or None if the endpoint does not use `user_context`.

    The client address is set for all callers, if a setting for it is configured. Claims are set for signed-in callers
    only; for anonymous callers, these settings are not touched.
    """
    if not endpoint.options.user_context:
        return None
    mapping = services.options.auth.login
    address_of = services.auth.address
    address_key = None if mapping.address_key is None else mapping.address_key.encode()

    def settings(context: RequestContext) -> list[bytes | None]:
        user: User | None = context.user
        claims: list[bytes | None] = []
        if user is not None:
            claims = user.context or _keep_claims(user, mapping)
        return claims if address_key is None else [address_key, address_of(context.scope), *claims]

    return Preamble(settings=(settings,))


def _keep_claims(user: User, mapping: LoginOptions) -> list[bytes | None]:
    """Return the settings of a user's claims as names and values in turn, and cache them on the user. The value is None
    for a claim that the user lacks. mapping: says which setting gets which claim.
    """
    json = [] if mapping.json_key is None else [mapping.json_key.encode(), user.json]
    pairs = ((key.encode(), user.texts.get(claim)) for key, claim in mapping.context)
    user.context = [*json, *(part for pair in pairs for part in pair)]
    return user.context
