"""One route → its steps: those of its endpoint, or the choice between several routines on one method and path."""

from __future__ import annotations

from dataclasses import replace

from rowcall.core.auth.filling import filled_parameters, hashed_parameters, with_filled
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.resolved_parameters import bound_parameters
from rowcall.core.errors.problems import Problem
from rowcall.core.http.overloads import Candidate, choose
from rowcall.core.http.router import Route
from rowcall.core.text import query_text
from rowcall.service.auth.access import authenticate, gate, share_basic
from rowcall.service.exchange.exchange import Exchange, Step
from rowcall.service.handler.steps import compile_endpoint
from rowcall.service.limits.steps import limit_anybody, limit_route
from rowcall.service.pipeline.services import Factory, Services
from rowcall.service.request.binding import body_limit, read_fields
from rowcall.service.request.forms import form_pairs, members_of
from rowcall.service.request.parsing import LARGE_BODY, aside


def compile_route(route: Route, services: Services) -> tuple[Step, ...]:
    """The keys of the request choose; a request that cannot be read goes to the primary, which says what is wrong."""
    # The primary is the one discovered last. It decides where the values of all of them travel.
    endpoints = [_travelling_as(route.primary, endpoint) for endpoint in route.candidates[::-1]]
    if len(endpoints) == 1:
        return compile_endpoint(endpoints[0], services)
    candidates = [Candidate.of(bound_parameters(_without_filled(endpoint, services))) for endpoint in endpoints]
    in_body = route.primary.transport is Transport.BODY
    counted = limit_route(endpoints, services) if in_body else None
    done: tuple[Factory, ...] = () if counted is None else (limit_anybody,)
    if in_body and share_basic(endpoints):
        done = (*done, authenticate)  # the gate has: a challenge command is not asked twice
    compiled = [compile_endpoint(endpoint, services, done) for endpoint in endpoints]
    limit = max(body_limit(endpoint, services) for endpoint in endpoints)
    known = frozenset().union(*(candidate.names | candidate.groups.keys() for candidate in candidates))
    guard = services.auth.antiforgery
    not_bound = None if guard is None or not guard.options.reads_forms else guard.options.field
    strangers_pass = route.primary.options.strangers_pass

    async def choose_by_query(exchange: Exchange) -> None:
        keys = _keys_of_query(exchange)
        if strangers_pass:
            keys = [key for key in keys if key in known]
        exchange.follow(compiled[choose(candidates, keys, route.path_values)])

    async def choose_by_body(exchange: Exchange) -> None:
        exchange.body = body = await read_fields(exchange, services, limit)
        keys = await aside(_keys_of_body, exchange) if len(body) > LARGE_BODY else _keys_of_body(exchange)
        keys = [key for key in keys if key != not_bound]
        exchange.follow(compiled[choose(candidates, keys, route.path_values)])

    if not in_body:
        return (choose_by_query,)
    # Nobody sends a body, however large, to have it read and then be told that he may not.
    asked = gate(endpoints, services)
    return (*asked, choose_by_body) if counted is None else (counted, *asked, choose_by_body)


def _without_filled(endpoint: Endpoint, services: Services) -> Endpoint:
    """What claims and hashes fill need not be sent."""
    claims = {one.index for one in filled_parameters(endpoint, services.options.auth.mapping)}
    hashes = {target for target, source in hashed_parameters(endpoint) if target != source}
    return with_filled(endpoint, claims | hashes)


def _travelling_as(primary: Endpoint, endpoint: Endpoint) -> Endpoint:
    if endpoint.transport is primary.transport or endpoint.raw_body is not None:
        return endpoint
    return replace(endpoint, options=replace(endpoint.options, transport=primary.transport))


def _keys_of_query(exchange: Exchange) -> list[str]:
    try:
        return [key for key, _ in query_text.pairs(exchange.scope.query_string)]
    except query_text.QueryTextError:
        return []


def _keys_of_body(exchange: Exchange) -> list[str]:
    body = exchange.body or b""
    try:
        pairs = form_pairs(exchange.scope, body)
        return [key for key, _ in (members_of(body) if pairs is None else pairs)]
    except Problem:
        return []
