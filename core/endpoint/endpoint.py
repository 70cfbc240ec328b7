"""An endpoint: a routine with its effective options, frozen. `service.handler.step_order` compiles it into steps.

The fields of `Options` are the effects of annotations (`core.annotations`) over the defaults of the configuration.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from rowcall.core.catalogue.catalog import Column, Routine
from rowcall.core.catalogue.session_effects import UNKNOWN, SessionEffects
from rowcall.core.catalogue.source import ResultQuery, Transport
from rowcall.core.catalogue.value_constraints import NO_CONSTRAINTS, ValueConstraints
from rowcall.core.data.record import Record
from rowcall.core.endpoint.access import Access
from rowcall.core.endpoint.capabilities import (
    BasicAuth,
    Caching,
    ClientCode,
    ConsumedToken,
    Document,
    Download,
    Encryption,
    Events,
    Forwarding,
    Idempotency,
    Impersonation,
    IssuedToken,
    Job,
    Mail,
    Publishing,
    Queryable,
    Reading,
    Schedule,
    Tenant,
    TimeZone,
    Tool,
    Upload,
    Webhook,
)
from rowcall.core.errors.refusals import Refusals
from rowcall.core.outgoing.outgoing import NOTHING_SENT, Outgoing


class NullText(enum.Enum):
    """`TextResponseNullHandling`: the response for a NULL text result (rendering-15)."""

    EMPTY_STRING = "EmptyString"
    NULL_LITERAL = "NullLiteral"
    NO_CONTENT = "NoContent"
    NOT_FOUND = "NotFound"


class QueryNull(enum.Enum):
    """`QueryStringNullHandling`: texts of a query that mean NULL (binding-17)."""

    IGNORE = "Ignore"
    EMPTY_STRING = "EmptyString"
    NULL_LITERAL = "NullLiteral"


class HeadersMode(enum.Enum):
    """`RequestHeadersMode`: how a routine receives the request's headers (binding-22)."""

    IGNORE = "Ignore"
    CONTEXT = "Context"
    """As a setting that the routine reads with `current_setting`."""
    PARAMETER = "Parameter"
    """In a parameter for headers."""


class ResultPath(enum.Enum):
    """How a result is rendered. Decided from the catalogue, never from values (rendering-4)."""

    VOID = "void"
    SCALAR = "scalar"
    ROWS = "rows"
    OBJECT = "object"
    """Several statements: one object with a key for each (sql-files-23)."""


class ValueKind(enum.Enum):
    """How the text of a request value is checked before it is sent (binding-7 to binding-12)."""

    SMALLINT = "smallint"
    INTEGER = "integer"
    BIGINT = "bigint"
    FLOAT = "float"
    NUMERIC = "numeric"
    BOOLEAN = "boolean"
    UUID = "uuid"
    TIMESTAMPTZ = "timestamptz"
    TIMESTAMP = "timestamp"
    DATE = "date"
    TIME = "time"
    TIMETZ = "timetz"
    TEXT = "text"
    """text, varchar, char, name, xml, jsonpath: sent verbatim; an empty value is an empty string."""
    JSON = "json"
    """json, jsonb: like TEXT, but a JSON value in a body is sent as its own JSON text."""
    OTHER = "other"
    """All other types (enums, domains, ranges, inet, bytea …): sent verbatim, cast by the server; empty is NULL."""
    COMPOSITE = "composite"
    """Like OTHER, but the value may also be an object with the members of `EndpointParameter.fields`."""


@dataclass(frozen=True, slots=True)
class Field(Record):
    """An attribute of a composite whose value is sent as a whole, not as a parameter for each attribute."""

    name: str
    """Name in the database."""
    api_name: str
    """Name in responses: `unitCode`."""
    kind: ValueKind
    """Kind of the element, if `array`."""
    array: bool
    type_text: str
    fields: tuple[Field, ...] = ()
    """Fields of a composite, or of the elements of an array of composites."""
    delimiter: str = ","
    """Between the elements of an array: `;` for `box`."""


