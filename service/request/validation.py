"""The step that checks request values against the rules of `validate`, after binding (execution-6, execution-10)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter, ValueKind
from rowcall.core.endpoint.validation import Rule, checks
from rowcall.core.errors.binding_error import Fault
from rowcall.core.errors.problems import Problem
from rowcall.core.text import json_text, query_text
from rowcall.core.text.array_literal import count_elements
from rowcall.service.request.binding import body_limit, read_fields
from rowcall.service.request.body import read_body
from rowcall.service.request.body_thread import LARGE_BODY, run_in_body_thread
from rowcall.service.request.forms import form_pairs
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting
from rowcall.service.response.headers import argument_text

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")

_UNCHANGED = (ValueKind.TEXT, ValueKind.JSON, ValueKind.OTHER)
"""Kinds of values whose bound text is the one that was sent."""


def keep_body(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that stores the body in `context.body`; None: no later step needs it. Later steps need it to
    check values in the form in which they were sent, to compare requests with an `Idempotency-Key`, and to verify
    webhooks.
    """
    raw = endpoint.raw_body is not None
    if endpoint.transport is not Transport.BODY and not raw:
        return None
    read = any(
        _reads_request(endpoint, check.index, rule)
        for check in checks(endpoint, services.options.rules)
        for rule in check.rules
    )
    if not endpoint.recorded and (raw or not read):
        return None
    limit = body_limit(endpoint, services)

    async def keep(context: RequestContext) -> None:
        if context.body is None and raw:
            context.body = await read_body(context.scope, context.protocol, limit)
        elif context.body is None:
            context.body = await read_fields(context, services, limit)

    return keep


