"""Endpoint → its compiled handler: the list of steps that its options ask for, and nothing else.

A step is a function over one `Exchange`; it gives back an awaitable when it has to wait. A capability adds one step
factory to `STEPS`, which is the one place where the order of checks is written (design 1).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from rowcall.core.binding import Binder, Binding
from rowcall.core.call import UncallableError, call_sql
from rowcall.core.catalog import RoutineKind, Volatility
from rowcall.core.endpoint import Endpoint, NullText, ResultPath, Transport
from rowcall.core.problems import Problem, unauthorized
from rowcall.ext.codecs import Codecs
from rowcall.ext.connection import RequestState
from rowcall.ext.parameters import FastBinder
from rowcall.ext.rows import Renderer
from rowcall.service.body import read_body
from rowcall.service.database.database import Call, Database
from rowcall.service.database.pace import Pace
from rowcall.service.edition import WorkerOptions
from rowcall.service.exchange import Exchange, Step
from rowcall.service.streaming import stream_result

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Services:
    """What step factories may use."""

    options: WorkerOptions
    database: Database
    codecs: Codecs


Factory = Callable[[Endpoint, Services], Step | tuple[Step, ...] | None]


def authorize(endpoint: Endpoint, _services: Services) -> Step | None:
    """Nobody is signed in as long as no scheme is configured, so an endpoint is either open or closed (spec 5.4)."""
    if not endpoint.options.requires_authorization and not endpoint.options.roles:
        return None
    detail = (
        f"{endpoint.name} is for signed-in users; the annotation allow_anonymous on "
        f"{endpoint.routine.identity} or the key Service:RequiresAuthorization=false opens it"
    )

    def refuse(_exchange: Exchange) -> None:
        raise unauthorized("Bearer", detail)

    return refuse


def bind(endpoint: Endpoint, services: Services) -> Step:
    """Request values → the arguments of the call (reference 01, 7)."""
    options = endpoint.options
    binder = Binder(endpoint.parameters, options.transport, options.query_null, services.options.timestamps_utc)
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

    async def from_body(exchange: Exchange) -> None:
        body = exchange.body
        if body is None:
            body = await read_body(exchange.scope, exchange.protocol, limit)
        values = path_values(exchange)
        set_arguments(exchange, fast.bind_body(body, values) or binder.bind_body(body, values))

    return from_body if options.transport is Transport.BODY else from_query


def skip_null_call(endpoint: Endpoint, _services: Services) -> Step | None:
    """PostgreSQL would not run a STRICT routine for a NULL argument either (reference 02, 1 rule 6)."""
    if not endpoint.routine.strict or not endpoint.parameters:
        return None
    headers = response_headers(endpoint, content_type=None)

    def skip(exchange: Exchange) -> None:
        if exchange.has_null:
            exchange.protocol.response_empty(204, headers)
            exchange.answered = True

    return skip


def run(endpoint: Endpoint, services: Services) -> tuple[Step, Step]:
    """Runs the routine: begins, and judges how it ended."""
    call = call_of(endpoint, services)
    begin = services.database.begin
    settle = services.database.settle
    return lambda exchange: begin(call, exchange), lambda exchange: settle(call, exchange)


def call_of(endpoint: Endpoint, services: Services) -> Call:
    shape = endpoint.shape
    routine = endpoint.routine
    single = endpoint.options.single

    def build(mask: int) -> tuple[str, int]:
        try:
            return call_sql(endpoint, mask), mask.bit_count()
        except UncallableError as error:
            raise Problem(404, str(error)) from None

    renderer = None
    if shape.path is not ResultPath.VOID:
        keys = [column.key for column in shape.columns] if shape.named else []
        is_set = shape.is_set and not single
        renderer = Renderer(services.codecs, shape.path.value, is_set, shape.named, keys)
    return Call(
        label=f"{endpoint.name} {routine.schema}.{routine.name}",
        build=build,
        renderer=renderer,
        pace=Pace(services.options.database.slow),
        volatile=routine.volatility is Volatility.VOLATILE,
        procedure=routine.kind is RoutineKind.PROCEDURE,
        rows=shape.path is ResultPath.ROWS and shape.is_set,
        single=single,
        timeout=endpoint.options.timeout,
    )


def respond(endpoint: Endpoint, services: Services) -> Step:
    """The result becomes the response (reference 02, 1 to 6)."""
    if endpoint.shape.path is ResultPath.VOID:
        return _respond_void(endpoint)
    if endpoint.shape.path is ResultPath.SCALAR:
        return _respond_scalar(endpoint)
    return _respond_rows(endpoint, services)


def _respond_void(endpoint: Endpoint) -> Step:
    headers = response_headers(endpoint, content_type=None)

    def respond_void(exchange: Exchange) -> None:
        exchange.protocol.response_empty(204, headers)

    return respond_void


def _respond_scalar(endpoint: Endpoint) -> Step:
    headers = response_headers(endpoint, endpoint.shape.content_type)
    respond_null = null_response(endpoint)

    def respond_scalar(exchange: Exchange) -> None:
        request = exchange.request
        if request is None or request.rows == 0:
            raise Problem(500, "the routine returned no row")
        if request.is_null:
            respond_null(exchange)
        else:
            exchange.protocol.response_bytes(200, headers, request.body)

    return respond_scalar


def _respond_rows(endpoint: Endpoint, services: Services) -> Step:
    headers = response_headers(endpoint, endpoint.shape.content_type)
    respond_null = null_response(endpoint)
    needs_row = not endpoint.shape.is_set or endpoint.options.single
    database = services.database
    patience = services.options.http.slow_client

    def respond_rows(exchange: Exchange) -> Awaitable[None] | None:
        request = exchange.request
        if request is None:
            raise Problem(500, "the routine returned nothing")
        if request.state == RequestState.STREAMING:
            return respond_stream(exchange)
        if needs_row and request.rows == 0:
            respond_null(exchange)
        else:
            exchange.protocol.response_bytes(200, headers, request.body)
        return None

    async def respond_stream(exchange: Exchange) -> None:
        request = exchange.request
        if request is None:
            return
        complete = False
        try:
            complete = await stream_result(exchange.protocol, exchange.scope.client, request, headers, patience)
        finally:
            database.end_stream(request, gone=not complete)

    return respond_rows


def null_response(endpoint: Endpoint) -> Callable[[Exchange], None]:
    """What a NULL text result, or `single` without a row, becomes (reference 02, 6)."""
    mode = endpoint.options.null_text
    headers = response_headers(endpoint, endpoint.shape.content_type)
    if mode is NullText.NO_CONTENT:
        bare = response_headers(endpoint, content_type=None)
        return lambda exchange: exchange.protocol.response_empty(204, bare)
    # A JSON response can only say null; text says NULL (spec 2.12).
    is_json = endpoint.shape.path is ResultPath.ROWS
    literal = b"null" if is_json else b"NULL"
    body = literal if mode is NullText.NULL_LITERAL else b""
    return lambda exchange: exchange.protocol.response_bytes(200, headers, body)


def response_headers(endpoint: Endpoint, content_type: str | None) -> Headers:
    """Header fields of a success, made once. A comment's content type wins (reference 02, 1.1)."""
    chosen = endpoint.options.content_type or content_type
    headers: Headers = [("content-type", chosen)] if chosen is not None else []
    return headers + [(name.lower(), value) for name, value in endpoint.options.headers]


STEPS: Sequence[Factory] = (authorize, bind, skip_null_call, run, respond)


def compile_endpoint(endpoint: Endpoint, services: Services) -> tuple[Step, ...]:
    """The steps of one endpoint, in order."""
    steps: list[Step] = []
    for factory in STEPS:
        made = factory(endpoint, services)
        if made is not None:
            steps += made if isinstance(made, tuple) else (made,)
    return tuple(steps)