@dataclass(frozen=True, slots=True)
class EndpointParameter(Record):
    """One request value. A parameter of a composite type of a function or procedure gives an `EndpointParameter` for
    each attribute. Composites of other sources (SQL files, tables), domains over composites and arrays are one value,
    with `fields`."""

    db_name: str
    """Name in the catalogue (`_user_id`), `$2` for an unnamed parameter."""
    api_name: str
    """Name in requests (`userId`), `$2` for an unnamed parameter."""
    kind: ValueKind
    """Kind of the element, if `array`."""
    array: bool
    cast: str
    """Type text for `$n::cast`."""
    has_default: bool
    """The routine has a server-side default: if the value is absent, the argument is omitted from the call."""
    position: int
    """Index of the routine parameter. The attributes of a composite share it."""
    attribute: str | None = None
    """Attribute name if this is a field of a composite parameter, else None. Such a field is optional: absent is NULL,
    regardless of `has_default`."""
    composite: str | None = None
    """Cast of the composite to which this field belongs: `row($1::integer, null)::"shop"."box"`."""
    variadic: bool = False
    path: bool = False
    """Bound from a `{segment}` of the path."""
    segment: str | None = None
    """Name of that segment in the template: the key in `core.http.router.Match.values`."""
    field: str = ""
    """Field of a composite in its database spelling, `_box_width`; otherwise equal to `db_name`."""
    defaulted: bool = False
    """The comment has a default, which is bound for a missing value: `default`, None for NULL."""
    default: str | None = None
    reads_as: str | None = None
    """Type that the comment sets for reading values; None: that of `cast`."""
    ignored: bool = False
    """The service fills the parameter; values in requests, and their number, are not checked."""

    fields: tuple[Field, ...] = ()
    """Attributes of a composite that is a single value, or an element of an array."""
    delimiter: str = ","
    """Between the elements of an array: `;` for `box`."""
    group: str | None = None
    """Name in requests of the composite parameter to which this field belongs. A JSON object of that name supplies all
    fields."""
    member: str | None = None
    """Name of this field in that object, besides `attribute`."""

    @property
    def type_text(self) -> str:
        """The type as which values are read."""
        return self.reads_as or self.cast

    exact: bool = False
    """An invalid value is refused although the parameter is optional, because a filter without it would match more
    rows."""
    virtual: bool = False
    """The parameter exists only for placeholders; the SQL does not use it. Virtual parameters follow all others."""
    textual: bool = False
    """Its type, or the base type of its domain, can hold any text."""
    constraints: ValueConstraints = NO_CONSTRAINTS
    """For descriptions only; the database checks values."""
    of_query: bool = False
    """The parameter is a value of a query over the result (`queryable`): it is always in the call, and no comment can
    name it."""


@dataclass(frozen=True, slots=True)
class ResultColumn(Record):
    """One column of the SELECT around the call."""

    expression: str
    """SQL, quoted: `"id"`, `("req")."id"`."""
    key: bytes
    """JSON key, converted (`core.text.naming`) and UTF-8 encoded but not yet JSON-escaped."""
    column: Column
    group: Column | None = None
    """The composite column to which this field belongs. Adjacent fields with the same group form one object when
    nested."""
    position: int | None = None
    """Position of the composite column in the result, if its SQL cannot be changed (files): fields are then extracted
    from the text of the composite. None: this field itself is selected."""

    @property
    def names(self) -> frozenset[str]:
        """Return the case-folded names that a comment may use: of the column, in responses, and of its composite."""
        names = {self.column.name.casefold(), self.key.decode().casefold()}
        return frozenset(names if self.group is None else {*names, self.group.name.casefold()})


@dataclass(frozen=True, slots=True)
class ResultShape(Record):
    """How the result of a routine is selected and rendered (rendering-9 to rendering-13)."""

    path: ResultPath
    is_set: bool
    """For `ROWS`: rows are elements of an array. False: there is exactly one row, without brackets."""
    named: bool
    """For `ROWS`: a row is an object `{key: value}`. False: a bare value."""
    columns: tuple[ResultColumn, ...] = ()
    """Empty if the call is a plain `select schema.fn(…)`."""
    content_type: str = "application/json"
    blank_is_null: bool = False
    """Composite columns are nested: the values of their fields are rendered like columns, and a composite is null if
    all its fields are NULL (rendering-19)."""
    parts: tuple[ResultPart, ...] = ()
    """For `OBJECT`: a part for each statement."""
    first_only: bool = False
    """Only the first column of the result is used."""
    cast: str = ""
    """Cast after a plain `select schema.fn(…)`: `::text[]` if composites are rendered as the text of PostgreSQL."""
    constraints: ValueConstraints = NO_CONSTRAINTS
    """Constraints of the value of a result without columns."""
    type_oids: tuple[int, ...] | None = None
    """Type oids of the columns of the result, 0 for any type (`core.endpoint.result_types`). None: unknown."""


@dataclass(frozen=True, slots=True)
class ResultPart(Record):
    """The result of one of several statements in the response."""

    key: bytes | None
    """None: the result is not part of the response."""
    shape: ResultShape
    single: bool


