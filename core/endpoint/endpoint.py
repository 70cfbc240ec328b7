"""A routine with its effective options, frozen: what `service.handler.step_order` compiles into steps.

The fields below `Options` are the effects of annotations (`core.annotations`) over the defaults of the configuration.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from rowcall.core.catalogue.catalog import Column, Routine
from rowcall.core.catalogue.session_effects import UNKNOWN, SessionEffects
from rowcall.core.catalogue.source import Transport
from rowcall.core.catalogue.value_constraints import NO_CONSTRAINTS, ValueConstraints
from rowcall.core.data.record import Record
from rowcall.core.endpoint.capabilities import (
    BasicAuth,
    Caching,
    ClientCode,
    Document,
    Encryption,
    Events,
    Forwarding,
    Impersonation,
    Reading,
    Tool,
    Upload,
)
from rowcall.core.endpoint.refusals import Refusals
from rowcall.core.outgoing.outgoing import NOTHING_SENT, Outgoing


class NullText(enum.Enum):
    """`TextResponseNullHandling`: what a NULL text result becomes (rendering-15)."""

    EMPTY_STRING = "EmptyString"
    NULL_LITERAL = "NullLiteral"
    NO_CONTENT = "NoContent"
    NOT_FOUND = "NotFound"


class QueryNull(enum.Enum):
    """`QueryStringNullHandling` (binding-17)."""

    IGNORE = "Ignore"
    EMPTY_STRING = "EmptyString"
    NULL_LITERAL = "NullLiteral"


class HeadersMode(enum.Enum):
    """`RequestHeadersMode`: how a routine learns of the request's headers (binding-22)."""

    IGNORE = "Ignore"
    CONTEXT = "Context"
    """As a setting that it reads with `current_setting`."""
    PARAMETER = "Parameter"
    """In a parameter made for them."""


class ResultPath(enum.Enum):
    """How a result is rendered, decided from the catalogue and never from values (rendering-4)."""

    VOID = "void"
    SCALAR = "scalar"
    ROWS = "rows"
    OBJECT = "object"
    """Of several statements: one object with a key for each (sql-files-23)."""


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
    """text, varchar, char, name, xml, jsonpath: sent verbatim, an empty value stays an empty string."""
    JSON = "json"
    """json, jsonb: like TEXT, but a JSON value of a body is sent as its own text."""
    OTHER = "other"
    """Everything else (enums, domains, ranges, inet, bytea …): verbatim, the server casts; empty is NULL."""
    COMPOSITE = "composite"
    """Like OTHER, but an object is a value too: its members are those of `EndpointParameter.fields`."""


@dataclass(frozen=True, slots=True)
class Field(Record):
    """An attribute of a composite, where the composite is one value."""

    name: str
    """Of the database."""
    api_name: str
    """As in responses: `unitCode`."""
    kind: ValueKind
    """Of the element, when `array`."""
    array: bool
    type_text: str
    fields: tuple[Field, ...] = ()
    """Of a composite, or of one in an array."""
    delimiter: str = ","
    """Between the elements of an array: `;` for `box`."""


