"""Assemble the options of workers and the defaults of endpoints from the settings."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from rowcall.core.accounts.lockout import LockoutOptions
from rowcall.core.auth.options import LONGEST_SESSION
from rowcall.core.batch.options import BatchOptions
from rowcall.core.binding.strict_types import StrictTypes
from rowcall.core.building.configuration_checks import WITHIN, DisabledFeature, KnownNames
from rowcall.core.building.endpoint_builder import EndpointDefaults
from rowcall.core.building.identity_loss import CallSurroundings
from rowcall.core.building.service import ServiceOptions
from rowcall.core.building.uploads import UploadNames
from rowcall.core.config import Settings
from rowcall.core.config.sections.application import Application, ApplicationNames
from rowcall.core.config.sections.connections import PoolOptions
from rowcall.core.config.sections.data_protection import DataProtection
from rowcall.core.config.sections.errors import CommandRetryOptions, ErrorHandlingOptions
from rowcall.core.config.sections.log import Log
from rowcall.core.config.sections.sqlfiles import SqlFileLog
from rowcall.core.formats.table_formats import TableFormatOptions
from rowcall.core.http.deadlines import DeadlineOptions
from rowcall.core.jobs.options import JobOptions
from rowcall.core.operations.audit_trail import AuditTrailOptions
from rowcall.core.operations.options import HealthOptions
from rowcall.core.operations.slow_requests import SlowRequestOptions
from rowcall.core.operations.tracing import QueryTags
from rowcall.core.uploads.options import Folder
from rowcall.core.webhooks.options import ReceivedWebhooks
from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.database.databases import DatabaseAccess
from rowcall.service.database.options import DatabaseOptions
from rowcall.service.log.notices import NoticeMode
from rowcall.service.log.options import correlation_header, logs_requests
from rowcall.service.log.template import has_message
from rowcall.service.options.application_name import encryption_name, json_application_name
from rowcall.service.options.auth import auth_options, warn_if_on
from rowcall.service.options.before_routine import parse_before_commands
from rowcall.service.options.capabilities.cache import cache_options
from rowcall.service.options.capabilities.documents import reference_page
from rowcall.service.options.capabilities.events import event_options
from rowcall.service.options.capabilities.limits import limit_options
from rowcall.service.options.capabilities.mcp import offers_tools
from rowcall.service.options.capabilities.operations import statistics_options
from rowcall.service.options.capabilities.outbound import outbound_options
from rowcall.service.options.capabilities.passkeys import passkey_options
from rowcall.service.options.capabilities.static_files import static_file_options
from rowcall.service.options.capabilities.uploads import FolderCheck, download_options, upload_options
from rowcall.service.options.connection_string import ConnectionInfo, connection_names
from rowcall.service.options.connections import MAIN_ALIAS, ConnectionPlan, Connections, with_target_session_attrs
from rowcall.service.options.errors import error_policies, retry_strategies
from rowcall.service.options.queues import delivery_options, mail_options
from rowcall.service.options.server.browsers import antiforgery_options
from rowcall.service.options.server.forwarded_headers import read_forwarding
from rowcall.service.options.server.http import http_options
from rowcall.service.options.server.metrics import metrics_options
from rowcall.service.options.server.postgrest import postgrest_options
from rowcall.service.options.server.replicas import replica_options
from rowcall.service.options.server.tracing import tracing_options
from rowcall.service.options.sign_in.passwords import password_rules
from rowcall.service.options.sign_in.warnings import configuration_warnings
from rowcall.service.options.tables import export_options, table_formats
from rowcall.service.options.validation import disabled_rules, validation_rules
from rowcall.service.options.worker import RequestHeaders, WorkerOptions
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

DEFAULT_TIMEOUT = 30.0
"""Time limit of routines in seconds, if neither the settings nor the connection string has one."""
_AUTHENTICATION = "Service:AuthenticationOptions:"
_RETRIES = "CommandRetryOptions:Enabled"


def endpoint_defaults(settings: Settings, options: WorkerOptions, plan: ConnectionPlan) -> EndpointDefaults:
    """Return the defaults of endpoints. options: source of the names that annotations may use (policies, rules, …)."""
    return EndpointDefaults(
        service=settings.read(ServiceOptions),
        login=options.auth.login,
        basic_everywhere=options.auth.basic.enabled,
        anonymous_database_role=options.auth.database_roles.anonymous is not None,
        jobs=settings.is_enabled(JobOptions),
        second_factor=options.auth.second_factor is not None,
        webhook_secrets=options.webhook_secrets,
        table_formats=options.tables,
        cache=options.cache,
        known=KnownNames(
            error_policies=frozenset(options.policies.named),
            retry_strategies=frozenset(options.retries.named) if settings.is_enabled(CommandRetryOptions) else None,
            rules=frozenset(options.rules),
            disabled_rules=disabled_rules(settings),
            rate_limiters=options.limits.names if options.limits.enabled else None,
            disabled_rate_limiters=options.limits.disabled,
            cache_profiles=options.cache.names if options.cache.enabled else None,
            connections=(plan.main, *(plan.others if plan.routable else ()), MAIN_ALIAS),
            unroutable=() if plan.routable else connection_names(settings),
        ),
        around=CallSurroundings.of(
            options.before, others=options.json_application_name is not None, pooled=options.target.pooler
        ),
        forwarding=options.forwarding,
        off=tuple(_switched_off(settings, options)),
        variables=_variables(settings),
        uploads=UploadNames(
            tuple(options.uploads.handlers),
            options.uploads.default_handler,
            options.uploads.metadata_parameter,
            folders=tuple(key for key, handler in options.uploads.handlers.items() if isinstance(handler, Folder)),
            folder_conflict=FolderCheck(options.uploads.protected),
        ),
        http_types=options.outbound.types if options.outbound.types.enabled else None,
        proxies=options.outbound.proxy if options.outbound.proxy.enabled else None,
        tools=offers_tools(settings),
    )


def _switched_off(settings: Settings, options: WorkerOptions) -> Iterator[DisabledFeature]:
    """Yield the disabled features that annotations may request, each with its switch and the consequence."""
    if not options.tables.keys:
        section = "Service:TableFormatOptions:"
        switch = "HtmlEnabled or ExcelEnabled" if settings.is_enabled(TableFormatOptions) else "Enabled"
        yield DisabledFeature("table_format", section + switch, "responses are JSON")
    if not options.cache.enabled:
        for word in ("cached", "cache_profile"):
            yield DisabledFeature(word, "CacheOptions:Enabled", "no response is cached")
    if not options.limits.enabled:
        yield DisabledFeature("rate_limiter", "RateLimiterOptions:Enabled", "nothing is limited")
    if not settings.is_enabled(CommandRetryOptions):
        yield DisabledFeature("retry_strategy", _RETRIES, "no command is retried")
    if not offers_tools(settings):
        yield DisabledFeature("mcp", "Service:McpOptions:Enabled", "no tool is offered")
    if not options.auth.records_sign_in_time:
        yield DisabledFeature(WITHIN, _AUTHENTICATION + "NoteSignInTime", "every user has to sign in again")
    if options.auth.second_factor is None:
        consequence = "only tokens of other issuers with amr mfa are accepted"
        yield DisabledFeature("second_factor", "Auth:SecondFactor:Enabled", consequence)
    if options.replicas is None:
        yield DisabledFeature("read_from", "ConnectionSettings:Replicas:Enabled", "the main connection is read")
    if not options.auth.schemes.signs_in:
        switches = "Auth:CookieAuth, Auth:BearerTokenAuth or Auth:JwtAuth"
        yield DisabledFeature(
            "login", switches, "there is no scheme to sign in with, and every sign-in is answered 500"
        )


def _variables(settings: Settings) -> tuple[tuple[str, str | None], ...]:
    """Return name, in lower case, and value of the environment variables that annotations may use.

    An unset variable has the text that `Service:AvailableEnvVars` names for it, or None.
    """
    environment = {**os.environ, **settings.variables}
    names = settings.read(ServiceOptions).variables
    return tuple((name.lower(), environment.get(name, instead)) for name, instead in names.items())


def worker_options(settings: Settings, connections: Connections) -> WorkerOptions:
    """Return the options of workers, and log warnings about settings. Raises StartupError or ConfigError."""
    plan = connections.plan
    service, errors = settings.read(ServiceOptions), settings.read(ErrorHandlingOptions)
    webhooks = settings.read(ReceivedWebhooks)
    target, database = _access(settings, plan.main, connections.main)
    # Read only after the start, when a missing variable in its placeholders would stop the running service.
    settings.read(Application)
    if not has_message(settings.read(Log).output_template):
        log.warning("Log:OutputTemplate has no {Message}: log lines contain no message")
    http = http_options(settings)
    # A client could not send back a session that is larger than the head of a request.
    auth = replace(auth_options(settings), longest_session=min(LONGEST_SESSION, http.head_limit))
    static = static_file_options(settings)
    for warning in configuration_warnings(settings, auth, static):
        log.warning("%s", warning)
    uploads = upload_options(settings)
    forwarding = read_forwarding(settings)
    return WorkerOptions(
        target=target,
        database=database,
        others={
            name.casefold(): DatabaseAccess(
                name, *_access(settings, name, info), routable=plan.routable, source=name in plan.sources
            )
            for name, info in connections.others.items()
            if plan.routable or name not in plan.replicas
        },
        replicas=replica_options(settings, connections, partial(_access, settings)),
        main_names=plan.main_names,
        http=http,
        policies=error_policies(settings),
        retries=retry_strategies(settings),
        rules=validation_rules(settings),
        resolve_nested=service.routines.resolve_nested,
        timestamps_utc=service.timestamps_utc,
        strict_types=StrictTypes(wide_as_text=service.safe_numbers) if service.strict_json_types else None,
        camel_case=service.camel_case_names,
        safe_numbers=service.safe_numbers,
        tables=table_formats(settings),
        uploads=uploads,
        exports=export_options(settings),
        lockout=settings.read_enabled(LockoutOptions),
        passwords=password_rules(settings),
        mail=mail_options(settings),
        downloads=download_options(settings, uploads),
        explains_unauthorized=errors.explain_unauthorized,
        problem_types=not errors.remove_type_url,
        problem_traces=not errors.remove_trace_id,
        request_log=logs_requests(settings),
        correlation_header=correlation_header(settings),
        auth=auth,
        reference=reference_page(settings, settings.read(ApplicationNames).application or "API"),
        passkeys=passkey_options(settings, auth.schemes, {name.casefold(): 0 for name in connections.others}),
        antiforgery=antiforgery_options(settings),
        forwarding=forwarding,
        events=event_options(settings),
        cache=cache_options(settings),
        limits=limit_options(settings),
        postgrest=postgrest_options(settings),
        health=settings.read_enabled(HealthOptions),
        metrics=metrics_options(settings),
        tracing=tracing_options(settings),
        slow_requests=_slow_requests(settings),
        query_tags=settings.is_enabled(QueryTags),
        static=static,
        audit_trail=settings.read_enabled(AuditTrailOptions),
        statistics=statistics_options(settings, connections, partial(_target, settings)),
        encrypts=settings.is_enabled(DataProtection),
        encryption_name=encryption_name(settings),
        tenant=service.tenant if service.tenant is None else service.tenant.with_forwarding(forwarding),
        requires_authorization=service.requires_authorization,
        hides_paths=service.hide_paths,
        headers=_request_headers(service),
        notices=NoticeMode(service.notice_mode) if service.log_notices else None,
        before=parse_before_commands(service.before),
        json_application_name=json_application_name(settings),
        wrap_in_transaction=service.wrap_in_transaction,
        log_commands=service.log_commands,
        log_file_texts=settings.read(SqlFileLog).log_texts,
        log_command_parameters=service.log_command_parameters,
        outbound=outbound_options(settings),
        deadlines=settings.read(DeadlineOptions),
        batch=settings.read_enabled(BatchOptions),
        jobs=settings.read_enabled(JobOptions),
        webhook_secrets={name.lower(): secret or "" for name, secret in webhooks.secrets.items()},
        deliveries=delivery_options(settings),
        webhook_lifetime=webhooks.lifetime,
    )


def _slow_requests(settings: Settings) -> SlowRequestOptions | None:
    options = settings.read(SlowRequestOptions)
    return options if options.threshold else None


def _access(settings: Settings, name: str, connection: ConnectionInfo) -> tuple[ConnectionTarget, DatabaseOptions]:
    """Return how to connect to one database, and how a worker uses it. name: of its connection string."""
    target = _target(settings, name, connection)
    pools = settings.read(PoolOptions)
    if pools.trust_stable:
        log.warning(
            "ConnectionSettings:Pool:TrustStable is on: what a STABLE routine leaves in its session reaches other "
            "requests"
        )
    return target, DatabaseOptions(pools, target.timeout)


def _target(settings: Settings, name: str, connection: ConnectionInfo) -> ConnectionTarget:
    """Return how to connect to one database. name: of its connection string."""
    timeout = settings.read(ServiceOptions).command_timeout
    if timeout is None:
        timeout = DEFAULT_TIMEOUT if connection.command_timeout is None else connection.command_timeout
    pooler = settings.read(PoolOptions).transaction_pooler
    return ConnectionTarget(
        with_target_session_attrs(settings, name, connection).parameters, pooler=pooler, timeout=timeout
    )


def _request_headers(service: ServiceOptions) -> RequestHeaders:
    """Return the options of request headers. Raises `StartupError` for a setting (GUC) without a dot in its name."""
    key = service.headers_key
    if "." not in key.strip("."):
        raise StartupError(f"Service:RequestHeadersContextKey: a name with a dot is needed, such as app.{key}")
    added = {name: text or "" for name, text in service.added_headers.items()}
    if service.instance_header is not None:
        # Generated once by the supervisor, so that all workers have the same id.
        added[service.instance_header] = uuid.uuid4().hex
    warn_if_on(
        service.headers_from_client,
        "Service:RequestHeadersFromClient",
        "a request can forge the headers that routines see",
    )
    return RequestHeaders(key, tuple(added.items()), service.headers_from_client)
