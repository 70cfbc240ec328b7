"""Binds a request and fills the parameters that are the service's own: claims, the client's address, hashes.

The rest of binding stays as it is: the plain binder gets the endpoint with those parameters optional and unchecked,
and what it found for them is overwritten here (access-14, access-15).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rowcall.core.auth.parameter_injection import (
    InjectedParameter,
    Source,
    hashed_parameters,
    injected_parameters,
    with_injected,
)
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.request import binding
from rowcall.service.request.headers import with_headers_filled
from rowcall.service.request_context.arguments import remove_argument, set_argument
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting
from rowcall.service.response.headers import argument_text

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")


def bind(endpoint: Endpoint, services: Services) -> tuple[Step, ...]:
    """Request values, and what the service knows itself → the arguments of the call."""
    endpoint = with_headers_filled(endpoint, services)
    filled = injected_parameters(endpoint, services.options.auth.mapping)
    hashed = hashed_parameters(endpoint)
    if not filled and not hashed:
        return (binding.bind(endpoint, services),)
    targets = {target for target, source in hashed if target != source}
    sources = {source for target, source in hashed if target == source}

    def binder(claims: Sequence[InjectedParameter]) -> Step:
        return binding.bind(with_injected(endpoint, {one.index for one in claims} | targets, sources), services)

    if not filled:
        return (binder(()),)
    if not services.options.auth.claims_from_anonymous:
        return (binder(filled), _fill(endpoint, filled, filled, services))
    addresses = tuple(one for one in filled if one.source is Source.ADDRESS)
    anonymous, signed_in = binder(addresses), binder(filled)

    def bind_for_user(context: RequestContext) -> Waiting:
        return (anonymous if context.user is None else signed_in)(context)

    return bind_for_user, _fill(endpoint, filled, addresses, services)


def _fill(
    endpoint: Endpoint,
    filled: Sequence[InjectedParameter],
    for_anonymous: Sequence[InjectedParameter],
    services: Services,
) -> Step:
    """Nobody's claims are like those that somebody does not have: the default, else NULL."""
    address_of = services.auth.address
    elsewhere = "body" if endpoint.transport is Transport.BODY else "query"

    def fill(context: RequestContext) -> None:
        user = context.user
        for one in for_anonymous if user is None else filled:
            if one.source is Source.ADDRESS:
                set_argument(context, one.index, address_of(context.scope))
                continue
            if user is None:
                _put_default(context, one)
                continue
            if context.mask >> one.index & 1:
                _warn(endpoint, one, "path" if one.parameter.path else elsewhere)
            if one.source is Source.CLAIMS_JSON:
                set_argument(context, one.index, user.json)
                continue
            values = user.arrays if one.parameter.array else user.texts
            if one.claim in values:
                set_argument(context, one.index, values[one.claim])
            else:
                _put_default(context, one)
        context.has_null = None in context.arguments

    return fill


def _put_default(context: RequestContext, one: InjectedParameter) -> None:
    """For a claim that the caller does not have: the default of the comment or of the routine, else NULL."""
    parameter = one.parameter
    if parameter.has_default and not parameter.defaulted:
        remove_argument(context, one.index)
    else:
        default = parameter.default if parameter.defaulted else None
        set_argument(context, one.index, None if default is None else default.encode())


def _warn(endpoint: Endpoint, one: InjectedParameter, place: str) -> None:
    log.warning(
        "%s: the %s has a value for %s, which is filled from the claim %s; it is not used",
        endpoint.name,
        place,
        one.parameter.api_name,
        one.claim or "set",
    )


def hash_parameters(endpoint: Endpoint, services: Services) -> Step | None:
    """Passwords become hashes once they have been checked against rules (sign-in-26)."""
    hashed = hashed_parameters(endpoint)
    if not hashed:
        return None
    hasher = services.auth.hasher

    async def hash_values(context: RequestContext) -> None:
        # All sources are read first: one may be the target of another.
        texts = [(target, argument_text(context, source)) for target, source in hashed]
        for target, text in texts:
            set_argument(context, target, (await hasher.hash(text)).encode() if text else None)
        context.has_null = None in context.arguments

    return hash_values
