"""Keys of logging: content, levels and targets."""

from rowcall.core.sections.keys import Key, choice, flag, integer, interval, section, text, text_map

LEVELS = "Verbose Debug Information Warning Error Fatal"

ROWS: tuple[Key, ...] = (
    section("Log", "Logging."),
    text_map(
        "Log:MinimalLevels",
        {"rowcall": "Information", "rowcall.client": "Information", "rowcall.http": "Information"},
        "Lowest level of a channel. `rowcall` is the service itself (endpoints, notices, commands, errors), "
        "`rowcall.client` start and configuration, `rowcall.http` one line for each request, `rowcall.database` "
        "connections and what the database reports; other names are prefixes of logger names. null or an unknown word "
        "leaves the channel as it is.",
        choices=f"{LEVELS} Off None Silent",
    ),
    flag("Log:ToConsole", True, "Log to standard output."),
    choice("Log:ConsoleMinimumLevel", LEVELS, "Verbose", "Lowest level that reaches the console."),
    choice(
        "Log:ConsoleFormat",
        "Text Json",
        "Text",
        "Format of standard output: lines as in OutputTemplate, or one JSON object for each entry.",
    ),
    flag("Log:ToFile", False, "Log to a file, a new one each day."),
    text(
        "Log:FilePath",
        "logs/log.txt",
        "Path of the log file; the date is put in front of its extension: `logs/log20250131.txt`. "
        "All workers share it.",
    ),
    integer(
        "Log:FileSizeLimitBytes",
        30_000_000,
        "Maximum size of a log file in bytes; 0: no limit.",
        maximum=2**63 - 1,
    ),
    choice("Log:FileMinimumLevel", LEVELS, "Verbose", "Lowest level that reaches the file."),
    choice("Log:FileFormat", "Text Json", "Text", "Format of the file, as for ConsoleFormat."),
    integer(
        "Log:RetainedFileCountLimit",
        30,
        "Maximum number of log files, after which the oldest are deleted; 0: no limit.",
    ),
    flag(
        "Log:RollOnFileSizeLimit",
        True,
        "Continue in a numbered file (`log20250131_001.txt`) if a file is full. false: drop the entries until the next "
        "day.",
    ),
    flag("Log:ToPostgres", False, "Pass each entry to PostgresCommand, on the main connection."),
    text(
        "Log:PostgresCommand",
        "call log($1,$2,$3,$4,$5)",
        "SQL for each entry. Takes one to five parameters, in this order: level, message, time in UTC, exception or "
        "NULL, channel.",
    ),
    choice("Log:PostgresMinimumLevel", LEVELS, "Verbose", "Lowest level that reaches the database."),
    flag("Log:ToOpenTelemetry", False, "Send entries to an OpenTelemetry collector. Needs `rowcall[otel]`."),
    text("Log:OTLPEndpoint", "http://localhost:4317", "URL of the collector."),
    choice(
        "Log:OTLPProtocol",
        "Grpc HttpProtobuf",
        "Grpc",
        "Protocol: gRPC, or HTTP to `/v1/logs` below OTLPEndpoint.",
    ),
    text_map(
        "Log:OTLResourceAttributes",
        {"service.name": "{application}", "service.version": "1.0", "service.environment": "{environment}"},
        "Attributes of the sender for the collector. `{application}` and `{environment}` are replaced. "
        "The name of the key has no P.",
    ),
    text_map("Log:OTLPHeaders", {}, "Additional headers for the collector, such as a token.", secret=True),
    choice("Log:OTLPMinimumLevel", LEVELS, "Verbose", "Lowest level that reaches the collector."),
    text(
        "Log:OutputTemplate",
        "[{Timestamp:HH:mm:ss.fff} {Level:u3}] {Message:lj} [{SourceContext}]{NewLine}{Exception}",
        "Format of a line on the console and in the file.",
    ),
    section("Log:SlowRequests", "Slow requests."),
    interval(
        "Log:SlowRequests:Threshold",
        None,
        "Requests that take longer are logged as warnings of `rowcall.slow`. null: none.",
    ),
    flag(
        "Log:SlowRequests:Plan",
        False,
        "Log the plan of their statement too: EXPLAIN without values and without ANALYZE.",
    ),
    interval("Log:SlowRequests:PlanInterval", "1 minute", "Minimum time between two plans of an endpoint in a worker."),
    text(
        "Log:CorrelationIdHeader",
        None,
        "Header with an id of each request: read from the request or generated, sent with the response, and logged as "
        "`CorrelationId`. null: none.",
    ),
)
