"""The step that converts a request into the arguments of the call (binding-13 to binding-26).

The fast binder runs first and binds nearly every request; the exact one binds the others, and only there a body is
checked for being a form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rowcall.core.binding.binding import Binder, Binding
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter
from rowcall.core.endpoint.resolved_parameters import binding_parameters, resolved_parameters
from rowcall.core.errors.problems import Problem
from rowcall.core.text import json_text
from rowcall.ext.binding.parameters import FastBinder
from rowcall.service.request.body import BODIES, read_body
from rowcall.service.request.body_thread import LARGE_BODY, run_in_body_thread
from rowcall.service.request.form_fields import kind_of
from rowcall.service.request.forms import URLENCODED, form_pairs, members_of
from rowcall.service.request_context.redaction import bind_redacted
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

Bound = Binding | tuple[int, list[bytes | None], bool]


def bind(endpoint: Endpoint, services: Services) -> Step:
    """Return the step that sets the arguments of the call from the request. Its errors do not repeat values of a
    `sensitive` endpoint.
    """
    step = _bind(endpoint, services)
    return bind_redacted(step) if endpoint.options.sensitive else step


def _bind(endpoint: Endpoint, services: Services) -> Step:
    """Return the binding step for the way in which the endpoint receives its values."""
    options = endpoint.options
    binder = Binder(
        binding_parameters(endpoint),
        endpoint.transport,
        options.query_null,
        services.options.timestamps_utc,
        refusals=endpoint.refusals,
        open_ended=endpoint.passes_through,
        strict=services.options.strict_types,
    )
    fast = FastBinder(*binder.plain)
    path_values = _path_values(endpoint)
    limit = body_limit(endpoint, services)
    if endpoint.passes_through:
        return _in_passing(endpoint, services, binder, path_values, limit)
    if endpoint.raw_body is not None:
        return _from_raw_body(endpoint.raw_body, binder, path_values, limit)
    if endpoint.transport is Transport.BODY:
        return _from_body(services, binder, fast, path_values, limit)
    return _from_query(binder, fast, path_values if any(item.path for item in endpoint.parameters) else None)


def read_small_body(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that reads a small body, JSON or a form, for the following steps. Bodies that are large,
    compressed or of unknown length are left to these steps. None: the endpoint reads no fields from its body, or is
    passed through and reads the body itself."""
    if endpoint.transport is not Transport.BODY or endpoint.passes_through or endpoint.raw_body is not None:
        return None
    limit = body_limit(endpoint, services)

    def read(context: RequestContext) -> Waiting:
        return BODIES.read_small(context, limit) if context.body is None else None

    return read


def body_limit(endpoint: Endpoint, services: Services) -> int:
    """Return the limit of a body in bytes. A login has a smaller one, since anonymous callers may call it."""
    http = services.options.http
    return (
        min(http.limits.body_size, http.limits.sign_in_body_size) if endpoint.options.login else http.limits.body_size
    )


async def read_fields(context: RequestContext, services: Services, limit: int) -> bytes:
    """Read a body whose fields the service decodes, and return it.

    limit: largest size in bytes; for a urlencoded form, `MaxUrlEncodedBodySize` applies too. Raises `Problem` as
    `read_body` does.
    """
    if kind_of(context.scope) == URLENCODED:
        limit = min(limit, services.options.http.limits.form_body_size)
    return await read_body(context.scope, context.protocol, limit)


PathValues = Callable[[RequestContext], dict[str, str]]
"""Returns the texts of the path by API name of their parameter."""


def _path_values(endpoint: Endpoint) -> PathValues:
    """Return the function that returns the texts of the path by API name of their parameter."""
    segments = {
        parameter.segment: parameter.api_name
        for parameter in endpoint.parameters
        if parameter.path and parameter.segment is not None
    }

    def path_values(context: RequestContext) -> dict[str, str]:
        values = context.values
        return {segments[name]: text for name, text in values.items() if name in segments} if values else {}

    return path_values


def _set_arguments(context: RequestContext, bound: Bound) -> None:
    context.mask, context.arguments, context.has_null = bound


def _from_query(binder: Binder, fast: FastBinder, path_values: PathValues | None) -> Step:
    """Return the binding step for values in the query string and the path. path_values: None: the path has no
    parameters.
    """
    bind_fast, bind_exactly = fast.bind_query, binder.bind_query

    def from_query_alone(context: RequestContext) -> None:
        query = context.scope.query_string
        context.mask, context.arguments, context.has_null = bind_fast(query) or bind_exactly(query)

    if path_values is None:
        return from_query_alone

    def from_query(context: RequestContext) -> None:
        query = context.scope.query_string
        values = path_values(context)
        _set_arguments(context, bind_fast(query, values) or bind_exactly(query, values))

    return from_query


