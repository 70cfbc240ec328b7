"""The database call of an endpoint: its statement, its preamble, and what the pools have to know about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rowcall.core.accounts.checks import runs_with_account_steps
from rowcall.core.auth.parameter_injection import hashed_parameters, injected_parameters
from rowcall.core.binding.server_refusals import ServerRefusals
from rowcall.core.catalogue.catalog import Routine, RoutineKind, Volatility
from rowcall.core.catalogue.session_effects import UNKNOWN
from rowcall.core.endpoint.call import UncallableError, all_present, call_sql
from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.core.endpoint.resolved_parameters import resolved_parameters
from rowcall.core.errors.problems import Problem
from rowcall.core.sqlfile.source import FileSource
from rowcall.core.tables.routines import TableOperation
from rowcall.core.uploads.options import shares_transaction
from rowcall.ext.rendering.body_writer import BodyWriter
from rowcall.service.auth.context import user_context
from rowcall.service.auth.database_role import database_role
from rowcall.service.database.call import Call
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.database.preamble import Preamble
from rowcall.service.encryption.columns import with_decrypted_columns
from rowcall.service.handler.command_log import description
from rowcall.service.metrics.meters import repetition_counter
from rowcall.service.pipeline.services import Services
from rowcall.service.request.application_name import application_name
from rowcall.service.request.before_routine import commands_before_routine
from rowcall.service.request.headers import headers_context
from rowcall.service.sqlfiles.running import file_statements
from rowcall.service.tenancy.tenants import tenant_settings
from rowcall.service.tenancy.time_zones import time_zone_settings
from rowcall.service.tracing.request_tracing import published_trace, query_tag, trace_name
from rowcall.service.webhooks.publishing import publish_result


def is_procedure(routine: Routine) -> bool:
    """Return whether the routine is a procedure, or a file with a statement that may not run in a transaction block."""
    return routine.kind is RoutineKind.PROCEDURE or _stands_alone(routine)


def _stands_alone(routine: Routine) -> bool:
    """Return whether the routine is a file with a statement that may not run in a transaction block."""
    return isinstance(routine.source, FileSource) and routine.source.stands_alone


def call_of(endpoint: Endpoint, services: Services, writer: BodyWriter | None) -> Call:
    """Return the call of an endpoint. writer: renders the result; None: the rows are not rendered. Building its
    statement raises `Problem` 404 if no statement calls the routine with the parameters of the request.
    """
    shape = endpoint.shape
    routine = endpoint.routine
    single = endpoint.options.single
    preamble = preamble_of(endpoint, services)
    # Commands of the preamble may do anything, as volatile routines may, unless they are known to have no session
    # effects.
    volatile = routine.volatility is Volatility.VOLATILE or not preamble.has_no_session_effects
    procedure = is_procedure(routine)
    session = endpoint.session if preamble.has_no_session_effects else UNKNOWN
    label = f"{endpoint.name} {_format_routine(routine)}"
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
            wrapped=not _stands_alone(routine)
            and (
                services.options.wrap_in_transaction
                or shares_transaction(endpoint, services.options.uploads)
                or endpoint.recorded
                or endpoint.options.publishing is not None
                or runs_with_account_steps(endpoint)
            ),
        ),
        pace=PoolAssignment(services.options.database.pools.slow),
        volatile=volatile,
        session=session,
        harmless=not session.traces and not procedure,
        may_share=not endpoint.options.exclusive_connection,
        procedure=procedure,
        commits=procedure and routine.may_commit,
        # Uploaded files are stored or removed with the routine, so its success must be known before the response
        # begins.
        rows=may_stream(endpoint) and endpoint.options.upload is None,
        # 0 means every row (rendering-41).
        flush_rows=0 if endpoint.options.buffer_rows is None else max(1, endpoint.options.buffer_rows),
        single=single and shape.path is not ResultPath.OBJECT,
        timeout=endpoint.options.timeout,
        preamble=preamble or None,
        role=endpoint.options.database_role,
        wrapped=services.options.wrap_in_transaction and not routine.may_commit,
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
    """Return the function for the SQL of the routine, if the endpoint is a query over its result; else None. The
    argument of the function is the bit mask of the parameters that are passed.
    """
    if endpoint.query is None:
        return None
    inner: Endpoint = endpoint.query.inner
    return lambda mask: call_sql(inner, mask & all_present(inner))


def _server_refusals(endpoint: Endpoint, services: Services) -> ServerRefusals | None:
    """Return the object that turns errors of PostgreSQL about a value of the request into errors that name the
    parameter. None: the endpoint replaces such values by defaults."""
    if endpoint.options.lenient:
        return None
    filled = {item.index for item in injected_parameters(endpoint, services.options.auth.login)}
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


def _format_routine(routine: Routine) -> str:
    """Return the name of a routine, table operation or file for the log."""
    return f"{routine.schema}.{routine.name}" if routine.source is None else routine.identity


PreambleFactory = Callable[[Endpoint, Services], Preamble | None]
"""Returns a part of the preamble of an endpoint; None: the endpoint does not need it."""

PREAMBLE: Sequence[PreambleFactory] = (
    application_name,
    trace_name,
    published_trace,
    headers_context,
    user_context,
    tenant_settings,
    time_zone_settings,
    database_role,
    commands_before_routine,
)
"""The parts of the preamble, in the order in which they are set (`service.database.preamble`)."""


def preamble_of(endpoint: Endpoint, services: Services) -> Preamble:
    """Return all settings and commands that a request of the endpoint sends ahead of its call."""
    result = (factory(endpoint, services) for factory in PREAMBLE)
    return sum((item for item in result if item is not None), Preamble())
