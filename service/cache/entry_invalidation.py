"""Invalidate one cached response of an endpoint, given the arguments of its request."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from rowcall.core.auth.parameter_injection import (
    hashed_parameters,
    injected_parameters,
    overload_parameters,
    with_injected,
)
from rowcall.core.binding.binding import Binder
from rowcall.core.cache.plan import CachePlan
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.resolved_parameters import binding_parameters
from rowcall.core.errors.binding_error import BindingError
from rowcall.core.errors.problems import Problem
from rowcall.core.http.overloads import Candidate, choose
from rowcall.core.http.router import parameters_of
from rowcall.service.cache.keys import changes_values, key_of
from rowcall.service.cache.response_cache import plan_of
from rowcall.service.pipeline.services import Services
from rowcall.service.request.forms import members_of
from rowcall.service.request.subrequests import AbsentClient, CapturedResponse, SubrequestScope
from rowcall.service.request_context.request_context import RequestContext


async def invalidate_entry(endpoints: Sequence[Endpoint], arguments: bytes, services: Services) -> int:
    """Invalidate the response to a request with these arguments. Return 1, or 0 if it was not cached.

    endpoints: the overloads of one route in the order of discovery; the overload is selected as for a request with the
    arguments. arguments: a JSON object, with the names of requests. Raises `Problem`: 400 if the endpoint does not
    exist, does not take the arguments or is not cached; 409 if the key of the response depends on more than the
    arguments, or has digests of secret values; 503 if it is not confirmed that the response is removed everywhere.
    """
    if not endpoints:
        raise Problem(400, "the endpoint does not exist (any more)")
    endpoint = _select_overload(endpoints[::-1], arguments, services)
    plan = plan_of(endpoint, services)
    if plan is None:
        raise Problem(400, "its responses are not cached")
    refused = _refusal_reason(endpoint, plan)
    context = RequestContext(
        SubrequestScope(endpoint.method, endpoint.path, "", [], 1), CapturedResponse(AbsentClient())
    )
    try:
        binder = _binder(endpoint, services, filled=refused is not None)
        context.mask, context.arguments, context.has_null = binder.bind_body(arguments)
    except BindingError as error:
        raise Problem(400, error.detail) from None
    if refused is not None:
        raise Problem(409, f"its key {refused}: invalidate all of the endpoint")
    services.caches.require_shared_or_serving(plan.place)
    key = key_of(endpoint, plan, services)(context)
    existed = False if key is None else services.caches.of(plan.place).invalidate(key)
    return int(await existed if isinstance(existed, Awaitable) else existed)


def _select_overload(endpoints: Sequence[Endpoint], arguments: bytes, services: Services) -> Endpoint:
    """Return the overload that a request with the arguments calls. endpoints: in the reverse order of discovery. Raises
    `Problem` 400 if the arguments are no JSON object."""
    if len(endpoints) == 1:
        return endpoints[0]
    segments = [name for _, name in parameters_of(endpoints[0].path)]
    without_key = {item.api_name for item in endpoints[0].parameters if item.path}
    without_key |= {endpoint.raw_body.api_name for endpoint in endpoints if endpoint.raw_body is not None}
    keys = [name for name, _ in members_of(arguments) if name not in without_key]
    login = services.options.auth.login
    candidates = [Candidate.of(overload_parameters(endpoint, login)) for endpoint in endpoints]
    return endpoints[choose(candidates, keys, len(segments))]


def _refusal_reason(endpoint: Endpoint, plan: CachePlan) -> str | None:
    """Return why arguments do not determine the key of a response, as the end of a sentence; None: they do."""
    if endpoint.options.proxy is not None or plan.per_user or plan.surroundings or plan.before or plan.everything:
        return "depends on the caller or on the whole request"
    return "has digests of secret values" if changes_values(endpoint) else None


def _binder(endpoint: Endpoint, services: Services, *, filled: bool) -> Binder:
    """Return the binder for the arguments. It converts values as requests do; unknown arguments are ignored for a
    proxied endpoint. A parameter that gets the hash of another one may be absent.

    filled: True: all parameters that requests fill from claims, from the client's address or with hashes may be absent.
    """
    hashes = {target for target, source in hashed_parameters(endpoint) if filled or target != source}
    login = services.options.auth.login
    injected = {item.index for item in injected_parameters(endpoint, login)} if filled else set()
    return Binder(
        binding_parameters(with_injected(endpoint, hashes | injected)),
        Transport.BODY,
        endpoint.options.query_null,
        services.options.timestamps_utc,
        refusals=endpoint.refusals,
        open_ended=endpoint.passes_through,
        # Values of a query string have no JSON types.
        strict=services.options.strict_types if endpoint.transport is Transport.BODY else None,
    )
