"""Keys of the service: which routines become endpoints, their names, and the form of requests and responses."""

from rowcall.core.sections.keys import (
    Key,
    choice,
    flag,
    integer,
    interval,
    names,
    objects,
    section,
    steps,
    text,
    text_map,
    texts,
)

_BEFORE = "Service:BeforeRoutineCommands:[]:"

ROWS: tuple[Key, ...] = (
    section(
        "Service", "Which routines are served, and how. `NpgsqlRest` is accepted as a second name of this section."
    ),
    text(
        "Service:ConnectionName",
        None,
        "Name of the main connection. null: `Default`, or the first one if there is no `Default`.",
    ),
    flag("Service:UseMultipleConnections", False, "Let endpoints name any of the ConnectionStrings."),
    interval(
        "Service:CommandTimeout",
        None,
        "Timeout of a routine, after which the response is 504. null: that of the connection string, or 30 seconds. "
        "0: no limit.",
    ),
    text("Service:SchemaSimilarTo", None, "Serve only schemas whose name is SIMILAR TO this pattern."),
    text("Service:SchemaNotSimilarTo", None, "Leave out schemas whose name is SIMILAR TO this pattern."),
    texts("Service:IncludeSchemas", None, "Serve only these schemas, with any owner of their objects."),
    texts(
        "Service:TrustedOwners",
        (),
        "Roles whose objects are served in schemas that IncludeSchemas does not name, besides superusers, the owner of "
        "the database, the role of the service and the roles of which it is a member. `*`: every role.",
    ),
    texts("Service:ExcludeSchemas", None, "Leave out these schemas."),
    text("Service:NameSimilarTo", None, "Serve only routines whose name is SIMILAR TO this pattern."),
    text("Service:NameNotSimilarTo", None, "Leave out routines whose name is SIMILAR TO this pattern."),
    texts("Service:IncludeNames", None, "Serve only these routines."),
    texts("Service:ExcludeNames", None, "Leave out these routines."),
    choice(
        "Service:CommentsMode",
        "OnlyAnnotated OnlyWithHttpTag ParseAll Ignore",
        "OnlyAnnotated",
        "Which routines become endpoints: those with an HTTP annotation, all with their annotations, or all without "
        "reading comments. OnlyWithHttpTag is a second name of OnlyAnnotated.",
    ),
    text(
        "Service:UrlPathPrefix",
        "/api",
        "Prefix of generated paths. null or an empty text: none.",
        nullable=True,
    ),
    flag("Service:KebabCaseUrls", True, "Write generated paths as `list-orders` rather than `list_orders`."),
    choice(
        "Service:JsonNumbers",
        "Exact Safe",
        "Exact",
        "Exact: numbers of PostgreSQL are JSON numbers with all digits. Safe: bigint and numeric are strings, for "
        "clients that read numbers as IEEE doubles; generated clients and documents have these types.",
    ),
    flag(
        "Service:ExactTypes",
        False,
        "Include in clients, OpenAPI, tools and contract what the catalogue proves: values that are never NULL, values "
        "of enums and of checks such as `kind in ('a', 'b')`, comments on columns.",
    ),
    flag("Service:CamelCaseNames", True, "Call parameters and columns `orderId` rather than `order_id`."),
    flag(
        "Service:RequiresAuthorization",
        True,
        "Let only signed-in users call endpoints, unless an endpoint is annotated `allow_anonymous`.",
    ),
    flag(
        "Service:HidePaths",
        False,
        "Answer 401 to anonymous callers also for paths and methods that do not exist, so that they cannot find out "
        "which do.",
    ),
    flag("Service:LogConnectionNoticeEvents", True, "Log what routines RAISE below the level ERROR."),
    choice(
        "Service:LogConnectionNoticeEventsMode",
        "MessageOnly FirstStackFrameAndMessage FullStackAndMessage",
        "FirstStackFrameAndMessage",
        "How much of a notice's context is logged.",
    ),
    flag("Service:LogCommands", False, "Log each command at level Debug."),
    flag("Service:LogCommandParameters", False, "Log the values of parameters with the command."),
    flag("Service:DebugLogEndpointCreateEvents", True, "Log each created endpoint at level Debug."),
    flag("Service:DebugLogCommentAnnotationEvents", True, "Log the annotations of each endpoint at level Debug."),
    choice(
        "Service:DefaultHttpMethod",
        "GET PUT POST PATCH DELETE QUERY",
        None,
        "Method of endpoints that name none. null: chosen by volatility and name.",
    ),
    choice(
        "Service:DefaultRequestParamType",
        "QueryString BodyJson",
        None,
        "Place of parameters of endpoints that do not set it. null: chosen by method.",
    ),
    choice(
        "Service:QueryStringNullHandling",
        "Ignore EmptyString NullLiteral",
        "Ignore",
        "Value of the query string that means NULL: none, the empty one, or the word null.",
    ),
    integer(
        "Service:ParameterMismatchStatusCode",
        404,
        "Status if a required parameter is missing or a name is unknown: 404, 400 or 422.",
        maximum=422,
    ),
    choice(
        "Service:UnknownQueryParameters",
        "Refuse Ignore",
        "Refuse",
        "Treatment of unknown names in the query string. Ignore permits links with `utm_source`.",
    ),
    choice(
        "Service:UnusableValues",
        "Refuse Established",
        "Refuse",
        "Treatment of values that are invalid for the type of their parameter. Refuse: 400, with every fault in "
        "`errors`. Established, as in NpgsqlRest: in the query string the default is used, or the response is 404; in "
        "a JSON body it is 500; the values of a repeated key are joined.",
    ),
    choice(
        "Service:TextResponseNullHandling",
        "EmptyString NullLiteral NoContent",
        "EmptyString",
        "Response to a NULL as text, and of `single` without a row: an empty body, the word NULL, or status 204.",
    ),
    flag(
        "Service:NotFoundWithoutRow",
        False,
        "Respond with 404 if `single` returns no row, unless the comment sets something else (`null_handling`).",
    ),
    flag(
        "Service:EmptyBodyWithoutRow",
        False,
        "Respond with 200 and an empty body, instead of the JSON text `null`, if `single` returns no row or a JSON "
        "value is NULL.",
    ),
    text(
        "Service:Tenant",
        None,
        "Tenant of the requests of all endpoints, as the annotation `tenant` has it: `from claim org_id as search_path "
        "tenant_{0}`. null: none.",
    ),
    interval(
        "Service:IdempotencyLifetime",
        "24 hours",
        "Time for which the result of a request with an Idempotency-Key is stored, unless `idempotent` sets it.",
    ),
    integer(
        "Service:QueryableMaxRows",
        1000,
        "Most rows of a page of an endpoint with `queryable page`, unless its comment sets `max_rows`.",
        minimum=1,
    ),
    flag(
        "Service:NeutralizeFormulas",
        False,
        "Prefix texts in raw rows with a separator (CSV) with an apostrophe if a spreadsheet would read them as "
        "formulas: those that begin with =, +, -, @, a tab or a line end.",
    ),
    choice(
        "Service:RequestHeadersMode",
        "Ignore Context Parameter",
        "Parameter",
        "How the request's headers reach routines, as a JSON object: in the setting or in the parameter named below, "
        "or not at all.",
    ),
    text(
        "Service:RequestHeadersContextKey",
        "request.headers",
        "Setting that holds the request's headers in the mode Context; a routine reads it with `current_setting`.",
    ),
    text(
        "Service:RequestHeadersParameterName",
        "_headers",
        "Parameter with a default that receives the request's headers as a JSON object; a value in the request is "
        "ignored.",
    ),
    flag("Service:RequestHeadersFromClient", False, "Use the value that the request sets for that parameter."),
    names(
        "Service:AvailableEnvVars",
        "Environment variables that values of annotations may use as {NAME}. An unset one is empty, or has the text "
        "that is configured with its name.",
    ),
    flag(
        "Service:WrapInTransaction",
        False,
        "Run all statements of a request in one transaction, with transaction-local settings.",
    ),
    steps(
        "Service:BeforeRoutineCommands",
        "Commands before each routine, once its session variables are set: texts, or sections.",
    ),
    flag(_BEFORE + "Enabled", False, "Run the command of a section. A text always runs."),
    text(_BEFORE + "Sql", None, "The command, with parameters $1, $2 and so on."),
    objects(_BEFORE + "Parameters", (), "Values of the parameters."),
    choice(_BEFORE + "Parameters:[]:Source", "Claim RequestHeader IpAddress", None, "Source of a value."),
    text(_BEFORE + "Parameters:[]:Name", None, "Name of the claim or header."),
    text(
        "Service:ExecutionIdHeaderName",
        "X-NpgsqlRest-ID",
        "Request header that ties a call to an event stream. The default is the one existing clients send.",
    ),
    choice(
        "Service:DefaultServerSentEventsEventNoticeLevel",
        "INFO NOTICE WARNING",
        "INFO",
        "Severity (exactly) of the notices that become events, for endpoints that name none.",
    ),
    text_map(
        "Service:ServerSentEventsResponseHeaders",
        {},
        "Headers of event streams, in addition to the usual ones or instead of them.",
    ),
    flag(
        "Service:WarnUnboundServerSentEventsNotices",
        True,
        "If any endpoint uses events: warn once about an endpoint that raises a notice of the default severity without "
        "publishing it.",
    ),
    text_map(
        "Service:CustomRequestHeaders",
        {},
        "Headers that routines see in addition to those of the request; they replace headers of the client.",
    ),
    text(
        "Service:InstanceIdRequestHeaderName",
        None,
        "Additional header that routines see, with an id that is new for each start and the same for all workers.",
    ),
    flag("Service:JsonTimestampsAreUtc", True, "Read timestamps without an offset in a JSON body as UTC."),
    flag(
        "Service:StrictJsonTypes",
        False,
        "Accept in JSON bodies only the types that OpenAPI documents: strings for texts, numbers for numbers (`1.0` "
        "and `1e3` are integers); others get 400. With `ExactTypes`, null is refused if the catalogue proves that a "
        "value is never NULL. false: values of other types are converted.",
    ),
    section("Service:RoutineOptions", "Functions and procedures."),
    flag("Service:RoutineOptions:Enabled", True, "Serve functions and procedures."),
    text(
        "Service:RoutineOptions:CustomTypeParameterSeparator",
        None,
        "Text between the name of a composite parameter and its attribute. null: an underscore.",
    ),
    texts("Service:RoutineOptions:IncludeLanguages", None, "Serve only routines in these languages; null: all."),
    texts("Service:RoutineOptions:ExcludeLanguages", None, "Leave out these languages; null: c and internal."),
    flag(
        "Service:RoutineOptions:NestedJsonForCompositeTypes",
        False,
        "Keep a composite column as one nested object instead of spreading its attributes.",
    ),
    flag("Service:RoutineOptions:ResolveNestedCompositeTypes", True, "Turn composites at any depth into objects."),
    texts(
        "Service:RoutineOptions:ReadMetadataFromConnections",
        None,
        "Connections from which routines are read. null: the main connection.",
    ),
    choice(
        "Service:RoutineOptions:VerifyRoutedEndpoints",
        "None Warn Fail",
        "None",
        "Check at the start that routines exist on the connection on which they run.",
    ),
)