@dataclass(frozen=True, slots=True)
class EndpointParameter(Record):
    """One request value. A composite-typed routine parameter gives one of these for each attribute."""

    db_name: str
    """Name as the catalogue has it (`_user_id`), `$2` for an unnamed one."""
    api_name: str
    """Name in requests (`userId`), `$2` for an unnamed one."""
    kind: ValueKind
    """Of the element, when `array`."""
    array: bool
    cast: str
    """Type text for `$n::cast`."""
    has_default: bool
    """The routine has a server-side default: an absent value leaves the argument out of the call."""
    position: int
    """Index of the routine parameter this belongs to (several attributes share one)."""
    attribute: str | None = None
    """Attribute name when this is a field of a composite parameter, else None. Such a field is optional: absent is
    NULL, whatever `has_default` says."""
    composite: str | None = None
    """Cast of the whole composite that this is a field of: `row($1::integer, null)::"shop"."box"`."""
    variadic: bool = False
    path: bool = False
    """Bound from a `{segment}` of the path."""
    segment: str | None = None
    """Name of that segment as the template spells it: the key in `core.http.router.Match.values`."""
    field: str = ""
    """Field of a composite in its database spelling, `_box_width`; equal to `db_name` otherwise."""
    defaulted: bool = False
    """The comment gives a default, which is bound in the place of a missing value: `default`, None for NULL."""
    default: str | None = None
    reads_as: str | None = None
    """Type that the comment has values read as; None: that of `cast`."""
    ignored: bool = False
    """The service fills it in, and nobody looks at what is sent for it, nor at how often."""

    fields: tuple[Field, ...] = ()
    """Attributes of a composite that is one value, or an element of an array."""
    delimiter: str = ","
    """Between the elements of an array: `;` for `box`."""
    group: str | None = None
    """Name in requests of the composite parameter that this is a field of; an object of that name gives all of them."""
    member: str | None = None
    """Name of the field in that object, besides `attribute`."""

    @property
    def type_text(self) -> str:
        """The type that values are read as."""
        return self.reads_as or self.cast

    exact: bool = False
    """A value that cannot be used is refused although none is needed: what a filter leaves out would widen it."""
    virtual: bool = False
    """Only for placeholders: the SQL does not take it. Such parameters come behind all others."""
    textual: bool = False
    """Its type, or the one below its domain, holds any text."""
    constraints: ValueConstraints = NO_CONSTRAINTS
    """For descriptions; what comes in is judged by the database."""


@dataclass(frozen=True, slots=True)
class ResultColumn(Record):
    """One column of the SELECT that the call is wrapped in."""

    expression: str
    """SQL, quoted: `"id"`, `("req")."id"`."""
    key: bytes
    """JSON key, converted (`core.text.naming`) and UTF-8 encoded but not yet JSON-escaped."""
    column: Column
    group: Column | None = None
    """The composite column this field was taken out of; neighbours with one group belong together when nested."""
    position: int | None = None
    """Of the column in the result, where the SQL is not ours: the field is then taken out of its text. None: each is
    a column of its own."""

    @property
    def names(self) -> frozenset[str]:
        """Those that a comment may use, in any case: its own, that in responses, that of the composite it is from."""
        known = {self.column.name.casefold(), self.key.decode().casefold()}
        return frozenset(known if self.group is None else {*known, self.group.name.casefold()})


@dataclass(frozen=True, slots=True)
class ResultShape(Record):
    """Return shape matrix of rendering-9 to rendering-13."""

    path: ResultPath
    is_set: bool
    """Rows path: `[…]` envelope. False: exactly one row, no brackets."""
    named: bool
    """Rows path: `{key: value}` objects. False: bare values."""
    columns: tuple[ResultColumn, ...] = ()
    """Empty when the call is a plain `select schema.fn(…)`."""
    content_type: str = "application/json"
    blank_is_null: bool = False
    """Composite columns are nested: one stands for its fields as columns, so that its values are told as in columns,
    and it is null as a whole when all its fields are (rendering-19)."""
    parts: tuple[ResultPart, ...] = ()
    """Object path: one for each statement."""
    first_only: bool = False
    """Only the first column of the result counts, whatever the others are."""
    cast: str = ""
    """Behind a plain `select schema.fn(…)`: `::text[]` where composites are told by PostgreSQL's text."""
    constraints: ValueConstraints = NO_CONSTRAINTS
    """Of the value, where it has no columns."""
    wire: tuple[int, ...] | None = None
    """Type oids of the result's columns, 0 for any (`core.endpoint.result_types`). None: nothing is known."""


@dataclass(frozen=True, slots=True)
class ResultPart(Record):
    """What one of several statements adds to the answer."""

    key: bytes | None
    """None: nothing."""
    shape: ResultShape
    single: bool


