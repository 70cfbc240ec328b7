"""One route → its steps: those of its endpoint, or the choice between several routines on one method and path."""

from __future__ import annotations

from dataclasses import replace

from rowcall.core.auth.filling import filled_parameters, hashed_parameters, with_filled
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.resolved_parameters import bound_parameters
from rowcall.core.errors.problems import Problem
from rowcall.core.http.overloads import Candidate, choose
from rowcall.core.http.routing import Route
from rowcall.core.text import json_text, query_text
from rowcall.service.exchange.exchange import Exchange, Step
from rowcall.service.handler.steps import compile_endpoint
from rowcall.service.pipeline.services import Services
from rowcall.service.request.body import read_body
from rowcall.service.request.forms import form_pairs


def compile_route(route: Route, services: Services) -> tuple[Step, ...]:
    """The keys of the request choose; a request that cannot be read goes to the primary, which says what is wrong."""
    # The primary is the one discovered last. It decides where the values of all of them travel.
    endpoints = [_travelling_as(route.primary, endpoint) for endpoint in route.candidates[::-1]]
    compiled = [compile_endpoint(endpoint, services) for endpoint in endpoints]
    if len(compiled) == 1:
        return compiled[0]
    candidates = [Candidate.of(bound_parameters(_without_filled(endpoint, services))) for endpoint in endpoints]
    in_body = route.primary.transport is Transport.BODY
    limit = services.options.http.body_limit

    known = frozenset().union(*(candidate.names | candidate.groups.keys() for candidate in candidates))
    strangers_pass = route.primary.options.strangers_pass

    async def choose_by_query(exchange: Exchange) -> None:
        keys = _keys(exchange, in_body=False)
        if strangers_pass:
            keys = [key for key in keys if key in known]
        exchange.follow(compiled[choose(candidates, keys, route.path_values)])

    async def choose_by_body(exchange: Exchange) -> None:
        exchange.body = await read_body(exchange.scope, exchange.protocol, limit)
        exchange.follow(compiled[choose(candidates, _keys(exchange, in_body=True), route.path_values)])

    return (choose_by_body if in_body else choose_by_query,)


def _without_filled(endpoint: Endpoint, services: Services) -> Endpoint:
    """What claims and hashes fill need not be sent."""
    claims = {one.index for one in filled_parameters(endpoint, services.options.auth.mapping)}
    hashes = {target for target, source in hashed_parameters(endpoint) if target != source}
    return with_filled(endpoint, claims | hashes)


def _travelling_as(primary: Endpoint, endpoint: Endpoint) -> Endpoint:
    if endpoint.transport is primary.transport or endpoint.raw_body is not None:
        return endpoint
    return replace(endpoint, options=replace(endpoint.options, transport=primary.transport))


def _keys(exchange: Exchange, *, in_body: bool) -> list[str]:
    try:
        if not in_body:
            return [key for key, _ in query_text.pairs(exchange.scope.query_string)]
        body = exchange.body or b""
        pairs = form_pairs(exchange.scope, body)
        return [key for key, _ in (json_text.body_members(body) if pairs is None else pairs)]
    except (json_text.JsonTextError, query_text.QueryTextError, Problem):
        return []
