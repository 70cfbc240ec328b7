"""Endpoint → its compiled handler: the list of steps that its options ask for, and nothing else.

A step is a function over one `Exchange`; it gives back an awaitable when it has to wait. A capability adds one step
factory to `STEPS`, which is the one place where the order of checks is written (design 1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rowcall.core.binding import Binder, Binding
from rowcall.core.call import UncallableError, call_sql
from rowcall.core.catalog import RoutineKind, Volatility
from rowcall.core.endpoint import Endpoint, ResultPath, Transport
from rowcall.core.problems import Problem, unauthorized
from rowcall.core.template import parse_template, placeholder_names
from rowcall.ext.body_writer import BodyWriter
from rowcall.ext.codecs import Codecs
from rowcall.ext.parameters import FastBinder
from rowcall.ext.timed_rows import TimedWriter
from rowcall.service import responses
from rowcall.service.body import read_body
from rowcall.service.database.call import Call
from rowcall.service.database.context import Context
from rowcall.service.database.database import Database
from rowcall.service.database.pace import Pace
from rowcall.service.edition import WorkerOptions
from rowcall.service.exchange import Exchange, Step
from rowcall.service.formats.choice import table_formats
from rowcall.service.observed import name_endpoint
from rowcall.service.rendering import body_writer
from rowcall.service.request_headers import fill_headers, headers_context
from rowcall.service.response_headers import CommentHeaders, argument_text
from rowcall.service.timing import start_clock
from rowcall.service.validating import keep_body, validate

LARGE_BODY = 65_536
"""Bytes of a body from which the slow binder leaves the event loop."""


@dataclass(frozen=True, slots=True)
class Services:
    """What step factories may use."""

    options: WorkerOptions
    database: Database
    codecs: Codecs


Factory = Callable[[Endpoint, Services], Step | tuple[Step, ...] | None]


def request_log(endpoint: Endpoint, services: Services) -> Step | None:
    """Where requests are logged, the line names the endpoint."""
    return name_endpoint(endpoint, services.options)


def authorize(endpoint: Endpoint, services: Services) -> Step | None:
    """Nobody is signed in as long as no scheme is configured, so an endpoint is either open or closed (spec 5.4)."""
    if not endpoint.options.requires_authorization and not endpoint.options.roles:
        return None
    detail = _what_opens(endpoint, by_default=services.options.requires_authorization)

    def refuse(_exchange: Exchange) -> None:
        raise unauthorized("Bearer", detail)

    return refuse


def _what_opens(endpoint: Endpoint, *, by_default: bool) -> str:
    """Who may call, and what would let everybody."""
    if endpoint.options.roles:
        return f"{endpoint.name} is for signed-in users with one of the roles {', '.join(endpoint.options.roles)}"
    annotation = f"the annotation allow_anonymous on {endpoint.routine.identity}"
    key = " or the key Service:RequiresAuthorization=false" if by_default else ""
    return f"{endpoint.name} is for signed-in users; {annotation}{key} opens it"


def comment_headers(endpoint: Endpoint, _services: Services) -> Step | None:
    """From here on an error response has the comment's headers too (reference 02, 10.1)."""
    return CommentHeaders(endpoint) if endpoint.options.headers else None


def bind(endpoint: Endpoint, services: Services) -> Step:
    """Request values → the arguments of the call (reference 01, 7)."""
    options = endpoint.options
    binder = Binder(endpoint.parameters, endpoint.transport, options.query_null, services.options.timestamps_utc)
    fast = FastBinder(*binder.plain)
    segments = {
        parameter.segment: parameter.api_name
        for parameter in endpoint.parameters
        if parameter.path and parameter.segment is not None
    }
    limit = services.options.http.body_limit

    def set_arguments(exchange: Exchange, binding: Binding | tuple[int, list[bytes | None], bool]) -> None:
        exchange.mask, exchange.arguments, exchange.has_null = binding

    def path_values(exchange: Exchange) -> dict[str, str]:
        values = exchange.values
        return {segments[name]: text for name, text in values.items() if name in segments} if values else {}

    def from_query(exchange: Exchange) -> None:
        query = exchange.scope.query_string
        values = path_values(exchange)
        set_arguments(exchange, fast.bind_query(query, values) or binder.bind_query(query, values))

    bind_fast, bind_exactly = fast.bind_query, binder.bind_query

    def from_query_alone(exchange: Exchange) -> None:
        query = exchange.scope.query_string
        exchange.mask, exchange.arguments, exchange.has_null = bind_fast(query) or bind_exactly(query)

    async def from_body(exchange: Exchange) -> None:
        body = exchange.body
        if body is None:
            body = await read_body(exchange.scope, exchange.protocol, limit)
        values = path_values(exchange)
        binding = fast.bind_body(body, values)
        if binding is None and len(body) > LARGE_BODY:
            # Exact but in Python: a large body would hold up every other request of this worker.
            loop = asyncio.get_running_loop()
            binding = await loop.run_in_executor(None, binder.bind_body, body, values)
        set_arguments(exchange, binding or binder.bind_body(body, values))

    raw_body = endpoint.raw_body
    if raw_body is not None:
        name = raw_body.api_name

        async def from_raw_body(exchange: Exchange) -> None:
            body = await read_body(exchange.scope, exchange.protocol, limit)
            values = {**path_values(exchange), name: body_text(body)}
            set_arguments(exchange, binder.bind_query(exchange.scope.query_string, values))

        return from_raw_body
    if endpoint.transport is Transport.BODY:
        return from_body
    return from_query if segments else from_query_alone


