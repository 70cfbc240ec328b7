"""Steps ahead of the call: the name for the log, refusals, and parameters with values from SQL or other services."""

from __future__ import annotations

import logging

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.header_lines import response_header_lines
from rowcall.core.errors.problems import Problem
from rowcall.service.cache.proxied_responses import with_proxy_cache
from rowcall.service.cache.response_cache import invalidation_step, plan_of
from rowcall.service.handler.command_log import log_cached_forward, log_invalidation
from rowcall.service.handler.endpoint_call import is_procedure, preamble_of
from rowcall.service.log.request_log import logging_protocol_of
from rowcall.service.metrics.meters import cache_counter
from rowcall.service.outgoing.proxy import proxy
from rowcall.service.outgoing.type_calls import call_types
from rowcall.service.pipeline.services import Services
from rowcall.service.request.resolved_parameters import resolve
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response import responses
from rowcall.service.response.headers import CommentHeaders

log = logging.getLogger("rowcall")


def request_log(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the first step, which records the name of the endpoint for the request log, and for a redacted endpoint
    its path template instead of the path; None: requests are not logged.
    """
    if not services.options.request_log:
        return None
    name = f"{endpoint.name} {endpoint.routine.schema}.{endpoint.routine.name}"

    def record_name(context: RequestContext) -> None:
        if (result := logging_protocol_of(context.protocol)) is not None:
            result.endpoint = name

    def record_name_alone(context: RequestContext) -> None:
        """Record name and path template, as the real path contains values."""
        if (result := logging_protocol_of(context.protocol)) is not None:
            result.endpoint = name
            result.path = endpoint.path

    return record_name_alone if endpoint.redacted else record_name


def refuse_unknown_connection(endpoint: Endpoint, services: Services) -> Step | None:
    """Return a step that refuses all requests with status 500, because the connection of the endpoint is unknown; None:
    it is known. The endpoint exists, so that callers get the reason (execution-15).
    """
    name = endpoint.options.connection
    if services.has_connection(name):
        return None
    detail = f"Connection name {name} could not be found in options DataSources or ConnectionStrings dictionaries."

    def refuse(_context: RequestContext) -> None:
        raise Problem(500, detail)

    return refuse


def refuse_loss_of_identity(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that refuses all requests with status 500, because the procedure of the endpoint may commit, and
    settings of its preamble would end with the transaction; None for other endpoints. The reason is logged when the
    endpoint is compiled.

    If such a procedure ran, the rights of the caller would change in the middle of it.
    """
    if not is_procedure(endpoint.routine) or not endpoint.routine.may_commit:
        return None
    preamble = preamble_of(endpoint, services)
    if not preamble or (preamble.lasts and not services.database.pooled):
        return None
    why = (
        "behind a transaction pooler the settings before the call would end there"
        if services.database.pooled
        else "a setting of Service:BeforeRoutineCommands would end there: write it as SET or select set_config(…)"
    )
    log.error("%s is refused: %s may commit, and %s", endpoint.name, endpoint.routine.identity, why)
    detail = "this procedure may commit while it runs, which would end the settings made for its caller; see the log"

    def refuse(_context: RequestContext) -> None:
        raise Problem(500, detail)

    return refuse


def comment_headers(endpoint: Endpoint, _services: Services) -> Step | None:
    """Return the step after which error responses have the comment's headers too (execution-4); None: the comment has
    no headers.
    """
    return CommentHeaders(endpoint) if response_header_lines(endpoint) else None


def skip_null_call(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that responds with 204 without a call if an argument of a STRICT routine is NULL, as PostgreSQL
    would not run it either (execution-5); None: the routine is not STRICT, or the endpoint runs it all the same
    (`Endpoint.skips_null_calls`), as it does in a job, whose transaction with the call marks it as finished. If the
    endpoint consumes a token, `service.accounts.steps` skips the call, after checking the token."""
    if not endpoint.skips_null_calls or services.job_runs or endpoint.options.consumed_token is not None:
        return None
    answer = responses.no_content(endpoint)

    def skip(context: RequestContext) -> None:
        if context.has_null:
            answer(context)
            context.answered = True

    return skip


def resolve_parameters(endpoint: Endpoint, services: Services) -> tuple[Step, ...] | None:
    """Return the steps that fill parameters by SQL of the comment, and then skip the call of a STRICT routine if a
    value is NULL; None if the comment has no such SQL.
    """
    return _with_skip(resolve(endpoint, services), endpoint, services)


def send_requests(endpoint: Endpoint, services: Services) -> tuple[Step, ...] | None:
    """Return the steps that fill parameters by requests of HTTP types, and then skip the call of a STRICT routine if a
    value is NULL; None without HTTP types, and for an endpoint that only invalidates (outbound-12)."""
    if endpoint.options.invalidates:
        return None
    return _with_skip(call_types(endpoint, services), endpoint, services)


def forward_to_proxy(endpoint: Endpoint, services: Services) -> tuple[Step, ...] | None:
    """Return the steps of a proxy: either the other service answers, or the routine continues with its response; None
    for other endpoints (proxies-9, proxies-10). An endpoint that only invalidates gets its step here too.
    """
    plan = plan_of(endpoint, services)
    if endpoint.options.invalidates:
        return (invalidation_step(endpoint, services, plan, log_invalidation(endpoint, services.options)),)
    forward = proxy(endpoint, services)
    if plan is not None and forward is not None and endpoint.passes_through:
        hit = log_cached_forward(endpoint, services.options)
        return with_proxy_cache(endpoint, services, plan, forward, hit, cache_counter(endpoint, services))
    return (forward,) if forward is not None and endpoint.passes_through else _with_skip(forward, endpoint, services)


def _with_skip(fill: Step | None, endpoint: Endpoint, services: Services) -> tuple[Step, ...] | None:
    """Return the step `fill`, which fills parameters, and behind it the one that skips the call of a STRICT routine if
    an argument is NULL; None if `fill` is None.
    """
    if fill is None:
        return None
    skip = skip_null_call(endpoint, services)
    return (fill,) if skip is None else (fill, skip)