@dataclass(frozen=True, slots=True)
class Options(Record):
    """Effects of annotations. A new capability adds its fields here, with the default that means "off"."""

    requires_authorization: bool = True
    roles: tuple[str, ...] = ()
    """Any one suffices. In force even where a later `allow_anonymous` cleared `requires_authorization`."""
    fresh: float | None = None
    """Seconds since callers have signed in, at most. In force likewise."""
    transport: Transport = Transport.QUERY
    timeout: float | None = None
    """Seconds; None: the global default."""
    deadline: float | None = None
    """Seconds for everything that a request does; 0: as long as it takes. None: as the configuration says."""
    body_parameter: str | None = None
    """Parameter (database, API or field name, in any case) that receives the whole body as text."""
    query_null: QueryNull = QueryNull.IGNORE
    absent_status: int = 404
    """Here and the two below: what becomes of requests that do not fit (`refusals`)."""
    ignores_unknown_parameters: bool = False
    lenient: bool = False
    request_headers: HeadersMode = HeadersMode.IGNORE
    headers_parameter: str | None = None
    """Database or API name of the parameter that receives the request's headers in their `PARAMETER` mode."""
    null_text: NullText = NullText.EMPTY_STRING
    success_status: int | None = None
    """From 200 to 299. None: 204 for what has no body, else 200."""
    empty_without_row: bool = False
    """`single` without a row, or a NULL that is JSON, is an empty body instead of the JSON text `null`."""
    response_settings: bool = False
    """Status and headers of the answer come from settings, also where the routine's text does not name them."""
    status_column: str | None = None
    """Column of the result that is the status of the answer, and no part of its body."""
    headers_column: str | None = None
    single: bool = False
    void: bool = False
    raw: bool = False
    """Text of the server instead of JSON."""
    separator: str | None = None
    """Between the values of a raw row. None: nothing is, and nothing is quoted; an empty one still quotes."""
    new_line: str | None = None
    """Between raw rows."""
    column_names: bool = False
    harmless_texts: bool = False
    """Quoted values of raw rows are no formulas to a spreadsheet."""
    """A raw result begins with the names of its columns."""
    headers: tuple[tuple[str, str], ...] = ()
    """Response headers, in order, repeated names kept."""
    content_type: str | None = None
    audit: bool | None = None
    """Calls are written down; None: as the configuration says."""
    cors: bool = True
    """Where the configuration lets pages of other origins in, they are let in here too."""
    buffer_rows: int | None = None
    internal: bool = False
    nested: bool = False
    """Composite columns as nested objects instead of being expanded in place."""
    expressions: tuple[tuple[str, str], ...] = ()
    """Resolved parameters: database name → SQL expression, verbatim, in comment order (execution-17)."""
    custom: tuple[tuple[str, str], ...] = ()
    """Custom parameters (`key = value`) that no annotation claimed, without the `@`; a repeated key overwrote."""
    table_format: str | None = None
    """Key of a table format, or text with `{parameter}` that gives one for each request (formats-1)."""
    excel_file_name: str | None = None
    excel_sheet: str | None = None
    validations: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Parameter and rules of each `validate`, as written."""
    validation_messages: tuple[tuple[str, str, str], ...] = ()
    """Parameter, rule, and what a refused caller reads in place of the rule's own message."""
    sensitive: bool = False
    """Values of its requests appear neither in logs nor in errors."""
    connection: str | None = None
    """Name of the connection it runs on, as written. None: the main one."""
    reading: Reading | None = None
    """Whether it is read from replicas. None: as the configuration says."""
    error_policy: str | None = None
    """Name of an error policy. None: the default one."""
    retry_strategy: str | None = None
    """Name of a retry strategy. None: the default one."""
    exclusive_connection: bool = False
    """Its requests never share a connection."""
    allow_unfiltered: bool = False
    """On a table: a delete may name no column, and then removes every row."""
    login: bool = False
    """The first row that the routine gives signs its caller in (sign-in-14). Nobody is kept from it."""
    logout: bool = False
    impersonation: Impersonation | None = None
    """The row of a login is that of somebody else, as whom its caller acts from then on, or that of himself again; or
    whoever acts as another is refused."""
    user_parameters: bool = False
    """Parameters named in the configuration are filled from claims (access-14)."""
    user_context: bool = False
    """Claims are written to session variables (access-17)."""
    role_from_claim: bool = False
    """Runs as the role of PostgreSQL that a claim names."""
    hashes: tuple[tuple[str, str], ...] = ()
    """Parameter to fill → parameter whose value is hashed for it, as the comment names them (sign-in-26)."""
    caching: Caching | None = None
    """Here and below: None where the comment says nothing about the capability."""
    entity_tag: bool = False
    """Answers of GET carry an `ETag`."""
    invalidates: str | None = None
    """Method of the cached endpoint whose cached response this endpoint removes, instead of running the routine. None:
    it is no invalidation endpoint."""
    rate_limiter: str | None = None
    """Name of a policy, as written."""
    basic_auth: BasicAuth | None = None
    basic_everywhere: bool = False
    """The configuration asks every caller for HTTP Basic."""
    encryption: Encryption | None = None
    proxy: Forwarding | None = None
    proxy_out: Forwarding | None = None
    hedge: float | None = None
    """Seconds without an answer after which the request of `proxy` is sent once more. None: never."""
    upload: Upload | None = None
    events: Events | None = None
    client_code: ClientCode | None = None
    """TypeScript and JavaScript."""
    dart_client_code: ClientCode | None = None
    tool: Tool | None = None
    document: Document | None = None

    @property
    def open_login(self) -> bool:
        """Nobody is kept from it: nearly every login, but for those of users who act as others."""
        return self.login and self.impersonation in (None, Impersonation.REFUSED)

    @property
    def wants_basic(self) -> bool:
        """Nobody calls it without a name and a password."""
        return self.basic_everywhere or (self.basic_auth is not None and self.basic_auth.enabled)