@dataclass(frozen=True, slots=True)
class Options(Record):
    """Effects of annotations, over the defaults of the configuration, which the endpoint builder passes to the
    constructor.

    Without arguments, authorization is required, pages of the configured origins may call the endpoint (`cors`), and
    all capabilities are off.
    """

    requires_authorization: bool = True
    roles: tuple[str, ...] = ()
    """Roles of which a user needs one. Also in force if a later `allow_anonymous` cleared `requires_authorization`."""
    fresh: float | None = None
    """Longest time since the sign-in in seconds. Also in force if `requires_authorization` is False."""
    second_factor: bool | None = None
    """True: callers have to have proved a second factor. False: a login does not ask for it. None: a login asks users
    who have one."""
    transport: Transport = Transport.QUERY
    timeout: float | None = None
    """Seconds for a command of the database; None: the default of the configuration."""
    deadline: float | None = None
    """Seconds for the whole request; 0: no limit. None: the default of the configuration."""
    body_parameter: str | None = None
    """Parameter (database, API or field name, in any case) that receives the whole body as text."""
    query_null: QueryNull = QueryNull.IGNORE
    absent_status: int = 404
    """`absent_status`, `ignores_unknown_parameters` and `lenient` are the fields of `Refusals`."""
    ignores_unknown_parameters: bool = False
    lenient: bool = False
    request_headers: HeadersMode = HeadersMode.IGNORE
    headers_parameter: str | None = None
    """Database or API name of the parameter that receives the request's headers in the mode `PARAMETER`."""
    null_text: NullText = NullText.EMPTY_STRING
    success_status: int | None = None
    """From 200 to 299. None: 204 for responses without a body, else 200."""
    empty_without_row: bool = False
    """`single` without a row, or a NULL that is JSON, is an empty body instead of the JSON text `null`."""
    response_settings: bool = False
    """Status and headers are set by SQL with settings, although the text of the routine does not name the settings."""
    status_column: str | None = None
    """Column of the result that is the status of the response, and not part of its body."""
    headers_column: str | None = None
    """Column of the result with headers of the response, which is not part of its body."""
    job: Job | None = None
    schedule: Schedule | None = None
    webhook: Webhook | None = None
    publishing: Publishing | None = None
    tenant: Tenant | None = None
    time_zone: TimeZone | None = None
    patch_parameter: str | None = None
    """Database name of the parameter that receives, as JSON, the members of a body that are no parameters (`is merge
    patch`)."""
    version_column: str | None = None
    """Column with the version of a row, for `ETag` and `If-Match`."""
    idempotency: Idempotency | None = None
    """Requests with an `Idempotency-Key` take effect once. None: the header has no effect."""
    queryable: Queryable | None = None
    """How requests may select, filter, order and page the result. None: not at all."""
    single: bool = False
    """Only the first row of a set is sent, without brackets."""
    void: bool = False
    """The result is dropped."""
    raw: bool = False
    """Text as PostgreSQL prints it, instead of JSON."""
    separator: str | None = None
    """Text between the values of a raw row. None: no text, and values are not quoted; with any text, also an empty one,
    they are quoted."""
    new_line: str | None = None
    """Text between raw rows."""
    json_lines: bool = False
    """Each row of the result is a line of JSON, instead of an element of an array."""
    csv: bool = False
    """Raw rows are CSV (RFC 4180): everything but numbers and booleans is quoted, and NULL is not."""
    column_names: bool = False
    """A raw result begins with the names of its columns."""
    neutralize_formulas: bool = False
    """Change quoted values of raw rows so that spreadsheets do not read them as formulas."""
    headers: tuple[tuple[str, str], ...] = ()
    """Response headers, in order, with repeated names."""
    content_type: str | None = None
    """Content type of the response, which may contain placeholders. None: that of the result."""
    audit: bool | None = None
    """Record calls in the audit trail; None: as the configuration says."""
    cors: bool = True
    """Pages of the origins that the configuration allows may call the endpoint."""
    buffer_rows: int | None = None
    """Rows that are sent together: 0: each row at once; 1: the whole result. None: as the client takes them."""
    internal: bool = False
    """The endpoint has no route for clients; other endpoints can call it."""
    nested: bool = False
    """Composite columns are nested objects instead of being expanded in place."""
    expressions: tuple[tuple[str, str], ...] = ()
    """Resolved parameters: database name → SQL expression, verbatim, in comment order (execution-17)."""
    custom: tuple[tuple[str, str], ...] = ()
    """Custom parameters (`key = value`) without a matching annotation, without the `@`; the last of equal keys."""
    table_format: str | None = None
    """Key of a table format, or text with a `{parameter}` that is the key in each request (formats-1)."""
    excel_file_name: str | None = None
    """File name of a spreadsheet, which may contain placeholders, as may `excel_sheet`."""
    excel_sheet: str | None = None
    validations: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Parameter and rules of each `validate`, as written."""
    validation_messages: tuple[tuple[str, str, str], ...] = ()
    """Parameter, rule, and the message to the caller instead of the rule's own message."""
    sensitive: bool = False
    """Values of requests are neither in logs nor in errors."""
    connection: str | None = None
    """Name of the connection on which the endpoint runs, as written. None: the main connection."""
    reading: Reading | None = None
    """Whether the endpoint reads from replicas. None: as the configuration sets."""
    error_policy: str | None = None
    """Name of an error policy. None: the default policy."""
    retry_strategy: str | None = None
    """Name of a retry strategy. None: the default strategy."""
    exclusive_connection: bool = False
    """Calls always run on a dedicated connection."""
    allow_unfiltered: bool = False
    """On a table: a delete without column filters is allowed and removes all rows."""
    login: bool = False
    """The first row of the routine signs the caller in (sign-in-14). Access is not restricted."""
    logout: bool = False
    """The routine signs the caller out."""
    impersonation: Impersonation | None = None
    """Begin or end of an impersonation by the row of a login, or refusal of callers who impersonate.

    Begin: the row is that of another user, as whom the caller acts from then on. End: the row is that of the caller.
    """
    user_parameters: bool = False
    """Parameters named in the configuration are filled from claims (access-14)."""
    user_context: bool = False
    """Claims are written to session variables (access-17)."""
    role_from_claim: bool = False
    """The routine runs as the role of PostgreSQL that a claim names."""
    claims_in_commands: bool = False
    """Commands of the configuration before the routine get claims of the caller (`Service:BeforeRoutineCommands`)."""
    database_role: str | None = None
    """The role of PostgreSQL for which the steps of requests are compiled; None: they are for all roles."""
    hashes: tuple[tuple[str, str], ...] = ()
    """Parameter to fill → parameter whose value is hashed for it, as named in the comment (sign-in-26)."""
    password_rules: tuple[tuple[str, str], ...] = ()
    """Parameter, as named in the comment → whether it is checked as a new password: `on` or `off`."""
    caching: Caching | None = None
    """None, here and in the other fields with a record, if the comment does not use the capability."""
    entity_tag: bool = False
    """Responses to GET have an `ETag`."""
    invalidates: str | None = None
    """Method of the cached endpoint whose cached response this endpoint removes, instead of running the routine. None:
    it is not an invalidation endpoint."""
    rate_limiter: str | None = None
    """Name of a rate limiter policy, as written."""
    basic_auth: BasicAuth | None = None
    encryption: Encryption | None = None
    proxy: Forwarding | None = None
    proxy_out: Forwarding | None = None
    hedge: float | None = None
    """Seconds without a response after which the request of `proxy` is sent once more. None: never."""
    upload: Upload | None = None
    download: Download | None = None
    issued_token: IssuedToken | None = None
    consumed_token: ConsumedToken | None = None
    mail: Mail | None = None
    events: Events | None = None
    client_code: ClientCode | None = None
    """Settings of generated clients in TypeScript and JavaScript."""
    dart_client_code: ClientCode | None = None
    tool: Tool | None = None
    document: Document | None = None

    @property
    def open_login(self) -> bool:
        """Whether any caller may call this login: true for all logins except those that begin or end an
        impersonation."""
        return self.login and self.impersonation in (None, Impersonation.REFUSED)


