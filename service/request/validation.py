"""The step that checks request values against the rules of `validate`, after they were bound (reference 01, 10)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter
from rowcall.core.endpoint.validation import checks
from rowcall.core.errors.problems import Problem
from rowcall.core.text import json_text, query_text
from rowcall.service.exchange.exchange import Exchange, Step
from rowcall.service.request.binding import body_limit
from rowcall.service.request.body import read_body
from rowcall.service.request.forms import form_pairs
from rowcall.service.response.headers import argument_text

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")

TextOf = Callable[[Exchange], str | None]


def keep_body(endpoint: Endpoint, services: Services) -> Step | None:
    """Arrays are checked as they were sent, so where one is checked the body has to be there after binding."""
    if endpoint.transport is not Transport.BODY:
        return None
    if not any(endpoint.parameters[check.index].array for check in checks(endpoint, services.options.rules)):
        return None
    limit = body_limit(endpoint, services)

    async def keep(exchange: Exchange) -> None:
        if exchange.body is None:
            exchange.body = await read_body(exchange.scope, exchange.protocol, limit)

    return keep


def validate(endpoint: Endpoint, services: Services) -> Step | None:
    """The first rule that is broken ends the request. What was not sent, and is left to the server, is not checked."""
    wanted = [
        (1 << check.index, endpoint.parameters[check.index], _text_of(endpoint, check.index), rule)
        for check in checks(endpoint, services.options.rules)
        for rule in check.rules
    ]
    if not wanted:
        return None

    def check_values(exchange: Exchange) -> None:
        for bit, parameter, text_of, rule in wanted:
            if exchange.mask & bit and not rule.accepts(text_of(exchange)):
                message = rule.refusal(parameter.db_name, parameter.api_name)
                log.warning("%s: %s", endpoint.name, message)
                raise Problem(rule.status, message)

    return check_values


def _text_of(endpoint: Endpoint, index: int) -> TextOf:
    """Where the text of a value is found again. A scalar is bound as it was sent."""
    parameter = endpoint.parameters[index]

    def bound(exchange: Exchange) -> str | None:
        return argument_text(exchange, index)

    def sent(exchange: Exchange) -> str | None:
        text = bound(exchange)
        if text is None:
            return None
        whole = submitted(exchange, parameter)
        return text if whole is None else whole

    if not parameter.array or parameter.path:
        return bound
    submitted = _array_in_body if endpoint.transport is Transport.BODY else _array_in_query
    return sent


def _array_in_body(exchange: Exchange, parameter: EndpointParameter) -> str | None:
    """The JSON text; of a form, what a query would give."""
    body = exchange.body or b""
    pairs = form_pairs(exchange.scope, body)
    if pairs is not None:
        return _joined(pairs, parameter)
    raw = dict(json_text.body_members(body)).get(parameter.api_name)
    return None if raw is None else raw.decode()


def _array_in_query(exchange: Exchange, parameter: EndpointParameter) -> str | None:
    return _joined(query_text.pairs(exchange.scope.query_string), parameter)


def _joined(pairs: Iterable[tuple[str, str]], parameter: EndpointParameter) -> str | None:
    """The elements with commas between them."""
    elements = [text for key, text in pairs if key == parameter.api_name]
    return ",".join(elements) if elements else None