@dataclass(frozen=True, slots=True)
class Endpoint(Record):
    routine: Routine
    method: str
    path: str
    """Template as routed, lower-cased: `/api/orders/{id}`."""
    parameters: tuple[EndpointParameter, ...]
    shape: ResultShape
    options: Options = field(default_factory=Options)
    annotations: tuple[str, ...] = ()
    """Comment lines that took effect, as written."""
    prose: tuple[str, ...] = ()
    """Comment lines that are no annotation and resemble none, in order: the only ones that documents and generated code
    publish."""
    table_shape: ResultShape | None = None
    """What a table format shows: composites are always expanded. None without `table_format`, and for what gives no
    rows."""
    session: SessionEffects = UNKNOWN
    """What a run of it may leave in its session."""
    outgoing: Outgoing = NOTHING_SENT
    """Requests to other services."""

    @property
    def discreet(self) -> bool:
        """What its requests are sent to is not written down: the address may hold values that are nobody's business, or
        that are kept encrypted or as a hash.
        """
        sealed = self.options.encryption
        return (
            self.options.sensitive
            or bool(self.options.hashes)
            or (sealed is not None and bool(sealed.all_parameters or sealed.parameters))
        )

    @property
    def passes_through(self) -> bool:
        """The answer of another service is the answer; the routine does not run (proxies-9)."""
        return self.options.proxy is not None and not self.outgoing.replies

    @property
    def cached_method(self) -> str:
        """Method of the requests whose responses are cached: for an invalidation endpoint, that of the cached one."""
        return self.options.invalidates or self.method

    @property
    def success_status(self) -> int:
        """Status of a successful response, unless SQL sets one or the result is a NULL that has a status of its own."""
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
    def null_is_json(self) -> bool:
        """Whether a NULL as the whole result, or no row for `single`, is the JSON text `null` unless `null_text` says
        otherwise; else the body is empty."""
        options = self.options
        if options.raw or options.empty_without_row or not self.shape.content_type.startswith("application/json"):
            return False
        return options.content_type is None or "json" in options.content_type.lower()

    @property
    def raw_body(self) -> EndpointParameter | None:
        """The parameter that `body_parameter_name` names, if there is one."""
        wanted = self.options.body_parameter
        if wanted is None:
            return None
        wanted = wanted.lower()
        for parameter in self.parameters:
            if wanted in (parameter.db_name.lower(), parameter.api_name.lower(), parameter.field.lower()):
                return parameter
        return None

    @property
    def sets_response(self) -> bool:
        """Status and headers of the answer come from SQL."""
        options = self.options
        asked = options.response_settings or self.response_set_by_columns
        return (asked or self.routine.sets_response) and not (options.login or options.logout)

    @property
    def response_set_by_columns(self) -> bool:
        chosen = self.options.status_column is not None or self.options.headers_column is not None
        return chosen and self.routine.source is None

    @property
    def refusals(self) -> Refusals:
        options = self.options
        return Refusals(options.absent_status, options.ignores_unknown_parameters, options.lenient)

    @property
    def transport(self) -> Transport:
        """With a raw body, the other values can only travel in the query string (binding-2)."""
        return self.options.transport if self.raw_body is None else Transport.QUERY

    @property
    def name(self) -> str:
        """`GET /api/orders`, for messages."""
        return f"{self.method} {self.path}"
