"""Steps that run the routine of an endpoint and make the response of its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from rowcall.core.accounts.checks import gives_rows_to_account_steps, runs_with_account_steps
from rowcall.core.cache.plan import CachePlan
from rowcall.core.catalogue.catalog import Volatility
from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.core.endpoint.resolved_parameters import resolved_parameters
from rowcall.core.endpoint.template import parse_template, placeholder_names
from rowcall.ext.rendering.body_writer import BodyWriter
from rowcall.ext.rendering.cell_rows import CellRows
from rowcall.ext.rendering.raw_rows import RawRenderer
from rowcall.ext.rendering.timed_rows import TimedWriter
from rowcall.service.auth.login import login_steps, logout_steps
from rowcall.service.batch.joint_requests import run_jointly
from rowcall.service.cache.response_cache import plan_of, status_reporter, with_response_cache
from rowcall.service.database.call import Call
from rowcall.service.database.database import Database
from rowcall.service.downloads.sending import send_file
from rowcall.service.encryption.columns import decrypt_cached_value, with_decrypted_columns
from rowcall.service.handler.before_call import comment_headers
from rowcall.service.handler.command_log import log_command
from rowcall.service.handler.endpoint_call import call_of, is_procedure, preamble_of
from rowcall.service.handler.replica_reads import reads_of, record_position
from rowcall.service.idempotency.key import key_of
from rowcall.service.idempotency.recorded_requests import FindKey, find_result, run_once
from rowcall.service.jobs.enqueuing import enqueue
from rowcall.service.jobs.running import run_in_job
from rowcall.service.metrics.meters import cache_counter, key_counter
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.outgoing.forwarding import uploads_here
from rowcall.service.outgoing.proxy_out import send_result
from rowcall.service.pipeline.services import Services
from rowcall.service.request.deadlines import may_have_deadline
from rowcall.service.request.preconditions import check_version
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response import responses
from rowcall.service.response.formats.choice import table_formats
from rowcall.service.response.headers import argument_text
from rowcall.service.response.rendering import body_writer, with_column_checks
from rowcall.service.response.response_set_by_sql import respond_as_set_by_sql, with_reading
from rowcall.service.response.server_timing import start_clock
from rowcall.service.webhooks.publishing import run_and_publish
from rowcall.service.webhooks.receiving import delivery_key


def choose_format(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that selects a table format in place of JSON, if the request or the comment names one
    (formats-1).

    None: the endpoint has no result that a table can show, or no format is enabled.
    """
    shape = endpoint.table_shape
    if shape is None or not services.options.tables.keys or is_sign_in_or_out(endpoint) or endpoint.options.invalidates:
        return None
    template = parse_template(endpoint.options.table_format or "", placeholder_names(endpoint.parameters))
    flat = replace(without_response_set_by_sql(endpoint), shape=shape)
    headers = comment_headers(endpoint, services)
    report = _status_reporter(endpoint, services)
    steps: dict[str, tuple[Step, ...]] = {}
    for key, table_format in table_formats(flat, template, services.options, services.database).items():
        after = send_result(endpoint, services)
        steps[key] = (
            *((headers,) if headers else ()),
            *_run(flat, services, with_column_checks(table_format.writer, flat)),
            table_format.respond,
            *((after,) if after else ()),
        )

    async def choose(context: RequestContext) -> None:
        chosen = steps.get(template.fill(partial(argument_text, context)))
        if chosen is not None:
            if report is not None:
                report(context, "bypass")
            context.follow(chosen)

    return choose


def _status_reporter(endpoint: Endpoint, services: Services) -> Callable[[RequestContext, str], None] | None:
    """Return the function that reports the cache status of a request (`bypass`, for example), or None if nothing is
    cached.
    """
    if plan_of(endpoint, services) is None:
        return None
    return status_reporter(services.options.cache.status_header, cache_counter(endpoint, services))


def run(endpoint: Endpoint, services: Services) -> tuple[Step, ...]:
    """Return the steps that run the routine, including the lookup in the cache; for a job, the step that enqueues it.
    Empty if steps of a capability run the routine."""
    if _responds_itself(endpoint):
        return ()
    if endpoint.options.job is not None and not services.job_runs:
        return (enqueue(endpoint, services),)
    writer = body_writer(endpoint, services.answer_codecs)
    if writer is None and endpoint.version_index is not None:
        writer = RawRenderer(services.codecs, True)  # counts the rows
    return _run(endpoint, services, writer, plan_of(endpoint, services))