def _from_body(services: Services, binder: Binder, fast: FastBinder, path_values: PathValues, limit: int) -> Step:
    """Return the binding step for values in the body, which is JSON or a form, and the path. limit: largest size of the
    body in bytes.
    """

    def bind_exactly(context: RequestContext, body: bytes, values: dict[str, str]) -> Bound:
        pairs = form_pairs(context.scope, body)
        if pairs is not None:
            return binder.bind_texts(pairs, values)
        return binder.bind_body(body, values, members_of(body) if len(body) > LARGE_BODY else None)

    async def from_other_body(context: RequestContext) -> None:
        body = context.body
        if body is None:
            body = await read_fields(context, services, limit)
        values = path_values(context)
        bound: Bound | None = fast.bind_body(body, values)
        if bound is None and len(body) > LARGE_BODY:
            # Exact but in Python: a large body would delay every other request of this worker.
            bound = await run_in_body_thread(bind_exactly, context, body, values)
        _set_arguments(context, bound or bind_exactly(context, body, values))

    bind_fast = fast.bind_body

    def from_body(context: RequestContext) -> Waiting:
        body = context.body
        if body is None or len(body) > LARGE_BODY:
            return from_other_body(context)
        values = path_values(context)
        _set_arguments(context, bind_fast(body, values) or bind_exactly(context, body, values))
        return None

    return from_body


def _in_passing(endpoint: Endpoint, services: Services, binder: Binder, path_values: PathValues, limit: int) -> Step:
    """Return the binding step for a request that is forwarded to another service: its body is only read if the routine
    has parameters that may be in it, or one for the whole body. A body that is neither a JSON object nor a form
    contains no fields (proxies-6). limit: largest size of the body in bytes."""
    filled = endpoint.outgoing.filled | {item.target for item in resolved_parameters(endpoint)}
    items = [item for index, item in enumerate(endpoint.parameters) if index not in filled and not item.path]
    raw = endpoint.raw_body
    as_text = body_bytes if raw is not None and raw.cast == "bytea" else body_text
    needs_none = not endpoint.parameters

    def from_query(context: RequestContext) -> None:
        query = context.scope.query_string if endpoint.transport is Transport.QUERY else ""
        if not query and needs_none:
            return
        _set_arguments(context, binder.bind_query(query, path_values(context)))

    if raw is None and (endpoint.transport is Transport.QUERY or not items):
        return from_query

    async def from_body(context: RequestContext) -> None:
        if context.body is None:
            if raw is None:
                context.body = await read_fields(context, services, limit)
            else:
                context.body = await read_body(context.scope, context.protocol, limit)
        values = path_values(context)
        if raw is not None:
            values = {**values, raw.api_name: as_text(context.body)}
            _set_arguments(context, binder.bind_query(context.scope.query_string, values))
            return
        body = context.body
        large = len(body) > LARGE_BODY
        bound = (
            await run_in_body_thread(bind_fields, context, body, values)
            if large
            else bind_fields(context, body, values)
        )
        _set_arguments(context, bound)

    def bind_fields(context: RequestContext, body: bytes, values: dict[str, str]) -> Bound:
        try:
            members = members_of(body) if len(body) > LARGE_BODY else json_text.body_members(body)
        except (json_text.JsonTextError, Problem):
            return binder.bind_texts(form_pairs(context.scope, body) or [], values)
        return binder.bind_body(body, values, members)

    return from_body


def _from_raw_body(parameter: EndpointParameter, binder: Binder, path_values: PathValues, limit: int) -> Step:
    """Return the binding step for an endpoint in which `parameter` gets the whole body. limit: its largest size in
    bytes.
    """
    name = parameter.api_name
    as_text = body_bytes if parameter.cast == "bytea" else body_text

    async def from_raw_body(context: RequestContext) -> None:
        body = context.body
        if body is None:
            body = await read_body(context.scope, context.protocol, limit)
        values = {**path_values(context), name: as_text(body)}
        _set_arguments(context, binder.bind_query(context.scope.query_string, values))

    return from_raw_body


def body_text(body: bytes) -> str:
    """Return a body as text. Raises `Problem` 400 for text that PostgreSQL could not store."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise Problem(400, "the body is not valid UTF-8") from None
    if "\0" in text:
        raise Problem(400, "the body holds a NUL character")
    return text


def body_bytes(body: bytes) -> str:
    """Return a body as the text of a `bytea`, which accepts every byte; an empty body is an empty text, which means
    NULL for all types but text.
    """
    return f"\\x{body.hex()}" if body else ""