@dataclass(frozen=True, slots=True)
class Endpoint(Record):
    """An endpoint: routine, route and effective options. It belongs to one schema snapshot and is never changed."""

    routine: Routine
    method: str
    path: str
    """Template as routed, lower-cased: `/api/orders/{id}`."""
    parameters: tuple[EndpointParameter, ...]
    shape: ResultShape
    options: Options = field(default_factory=Options)
    access: Access = field(default_factory=Access)
    """Who may call it. `options` alone do not answer this: they lack the configuration."""
    annotations: tuple[str, ...] = ()
    """Comment lines that took effect, as written."""
    prose: tuple[str, ...] = ()
    """Comment lines that neither are nor resemble annotations, in order. Documents and generated code publish only
    these."""
    table_shape: ResultShape | None = None
    """Shape for a table format: composites are always expanded. None without `table_format`, and for results without
    rows."""
    session: SessionEffects = UNKNOWN
    """Session effects of a run."""
    outgoing: Outgoing = NOTHING_SENT
    """Requests to other services."""
    version_index: int | None = None
    """Index of the parameter that `If-Match` fills (`Options.version_column`). None: the endpoint does not need it."""
    catalogue_connection: str | None = None
    """Name of the connection on which the routine was found, and in whose database its oid is valid, if routines are
    read from several. None: the main one, or the only one from which routines are read."""
    query: ResultQuery | None = None
    """The query of a request over the result (`queryable`). Its values are the last parameters."""

    @property
    def redacted(self) -> bool:
        """Whether URLs of requests must not be logged, because they may contain values that are secret, encrypted or
        hashed."""
        encryption = self.options.encryption
        return (
            self.options.sensitive
            or bool(self.options.hashes)
            or (encryption is not None and bool(encryption.all_parameters or encryption.parameters))
        )

    @property
    def passes_through(self) -> bool:
        """Whether the response is that of another service, so that the routine does not run (proxies-9)."""
        return self.options.proxy is not None and not self.outgoing.replies

    @property
    def cached_method(self) -> str:
        """Method of the requests whose responses are cached; for an invalidation endpoint, the method of the cached
        endpoint."""
        return self.options.invalidates or self.method

    @property
    def success_status(self) -> int:
        """Status of a successful response with the result of the routine, unless SQL sets one or the result is a NULL
        with a status of its own."""
        declared = self.options.success_status
        if declared is not None:
            return declared
        return 204 if self.shape.path is ResultPath.VOID else 200

    @property
    def may_lack_row(self) -> bool:
        """Whether a successful response may be `null` or empty because `single` found no row."""
        one_of_a_set = self.shape.path is ResultPath.ROWS and self.shape.is_set and self.options.single
        return one_of_a_set and self.options.null_text is not NullText.NOT_FOUND

    @property
    def skips_null_calls(self) -> bool:
        """Whether a NULL argument is answered with 204 and no body instead of a call, because the routine is STRICT. It
        is not if the response is not that of the routine: a sign-in, which fails without a row, a sign-out or an
        invalidation."""
        options = self.options
        responds = options.login or options.logout or options.invalidates is not None
        return self.routine.strict and bool(self.parameters) and not responds

    @property
    def null_is_json(self) -> bool:
        """Whether a NULL as the whole result, or no row for `single`, is the JSON text `null`. False: the body is
        empty.

        `null_text` takes precedence.
        """
        options = self.options
        if options.raw or options.empty_without_row or not self.shape.content_type.startswith("application/json"):
            return False
        return options.content_type is None or "json" in options.content_type.lower()

    @property
    def raw_body(self) -> EndpointParameter | None:
        """The parameter that `body_parameter_name` names, or None."""
        name = self.options.body_parameter
        if name is None:
            return None
        name = name.lower()
        for parameter in self.parameters:
            if name in (parameter.db_name.lower(), parameter.api_name.lower(), parameter.field.lower()):
                return parameter
        return None

    @property
    def patch_parameter(self) -> EndpointParameter | None:
        """The parameter of type JSON that gets the members of the body for which there is no other parameter (`is merge
        patch`). None: there is none, or the endpoint reads no members from the body."""
        name = self.options.patch_parameter
        if name is None or self.transport is not Transport.BODY or self.passes_through:
            return None
        parameter = next((item for item in self.parameters if item.db_name.lower() == name.lower()), None)
        return parameter if parameter is not None and parameter.kind is ValueKind.JSON else None

    @property
    def sets_response(self) -> bool:
        """Whether SQL may set status and headers of the response, by settings or by columns of the result. False for
        logins and logouts."""
        options = self.options
        by_comment = options.response_settings or self.response_set_by_columns
        return (by_comment or self.routine.sets_response) and not (options.login or options.logout)

    @property
    def response_set_by_columns(self) -> bool:
        """Whether columns of the result of a function are status or headers of the response. False if the result has no
        column of these names."""
        names = {name.lower() for name in (self.options.status_column, self.options.headers_column) if name is not None}
        columns = self.routine.columns if names and self.routine.source is None else ()
        return any(column.name.lower() in names for column in columns)

    @property
    def refusals(self) -> Refusals:
        """How requests with invalid values or unknown names are refused."""
        options = self.options
        return Refusals(options.absent_status, options.ignores_unknown_parameters, options.lenient)

    @property
    def transport(self) -> Transport:
        """Where the values of a request are. With a raw body, other values are in the query string (binding-2)."""
        return self.options.transport if self.raw_body is None else Transport.QUERY

    @property
    def recorded(self) -> bool:
        """Whether requests are recorded, so that a repetition has no further effect."""
        return self.options.idempotency is not None or self.options.webhook is not None

    @property
    def name(self) -> str:
        """`GET /api/orders`, for messages."""
        return f"{self.method} {self.path}"