def send_write_position(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that sends the WAL position to the client, so that it reads its own writes from replicas; None:
    the endpoint does not write, or one of the other reasons of `record_position`."""
    if services.replicas is None:
        return None
    routine = endpoint.routine
    volatile = routine.volatility is Volatility.VOLATILE or not preamble_of(endpoint, services).has_no_session_effects
    return record_position(endpoint, services, writes=volatile or is_procedure(routine))


def sign_in_or_out(endpoint: Endpoint, services: Services) -> tuple[Step, ...] | None:
    """Return the steps of a routine that signs in or out, including its response; None for other endpoints."""
    if not is_sign_in_or_out(endpoint):
        return None
    writer = None if endpoint.shape.path is ResultPath.VOID else CellRows(services.codecs, True)
    call = call_of(endpoint, services, writer)
    steps = login_steps(endpoint, services, call) if endpoint.options.login else logout_steps(endpoint, services, call)
    return (*_begin(call, endpoint, services), *steps)


def download(endpoint: Endpoint, services: Services) -> tuple[Step, ...] | None:
    """Return the steps of a routine whose row is a file, including its response; None for other endpoints."""
    if endpoint.options.download is None:
        return None
    call = call_of(endpoint, services, CellRows(services.codecs, True))
    return (*_begin(call, endpoint, services), send_file(endpoint, services, call))


def account_steps(endpoint: Endpoint, services: Services) -> tuple[Step, ...] | None:
    """Return the steps of a routine for whose rows tokens are issued, or whose rows are sent as mail, including its
    response; None for other endpoints."""
    if not gives_rows_to_account_steps(endpoint):
        return None
    call = call_of(endpoint, services, CellRows(services.codecs, True))
    return _begin(call, endpoint, services)


def _responds_itself(endpoint: Endpoint) -> bool:
    """Whether steps of a capability run the routine and make the response."""
    return is_sign_in_or_out(endpoint) or endpoint.options.download is not None or gives_rows_to_account_steps(endpoint)


def is_sign_in_or_out(endpoint: Endpoint) -> bool:
    """Return whether the endpoint signs in or out."""
    return endpoint.options.login or endpoint.options.logout


def _begin(call: Call, endpoint: Endpoint, services: Services, *, current: bool = False) -> tuple[Step, ...]:
    """Return the steps that run the call in the way that the endpoint needs: with uploads or tokens, on a replica, in a
    job or a batch, once for an idempotency key, or simply on a pool. current: as for `reads_of`.
    """
    database = services.database
    logged = log_command(call, endpoint, services.options)
    if endpoint.options.upload is not None and (
        endpoint.options.proxy is None or uploads_here(endpoint, services.options.outbound.proxy)
    ):
        from rowcall.service.uploads.resumable.protocol import take_uploads  # few endpoints have uploads

        return (*((logged,) if logged else ()), take_uploads(endpoint, call, services))
    if runs_with_account_steps(endpoint):
        from rowcall.service.accounts.steps import run_with_account_steps  # few endpoints have tokens or mail

        return (*((logged,) if logged else ()), run_with_account_steps(endpoint, call, services))
    begin = Database.begin if call.preamble is None else Database.begin_with_preamble
    if may_have_deadline(endpoint, services):
        begin = Database.begin_by_deadline
    reads = reads_of(call, begin, endpoint, services, current=current)
    if reads is not None:
        return (*((logged,) if logged else ()), reads.begin, reads.settle)
    if services.job_runs:
        return (*((logged,) if logged else ()), run_in_job(endpoint, call, services))
    if services.joint:
        return (*((logged,) if logged else ()), partial(run_jointly, call))
    plain: tuple[Step, ...] = (partial(begin, database, call), partial(database.settle, call))
    if call.publish is not None:
        plain = (partial(run_and_publish, database, call, check_version(endpoint, services)),)
    if endpoint.recorded:
        set_by_sql = sql_sets_response(endpoint, services)
        plain = (
            run_once(
                endpoint,
                call,
                services,
                plain,
                _key_finder(endpoint),
                key_counter(services),
                set_by_sql=set_by_sql,
                check=check_version(endpoint, services),
            ),
        )
    return (*((logged,) if logged else ()), *plain)


def find_stored_result(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that finds the stored result of a repeated request, before SQL of the comment or requests to
    other services have effects again; None: the endpoint has neither, or its requests are not recorded.
    """
    if not endpoint.recorded or services.joint or runs_with_account_steps(endpoint):
        return None
    if not (resolved_parameters(endpoint) or endpoint.outgoing.calls or endpoint.options.proxy is not None):
        return None
    call = call_of(endpoint, services, None)
    return find_result(endpoint, call, services, _key_finder(endpoint), key_counter(services))


def _key_finder(endpoint: Endpoint) -> FindKey:
    """Return the function that returns the key under which a request of the endpoint is recorded."""
    return key_of if endpoint.options.webhook is None else partial(delivery_key, endpoint)


def _run(
    endpoint: Endpoint, services: Services, writer: BodyWriter | None, plan: CachePlan | None = None
) -> tuple[Step, ...]:
    """Return the steps that run the routine. With a cache plan, the first one looks up the cached response and runs the
    routine only if there is none. writer: renders the result; None: it is not rendered. plan: of the
    cache; None: the result is not cached."""
    decrypt = None if plan is None else decrypt_cached_value(endpoint, services)
    if decrypt is None:
        writer = with_decrypted_columns(writer, endpoint, endpoint.shape, services)
    timed = services.options.http.server.server_timing
    measured = timed or _is_measured(services.options)
    call = call_of(endpoint, services, TimedWriter(writer) if measured and writer is not None else writer)
    if sql_sets_response(endpoint, services):
        call.made = with_reading(call.made or call.build_statement, services.codecs, first_row_only=call.single)
        call.rows = False
    if plan is not None:
        # A result is cached whole or not at all: it is streamed once it is known that it will not be cached.
        call.flush_rows = plan.max_rows + 1 if plan.max_rows else 0
        call.stream_after = services.caches.largest(plan.place)
    can_be_invalidated = plan is not None and bool(plan.tags or plan.further_tags or services.options.cache.suffix)
    steps = _begin(call, endpoint, services, current=can_be_invalidated)
    steps = (start_clock, *steps) if timed else steps
    if plan is None:
        return steps
    hit = log_command(call, endpoint, services.options, "/* from cache */")
    cached = with_response_cache(endpoint, services, plan, steps, hit, cache_counter(endpoint, services))
    return (cached,) if decrypt is None else (cached, decrypt)


def _is_measured(options: WorkerOptions) -> bool:
    """Return whether the time of rendering is measured, for traces or metrics."""
    return options.tracing is not None or (options.metrics is not None and options.metrics.rendering)


def without_response_set_by_sql(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint without a response set by SQL: results in a table format have the usual status, and all
    columns.
    """
    plain = replace(endpoint.options, response_settings=False, status_column=None, headers_column=None)
    query = None if endpoint.query is None else endpoint.query.without_positions
    return replace(endpoint, routine=replace(endpoint.routine, sets_response=False), options=plain, query=query)


def sql_sets_response(endpoint: Endpoint, services: Services) -> bool:
    """Whether SQL sets the response. Cached responses, and those that `proxy_out` sends on, have the usual status; a
    job has a result only."""
    is_cached = plan_of(endpoint, services) is not None
    return endpoint.sets_response and not is_cached and endpoint.options.proxy_out is None and not services.job_runs


def respond(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that makes the response of the result; None: other steps respond."""
    if _responds_itself(endpoint) or endpoint.options.invalidates:
        return None
    if endpoint.options.job is not None and not services.job_runs:
        return None  # it was enqueued
    if sql_sets_response(endpoint, services):
        return respond_as_set_by_sql(endpoint)
    if endpoint.query is not None and endpoint.query.page_size is not None:
        # Imported here: few services have such endpoints.
        from rowcall.core.queryable.statement import Query
        from rowcall.service.queryable.pages import respond_with_page

        if isinstance(endpoint.query, Query):
            return respond_with_page(endpoint, endpoint.query, services)
    return responses.respond(endpoint, services.database, services.options.http.slow_client)