def body_text(body: bytes) -> str:
    """A body as text. Raises `Problem` 400 for what PostgreSQL could not store."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise Problem(400, "the body is not valid UTF-8") from None
    if "\0" in text:
        raise Problem(400, "the body holds a NUL character")
    return text


def skip_null_call(endpoint: Endpoint, _services: Services) -> Step | None:
    """PostgreSQL would not run a STRICT routine for a NULL argument either (reference 02, 1 rule 6)."""
    if not endpoint.routine.strict or not endpoint.parameters:
        return None
    answer = responses.no_content(endpoint)

    def skip(exchange: Exchange) -> None:
        if exchange.has_null:
            answer(exchange)
            exchange.answered = True

    return skip


def choose_format(endpoint: Endpoint, services: Services) -> Step | None:
    """`table_format` leads away from JSON, where the request or the comment names a format (reference 02, 11.1)."""
    shape = endpoint.table_shape
    if shape is None or not services.options.tables.keys:
        return None
    wanted = parse_template(endpoint.options.table_format or "", placeholder_names(endpoint.parameters))
    flat = replace(endpoint, shape=shape)
    headers = comment_headers(endpoint, services)
    steps: dict[str, tuple[Step, ...]] = {}
    for key, made in table_formats(flat, wanted, services.options, services.database).items():
        steps[key] = (*((headers,) if headers else ()), *_run(flat, services, made.writer), made.respond)

    async def choose(exchange: Exchange) -> None:
        chosen = steps.get(wanted.fill(partial(argument_text, exchange)))
        if chosen is not None:
            exchange.follow(chosen)

    return choose


def run(endpoint: Endpoint, services: Services) -> tuple[Step, ...]:
    """Runs the routine: begins, and judges how it ended."""
    return _run(endpoint, services, body_writer(endpoint, services.codecs))


def _run(endpoint: Endpoint, services: Services, writer: BodyWriter | None) -> tuple[Step, ...]:
    timed = services.options.http.server_timing
    call = call_of(endpoint, services, TimedWriter(writer) if timed and writer is not None else writer)
    database = services.database
    begin = database.begin if call.context is None else database.begin_with_context
    steps: tuple[Step, ...] = (partial(begin, call), partial(database.settle, call))
    return (start_clock, *steps) if timed else steps


def call_of(endpoint: Endpoint, services: Services, writer: BodyWriter | None) -> Call:
    shape = endpoint.shape
    routine = endpoint.routine
    single = endpoint.options.single
    context = context_of(endpoint, services)

    def build(mask: int) -> tuple[str, int]:
        try:
            return call_sql(endpoint, mask), mask.bit_count()
        except UncallableError as error:
            raise Problem(404, str(error)) from None

    return Call(
        label=f"{endpoint.name} {routine.schema}.{routine.name}",
        build=build,
        renderer=writer,
        pace=Pace(services.options.database.slow),
        # Commands may do anything, as volatile routines may.
        volatile=routine.volatility is Volatility.VOLATILE or bool(context.commands),
        procedure=routine.kind is RoutineKind.PROCEDURE,
        rows=shape.path is ResultPath.ROWS and shape.is_set,
        single=single,
        timeout=endpoint.options.timeout,
        context=context or None,
        policy=services.options.policies.of(endpoint.options.error_policy),
        retry=services.options.retries.of(endpoint.options.retry_strategy),
    )


ContextFactory = Callable[[Endpoint, Services], Context | None]

CONTEXT: Sequence[ContextFactory] = (headers_context,)
"""What requests bring along for their routine, in the order in which it is set (`service.database.context`)."""


def context_of(endpoint: Endpoint, services: Services) -> Context:
    found = (factory(endpoint, services) for factory in CONTEXT)
    return sum((one for one in found if one is not None), Context())


def respond(endpoint: Endpoint, services: Services) -> Step:
    """The result becomes the response."""
    return responses.respond(endpoint, services.database, services.options.http.slow_client)


STEPS: Sequence[Factory] = (
    request_log,
    authorize,
    comment_headers,
    keep_body,
    bind,
    fill_headers,
    validate,
    skip_null_call,
    choose_format,
    run,
    respond,
)


def compile_endpoint(endpoint: Endpoint, services: Services) -> tuple[Step, ...]:
    """The steps of one endpoint, in order."""
    steps: list[Step] = []
    for factory in STEPS:
        made = factory(endpoint, services)
        if made is not None:
            steps += made if isinstance(made, tuple) else (made,)
    return tuple(steps)
