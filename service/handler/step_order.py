"""Compilation of an endpoint into its handler: only the steps that its options need.

A step is a function over one request context; it returns an awaitable if it has to wait. A capability adds one step
factory to `STEPS`, which defines the order of all checks (execution-1).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from rowcall.core.auth.parameter_injection import hashed_parameters, injected_parameters
from rowcall.core.binding.server_refusals import ServerRefusals
from rowcall.core.cache.plan import CachePlan
from rowcall.core.catalogue.catalog import Routine, RoutineKind, Volatility
from rowcall.core.catalogue.session_effects import UNKNOWN
from rowcall.core.endpoint.call import UncallableError, all_present, call_sql
from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.core.endpoint.header_lines import response_header_lines
from rowcall.core.endpoint.resolved_parameters import resolved_parameters
from rowcall.core.endpoint.template import parse_template, placeholder_names
from rowcall.core.errors.problems import Problem
from rowcall.core.formats.exports import with_exports
from rowcall.core.queryable.language import language_of
from rowcall.core.queryable.statement import Query
from rowcall.core.tables.routines import TableOperation
from rowcall.ext.rendering.body_writer import BodyWriter
from rowcall.ext.rendering.cell_rows import CellRows
from rowcall.ext.rendering.raw_rows import RawRenderer
from rowcall.ext.rendering.timed_rows import TimedWriter
from rowcall.service.accounts.password_rules import check_passwords
from rowcall.service.accounts.steps import (
    gives_rows_to_account_steps,
    run_with_account_steps,
    runs_with_account_steps,
)
from rowcall.service.auth.access import authenticate, authorize
from rowcall.service.auth.antiforgery import ask_for_token
from rowcall.service.auth.context import user_context
from rowcall.service.auth.cross_site import refuse_cross_site
from rowcall.service.auth.database_role import database_role, refuse_without_role
from rowcall.service.auth.lockout import count_sign_ins
from rowcall.service.auth.login import login_steps
from rowcall.service.auth.logout import logout_steps
from rowcall.service.auth.parameter_injection import bind, hash_parameters
from rowcall.service.batch.joint_requests import refuse_outside_of_batch, run_jointly
from rowcall.service.cache.keys import record_values
from rowcall.service.cache.proxied_responses import around_answer
from rowcall.service.cache.response_cache import around, invalidating, plan_of, status_reporter
from rowcall.service.database.call import Call
from rowcall.service.database.database import Database
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.database.preamble import Preamble
from rowcall.service.downloads.links import issue_link, open_link
from rowcall.service.downloads.sending import send_file
from rowcall.service.encryption.columns import with_decrypted_columns
from rowcall.service.encryption.parameters import encrypt_parameters
from rowcall.service.handler.command_log import description, log_cached_forward, log_command, log_invalidation
from rowcall.service.handler.replica_reads import reads_of, record_position
from rowcall.service.handler.request_log import name_endpoint
from rowcall.service.idempotency.key import check_key, key_of
from rowcall.service.idempotency.once import take_once
from rowcall.service.jobs.enqueuing import enqueue
from rowcall.service.jobs.running import run_in_job
from rowcall.service.limits.rate_limiting import limit_all_callers, limit_callers
from rowcall.service.metrics.meters import cache_counter, count_requests, repetition_counter
from rowcall.service.operations.audit_trail import note_call
from rowcall.service.operations.slow_requests import note_slow
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.outgoing.forwarding import uploads_here
from rowcall.service.outgoing.proxy import keep_for_proxy, proxy
from rowcall.service.outgoing.proxy_out import catch_result, send_result
from rowcall.service.outgoing.type_calls import call_types, ignore_nulls_of_types
from rowcall.service.pipeline.services import Factory, Services
from rowcall.service.queryable.pages import respond_with_page
from rowcall.service.queryable.queries import Queries
from rowcall.service.request.application_name import application_name
from rowcall.service.request.before_routine import before_routine
from rowcall.service.request.binding import read_small_body
from rowcall.service.request.deadlines import may_have_deadline, set_deadline
from rowcall.service.request.headers import fill_headers, headers_context
from rowcall.service.request.merge_patch import collect_patch
from rowcall.service.request.preconditions import check_version, require_version, tag_with_version
from rowcall.service.request.resolved_parameters import forget_supplied, resolve
from rowcall.service.request.validation import keep_body, validate
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response import responses
from rowcall.service.response.entity_tag import tag_answers
from rowcall.service.response.formats.choice import table_formats
from rowcall.service.response.formats.exports import Exports
from rowcall.service.response.headers import CommentHeaders, argument_text
from rowcall.service.response.rendering import body_writer, with_column_checks
from rowcall.service.response.response_set_by_sql import respond_as_set_by_sql, with_reading
from rowcall.service.response.server_timing import start_clock
from rowcall.service.sqlfiles.running import file_statements, stands_alone
from rowcall.service.tenancy.tenants import require_tenant, tenant_settings
from rowcall.service.tenancy.time_zones import apply_time_zone, time_zone_settings
from rowcall.service.tracing.request_tracing import query_tag, trace_name, trace_requests
from rowcall.service.uploads.resumable.protocol import resume, take_uploads
from rowcall.service.uploads.storing import in_transaction
from rowcall.service.webhooks.publishing import publish_result, run_and_publish
from rowcall.service.webhooks.receiving import delivery_key, verify_signature

log = logging.getLogger("rowcall")


def request_log(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that names the endpoint in the request log."""
    return name_endpoint(endpoint, services.options)


