"""Binds a request and fills the parameters that are the service's own: claims, the client's address, hashes.

The rest of binding stays as it is: the plain binder gets the endpoint with those parameters optional and unchecked,
and what it found for them is overwritten here (access-14, access-15).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rowcall.core.auth.filling import Filled, Source, filled_parameters, hashed_parameters, with_filled
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.exchange.arguments import put, take_out
from rowcall.service.exchange.exchange import Exchange, Step, Waiting
from rowcall.service.request import binding
from rowcall.service.request.headers import with_headers_filled
from rowcall.service.response.headers import argument_text

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")


def bind(endpoint: Endpoint, services: Services) -> tuple[Step, ...]:
    """Request values, and what the service knows itself → the arguments of the call."""
    endpoint = with_headers_filled(endpoint, services)
    filled = filled_parameters(endpoint, services.options.auth.mapping)
    hashed = hashed_parameters(endpoint)
    if not filled and not hashed:
        return (binding.bind(endpoint, services),)
    targets = {target for target, source in hashed if target != source}
    sources = {source for target, source in hashed if target == source}

    def binder(claims: Sequence[Filled]) -> Step:
        return binding.bind(with_filled(endpoint, {one.index for one in claims} | targets, sources), services)

    if not filled:
        return (binder(()),)
    if not services.options.auth.claims_from_anonymous:
        return (binder(filled), _fill(endpoint, filled, filled, services))
    addresses = tuple(one for one in filled if one.source is Source.ADDRESS)
    anonymous, signed_in = binder(addresses), binder(filled)

    def bind_for_user(exchange: Exchange) -> Waiting:
        return (anonymous if exchange.user is None else signed_in)(exchange)

    return bind_for_user, _fill(endpoint, filled, addresses, services)


def _fill(endpoint: Endpoint, filled: Sequence[Filled], for_anonymous: Sequence[Filled], services: Services) -> Step:
    """Nobody's claims are like those that somebody does not have: the default, else NULL."""
    address_of = services.auth.address
    elsewhere = "body" if endpoint.transport is Transport.BODY else "query"

    def fill(exchange: Exchange) -> None:
        user = exchange.user
        for one in for_anonymous if user is None else filled:
            if one.source is Source.ADDRESS:
                put(exchange, one.index, address_of(exchange.scope))
                continue
            if user is None:
                _put_default(exchange, one)
                continue
            if exchange.mask >> one.index & 1:
                _warn(endpoint, one, "path" if one.parameter.path else elsewhere)
            if one.source is Source.CLAIMS_JSON:
                put(exchange, one.index, user.json)
                continue
            values = user.arrays if one.parameter.array else user.texts
            if one.claim in values:
                put(exchange, one.index, values[one.claim])
            else:
                _put_default(exchange, one)
        exchange.has_null = None in exchange.arguments

    return fill


def _put_default(exchange: Exchange, one: Filled) -> None:
    """For a claim that the caller does not have: the default of the comment or of the routine, else NULL."""
    parameter = one.parameter
    if parameter.has_default and not parameter.defaulted:
        take_out(exchange, one.index)
    else:
        default = parameter.default if parameter.defaulted else None
        put(exchange, one.index, None if default is None else default.encode())


def _warn(endpoint: Endpoint, one: Filled, place: str) -> None:
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

    async def hash_values(exchange: Exchange) -> None:
        # All sources are read first: one may be the target of another.
        texts = [(target, argument_text(exchange, source)) for target, source in hashed]
        for target, text in texts:
            put(exchange, target, (await hasher.hash(text)).encode() if text else None)
        exchange.has_null = None in exchange.arguments

    return hash_values
