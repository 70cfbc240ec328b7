"""Bind a request and set the injected parameters: claims, client address, hashes (access-14, access-15).

The plain binder runs with these parameters optional and unchecked. Values that it has bound for them are overwritten
here.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rowcall.core.auth.parameter_injection import (
    InjectedParameter,
    Source,
    claim_parameters,
    hashed_parameters,
    injected_parameters,
    with_injected,
)
from rowcall.core.binding.written_values import default_text
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter
from rowcall.service.request import binding
from rowcall.service.request.headers import with_headers_filled
from rowcall.service.request_context.arguments import remove_argument, set_argument
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting
from rowcall.service.response.headers import argument_text

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")


def bind(endpoint: Endpoint, services: Services) -> tuple[Step, ...]:
    """Return the steps that set the arguments of the call from request values and injected values."""
    endpoint = with_headers_filled(endpoint, services)
    injected = injected_parameters(endpoint, services.options.auth.login)
    hashed = hashed_parameters(endpoint)
    if not injected and not hashed:
        return (binding.bind(endpoint, services),)
    targets = {target for target, source in hashed if target != source}
    sources = {source for target, source in hashed if target == source}

    def binder(claims: Sequence[InjectedParameter]) -> Step:
        return binding.bind(
            with_injected(endpoint, {parameter.index for parameter in claims} | targets, sources), services
        )

    if not injected:
        return (binder(()),)
    if not services.options.auth.login.claims_from_anonymous:
        return (binder(injected), _fill(endpoint, injected, injected, services))
    addresses = tuple(parameter for parameter in injected if parameter.source is Source.ADDRESS)
    anonymous, signed_in = binder(addresses), binder(injected)

    def bind_for_user(context: RequestContext) -> Waiting:
        return (anonymous if context.user is None else signed_in)(context)

    return bind_for_user, _fill(endpoint, injected, addresses, services)


def fill_parameters_of_job(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that sets the parameters from claims for a job that was enqueued in SQL with claims. Arguments of
    a job without claims stay as they are. None: `services` are not those of job attempts, or the endpoint has no
    parameters from claims."""
    injected = claim_parameters(endpoint, services.options.auth.login) if services.job_runs else ()
    if not injected:
        return None
    fill = _fill(endpoint, injected, (), services)

    def fill_unless_bound(context: RequestContext) -> None:
        if context.user is not None and not context.scope.job.bound:
            fill(context)

    return fill_unless_bound


def _fill(
    endpoint: Endpoint,
    for_users: Sequence[InjectedParameter],
    for_anonymous: Sequence[InjectedParameter],
    services: Services,
) -> Step:
    """Return the step that sets injected parameters. They replace values of the request; for signed-in callers, the
    step logs a warning for each replaced value of a claim parameter.

    For anonymous callers, a claim parameter gets its default, or NULL if it has none; the same applies to a claim that
    the user lacks.

    for_users, for_anonymous: the parameters that are set for signed-in and for anonymous callers.
    """
    address_of = services.auth.address
    utc = services.options.timestamps_utc
    defaults = {item.index: _default(item.parameter, utc) for item in (*for_users, *for_anonymous)}
    request_part = "body" if endpoint.transport is Transport.BODY else "query"

    def fill(context: RequestContext) -> None:
        user = context.user
        for injected in for_anonymous if user is None else for_users:
            if injected.source is Source.ADDRESS:
                set_argument(context, injected.index, address_of(context.scope))
                continue
            if user is None:
                _set_default(context, injected, defaults[injected.index])
                continue
            if context.mask >> injected.index & 1:
                _warn(endpoint, injected, "path" if injected.parameter.path else request_part)
            if injected.source is Source.CLAIMS_JSON:
                set_argument(context, injected.index, user.json)
                continue
            values = user.arrays if injected.parameter.array else user.texts
            if injected.claim in values:
                set_argument(context, injected.index, values[injected.claim])
            else:
                _set_default(context, injected, defaults[injected.index])
        context.has_null = None in context.arguments

    return fill


def _default(parameter: EndpointParameter, timestamps_utc: bool) -> bytes | None:
    """Return the default that the comment declares for a parameter, as an argument; None: NULL, or there is none."""
    text = default_text(parameter, timestamps_utc) if parameter.defaulted else None
    return None if text is None else text.encode()


def _set_default(context: RequestContext, injected: InjectedParameter, default: bytes | None) -> None:
    """Set the default of the comment or of the routine, else NULL, for a claim that the caller does not have. default:
    that of the comment."""
    parameter = injected.parameter
    if parameter.has_default and not parameter.defaulted:
        remove_argument(context, injected.index)
    else:
        set_argument(context, injected.index, default)


def _warn(endpoint: Endpoint, injected: InjectedParameter, place: str) -> None:
    """Log that the request has a value for an injected parameter. place: part of the request that contains it."""
    log.warning(
        "%s: the %s has a value for %s, which is set from the claim %s; the value is ignored",
        endpoint.name,
        place,
        injected.parameter.api_name,
        injected.claim or "set",
    )


def hash_parameters(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that replaces passwords by their hashes, after validation (sign-in-26); None: the endpoint hashes
    none. An empty or missing password becomes NULL. The step raises `Problem` 503 if too many logins wait.
    """
    hashed = hashed_parameters(endpoint)
    if not hashed:
        return None
    hasher = services.auth.hasher

    async def hash_values(context: RequestContext) -> None:
        # All sources are read before any target is set, because a source can be another parameter's target.
        texts = [(target, argument_text(context, source)) for target, source in hashed]
        for target, text in texts:
            set_argument(context, target, (await hasher.hash(text)).encode() if text else None)
        context.has_null = None in context.arguments

    return hash_values