def validate(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that checks values; None: there are no rules. If rules are broken, the step raises one `Problem`,
    which lists the first broken rule of each value; its status and message are those of the first rule in this list. A
    value that was not sent and gets the default of its parameter is not checked."""
    rule_checks = [
        _RuleCheck(endpoint, check.index, rule, _message_of(endpoint, check.index, rule))
        for check in checks(endpoint, services.options.rules)
        for rule in check.rules
    ]
    if not rule_checks:
        return None
    in_body = endpoint.transport is Transport.BODY

    def check_values(context: RequestContext) -> Waiting:
        if context.body is not None and len(context.body) > LARGE_BODY:
            return run_in_body_thread(check, context)
        check(context)
        return None

    def check(context: RequestContext) -> None:
        broken: dict[int, _RuleCheck] = {}
        sent = _SentValues(context, in_body)
        for item in rule_checks:
            if context.mask & item.bit and item.bit not in broken and not item.holds(context, sent):
                broken[item.bit] = item
        if broken:
            first = next(iter(broken.values()))
            log.warning("%s: %s", endpoint.name, first.message)
            errors = [item.fault.members for item in broken.values()]
            raise Problem(first.rule.status, first.message, others={"errors": errors})

    return check_values


class _RuleCheck:
    """One rule for one value."""

    def __init__(self, endpoint: Endpoint, index: int, rule: Rule, message: str) -> None:
        parameter = endpoint.parameters[index]
        self.bit = 1 << index
        self.rule = rule
        self.message = message
        self.fault = Fault(parameter.api_name, parameter.api_name, message)
        self._text = _text_of(endpoint, index, rule)
        self._items = _items_of(endpoint, index) if rule.counts_items else None

    def holds(self, context: RequestContext, sent: _SentValues) -> bool:
        """Return whether the value of a request keeps the rule. sent: the values of the request as they were sent."""
        if self._items is None:
            return self.rule.accepts(self._text(context, sent))
        items = self._items(context)
        return items is None or self.rule.accepts_count(items)


def _message_of(endpoint: Endpoint, index: int, rule: Rule) -> str:
    """Return the message of a broken rule: that of the comment for the parameter with this index, else that of the
    rule.
    """
    parameter = endpoint.parameters[index]
    names = (parameter.api_name, parameter.db_name, parameter.field)
    own = (text for name, of, text in endpoint.options.validation_messages if name in names and of == rule.name)
    return rule.refusal(parameter.db_name, parameter.api_name, next(own, None))


def _items_of(endpoint: Endpoint, index: int) -> Callable[[RequestContext], int | None]:
    """Return the function that counts the elements of an array; its result is None for NULL and for a value that is no
    array. index: of the parameter.
    """
    parameter = endpoint.parameters[index]

    def items(context: RequestContext) -> int | None:
        # The bound value is an array literal, wherever the request has the array and however it is written there.
        text = argument_text(context, index) if parameter.array else None
        return None if text is None else count_elements(text, parameter.delimiter)

    return items


def _reads_request(endpoint: Endpoint, index: int, rule: Rule) -> bool:
    """Return whether a rule needs the text of the request, because the bound one differs from it: an array is a literal
    of PostgreSQL, and numbers, times and others have one spelling. If the endpoint is lenient, only arrays outside of
    the path are read, because the value of another place, or a default, may replace an invalid one. index: of the
    parameter.
    """
    parameter = endpoint.parameters[index]
    if rule.counts_items or (endpoint.options.lenient and (parameter.path or not parameter.array)):
        return False
    return parameter.array or (rule.reads_text and parameter.kind not in _UNCHANGED)


def _text_of(endpoint: Endpoint, index: int, rule: Rule) -> TextOf:
    """Return the function that returns the text of a parameter for a rule: as the client sent it, if that makes a
    difference; None: NULL. A value that was not sent is the bound one. index: of the parameter.
    """
    parameter = endpoint.parameters[index]

    def text_of_argument(context: RequestContext, _sent: _SentValues) -> str | None:
        return argument_text(context, index)

    def text_of_request(context: RequestContext, sent: _SentValues) -> str | None:
        text = argument_text(context, index)
        if text is None:
            return None
        submitted = sent.text_of(parameter)
        return text if submitted is None else submitted

    return text_of_request if _reads_request(endpoint, index, rule) else text_of_argument


class _SentValues:
    """The values of one request as they were sent. The query string or body is parsed once, when a rule needs it."""

    __slots__ = ("_context", "_in_body", "_members", "_pairs")

    def __init__(self, context: RequestContext, in_body: bool) -> None:
        """in_body: the values are in the body, JSON or a form; otherwise in the query string."""
        self._context = context
        self._in_body = in_body
        self._pairs: list[tuple[str, str]] | None = None
        self._members: dict[str, bytes] | None = None

    def text_of(self, parameter: EndpointParameter) -> str | None:
        """Return the value of a parameter as text: a JSON string as its characters, another JSON value, or an array, as
        its JSON; of a query string or form, as `_text_among`. None: it was not sent."""
        values = self._context.values
        if parameter.path and values and (segment := values.get(parameter.segment or "")) is not None:
            return segment
        if self._pairs is None and self._members is None:
            self._parse()
        if self._members is None:
            return _text_among(self._pairs or [], parameter)
        raw = self._members.get(parameter.api_name)
        if raw is not None:
            return _text_of_json(raw, parameter)
        return None if parameter.group is None else _text_in_object(self._members.get(parameter.group), parameter)

    def _parse(self) -> None:
        """Parse the query string or body. A body without fields, which is forwarded to another service, has none."""
        context = self._context
        if not self._in_body:
            self._pairs = query_text.pairs(context.scope.query_string)
            return
        body = context.body or b""
        pairs = form_pairs(context.scope, body)
        if pairs is not None:
            self._pairs = list(pairs)
            return
        try:
            self._members = dict(json_text.body_members(body))
        except json_text.JsonTextError:
            self._members = {}


TextOf = Callable[[RequestContext, _SentValues], str | None]


def _text_among(pairs: Sequence[tuple[str, str]], parameter: EndpointParameter) -> str | None:
    """Return the value of the parameter among `pairs` (names and values of a query string or form); for an array, its
    elements joined with commas. None: there is none.
    """
    elements = [text for key, text in pairs if key == parameter.api_name]
    if elements:
        return ",".join(elements)
    if parameter.group is None:
        return None
    whole = "".join(text for key, text in pairs if key == parameter.group)
    return _text_in_object(whole.strip().encode(), parameter)


def _text_in_object(raw: bytes | None, parameter: EndpointParameter) -> str | None:
    """Return the value of a field of a composite in the JSON object of the composite. None: the object, or this member,
    was not sent."""
    if raw is None or raw[:1] != b"{":
        return None
    try:
        members = dict(json_text.members(raw))
    except json_text.JsonTextError:
        return None  # a text for a parameter with the name of the composite
    names = (parameter.member, parameter.attribute)
    own = next((members[name] for name in names if name is not None and name in members), None)
    return None if own is None else _text_of_json(own, parameter)


def _text_of_json(raw: bytes, parameter: EndpointParameter) -> str:
    return json_text.unescape(raw) if raw[:1] == b'"' and not parameter.array else raw.decode()
