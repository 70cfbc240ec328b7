"""Keys of logging: content, levels and targets."""

from rowcall.core.config.keys import Key, choice, flag, integer, interval, section, text, text_map

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
        "What standard output gets: lines in the form of OutputTemplate, or one JSON object for each entry.",
    ),
    flag("Log:ToFile", False, "Log to a file for each day."),
    text(
        "Log:FilePath",
        "logs/log.txt",
        "Path of the log file; the date is put in front of its extension: `logs/log20250131.txt`. "
        "All workers share it.",
    ),
    integer(
        "Log:FileSizeLimitBytes",
        30_000_000,
        "Bytes from which a log file is full; 0 sets no limit.",
        maximum=2**63 - 1,
    ),
    choice("Log:FileMinimumLevel", LEVELS, "Verbose", "Lowest level that reaches the file."),
    choice("Log:FileFormat", "Text Json", "Text", "Form of the file, as for ConsoleFormat."),
    integer("Log:RetainedFileCountLimit", 30, "How many log files are kept; 0 keeps all."),
    flag(
        "Log:RollOnFileSizeLimit",
        True,
        "Go on in a numbered file (`log20250131_001.txt`) when one is full. false: drop the rest of the day.",
    ),
    flag("Log:ToPostgres", False, "Hand each entry to PostgresCommand, on the main connection."),
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
        "How entries travel: over gRPC, or over HTTP to `/v1/logs` below OTLPEndpoint.",
    ),
    text_map(
        "Log:OTLResourceAttributes",
        {"service.name": "{application}", "service.version": "1.0", "service.environment": "{environment}"},
        "What the collector is told about the sender. `{application}` and `{environment}` are filled in. "
        "The name of the key has no P.",
    ),
    text_map("Log:OTLPHeaders", {}, "More headers for the collector, such as a token.", secret=True),
    choice("Log:OTLPMinimumLevel", LEVELS, "Verbose", "Lowest level that reaches the collector."),
    text(
        "Log:OutputTemplate",
        "[{Timestamp:HH:mm:ss.fff} {Level:u3}] {Message:lj} [{SourceContext}]{NewLine}{Exception}",
        "Form of a line on the console and in the file.",
    ),
    section("Log:SlowRequests", "Requests that take long."),
    interval("Log:SlowRequests:Threshold", None, "Requests that take longer are told as warnings of `rowcall.slow`."),
    flag(
        "Log:SlowRequests:Plan",
        False,
        "With the plan of their statement: EXPLAIN without values and ANALYZE.",
    ),
    interval(
        "Log:SlowRequests:PlanInterval", "1 minute", "A worker asks for the plan of one endpoint once in so long."
    ),
    text(
        "Log:CorrelationIdHeader",
        None,
        "Header that carries an id of each request: taken from the request or made, sent back with the answer, told "
        "in the log as `CorrelationId`. null: none.",
    ),
)
