"""Compilation of a route into steps: those of its endpoint, or the choice between several routines on one method and
path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rowcall.core.auth.parameter_injection import overload_parameters
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.http.overloads import Candidate, choose, known_keys
from rowcall.core.http.router import Route
from rowcall.core.text import query_text
from rowcall.service.auth.access import authenticate, share_basic, steps_before_selection
from rowcall.service.downloads.links import PARAMETER as LINK
from rowcall.service.handler.step_order import compile_endpoint
from rowcall.service.limits.rate_limiting import limit_all_callers, limit_route
from rowcall.service.pipeline.services import Factory, Services
from rowcall.service.request.binding import body_limit, read_fields
from rowcall.service.request.body_thread import LARGE_BODY, run_in_body_thread
from rowcall.service.request.forms import form_pairs, members_of
from rowcall.service.request_context.request_context import RequestContext, Step


def compile_route(route: Route, services: Services) -> tuple[Step, ...]:
    """Return the steps of a route. The parameter names of the request select the overload. A request that cannot be
    read counts as one without parameters; the binding of the selected endpoint reports the error."""
    # The primary is the endpoint discovered last. Its transport of values applies to all overloads.
    endpoints = [_with_transport_of(route.primary, endpoint) for endpoint in route.candidates[::-1]]
    if len(endpoints) == 1:
        return compile_endpoint(endpoints[0], services)
    login = services.options.auth.login
    in_body = route.primary.transport is Transport.BODY
    parameters = [overload_parameters(endpoint, login) for endpoint in endpoints]
    known_names = known_keys(parameters)
    candidates = [
        Candidate.of(values, _reader(endpoint, services, known_names, in_body=in_body))
        for endpoint, values in zip(endpoints, parameters, strict=True)
    ]
    rate_limit = limit_route(endpoints, services) if in_body else None
    done: tuple[Factory, ...] = () if rate_limit is None else (limit_all_callers,)
    if in_body and share_basic(endpoints):
        done = (*done, authenticate)  # the gate has authenticated: a challenge command must not run twice
    compiled = [compile_endpoint(endpoint, services, done) for endpoint in endpoints]
    limit = max(body_limit(endpoint, services) for endpoint in endpoints)
    guard = services.auth.antiforgery
    not_bound = None if guard is None or not guard.options.reads_forms else guard.options.field
    ignores_unknown_parameters = route.primary.options.ignores_unknown_parameters

    async def choose_by_query(context: RequestContext) -> None:
        keys = _keys_of_query(context)
        if ignores_unknown_parameters:
            keys = [key for key in keys if key in known_names]
        context.follow(compiled[choose(candidates, keys, route.path_values)])

    async def choose_by_body(context: RequestContext) -> None:
        context.body = body = await read_fields(context, services, limit)
        keys = await run_in_body_thread(_keys_of_body, context) if len(body) > LARGE_BODY else _keys_of_body(context)
        keys = [key for key in keys if key != not_bound]
        context.follow(compiled[choose(candidates, keys, route.path_values)])

    if not in_body:
        return (choose_by_query,)
    # The access checks come first, so that a client does not send a large body only to have it refused.
    requested = steps_before_selection(endpoints, services)
    return (*requested, choose_by_body) if rate_limit is None else (rate_limit, *requested, choose_by_body)


def _with_transport_of(primary: Endpoint, endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with the transport (values in the query string or in the body) of the primary endpoint of its
    route. An endpoint with a parameter for the whole body is unchanged."""
    if endpoint.transport is primary.transport or endpoint.raw_body is not None:
        return endpoint
    return replace(endpoint, options=replace(endpoint.options, transport=primary.transport))


def _reader(
    endpoint: Endpoint, services: Services, known_names: frozenset[str], *, in_body: bool
) -> Callable[[str], bool] | None:
    """Return the function that returns whether a key of a request that is not the name of a parameter has a meaning for
    this endpoint. None: no such key has.

    known_names: names of all parameters of the route. in_body: keys are those of the body, not of the query string.
    """
    if not in_body:
        return _query_reader(endpoint, services, known_names)
    return None if endpoint.patch_parameter is None else lambda key: key not in known_names


def _query_reader(endpoint: Endpoint, services: Services, known_names: frozenset[str]) -> Callable[[str], bool] | None:
    """Return the function that returns whether the service reads a key of the query string for this endpoint: for an
    export, a link to a download or a query over the result. None: it reads none.

    known_names: names of all parameters of the route, which are never such keys.
    """
    exports, download = services.options.exports, endpoint.options.download
    words: set[str] = set()
    if exports is not None and exports.formats_of(endpoint) and exports.by_parameter(endpoint):
        words.add(exports.parameter)
    if download is not None and download.link_seconds is not None:
        words.add(LINK)
    language = None
    if endpoint.options.queryable is not None:
        # Imported here: few services have such endpoints.
        from rowcall.core.queryable.language import language_of
        from rowcall.core.queryable.request import is_query_key

        language = language_of(endpoint)
    if not words and language is None:
        return None

    def reads(key: str) -> bool:
        if key in known_names:
            return False
        return key in words or (language is not None and is_query_key(language, key))

    return reads


def _keys_of_query(context: RequestContext) -> list[str]:
    """Return the parameter names in the query string; none if it cannot be read."""
    try:
        return [key for key, _ in query_text.pairs(context.scope.query_string)]
    except query_text.QueryTextError:
        return []


def _keys_of_body(context: RequestContext) -> list[str]:
    """Return the parameter names in the body, a form or JSON; none if it cannot be read."""
    body = context.body or b""
    try:
        pairs = form_pairs(context.scope, body)
        return [key for key, _ in (members_of(body) if pairs is None else pairs)]
    except Problem:
        return []
