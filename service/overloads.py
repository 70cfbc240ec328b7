"""One route → one callable: its handler, or the choice between several routines on the same method and path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rowcall.core import json_text, query_text
from rowcall.core.endpoint import Transport
from rowcall.core.overloads import Candidate, choose
from rowcall.core.routing import Route
from rowcall.service.body import read_body
from rowcall.service.exchange import Exchange
from rowcall.service.handler import Handler, Services

RouteHandler = Callable[[Exchange], Awaitable[None]]


def route_handler(route: Route, services: Services) -> RouteHandler:
    """The keys of the request choose; a request that cannot be read goes to the primary, which says what is wrong."""
    # The primary is the one discovered last.
    handlers = [Handler(endpoint, services) for endpoint in reversed(route.candidates)]
    if len(handlers) == 1:
        return handlers[0].run
    candidates = [Candidate.of(handler.endpoint.parameters) for handler in handlers]
    in_body = route.primary.options.transport is Transport.BODY
    limit = services.options.http.body_limit

    async def choose_and_run(exchange: Exchange) -> None:
        if in_body:
            exchange.body = await read_body(exchange.scope, exchange.protocol, limit)
        keys = _keys(exchange, in_body=in_body)
        await handlers[choose(candidates, keys, route.path_values)].run(exchange)

    return choose_and_run


def _keys(exchange: Exchange, *, in_body: bool) -> list[str]:
    try:
        if in_body:
            return [key for key, _ in json_text.members(exchange.body or b"")]
        return [key for key, _ in query_text.pairs(exchange.scope.query_string)]
    except (json_text.JsonTextError, query_text.QueryTextError):
        return []
