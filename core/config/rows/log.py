"""What is logged, from which level on, and where to."""

from rowcall.core.config.keys import Key, choice, flag, integer, pending, section, text, text_map

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
    *pending(
        flag("Log:ToFile", False, "Log to a file, a new one each day."),
        text("Log:FilePath", "logs/log.txt", "Path of the file; the date goes in before its extension."),
        integer("Log:FileSizeLimitBytes", 30_000_000, "Bytes after which a file is full."),
        choice("Log:FileMinimumLevel", LEVELS, "Verbose", "Lowest level that reaches the file."),
        integer("Log:RetainedFileCountLimit", 30, "Files that are kept; older ones are removed."),
        flag("Log:RollOnFileSizeLimit", True, "Begin a numbered file when one is full; false writes no more that day."),
        flag("Log:ToPostgres", False, "Log to the database."),
        text(
            "Log:PostgresCommand",
            "call log($1,$2,$3,$4,$5)",
            "Command for each event, with one to five parameters: level, message, time (UTC), exception, channel.",
        ),
        choice("Log:PostgresMinimumLevel", LEVELS, "Verbose", "Lowest level that reaches the database."),
        flag("Log:ToOpenTelemetry", False, "Send log events to an OpenTelemetry collector."),
        text("Log:OTLPEndpoint", "http://localhost:4317", "Address of the collector."),
        choice("Log:OTLPProtocol", "Grpc HttpProtobuf", "Grpc", "How the collector is spoken to."),
        text_map(
            "Log:OTLResourceAttributes",
            {
                "service.name": "{application}",
                "service.version": "1.0",
                "service.environment": "{environment}",
            },
            "Attributes of the resource; {application} and {environment} are filled in.",
        ),
        text_map("Log:OTLPHeaders", {}, "Headers sent to the collector.", secret=True),
        choice("Log:OTLPMinimumLevel", LEVELS, "Verbose", "Lowest level that reaches the collector."),
        text(
            "Log:OutputTemplate",
            "[{Timestamp:HH:mm:ss.fff} {Level:u3}] {Message:lj} [{SourceContext}]{NewLine}{Exception}",
            "What a line on the console and in the file looks like.",
        ),
    ),
)
