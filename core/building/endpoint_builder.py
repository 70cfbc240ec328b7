"""Builds an endpoint from routine, comment and defaults of the configuration.

Stages: proposals of the catalogue (method, path, shape), changes of the comment, checks of the whole endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from rowcall.core.accounts.checks import account_diagnostics
from rowcall.core.accounts.password_rules import password_rule_diagnostics
from rowcall.core.annotations.declaration import Draft, Line, changed_options
from rowcall.core.auth.options import LoginOptions
from rowcall.core.auth.parameter_injection import identity_diagnostics
from rowcall.core.binding.invalid_values import InvalidValueError
from rowcall.core.binding.written_values import without_invalid_defaults
from rowcall.core.building.access import access_of
from rowcall.core.building.comments import read_comment
from rowcall.core.building.configuration_checks import (
    NO_NAMES_CHECKED,
    DisabledFeature,
    KnownNames,
    disabled_features,
    unknown_names,
    unsent_requests,
)
from rowcall.core.building.endpoint_checks import check_endpoint
from rowcall.core.building.identity_loss import CallSurroundings, identity_loss
from rowcall.core.building.installation import (
    idempotency_obstacle,
    job_obstacle,
    publishing_obstacle,
    schedule_obstacle,
    unmet_installation,
    unverified_webhooks,
)
from rowcall.core.building.outgoing import (
    disabled_proxies,
    outgoing_diagnostics,
    outgoing_requests,
    without_proxies,
)
from rowcall.core.building.protective_lines import unknown_names_in_lines
from rowcall.core.building.service import ServiceOptions
from rowcall.core.building.uploads import UploadEndpoint, UploadNames
from rowcall.core.cache.diagnostics import cache_diagnostics
from rowcall.core.cache.options import NO_CACHE, CacheOptions
from rowcall.core.catalogue.catalog import Catalog, Parameter, Routine, RoutineKind, Volatility
from rowcall.core.catalogue.source import Transport
from rowcall.core.data.interning import REMEMBERED, Same
from rowcall.core.downloads.row import download_diagnostics, with_source
from rowcall.core.endpoint.capabilities import CommentsMode, Queryable, Tool
from rowcall.core.endpoint.endpoint import (
    Endpoint,
    EndpointParameter,
    NullText,
    Options,
    ResultPath,
    ResultShape,
)
from rowcall.core.endpoint.parameter_changes import change_parameters, check_pseudo_types
from rowcall.core.endpoint.parameters import Naming, claim_segments, expand
from rowcall.core.endpoint.response_set_by_sql import response_set_diagnostics, without_response_columns
from rowcall.core.endpoint.result_shape import VOID, result_shape
from rowcall.core.endpoint.template import placeholder_names, with_variables
from rowcall.core.errors.binding_error import type_word
from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.core.formats.table_formats import NO_FORMATS, TableFormats, table_diagnostics
from rowcall.core.http.forwarded_headers import Forwarding
from rowcall.core.outgoing.options import ProxyOptions, TypeOptions
from rowcall.core.queryable.language import obstacle
from rowcall.core.sqlfile.shapes import file_shape
from rowcall.core.sqlfile.source import FileSource
from rowcall.core.tables.routines import TableOperation
from rowcall.core.tables.versions import version_diagnostics, with_version_parameter
from rowcall.core.text.naming import default_path

_SEGMENT = re.compile(r"\{(\w+)\??\}")
_TAGS = {
    (kind, volatility): frozenset((kind.value, volatility.name.lower()))
    for kind in RoutineKind
    for volatility in Volatility
}


_NO_TOOL = Tool()


@dataclass(frozen=True, slots=True)
class EndpointDefaults:
    """The settings of the configuration for endpoints, before their comments are read."""

    service: ServiceOptions = field(default_factory=ServiceOptions)
    login: LoginOptions = field(default_factory=LoginOptions)
    basic_everywhere: bool = False
    """All callers have to sign in with HTTP Basic, whatever comments contain."""
    anonymous_database_role: bool = False
    """Anonymous callers have a role of PostgreSQL at endpoints with `role_from_claim`."""
    jobs: bool = False
    """Jobs are accepted."""
    second_factor: bool = False
    """Logins ask users who have a second factor for it."""
    webhook_secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Secrets of `verify_webhook` by name in lower case."""
    table_formats: TableFormats = NO_FORMATS
    connection: str | None = None
    """Connection of routines of this source unless their comments set another one. None: the main connection."""
    known: KnownNames = NO_NAMES_CHECKED
    cache: CacheOptions = NO_CACHE
    variables: tuple[tuple[str, str | None], ...] = ()
    """Variables of the environment that annotation values may contain: names in lower case, values."""
    uploads: UploadNames | None = None
    """None: the names are not checked."""
    http_types: TypeOptions | None = None
    """None: HTTP types are disabled."""
    proxies: ProxyOptions | None = None
    """None: proxies are disabled."""
    tools: bool = False
    """Objects with only an `mcp` annotation become tools without a route."""
    around: CallSurroundings = field(default_factory=CallSurroundings)
    """Facts about the settings that are made before every call."""
    forwarding: Forwarding | None = None
    """How the host of a request is read from forwarded headers; None: never."""
    off: tuple[DisabledFeature, ...] = ()
    """Annotations whose capability is switched off in the configuration."""

    def of_source(self, comments_mode: CommentsMode, *, nested: bool | None = None) -> EndpointDefaults:
        """Return the defaults of tables or files, which have a comments mode of their own. nested: composite columns
        are not expanded; None: as for routines."""
        routines = self.service.routines
        if nested is not None:
            routines = replace(routines, nested=nested)
        return replace(self, service=replace(self.service, comments_mode=comments_mode, routines=routines))


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The result of building an endpoint from a routine.

    endpoint: None: the object is not exposed, its comment disables it, or it is left out for the reason in
    `diagnostics`.
    """

    endpoint: Endpoint | None
    diagnostics: tuple[Diagnostic, ...] = ()
    disabled: bool = False
    """The comment has exposed the object and disabled it."""


def build_endpoint(routine: Routine, catalog: Catalog, defaults: EndpointDefaults) -> BuildResult:
    """Build the endpoint of a routine. Mistakes in its comment become diagnostics; no error is raised for them."""
    if defaults.service.comments_mode is CommentsMode.ONLY_ANNOTATED and not routine.comment:
        return BuildResult(None)
    draft = _draft(routine, defaults)
    if defaults.service.comments_mode is not CommentsMode.IGNORE:
        read_comment(routine.comment or "", draft)
    if draft.misses_method:
        return BuildResult(None, tuple(draft.diagnostics))
    if defaults.tools and not draft.exposed and defaults.service.comments_mode is CommentsMode.ONLY_ANNOTATED:
        draft.exposed = draft.get("tool", _NO_TOOL).enabled
        if draft.exposed:
            draft.set(internal=True)
    if not draft.exposed and "schedule" in draft.changes:
        # Only a schedule calls it.
        draft.exposed = True
        draft.set(internal=True)
    if not (draft.exposed or defaults.service.comments_mode is not CommentsMode.ONLY_ANNOTATED):
        if routine.of_extension:
            return BuildResult(None)
        noticed = tuple(map(_with_schedule_consequence, draft.diagnostics))
        return BuildResult(None, (*noticed, *_only_a_tool(draft, defaults), *_misspelt(draft)))
    if not draft.enabled:
        return BuildResult(None, tuple(draft.diagnostics), disabled=True)
    if draft.refused:
        message = "it is not exposed, because a line of its comment should protect it and does not"
        return BuildResult(None, (*draft.diagnostics, Diagnostic(draft.name, None, message, left_out=1)))
    endpoint = _endpoint(routine, catalog, defaults, draft)
    noticed = (
        *draft.diagnostics,
        *check_endpoint(endpoint, draft.used),
        *unknown_names(endpoint, defaults.known, draft.used),
        *disabled_features(endpoint, defaults.off, draft.used),
        *identity_loss(endpoint, defaults.around),
        *version_diagnostics(endpoint, draft.used),
        *download_diagnostics(endpoint, draft.used),
        *account_diagnostics(endpoint, draft.used),
        *password_rule_diagnostics(endpoint, draft.used),
        *unmet_installation(
            endpoint,
            catalog.installation,
            draft.used,
            jobs=defaults.jobs,
            second_factor=defaults.second_factor,
            anonymous_database_role=defaults.anonymous_database_role,
        ),
        *unverified_webhooks(endpoint, defaults.webhook_secrets, draft.used),
        *(() if defaults.http_types is not None else unsent_requests(endpoint, catalog.types)),
        *unknown_names_in_lines(endpoint, draft.named, defaults.known),
        *table_diagnostics(endpoint, defaults.table_formats),
        *identity_diagnostics(endpoint, defaults.login),
        *cache_diagnostics(endpoint, defaults.cache, defaults.login),
        *outgoing_diagnostics(endpoint),
        *(() if defaults.proxies is not None else disabled_proxies(endpoint.name, draft.name, draft.used)),
    )
    return BuildResult(None if any(diagnostic.left_out for diagnostic in noticed) else endpoint, noticed)


def _with_schedule_consequence(diagnostic: Diagnostic) -> Diagnostic:
    """Return a diagnostic of an object that is not exposed. If it is about a `schedule` line, its message also says
    that the schedule never runs, and it counts as left out; others are unchanged."""
    if diagnostic.line is None or Line(diagnostic.line).keyword != "schedule":
        return diagnostic
    return replace(diagnostic, message=f"{diagnostic.message}; it never runs", left_out=1)


def _misspelt(draft: Draft) -> tuple[Diagnostic, ...]:
    """Return diagnostics for an object that is not exposed although a line of its comment was probably meant to expose
    it."""
    if not draft.meant_http:
        return ()
    message = "it is not exposed, because no line of its comment is HTTP [method] [path]"
    return (Diagnostic(draft.name, None, message, left_out=1),)


def _only_a_tool(draft: Draft, defaults: EndpointDefaults) -> tuple[Diagnostic, ...]:
    """Return a diagnostic if the object would only be a tool of MCP, and MCP is switched off."""
    off = next((feature for feature in defaults.off if feature.annotation == "mcp"), None)
    if off is None or not draft.get("tool", _NO_TOOL).enabled:
        return ()
    return (off.diagnostic(draft.name, draft.used.get("mcp"), left_out=1),)


def default_method(routine: Routine) -> str:
    """Return GET for routines that only read: not volatile, or with a name such as `get_beds`, `beds_get` or
    `beds_get_all` (routing-5); else POST."""
    name = routine.name.lower()
    reads = routine.volatility is not Volatility.VOLATILE
    named_get = name.startswith("get_") or "_get_" in name or name.endswith("_get")
    return "GET" if reads or named_get else "POST"


def path_segments(path: str) -> tuple[str, ...]:
    """Return the names of the `{parameter}` segments, in order, also of optional ones (`{parameter?}`)."""
    return tuple(match[1] for segment in path.split("/") if (match := _SEGMENT.fullmatch(segment)))


@lru_cache(maxsize=256)
def _share_options(options: Options) -> Options:
    """Return one shared object for equal options, because most endpoints have equal options."""
    return options


@lru_cache(maxsize=64)
def _default_options(shared: Same[EndpointDefaults]) -> Options:
    """Return the options of an endpoint without a comment, one object for equal defaults."""
    defaults = shared.value
    service, login = defaults.service, defaults.login
    return Options(
        requires_authorization=service.requires_authorization,
        query_null=service.query_null,
        absent_status=service.absent_status,
        ignores_unknown_parameters=service.ignores_unknown_parameters,
        lenient=service.lenient,
        request_headers=service.request_headers,
        headers_parameter=service.headers_parameter,
        null_text=service.null_text,
        empty_without_row=service.empty_without_row,
        neutralize_formulas=service.neutralize_formulas,
        nested=service.routines.nested,
        connection=defaults.connection,
        user_parameters=login.use_user_parameters,
        user_context=login.use_user_context,
        role_from_claim=login.use_role_from_claim,
        claims_in_commands=defaults.around.uses_claims,
        tenant=service.tenant,
    )


@lru_cache(maxsize=256)
def _changed_options(
    shared: Same[EndpointDefaults],
    changes: frozenset[tuple[str, object]],
    headers: tuple[tuple[str, str], ...],
    expressions: tuple[tuple[str, str], ...],
    custom: tuple[tuple[str, str], ...],
) -> Options:
    """Return the defaults with changes, without proxies if these are disabled. Cached, because most comments of a large
    schema make the same changes. changes: pairs of an option and its value. Other arguments as the fields of `Options`.
    """
    changed = changed_options(_default_options(shared), dict(changes), headers, expressions, custom)
    if changed.tenant is not None:
        changed = replace(changed, tenant=changed.tenant.with_forwarding(shared.value.forwarding))
    return without_proxies(changed) if shared.value.proxies is None else changed


def _annotated_options(draft: Draft, defaults: EndpointDefaults) -> Options:
    """Return the defaults with all changes of the comment."""
    return _changed_options(
        Same(defaults),
        frozenset(draft.changes.items()),
        tuple(draft.headers),
        tuple(draft.expressions.items()),
        tuple(draft.custom.items()),
    )


def _draft(routine: Routine, defaults: EndpointDefaults) -> Draft:
    """Return the draft of an endpoint before its comment is read."""
    source = routine.source
    method = (defaults.service.method or default_method(routine)) if source is None else source.method
    reads = defaults.service.transport or (Transport.QUERY if method == "GET" else Transport.BODY)
    return Draft(
        name=routine.identity,
        method=method,
        of_extension=routine.of_extension,
        changes={"transport": reads if source is None else source.transport},
        tags=_TAGS[routine.kind, routine.volatility] if source is None else source.tags,
        parameters=_names(Same(routine.parameters)),
        claimed=frozenset() if source is None else source.claimed,
        methods=frozenset() if source is None else source.methods,
        writes=source is not None and source.writes,
    )


@lru_cache(maxsize=REMEMBERED)
def _names(parameters: Same[tuple[Parameter, ...]]) -> frozenset[str]:
    """Return the database names of parameters; `$n` for the n-th one if it has none."""
    return frozenset(parameter.name or f"${number}" for number, parameter in enumerate(parameters.value, 1))


def _with_login_or_logout(options: Options, path: str, defaults: EndpointDefaults) -> Options:
    """Return the options with `login` or `logout` turned on if the comment or the path says so. Values of such an
    endpoint are hidden in logs (`sensitive`) if the configuration hides those of sign-ins."""
    login = options.login or _is_path(path, defaults.login.login_path)
    logout = options.logout or _is_path(path, defaults.login.logout_path)
    if not login and not logout:
        return options
    return replace(
        options,
        login=login,
        logout=logout,
        sensitive=options.sensitive or defaults.login.obfuscate_auth_parameter_log_values,
    )


def _signing_routine(routine: Routine, draft: Draft) -> Routine:
    """Return the routine of a login or logout. If it is a file with several statements, only the first one is left, and
    a diagnostic is added to the draft (sql-files-31)."""
    source = routine.source
    if not isinstance(source, FileSource) or not source.several:
        return routine
    message = "the file signs in or out, so only its first statement is run"
    draft.diagnostics.append(Diagnostic(draft.name, None, message))
    return replace(routine, source=source.first_alone())


def _is_path(path: str, configured: str | None) -> bool:
    """Return whether a path equals the configured one, in any case. configured: None: no path is configured, so that
    the result is False."""
    return configured is not None and path.lower() == configured.lower()


def _endpoint(routine: Routine, catalog: Catalog, defaults: EndpointDefaults, draft: Draft) -> Endpoint:
    """Return the endpoint of a draft whose comment has been read. Adds diagnostics to the draft."""
    camel = defaults.service.camel_case_names
    naming = Naming(defaults.service.routines.parameter_separator or "_", camel)
    path = draft.path or _default_path(routine, defaults)
    annotated_options = _annotated_options(draft, defaults)
    options = _with_login_or_logout(annotated_options, path, defaults)
    if defaults.service.not_found_without_row and options.single and "null_text" not in draft.changes:
        options = replace(options, null_text=NullText.NOT_FOUND)
    if draft.changes.get("null_text") is NullText.EMPTY_STRING:
        options = replace(options, empty_without_row=True)
    if options.idempotency is not None and options.idempotency.seconds is None:
        idempotency = replace(options.idempotency, seconds=defaults.service.idempotency_seconds)
        options = replace(options, idempotency=idempotency)
    if options.login or options.logout:
        routine = _signing_routine(routine, draft)
    declared = expand(routine, catalog.types, naming)
    parameters, change_diagnostics = change_parameters(
        declared, draft.parameter_changes, routine, catalog.types, naming
    )
    draft.diagnostics += (*change_diagnostics, *check_pseudo_types(parameters, routine, catalog.types))
    parameters, invalid = without_invalid_defaults(parameters, defaults.service.timestamps_utc)
    draft.diagnostics += (_invalid_default(draft, parameter, error) for parameter, error in invalid)
    variables = dict(defaults.variables)
    options = _with_variables(options, parameters, variables)
    commits = isinstance(routine.source, FileSource) and routine.may_commit
    upload = UploadEndpoint(options, draft.method, parameters, defaults.uploads, draft.used, commits=commits)
    draft.diagnostics += upload.diagnostics_of(draft.name, draft.used)
    options = upload.options
    # Raw text has no notation for nested values (rendering-38).
    nested = options.nested and not options.raw
    whole = _shape(routine, catalog, defaults, nested=nested, single=options.single)
    draft.diagnostics += response_set_diagnostics(routine, options)
    shape = VOID if options.void else without_response_columns(whole, routine, options)
    as_table = options.table_format is not None and shape.path is ResultPath.ROWS
    # Composites in results of a file are not expanded, because the SQL of a file is not changed.
    whole_in_tables = isinstance(routine.source, FileSource)
    flat = _shape(routine, catalog, defaults, nested=whole_in_tables, single=options.single) if as_table else None
    endpoint = Endpoint(
        routine=routine,
        method=upload.method,
        path=path,
        parameters=claim_segments(parameters, path_segments(path)),
        shape=shape,
        options=options if options is annotated_options else _share_options(options),
        access=access_of(
            options,
            basic_everywhere=defaults.basic_everywhere,
            anonymous_database_role=defaults.anonymous_database_role,
        ),
        annotations=tuple(draft.applied),
        prose=tuple(draft.prose),
        table_shape=flat,
        catalogue_connection=defaults.connection,
        outgoing=outgoing_requests(
            routine,
            parameters,
            options,
            catalog.types,
            type_options=defaults.http_types,
            proxy_options=defaults.proxies,
            variables=variables,
        ),
    )
    if options.idempotency is not None and idempotency_obstacle(endpoint) is not None:
        endpoint = replace(endpoint, options=_share_options(replace(options, idempotency=None)))
        options = endpoint.options
    if endpoint.options.job is not None and job_obstacle(endpoint) is not None:
        endpoint = replace(endpoint, options=_share_options(replace(endpoint.options, job=None)))
    anonymous_role = defaults.anonymous_database_role
    if options.schedule is not None and schedule_obstacle(endpoint, anonymous_database_role=anonymous_role) is not None:
        endpoint = replace(endpoint, options=_share_options(replace(endpoint.options, schedule=None)))
    if endpoint.options.publishing is not None and publishing_obstacle(endpoint) is not None:
        endpoint = replace(endpoint, options=_share_options(replace(endpoint.options, publishing=None)))
    if endpoint.options.publishing is not None and endpoint.table_shape is not None:
        endpoint = replace(endpoint, table_shape=None)
    endpoint = with_version_parameter(with_source(endpoint, catalog.types))
    return endpoint if options.queryable is None else _queryable(endpoint, options.queryable, defaults)


def _invalid_default(draft: Draft, parameter: EndpointParameter, error: InvalidValueError) -> Diagnostic:
    """Return the diagnostic for a default of the comment that is no value of its parameter. error: what is wrong."""
    names = {parameter.db_name.lower(), parameter.api_name.lower(), parameter.field.lower()}
    lines = (
        change.line
        for change in draft.parameter_changes
        if change.defaulted and (change.name or change.parameter).lower() in names
    )
    message = f"the default of {parameter.db_name} ({type_word(parameter.type_text)}) is not used: {error}"
    return Diagnostic(draft.name, next(lines, None), message)


def _queryable(endpoint: Endpoint, queryable: Queryable, defaults: EndpointDefaults) -> Endpoint:
    """Return the endpoint with the configured page limit if its comment sets none. If `queryable` has no ability, or
    the result cannot be queried, return the endpoint without `queryable`.

    If requests may filter a table, the filters replace its parameters, except those of the path.
    """
    if not queryable.enabled or obstacle(endpoint) is not None:
        return replace(endpoint, options=_share_options(replace(endpoint.options, queryable=None)))
    queryable = replace(queryable, most=queryable.most or defaults.service.queryable_rows)
    parameters = endpoint.parameters
    if queryable.filter and isinstance(endpoint.routine.source, TableOperation):
        parameters = tuple(parameter for parameter in parameters if parameter.path)
    return replace(
        endpoint, parameters=parameters, options=_share_options(replace(endpoint.options, queryable=queryable))
    )


def _with_variables(
    options: Options, parameters: tuple[EndpointParameter, ...], variables: Mapping[str, str | None]
) -> Options:
    """Return the options with variables of the environment in place of their placeholders.

    This concerns the texts in which parameters may be placeholders too: headers, custom parameters, content type, table
    format, names of spreadsheets and worksheets, and settings of uploads. variables: names in lower case → value.
    """
    if not variables:
        return options
    names = placeholder_names(parameters)

    def pairs(some: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        return tuple((name, with_variables(value, names, variables)) for name, value in some)

    def text(value: str | None) -> str | None:
        return None if value is None else with_variables(value, names, variables)

    upload = options.upload
    return replace(
        options,
        headers=pairs(options.headers),
        custom=pairs(options.custom),
        content_type=text(options.content_type),
        table_format=text(options.table_format),
        excel_file_name=text(options.excel_file_name),
        excel_sheet=text(options.excel_sheet),
        upload=None if upload is None else replace(upload, settings=pairs(upload.settings)),
    )


def _shape(
    routine: Routine, catalog: Catalog, defaults: EndpointDefaults, *, nested: bool, single: bool
) -> ResultShape:
    """Return the shape of a result. nested: composite columns are not expanded. single: only its first row is sent."""
    camel = defaults.service.camel_case_names
    if isinstance(routine.source, FileSource):
        return file_shape(routine.source, catalog.types, camel, nested=nested, single=single)
    return result_shape(
        routine, catalog.types, camel, nested=nested, resolve_nested=defaults.service.routines.resolve_nested
    )


def _default_path(routine: Routine, defaults: EndpointDefaults) -> str:
    """Return the path of an endpoint whose comment sets none."""
    if routine.source is not None:
        return routine.source.path
    return default_path(
        routine.schema, routine.name, defaults.service.url_path_prefix, defaults.service.kebab_case_urls
    )
