"""Compilation of an endpoint into its handler: only the steps that its options need.

A step is a function over one request context; it returns an awaitable if it has to wait. A capability adds one step
factory to `STEPS`, which defines the order of all checks (execution-1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.formats.exports import with_exports
from rowcall.service.accounts.password_rules import check_passwords
from rowcall.service.auth.access import authenticate, authorize
from rowcall.service.auth.antiforgery import require_antiforgery_token
from rowcall.service.auth.cross_site import refuse_cross_site
from rowcall.service.auth.database_role import RoleSteps, refuse_without_role
from rowcall.service.auth.lockout import count_sign_ins
from rowcall.service.auth.parameter_injection import bind, fill_parameters_of_job, hash_parameters
from rowcall.service.batch.joint_requests import refuse_in_joint_batch
from rowcall.service.cache.keys import record_values
from rowcall.service.downloads.links import issue_link, open_link
from rowcall.service.encryption.parameters import encrypt_parameters
from rowcall.service.handler.before_call import (
    comment_headers,
    forward_to_proxy,
    refuse_loss_of_identity,
    refuse_unknown_connection,
    request_log,
    resolve_parameters,
    send_requests,
    skip_null_call,
)
from rowcall.service.handler.running import (
    account_steps,
    choose_format,
    download,
    find_stored_result,
    respond,
    run,
    send_write_position,
    sign_in_or_out,
)
from rowcall.service.idempotency.key import check_key
from rowcall.service.idempotency.recorded_requests import unless_replayed
from rowcall.service.jobs.running import skip_if_bound
from rowcall.service.limits.rate_limiting import limit_all_callers, limit_callers
from rowcall.service.metrics.meters import count_requests
from rowcall.service.operations.audit_trail import record_call
from rowcall.service.operations.slow_requests import record_slow_request
from rowcall.service.outgoing.proxy import read_body_for_proxy
from rowcall.service.outgoing.proxy_out import catch_result, send_result
from rowcall.service.outgoing.type_calls import ignore_nulls_of_types
from rowcall.service.pipeline.services import Factory, Services
from rowcall.service.request.binding import read_small_body
from rowcall.service.request.deadlines import set_deadline
from rowcall.service.request.headers import fill_headers
from rowcall.service.request.merge_patch import collect_patch
from rowcall.service.request.preconditions import check_version, require_version, tag_with_version
from rowcall.service.request.resolved_parameters import discard_supplied_values
from rowcall.service.request.validation import keep_body, validate
from rowcall.service.request_context.request_context import Step
from rowcall.service.response.entity_tag import add_entity_tag
from rowcall.service.response.formats.exports import Exports
from rowcall.service.tenancy.tenants import TenantConnections, require_tenant
from rowcall.service.tenancy.time_zones import apply_time_zone
from rowcall.service.tracing.request_tracing import trace_requests
from rowcall.service.uploads.upload_steps import resume
from rowcall.service.webhooks.receiving import verify_signature


def choose_export(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that continues with another format than JSON, if the request asks for one; None: there are no
    exports.
    """
    options = services.options.exports
    if options is None or not options.formats_of(endpoint):
        return None
    before = (*STEPS[: STEPS.index(choose_export) + 1],)
    return Exports(endpoint, services, options, lambda other, using: _compile_steps(other, using, before)).choose


