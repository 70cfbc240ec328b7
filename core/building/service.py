"""Keys of the service: which routines become endpoints, their names, and the form of requests and responses."""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.before_routine import tenant_from
from rowcall.core.endpoint.capabilities import CommentsMode, NoticeLevel, Tenant, comments_mode_of
from rowcall.core.endpoint.endpoint import HeadersMode, NullText, QueryNull
from rowcall.core.errors.refusals import ABSENT_STATUSES
from rowcall.core.sections.declaration import (
    choice,
    flag,
    integer,
    interval,
    lenient,
    names,
    objects,
    part,
    section,
    text,
    text_map,
    texts,
    texts_or_sections,
)
from rowcall.core.sections.keys import JsonValue
from rowcall.core.sections.values import or_empty


def _transport(word: str | None) -> Transport | None:
    """Return the place of parameters for a word of the configuration; None for None."""
    return None if word is None else (Transport.QUERY if word == "QueryString" else Transport.BODY)


def _absent_status(status: int) -> int:
    """Return the status. Raises ValueError if it is none of `ABSENT_STATUSES`."""
    if status not in ABSENT_STATUSES:
        raise ValueError(f"{status} is none of {', '.join(map(str, ABSENT_STATUSES))}")
    return status


def _tenant(text: str | None) -> Tenant | None:
    """Return the tenant that a text describes; None for None. Raises ValueError."""
    return None if text is None else tenant_from(text)


@section("Service:BeforeRoutineCommands:[]:Parameters:[]")
class BeforeParameter:
    source = lenient(choice("Source", "Claim RequestHeader IpAddress", None, "Source of a value."))
    name = text("Name", None, "Name of the claim or header.")


@section("Service:BeforeRoutineCommands:[]")
class BeforeRoutineCommand:
    enabled = flag("Enabled", False, "Run the command of a section. A text always runs.")
    sql = text("Sql", None, "The command, with parameters $1, $2 and so on.")
    parameters = objects("Parameters", (), "Values of the parameters.", elements=BeforeParameter)


@section("Service:RoutineOptions", "Functions and procedures.")
class RoutineOptions:
    enabled: bool = flag("Enabled", True, "Serve functions and procedures.")
    parameter_separator: str | None = text(
        "CustomTypeParameterSeparator",
        None,
        "Text between the name of a composite parameter and its attribute. null: an underscore.",
    )
    include_languages: tuple[str, ...] | None = texts(
        "IncludeLanguages", None, "Serve only routines in these languages; null: all."
    )
    exclude_languages: tuple[str, ...] | None = texts(
        "ExcludeLanguages", None, "Leave out these languages; null: c and internal."
    )
    nested: bool = flag(
        "NestedJsonForCompositeTypes",
        False,
        "Keep a composite column as one nested object instead of spreading its attributes.",
    )
    resolve_nested: bool = flag("ResolveNestedCompositeTypes", True, "Turn composites at any depth into objects.")
    sources: tuple[str, ...] | None = texts(
        "ReadMetadataFromConnections", None, "Connections from which routines are read. null: the main connection."
    )
    verify_routed: str = choice(
        "VerifyRoutedEndpoints",
        "None Warn Fail",
        "None",
        "Check at the start that routines exist on the connection on which they run.",
    )


@section("Service")
class ServiceConnections:
    """The connections that routines use. They are read separately from other keys of the section, so that they can be
    read also if another key has an invalid value."""

    connection_name: str | None = text(
        "ConnectionName",
        None,
        "Name of the main connection. null: `Default`, or the first one if there is no `Default`.",
    )
    use_multiple_connections: bool = flag(
        "UseMultipleConnections", False, "Let endpoints name any of the ConnectionStrings."
    )