def refuse_unknown_connection(endpoint: Endpoint, services: Services) -> Step | None:
    """Return a step that refuses requests of an endpoint with an unknown connection. The endpoint exists, so that
    callers get the reason (execution-15).
    """
    name = endpoint.options.connection
    if services.known(name):
        return None
    detail = f"Connection name {name} could not be found in options DataSources or ConnectionStrings dictionaries."

    def refuse(_context: RequestContext) -> None:
        raise Problem(500, detail)

    return refuse


def is_procedure(routine: Routine) -> bool:
    return routine.kind is RoutineKind.PROCEDURE or stands_alone(routine)


def may_commit(routine: Routine) -> bool:
    return routine.may_commit or stands_alone(routine)


def refuse_to_lose(endpoint: Endpoint, services: Services) -> Step | None:
    """Return a step that refuses a procedure which may commit if its preamble would end with the transaction: the
    rights of the caller must not change in the middle of a procedure.
    """
    if not is_procedure(endpoint.routine) or not may_commit(endpoint.routine):
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
    """Return the step after which error responses have the comment's headers too (execution-4)."""
    return CommentHeaders(endpoint) if response_header_lines(endpoint) else None


def skip_null_call(endpoint: Endpoint, _services: Services) -> Step | None:
    """Return the step that answers without a call if an argument of a STRICT routine is NULL, as PostgreSQL would not
    run it either (execution-5).
    """
    if not endpoint.routine.strict or not endpoint.parameters:
        return None
    answer = responses.no_content(endpoint)

    def skip(context: RequestContext) -> None:
        if context.has_null:
            answer(context)
            context.answered = True

    return skip


def resolve_parameters(endpoint: Endpoint, services: Services) -> tuple[Step, ...] | None:
    """Return the steps that fill parameters by SQL of the comment; a value may be the NULL for which a STRICT routine
    is not called.
    """
    return _with_skip(resolve(endpoint, services), endpoint, services)


def send_requests(endpoint: Endpoint, services: Services) -> tuple[Step, ...] | None:
    """Return the steps that fill parameters by requests of HTTP types (outbound-12)."""
    if endpoint.options.invalidates:
        return None
    return _with_skip(call_types(endpoint, services), endpoint, services)


def send_on(endpoint: Endpoint, services: Services) -> tuple[Step, ...] | None:
    """Return the steps of a proxy: it answers, or its routine continues with the response (proxies-9, proxies-10)."""
    plan = plan_of(endpoint, services)
    if endpoint.options.invalidates:
        return (invalidating(endpoint, services, plan, log_invalidation(endpoint, services.options)),)
    forward = proxy(endpoint, services)
    if plan is not None and forward is not None and endpoint.passes_through:
        hit = log_cached_forward(endpoint, services.options)
        return around_answer(endpoint, services, plan, forward, hit, cache_counter(endpoint, services))
    return (forward,) if forward is not None and endpoint.passes_through else _with_skip(forward, endpoint, services)


