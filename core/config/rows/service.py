"""Keys of the service: which routines become endpoints, their names, and the form of requests and responses."""

from rowcall.core.config.keys import (
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
        "Name of the main connection. null takes `Default`, or the first one when there is no `Default`.",
    ),
    flag("Service:UseMultipleConnections", False, "Let endpoints name any of the ConnectionStrings."),
    interval(
        "Service:CommandTimeout",
        None,
        "Longest run of a routine; the answer is then 504. null takes the connection string's own, or 30 seconds. "
        "0 sets no limit.",
    ),
    text("Service:SchemaSimilarTo", None, "Serve only schemas whose name is SIMILAR TO this pattern."),
    text("Service:SchemaNotSimilarTo", None, "Leave out schemas whose name is SIMILAR TO this pattern."),
    texts("Service:IncludeSchemas", None, "Serve only these schemas, whoever owns what is in them."),
    texts(
        "Service:TrustedOwners",
        (),
        "Roles whose objects are published in schemas that IncludeSchemas does not name, besides superusers, the owner "
        "of the database, the role of the service and those it is a member of. `*` is every role.",
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
        "What generated paths begin with. null or an empty text: nothing.",
        nullable=True,
    ),
    flag("Service:KebabCaseUrls", True, "Write generated paths as `list-orders` rather than `list_orders`."),
    choice(
        "Service:JsonNumbers",
        "Exact Safe",
        "Exact",
        "Exact: numbers of PostgreSQL are numbers of JSON, digit for digit. Safe: bigint and numeric are texts, for "
        "clients that read numbers as IEEE doubles; generated clients and documents say so.",
    ),
    flag(
        "Service:ExactTypes",
        False,
        "Let clients, OpenAPI, tools and contract tell what the database proves: values that are never NULL, values of "
        "enums and of checks such as `kind in ('a', 'b')`, comments on columns.",
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
        "Answer 401 to callers who are not signed in for paths and methods that do not exist too, so that they cannot "
        "tell what does.",
    ),
    flag("Service:LogConnectionNoticeEvents", True, "Log what routines RAISE below the level of an error."),
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
        "Method of endpoints that name none. null chooses by volatility and name.",
    ),
    choice(
        "Service:DefaultRequestParamType",
        "QueryString BodyJson",
        None,
        "Where parameters travel when the endpoint does not say. null chooses by method.",
    ),
    choice(
        "Service:QueryStringNullHandling",
        "Ignore EmptyString NullLiteral",
        "Ignore",
        "Which value of the query string is NULL: none, the empty one, or the word null.",
    ),
    integer(
        "Service:ParameterMismatchStatusCode",
        404,
        "Status where a required parameter is missing or a name is unknown: 404, 400 or 422.",
        maximum=422,
    ),
    choice(
        "Service:UnknownQueryParameters",
        "Refuse Ignore",
        "Refuse",
        "What becomes of names in the query that are no parameters. Ignore lets links with `utm_source` through.",
    ),
    choice(
        "Service:UnusableValues",
        "Refuse Established",
        "Refuse",
        "What becomes of values that cannot be what their parameter is. Refuse: 400, with every fault in `errors`. "
        "Established is the way of NpgsqlRest: in the query the default takes their place, or else it is 404; in a "
        "JSON body it is 500; the values of a repeated key are joined.",
    ),
    choice(
        "Service:TextResponseNullHandling",
        "EmptyString NullLiteral NoContent",
        "EmptyString",
        "How a NULL leaves as text, and `single` without a row: an empty body, the word NULL, or status 204.",
    ),
    flag(
        "Service:NotFoundWithoutRow",
        False,
        "Answer 404 where `single` gives no row, unless the comment says something else (`null_handling`).",
    ),
    flag(
        "Service:EmptyBodyWithoutRow",
        False,
        "Answer 200 with an empty body, in place of the JSON text `null`, where `single` gives no row or a JSON value "
        "is NULL.",
    ),
    flag(
        "Service:NeutralizeFormulas",
        False,
        "Put an apostrophe in front of texts in raw rows with a separator (CSV) that a spreadsheet would take for "
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
        "Parameter with a default that receives the request's headers as a JSON object, whatever the request sets.",
    ),
    flag("Service:RequestHeadersFromClient", False, "A value that the request sets for that parameter wins."),
    names(
        "Service:AvailableEnvVars",
        "Environment variables that values of annotations may name as {NAME}. An unset one is empty, or the text "
        "given with its name.",
    ),
    flag(
        "Service:WrapInTransaction",
        False,
        "Run all that belongs to a request in one transaction, with settings that end with it.",
    ),
    steps(
        "Service:BeforeRoutineCommands",
        "Commands before each routine, once its session variables are set: texts, or sections.",
    ),
    flag(_BEFORE + "Enabled", False, "Run the command of a section. A text always runs."),
    text(_BEFORE + "Sql", None, "The command, with parameters $1, $2 and so on."),
    objects(_BEFORE + "Parameters", (), "Their values."),
    choice(_BEFORE + "Parameters:[]:Source", "Claim RequestHeader IpAddress", None, "Where a value comes from."),
    text(_BEFORE + "Parameters:[]:Name", None, "Claim or header."),
    text(
        "Service:ExecutionIdHeaderName",
        "X-NpgsqlRest-ID",
        "Request header that ties a call to an event stream. The default is the one existing clients send.",
    ),
    choice(
        "Service:DefaultServerSentEventsEventNoticeLevel",
        "INFO NOTICE WARNING",
        "INFO",
        "Severity of the notices that become events, exactly this one, where the endpoint names none.",
    ),
    text_map(
        "Service:ServerSentEventsResponseHeaders",
        {},
        "Headers of event streams besides the usual ones, or in place of them.",
    ),
    flag(
        "Service:WarnUnboundServerSentEventsNotices",
        True,
        "Where some endpoint has to do with events: warn once of an endpoint that raises a notice of the default "
        "severity without publishing it.",
    ),
    text_map(
        "Service:CustomRequestHeaders",
        {},
        "Headers that routines see besides those of the request; they replace what the client sends by these names.",
    ),
    text(
        "Service:InstanceIdRequestHeaderName",
        None,
        "Another such header, with an id that is new each time the service starts and the same for all its workers.",
    ),
    flag("Service:JsonTimestampsAreUtc", True, "Take date-times of a JSON body that carry no offset as UTC."),
    flag(
        "Service:StrictJsonTypes",
        False,
        "Accept in JSON bodies only the types that OpenAPI documents, and answer 400 to others: strings for texts, "
        "numbers for numbers (`1.0` and `1e3` are integers). With `ExactTypes`, null is refused where the database "
        "proves that there is none. Off: values of other types are converted.",
    ),
    section("Service:RoutineOptions", "Functions and procedures."),
    flag("Service:RoutineOptions:Enabled", True, "Serve functions and procedures."),
    text(
        "Service:RoutineOptions:CustomTypeParameterSeparator",
        None,
        "Between the name of a composite parameter and its attribute. null is an underscore.",
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
        "Find routines on each of these connections. null: on the main connection.",
    ),
    choice(
        "Service:RoutineOptions:VerifyRoutedEndpoints",
        "None Warn Fail",
        "None",
        "Check at the start that routines exist on the connection they are routed to.",
    ),
)
