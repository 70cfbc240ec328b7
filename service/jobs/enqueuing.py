"""The step that enqueues the call of a routine and answers 202 with the address of the job (RFC 9110, 15.3.3)."""

from __future__ import annotations

import hashlib

import orjson

from rowcall.core.auth.claims import owner_of
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.database.preamble import Values
from rowcall.service.jobs.job import arguments_of, parameter_signature
from rowcall.service.jobs.ownership import job_owner
from rowcall.service.pipeline.services import Services
from rowcall.service.pipeline.sql_call import sql_call
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.surroundings import headers_of_zone, tenant_of, with_tenant
from rowcall.service.request_context.trace import trace_of

_ADD = (
    "select rowcall.add_job("
    "$1, $2::jsonb, true, $3, $4::int, $5, $6, $7::jsonb, clock_timestamp(), $8, $9, $10::int)::text"
)


def enqueue(endpoint: Endpoint, services: Services) -> Step:
    """Return the step that enqueues a job for a request whose arguments are bound and validated, and answers 202. It
    raises `Problem` if the database refuses or fails.
    """
    options, job = services.options.jobs, endpoint.options.job
    assert options is not None  # noqa: S101 (compiled where jobs are on)
    assert job is not None  # noqa: S101 (of endpoints with this option only)
    database = services.database
    call = sql_call(f"{endpoint.name} enqueue", _ADD, 10, services)
    address = options.path.rstrip("/")
    signed = orjson.dumps(parameter_signature(endpoint))
    execution_header = services.options.events.execution_header
    chosen = None if job.unique_by is None else _indexes(endpoint, job.unique_by)
    serial = _indexes(endpoint, job.serial_by) if job.serial_by else ()
    # Overloads have the same name, and keys of their own.
    overload = hashlib.sha256(signed).hexdigest()[:16]
    prefix = f"{endpoint.name} {overload} ".encode()
    limit = str(job.serial_limit).encode()
    fixed: Values = [endpoint.name.encode(), job.queue.encode(), str(job.priority).encode()]

    async def run(context: RequestContext) -> None:
        values = arguments_of(endpoint, context)
        user = context.user
        claims = None if user is None else orjson.dumps([list(claim) for claim in user.claims])
        name, queue, priority = fixed
        tenant = orjson.dumps(tenant_of(endpoint.options.tenant, context))
        headers = orjson.dumps(_headers_for_attempts(endpoint, execution_header, context))
        parts = (b'{"signature":', signed, b',"tenant":', tenant, b',"headers":', headers, b',"values":', values, b"}")
        unique = None
        if chosen is not None:
            # The routine may depend on the claims of the caller, who alone may read the job.
            key = b"%s %s %s" % (owner_of(user).encode(), overload.encode(), _key(context, chosen))
            unique = with_tenant(key, endpoint.options.tenant, context)
        limited = with_tenant(prefix + _key(context, serial), endpoint.options.tenant, context) if serial else None
        trace = trace_of(context.protocol)
        traceparent = None if trace is None else trace.traceparent.encode()
        owner = job_owner(endpoint.options.tenant, context)
        sent: Values = [name, b"".join(parts), queue, priority, unique, owner, claims, limited, traceparent, limit]
        async with database.transaction(call, context) as transaction:
            execution = await transaction.begin_with(call, sent)
            await transaction.commit()
        number = (execution.body or b"").decode()
        body = orjson.dumps({"id": number, "state": "waiting"})
        accepted = [("content-type", "application/json"), ("location", f"{address}/{number}")]
        context.protocol.response_bytes(202, accepted, body)

    return run


def _headers_for_attempts(endpoint: Endpoint, execution_header: str, context: RequestContext) -> list[tuple[str, str]]:
    """Return the headers of a request that the attempts of its job have too: its time zone, and the id that its events
    have. Credentials are not among them.
    """
    execution = context.scope.headers.get(execution_header)
    return [
        *headers_of_zone(endpoint.options.time_zone, context),
        *(() if execution is None else ((execution_header, execution),)),
    ]


def _indexes(endpoint: Endpoint, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the indexes of the parameters with these names (of the database or of the API, in any case); without
    names, those of all.
    """
    lowered = {name.lower() for name in names}
    return tuple(
        index
        for index, item in enumerate(endpoint.parameters)
        if not lowered or not lowered.isdisjoint((item.db_name.lower(), item.api_name.lower()))
    )


def _key(context: RequestContext, indexes: tuple[int, ...]) -> bytes:
    """Return the values of some parameters as JSON, to compare jobs. indexes: of these parameters. A parameter that is
    not passed differs from one that is NULL."""
    parts: list[tuple[int, str | None]] = []
    for index in indexes:
        bit = 1 << index
        if context.mask & bit:
            value = context.arguments[(context.mask & (bit - 1)).bit_count()]
            parts.append((index, None if value is None else value.decode(errors="replace")))
    return orjson.dumps(parts)