@section("Service", "Which routines are served, and how. `NpgsqlRest` is accepted as a second name of this section.")
class ServiceOptions:
    connections = part(ServiceConnections)
    command_timeout: float | None = interval(
        "CommandTimeout",
        None,
        "Timeout of a routine, after which the response is 504. null: that of the connection string, or 30 "
        "seconds. 0: no limit.",
    )
    schema_similar_to: str | None = text(
        "SchemaSimilarTo", None, "Serve only schemas whose name is SIMILAR TO this pattern."
    )
    schema_not_similar_to: str | None = text(
        "SchemaNotSimilarTo", None, "Leave out schemas whose name is SIMILAR TO this pattern."
    )
    include_schemas: tuple[str, ...] | None = texts(
        "IncludeSchemas", None, "Serve only these schemas, with any owner of their objects."
    )
    trusted_owners: tuple[str, ...] = texts(
        "TrustedOwners",
        (),
        "Roles whose objects are served in schemas that IncludeSchemas does not name, besides superusers, the "
        "owner of the database, the role of the service and the roles of which it is a member. `*`: every role.",
    )
    exclude_schemas: tuple[str, ...] | None = texts("ExcludeSchemas", None, "Leave out these schemas.")
    name_similar_to: str | None = text(
        "NameSimilarTo", None, "Serve only routines whose name is SIMILAR TO this pattern."
    )
    name_not_similar_to: str | None = text(
        "NameNotSimilarTo", None, "Leave out routines whose name is SIMILAR TO this pattern."
    )
    include_names: tuple[str, ...] | None = texts("IncludeNames", None, "Serve only these routines.")
    exclude_names: tuple[str, ...] | None = texts("ExcludeNames", None, "Leave out these routines.")
    comments_mode: CommentsMode = choice(
        "CommentsMode",
        "OnlyAnnotated OnlyWithHttpTag ParseAll Ignore",
        "OnlyAnnotated",
        "Which routines become endpoints: those with an HTTP annotation, all with their annotations, or all "
        "without reading comments. OnlyWithHttpTag is a second name of OnlyAnnotated.",
        convert=comments_mode_of,
    )
    url_path_prefix: str = text(
        "UrlPathPrefix",
        "/api",
        "Prefix of generated paths. null or an empty text: none.",
        nullable=True,
        convert=or_empty,
    )
    kebab_case_urls: bool = flag(
        "KebabCaseUrls", True, "Write generated paths as `list-orders` rather than `list_orders`."
    )
    safe_numbers: bool = choice(
        "JsonNumbers",
        "Exact Safe",
        "Exact",
        "Exact: numbers of PostgreSQL are JSON numbers with all digits. Safe: bigint and numeric are strings, "
        "for clients that read numbers as IEEE doubles; generated clients and documents have these types.",
        convert=lambda word: word == "Safe",
    )
    exact_types: bool = flag(
        "ExactTypes",
        False,
        "Include in clients, OpenAPI, tools and contract what the catalogue proves: values that are never NULL, "
        "values of enums and of checks such as `kind in ('a', 'b')`, comments on columns.",
    )
    camel_case_names: bool = flag(
        "CamelCaseNames", True, "Call parameters and columns `orderId` rather than `order_id`."
    )
    requires_authorization: bool = flag(
        "RequiresAuthorization",
        True,
        "Let only signed-in users call endpoints, unless an endpoint is annotated `allow_anonymous`.",
    )
    hide_paths: bool = flag(
        "HidePaths",
        False,
        "Answer 401 to anonymous callers also for paths and methods that do not exist, so that they cannot find "
        "out which do.",
    )
    log_notices: bool = flag("LogConnectionNoticeEvents", True, "Log what routines RAISE below the level ERROR.")
    notice_mode: str = choice(
        "LogConnectionNoticeEventsMode",
        "MessageOnly FirstStackFrameAndMessage FullStackAndMessage",
        "FirstStackFrameAndMessage",
        "How much of a notice's context is logged.",
    )
    log_commands: bool = flag("LogCommands", False, "Log each command at level Debug.")
    log_command_parameters: bool = flag("LogCommandParameters", False, "Log the values of parameters with the command.")
    log_endpoints: bool = flag("DebugLogEndpointCreateEvents", True, "Log each created endpoint at level Debug.")
    log_annotations: bool = flag(
        "DebugLogCommentAnnotationEvents", True, "Log the annotations of each endpoint at level Debug."
    )
    method: str | None = choice(
        "DefaultHttpMethod",
        "GET PUT POST PATCH DELETE QUERY",
        None,
        "Method of endpoints that name none. null: chosen by volatility and name.",
    )
    transport: Transport | None = choice(
        "DefaultRequestParamType",
        "QueryString BodyJson",
        None,
        "Place of parameters of endpoints that do not set it. null: chosen by method.",
        convert=_transport,
    )
    query_null: QueryNull = choice(
        "QueryStringNullHandling",
        QueryNull,
        "Ignore",
        "Value of the query string that means NULL: none, the empty one, or the word null.",
    )
    absent_status: int = integer(
        "ParameterMismatchStatusCode",
        404,
        "Status if a required parameter is missing or a name is unknown: 404, 400 or 422.",
        maximum=422,
        convert=_absent_status,
    )
    ignores_unknown_parameters: bool = choice(
        "UnknownQueryParameters",
        "Refuse Ignore",
        "Refuse",
        "Treatment of unknown names in the query string. Ignore permits links with `utm_source`.",
        convert=lambda word: word == "Ignore",
    )
    lenient: bool = choice(
        "UnusableValues",
        "Refuse Established",
        "Refuse",
        "Treatment of values that are invalid for the type of their parameter. Refuse: 400, with every fault in "
        "`errors`. Established, as in NpgsqlRest: in the query string the default is used, or the response is "
        "404; in a JSON body it is 500; the values of a repeated key are joined.",
        convert=lambda word: word == "Established",
    )
    null_text: NullText = choice(
        "TextResponseNullHandling",
        "EmptyString NullLiteral NoContent",
        "EmptyString",
        "Response to a NULL as text, and of `single` without a row: an empty body, the word NULL, or status 204.",
        convert=NullText,
    )
    not_found_without_row: bool = flag(
        "NotFoundWithoutRow",
        False,
        "Respond with 404 if `single` returns no row, unless the comment sets something else (`null_handling`).",
    )
    empty_without_row: bool = flag(
        "EmptyBodyWithoutRow",
        False,
        "Respond with 200 and an empty body, instead of the JSON text `null`, if `single` returns no row or a "
        "JSON value is NULL.",
    )
    tenant: Tenant | None = text(
        "Tenant",
        None,
        "Tenant of the requests of all endpoints, as the annotation `tenant` has it: `from claim org_id as "
        "search_path tenant_{0}`. null: none.",
        convert=_tenant,
    )
    idempotency_seconds: float = interval(
        "IdempotencyLifetime",
        "24 hours",
        "Time for which the result of a request with an Idempotency-Key is stored, unless `idempotent` sets it.",
    )
    queryable_rows: int = integer(
        "QueryableMaxRows",
        1000,
        "Most rows of a page of an endpoint with `queryable page`, unless its comment sets `max_rows`.",
        minimum=1,
    )
    neutralize_formulas: bool = flag(
        "NeutralizeFormulas",
        False,
        "Prefix texts in raw rows with a separator (CSV) with an apostrophe if a spreadsheet would read them as "
        "formulas: those that begin with =, +, -, @, a tab or a line end.",
    )
    request_headers: HeadersMode = choice(
        "RequestHeadersMode",
        HeadersMode,
        "Parameter",
        "How the request's headers reach routines, as a JSON object: in the setting or in the parameter named "
        "below, or not at all.",
    )
    headers_key: str = text(
        "RequestHeadersContextKey",
        "request.headers",
        "Setting that holds the request's headers in the mode Context; a routine reads it with `current_setting`.",
    )
    headers_parameter: str | None = text(
        "RequestHeadersParameterName",
        "_headers",
        "Parameter with a default that receives the request's headers as a JSON object; a value in the request "
        "is ignored.",
        empty=True,
    )
    headers_from_client: bool = flag(
        "RequestHeadersFromClient", False, "Use the value that the request sets for that parameter."
    )
    variables: Mapping[str, str | None] = names(
        "AvailableEnvVars",
        "Environment variables that values of annotations may use as {NAME}. An unset one is empty, or has the "
        "text that is configured with its name.",
    )
    wrap_in_transaction: bool = flag(
        "WrapInTransaction",
        False,
        "Run all statements of a request in one transaction, with transaction-local settings.",
    )
    before: JsonValue = texts_or_sections(
        "BeforeRoutineCommands",
        "Commands before each routine, once its session variables are set: texts, or sections.",
        elements=BeforeRoutineCommand,
    )
    execution_header: str = text(
        "ExecutionIdHeaderName",
        "X-NpgsqlRest-ID",
        "Request header that ties a call to an event stream. The default is the one existing clients send.",
    )
    event_level: NoticeLevel = choice(
        "DefaultServerSentEventsEventNoticeLevel",
        NoticeLevel,
        "INFO",
        "Severity (exactly) of the notices that become events, for endpoints that name none.",
    )
    event_headers: Mapping[str, str | None] = text_map(
        "ServerSentEventsResponseHeaders",
        {},
        "Headers of event streams, in addition to the usual ones or instead of them.",
    )
    warn_unbound: bool = flag(
        "WarnUnboundServerSentEventsNotices",
        True,
        "If any endpoint uses events: warn once about an endpoint that raises a notice of the default severity "
        "without publishing it.",
    )
    added_headers: Mapping[str, str | None] = text_map(
        "CustomRequestHeaders",
        {},
        "Headers that routines see in addition to those of the request; they replace headers of the client.",
    )
    instance_header: str | None = text(
        "InstanceIdRequestHeaderName",
        None,
        "Additional header that routines see, with an id that is new for each start and the same for all workers.",
    )
    timestamps_utc: bool = flag(
        "JsonTimestampsAreUtc", True, "Read timestamps without an offset in a JSON body as UTC."
    )
    strict_json_types: bool = flag(
        "StrictJsonTypes",
        False,
        "Accept in JSON bodies only the types that OpenAPI documents: strings for texts, numbers for numbers "
        "(`1.0` and `1e3` are integers); others get 400. With `ExactTypes`, null is refused if the catalogue "
        "proves that a value is never NULL. false: values of other types are converted.",
    )
    routines: RoutineOptions = part(RoutineOptions)