def choose_connection(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that continues on the connection of the tenant; None: tenants have no own connections."""
    tenant = endpoint.options.tenant
    if tenant is None or not tenant.connection:
        return None
    before = (*STEPS[: STEPS.index(choose_connection) + 1],)
    return TenantConnections(endpoint, services, lambda other, there: _compile_steps(other, there, before)).choose


def choose_role(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that continues with the steps of the database role; None: the endpoint runs as the service."""
    if not endpoint.options.role_from_claim:
        return None
    before = (*STEPS[: STEPS.index(choose_role) + 1], *(_factories_before_job() if services.job_runs else ()))
    return RoleSteps(endpoint, services, lambda other, using: _compile_steps(other, using, before)).choose


def apply_query(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that continues with the steps of the request's query over the result; None: the endpoint is not
    `queryable`, is itself such a query, or has a result that no query language fits."""
    if endpoint.options.queryable is None or endpoint.query is not None:
        return None
    # Imported here: few services have such endpoints.
    from rowcall.core.queryable.language import language_of
    from rowcall.service.queryable.queries import Queries

    language = language_of(endpoint)
    if language is None:
        return None
    # The parameters of the query are checked by its language; names that are not its own remain for binding.
    refusals = replace(endpoint.options, ignores_unknown_parameters=True)
    bound = bind(replace(endpoint, options=refusals), services)
    before = STEPS[: STEPS.index(bind) + 1]
    return Queries(language, services, bound, lambda queried: _compile_steps(queried, services, before)).apply


STEPS: Sequence[Factory] = (
    request_log,
    trace_requests,
    count_requests,
    record_slow_request,
    record_call,
    set_deadline,
    limit_all_callers,
    authenticate,
    open_link,
    limit_callers,
    refuse_cross_site,
    authorize,
    refuse_without_role,
    require_tenant,
    choose_connection,
    choose_role,
    apply_time_zone,
    require_antiforgery_token,
    refuse_unknown_connection,
    refuse_in_joint_batch,
    refuse_loss_of_identity,
    issue_link,
    check_key,
    read_small_body,
    keep_body,
    verify_signature,
    read_body_for_proxy,
    collect_patch,
    choose_export,
    apply_query,
    bind,
    fill_parameters_of_job,
    require_version,
    discard_supplied_values,
    fill_headers,
    validate,
    check_passwords,
    resume,
    add_entity_tag,
    tag_with_version,
    record_values,
    hash_parameters,
    encrypt_parameters,
    comment_headers,
    ignore_nulls_of_types,
    skip_null_call,
    count_sign_ins,
    find_stored_result,
    resolve_parameters,
    send_requests,
    forward_to_proxy,
    catch_result,
    choose_format,
    sign_in_or_out,
    download,
    account_steps,
    run,
    check_version,
    send_write_position,
    respond,
    send_result,
)


def compile_endpoint(endpoint: Endpoint, services: Services, done: Sequence[Factory] = ()) -> tuple[Step, ...]:
    """Return the steps of one endpoint, in order. done: factories to leave out, as the route has their steps."""
    exports = services.options.exports
    if exports is not None and exports.formats_of(endpoint):
        endpoint = with_exports(endpoint)
    return _compile_steps(endpoint, services.for_connection(endpoint.options.connection), done)


def compile_job(endpoint: Endpoint, services: Services) -> tuple[Step, ...]:
    """Return the steps of an attempt of a job, whose arguments are bound already. Values of a job that was enqueued in
    SQL are hashed and encrypted here; those of a request were before they were stored. services: those with `job_runs`.
    """
    return _compile_steps(endpoint, services, _factories_before_job())


def _factories_before_job() -> Sequence[Factory]:
    """Return the factories whose steps an attempt of a job does not have, as its request has been through them."""
    of_job = (trace_requests, record_call, refuse_without_role, choose_role, fill_parameters_of_job, *_UNLESS_BOUND)
    return tuple(step for step in STEPS[: STEPS.index(comment_headers)] if step not in of_job)


_UNLESS_BOUND: Sequence[Factory] = (hash_parameters, encrypt_parameters)
"""Steps that protect values, which an attempt runs if the job was enqueued in SQL."""
_UNLESS_REPLAYED: Sequence[Factory] = (resolve_parameters, send_requests, forward_to_proxy)
"""Steps that may have effects elsewhere, which a repeated request whose result is stored does not run."""
_IN_JOB: Sequence[Factory] = (
    ignore_nulls_of_types,
    skip_null_call,
    resolve_parameters,
    send_requests,
    forward_to_proxy,
    catch_result,
    choose_format,
    check_version,
    send_result,
)
"""Steps that belong to the attempts of a job, and not to the request that enqueues it."""


def _compile_steps(endpoint: Endpoint, services: Services, done: Sequence[Factory]) -> tuple[Step, ...]:
    """Return the steps of an endpoint in the order of `STEPS`. done: factories to leave out."""
    if endpoint.options.job is not None and not services.job_runs:
        done = (*done, *_IN_JOB)
    steps: list[Step] = []
    for factory in STEPS:
        step = None if factory in done else factory(endpoint, services)
        if step is None:
            continue
        compiled = step if isinstance(step, tuple) else (step,)
        if services.job_runs and factory in _UNLESS_BOUND:
            compiled = tuple(map(skip_if_bound, compiled))
        elif endpoint.recorded and factory in _UNLESS_REPLAYED:
            compiled = tuple(map(unless_replayed, compiled))
        steps += compiled
    return tuple(steps)