def _with_skip(fill: Step | None, endpoint: Endpoint, services: Services) -> tuple[Step, ...] | None:
    if fill is None:
        return None
    skip = skip_null_call(endpoint, services)
    return (fill,) if skip is None else (fill, skip)


def choose_format(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that selects a table format in place of JSON, if the request or the comment names one
    (formats-1).
    """
    shape = endpoint.table_shape
    if shape is None or not services.options.tables.keys or is_sign(endpoint) or endpoint.options.invalidates:
        return None
    expected = parse_template(endpoint.options.table_format or "", placeholder_names(endpoint.parameters))
    flat = replace(without_choice(endpoint), shape=shape)
    headers = comment_headers(endpoint, services)
    report = _status_reporter(endpoint, services)
    steps: dict[str, tuple[Step, ...]] = {}
    for key, table_format in table_formats(flat, expected, services.options, services.database).items():
        after = send_result(endpoint, services)
        steps[key] = (
            *((headers,) if headers else ()),
            *_run(flat, services, with_column_checks(table_format.writer, flat)),
            table_format.respond,
            *((after,) if after else ()),
        )

    async def choose(context: RequestContext) -> None:
        chosen = steps.get(expected.fill(partial(argument_text, context)))
        if chosen is not None:
            if report is not None:
                report(context, "bypass")
            context.follow(chosen)

    return choose


def _status_reporter(endpoint: Endpoint, services: Services) -> Callable[[RequestContext, str], None] | None:
    """Return the function that reports the cache status, or None if nothing is cached."""
    if plan_of(endpoint, services) is None:
        return None
    return status_reporter(services.options.cache.status_header, cache_counter(endpoint, services))


def encrypt(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that encrypts parameters. For cached endpoints it comes later: cache keys are made of the values
    sent, and the encrypted value is different each time.
    """
    return encrypt_parameters(endpoint, services) if plan_of(endpoint, services) is None else None


def run(endpoint: Endpoint, services: Services) -> tuple[Step, ...]:
    """Return the steps that run the routine and evaluate the result."""
    if _responds_itself(endpoint):
        return ()
    if endpoint.options.job is not None and not services.job_runs:
        return (enqueue(endpoint, services),)
    writer = body_writer(endpoint, services.answer_codecs)
    if writer is None and endpoint.version_index is not None:
        writer = RawRenderer(services.codecs, True)  # counts the rows
    return _run(endpoint, services, writer, plan_of(endpoint, services))


def say_where_it_wrote(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that sends the WAL position to the client, so that it reads its own writes from replicas."""
    if services.replicas is None:
        return None
    routine = endpoint.routine
    volatile = routine.volatility is Volatility.VOLATILE or not preamble_of(endpoint, services).has_no_session_effects
    return record_position(endpoint, services, writes=volatile or is_procedure(routine))


def sign(endpoint: Endpoint, services: Services) -> tuple[Step, ...] | None:
    """Return the steps of a routine that signs in or out, including its response."""
    if not is_sign(endpoint):
        return None
    writer = None if endpoint.shape.path is ResultPath.VOID else CellRows(services.codecs, True)
    call = call_of(endpoint, services, writer)
    steps = login_steps(endpoint, services, call) if endpoint.options.login else logout_steps(endpoint, services, call)
    return (*_begin(call, endpoint, services), *steps)


def download(endpoint: Endpoint, services: Services) -> tuple[Step, ...] | None:
    """Return the steps of a routine whose row is a file, including its response."""
    if endpoint.options.download is None:
        return None
    call = call_of(endpoint, services, CellRows(services.codecs, True))
    return (*_begin(call, endpoint, services), send_file(endpoint, services, call))


def account(endpoint: Endpoint, services: Services) -> tuple[Step, ...] | None:
    """Return the steps of a routine whose rows get tokens or become mail, including its response."""
    if not gives_rows_to_account_steps(endpoint):
        return None
    call = call_of(endpoint, services, CellRows(services.codecs, True))
    return _begin(call, endpoint, services)


def _responds_itself(endpoint: Endpoint) -> bool:
    """Whether steps of a capability run the routine and make the response."""
    return is_sign(endpoint) or endpoint.options.download is not None or gives_rows_to_account_steps(endpoint)


def is_sign(endpoint: Endpoint) -> bool:
    return endpoint.options.login or endpoint.options.logout


def _begin(call: Call, endpoint: Endpoint, services: Services) -> tuple[Step, ...]:
    database = services.database
    logged = log_command(call, endpoint, services.options)
    if endpoint.options.upload is not None and (
        endpoint.options.proxy is None or uploads_here(endpoint, services.options.outbound.proxy)
    ):
        return (*((logged,) if logged else ()), take_uploads(endpoint, call, services))
    if runs_with_account_steps(endpoint):
        return (*((logged,) if logged else ()), run_with_account_steps(endpoint, call, services))
    begin = Database.begin if call.preamble is None else Database.begin_with_preamble
    if may_have_deadline(endpoint, services):
        begin = Database.begin_by_deadline
    reads = reads_of(call, begin, endpoint, services)
    if reads is not None:
        return (*((logged,) if logged else ()), reads.begin, reads.settle)
    if services.job_runs:
        return (*((logged,) if logged else ()), run_in_job(endpoint, call, services))
    if services.joint:
        return (*((logged,) if logged else ()), partial(run_jointly, call))
    plain: tuple[Step, ...] = (partial(begin, database, call), partial(database.settle, call))
    if call.publish is not None:
        plain = (partial(run_and_publish, database, call),)
    if endpoint.recorded:
        find_key = key_of if endpoint.options.webhook is None else partial(delivery_key, endpoint)
        once = take_once(endpoint, call, services, plain, find_key, set_by_sql=chooses(endpoint, services))
        plain = (once, *plain)
    return (*((logged,) if logged else ()), *plain)


def _run(
    endpoint: Endpoint, services: Services, writer: BodyWriter | None, plan: CachePlan | None = None
) -> tuple[Step, ...]:
    writer = with_decrypted_columns(writer, endpoint, endpoint.shape, services)
    timed = services.options.http.server_timing
    measured = timed or _is_measured(services.options)
    call = call_of(endpoint, services, TimedWriter(writer) if measured and writer is not None else writer)
    if chooses(endpoint, services):
        call.made = with_reading(call.made or call.build_statement, services.codecs)
        call.rows = False
    if plan is not None:
        # A result is cached whole or not at all: it is streamed once it is known that it will not be cached.
        call.flush_rows = plan.max_rows + 1 if plan.max_rows else 0
        call.stream_after = services.answers.largest(plan.place)
    steps = _begin(call, endpoint, services)
    if plan is not None and (sealing := encrypt_parameters(endpoint, services)) is not None:
        steps = (sealing, *steps)
    steps = (start_clock, *steps) if timed else steps
    if plan is None:
        return steps
    hit = log_command(call, endpoint, services.options, "/* from cache */")
    return around(endpoint, services, plan, steps, hit, cache_counter(endpoint, services))


def _is_measured(options: WorkerOptions) -> bool:
    return options.tracing is not None or (options.metrics is not None and options.metrics.rendering)


def call_of(endpoint: Endpoint, services: Services, writer: BodyWriter | None) -> Call:
    shape = endpoint.shape
    routine = endpoint.routine
    single = endpoint.options.single
    preamble = preamble_of(endpoint, services)
    # Commands of the preamble may do anything, as volatile routines may, unless they are known to have no session
    # effects.
    volatile = routine.volatility is Volatility.VOLATILE or not preamble.has_no_session_effects
    procedure = is_procedure(routine)
    session = endpoint.session if preamble.has_no_session_effects else UNKNOWN
    label = f"{endpoint.name} {_shown(routine)}"
    tag = query_tag(endpoint, services)

    def build(mask: int) -> tuple[str, int]:
        try:
            return tag + call_sql(endpoint, mask), mask.bit_count()
        except UncallableError as error:
            raise Problem(404, str(error)) from None

    return Call(
        label=label,
        build=build,
        renderer=writer,
        made=file_statements(
            endpoint,
            writer,
            services.answer_codecs,
            partial(with_decrypted_columns, endpoint=endpoint, services=services),
            repeatable=not volatile and not procedure,
            wrapped=services.options.wrap_in_transaction
            or in_transaction(endpoint, services)
            or endpoint.recorded
            or endpoint.options.publishing is not None
            or runs_with_account_steps(endpoint),
        ),
        pace=PoolAssignment(services.options.database.slow),
        volatile=volatile,
        session=session,
        harmless=not session.traces and not procedure,
        may_share=not endpoint.options.exclusive_connection,
        procedure=procedure,
        commits=procedure and may_commit(routine),
        # Uploaded files are stored or removed with the routine, so its success must be known before the response
        # begins.
        rows=may_stream(endpoint) and endpoint.options.upload is None,
        # 0 means every row (rendering-41).
        flush_rows=0 if endpoint.options.buffer_rows is None else max(1, endpoint.options.buffer_rows),
        single=single and shape.path is not ResultPath.OBJECT,
        timeout=endpoint.options.timeout,
        preamble=preamble or None,
        wrapped=services.options.wrap_in_transaction and not may_commit(routine),
        policy=services.options.policies.of(endpoint.options.error_policy),
        refusals=_server_refusals(endpoint, services),
        retry=services.options.retries.of(endpoint.options.retry_strategy),
        describe=description(endpoint, services.options),
        sensitive=endpoint.options.sensitive,
        hear=services.hear(endpoint),
        of_tenant=endpoint.options.tenant is not None and bool(endpoint.options.tenant.schemas),
        inner=_inner_sql(endpoint),
        publish=publish_result(endpoint, services),
        on_repeat=repetition_counter(endpoint, services),
    )


def _inner_sql(endpoint: Endpoint) -> Callable[[int], str] | None:
    if endpoint.query is None:
        return None
    inner: Endpoint = endpoint.query.inner
    return lambda mask: call_sql(inner, mask & all_present(inner))


def _server_refusals(endpoint: Endpoint, services: Services) -> ServerRefusals | None:
    if endpoint.options.lenient:
        return None
    filled = {item.index for item in injected_parameters(endpoint, services.options.auth.mapping)}
    hashed = {target for target, _ in hashed_parameters(endpoint)}
    resolved = {item.target for item in resolved_parameters(endpoint)}
    routine = endpoint.routine
    columns = tuple(item.name for item in routine.parameters) if isinstance(routine.source, TableOperation) else ()
    own = filled | hashed | resolved | endpoint.outgoing.filled
    return ServerRefusals(endpoint.parameters, own, columns, endpoint.version_index)


def may_stream(endpoint: Endpoint) -> bool:
    """Whether the result may be streamed; `buffer_rows 1` requires a whole response."""
    shape = endpoint.shape
    is_set = shape.path is ResultPath.OBJECT or (shape.path is ResultPath.ROWS and shape.is_set)
    is_page = endpoint.query is not None and endpoint.query.page_size is not None
    whole = is_page or endpoint.options.publishing is not None
    return is_set and not whole and endpoint.options.buffer_rows != 1


def _shown(routine: Routine) -> str:
    return f"{routine.schema}.{routine.name}" if routine.source is None else routine.identity


PreambleFactory = Callable[[Endpoint, Services], Preamble | None]

PREAMBLE: Sequence[PreambleFactory] = (
    application_name,
    trace_name,
    headers_context,
    user_context,
    tenant_settings,
    time_zone_settings,
    database_role,
    before_routine,
)
"""The parts of the preamble, in the order in which they are set (`service.database.preamble`)."""


def preamble_of(endpoint: Endpoint, services: Services) -> Preamble:
    result = (factory(endpoint, services) for factory in PREAMBLE)
    return sum((item for item in result if item is not None), Preamble())


def without_choice(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint without a response set by SQL: tables have the usual status, and all columns."""
    plain = replace(endpoint.options, response_settings=False, status_column=None, headers_column=None)
    query = None if endpoint.query is None else endpoint.query.without_positions
    return replace(endpoint, routine=replace(endpoint.routine, sets_response=False), options=plain, query=query)


def chooses(endpoint: Endpoint, services: Services) -> bool:
    """Whether SQL sets the response. Cached responses, and those that `proxy_out` sends on, have the usual status."""
    is_cached = plan_of(endpoint, services) is not None
    return endpoint.sets_response and not is_cached and endpoint.options.proxy_out is None


def respond(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that makes the response of the result."""
    if _responds_itself(endpoint) or endpoint.options.invalidates:
        return None
    if endpoint.options.job is not None and not services.job_runs:
        return None  # it was enqueued
    if chooses(endpoint, services):
        return respond_as_set_by_sql(endpoint)
    if isinstance(endpoint.query, Query) and endpoint.query.page_size is not None:
        return respond_with_page(endpoint, endpoint.query, services)
    return responses.respond(endpoint, services.database, services.options.http.slow_client)


def choose_export(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that continues with another format than JSON, if the request asks for one."""
    options = services.options.exports
    if options is None or not options.of(endpoint):
        return None
    before = (*STEPS[: STEPS.index(choose_export) + 1],)
    return Exports(endpoint, services, options, lambda other, using: _compiled(other, using, before)).choose


def apply_query(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that continues with the steps of the request's query over the result (`queryable`)."""
    language = None if endpoint.query is not None else language_of(endpoint)
    if language is None:
        return None
    # The parameters of the query are checked by its language; names that are not its own remain for binding.
    refusals = replace(endpoint.options, ignores_unknown_parameters=True)
    bound = bind(replace(endpoint, options=refusals), services)
    before = STEPS[: STEPS.index(bind) + 1]
    return Queries(language, services, bound, lambda queried: _compiled(queried, services, before)).apply


STEPS: Sequence[Factory] = (
    request_log,
    trace_requests,
    count_requests,
    note_slow,
    note_call,
    set_deadline,
    limit_all_callers,
    authenticate,
    open_link,
    limit_callers,
    refuse_cross_site,
    authorize,
    refuse_without_role,
    require_tenant,
    apply_time_zone,
    ask_for_token,
    refuse_unknown_connection,
    refuse_outside_of_batch,
    refuse_to_lose,
    issue_link,
    check_key,
    read_small_body,
    keep_body,
    verify_signature,
    keep_for_proxy,
    collect_patch,
    choose_export,
    apply_query,
    bind,
    require_version,
    forget_supplied,
    fill_headers,
    validate,
    check_passwords,
    resume,
    tag_answers,
    tag_with_version,
    record_values,
    hash_parameters,
    encrypt,
    comment_headers,
    ignore_nulls_of_types,
    skip_null_call,
    count_sign_ins,
    resolve_parameters,
    send_requests,
    send_on,
    catch_result,
    choose_format,
    sign,
    download,
    account,
    run,
    check_version,
    say_where_it_wrote,
    respond,
    send_result,
)


def compile_endpoint(endpoint: Endpoint, services: Services, done: Sequence[Factory] = ()) -> tuple[Step, ...]:
    """Return the steps of one endpoint, in order. done: factories to leave out, as the route has their steps."""
    exports = services.options.exports
    if exports is not None and exports.of(endpoint):
        endpoint = with_exports(endpoint)
    return _compiled(endpoint, services.there(endpoint.options.connection), done)


def compile_job(endpoint: Endpoint, services: Services) -> tuple[Step, ...]:
    """Return the steps of an attempt of a job, whose arguments are bound. services: with `job_runs`."""
    before = [step for step in STEPS[: STEPS.index(comment_headers)] if step not in (trace_requests, note_call)]
    return _compiled(endpoint, services, before)


_IN_JOB: Sequence[Factory] = (
    ignore_nulls_of_types,
    skip_null_call,
    resolve_parameters,
    send_requests,
    send_on,
    catch_result,
    choose_format,
    check_version,
    send_result,
)
"""Steps that belong to the attempts of a job, and not to the request that enqueues it."""


def _compiled(endpoint: Endpoint, services: Services, done: Sequence[Factory]) -> tuple[Step, ...]:
    if endpoint.options.job is not None and not services.job_runs:
        done = (*done, *_IN_JOB)
    steps: list[Step] = []
    for factory in STEPS:
        step = None if factory in done else factory(endpoint, services)
        if step is not None:
            steps += step if isinstance(step, tuple) else (step,)
    return tuple(steps)
