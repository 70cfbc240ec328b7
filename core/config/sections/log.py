"""Keys of logging: content, levels and targets."""

from __future__ import annotations

from rowcall.core.operations.slow_requests import SlowRequestOptions
from rowcall.core.sections.declaration import choice, flag, integer, part, section, text, text_map


@section("Log", "Logging.")
class Log:
    minimal_levels = text_map(
        "MinimalLevels",
        {"rowcall": "Information", "rowcall.client": "Information", "rowcall.http": "Information"},
        "Lowest level of a channel. `rowcall` is the service itself (endpoints, notices, commands, errors), "
        "`rowcall.client` start and configuration, `rowcall.http` one line for each request, `rowcall.database` "
        "connections and what the database reports; other names are prefixes of logger names. null or an unknown "
        "word leaves the channel as it is.",
        choices="Verbose Debug Information Warning Error Fatal Off None Silent",
    )
    to_console = flag("ToConsole", True, "Log to standard output.")
    console_minimum_level = choice(
        "ConsoleMinimumLevel",
        "Verbose Debug Information Warning Error Fatal",
        "Verbose",
        "Lowest level that reaches the console.",
    )
    console_format = choice(
        "ConsoleFormat",
        "Text Json",
        "Text",
        "Format of standard output: lines as in OutputTemplate, or one JSON object for each entry.",
    )
    to_file = flag("ToFile", False, "Log to a file, a new one each day.")
    file_path = text(
        "FilePath",
        "logs/log.txt",
        "Path of the log file; the date is put in front of its extension: `logs/log20250131.txt`. All workers "
        "share it.",
    )
    file_size_limit_bytes = integer(
        "FileSizeLimitBytes", 30_000_000, "Maximum size of a log file in bytes; 0: no limit.", maximum=2**63 - 1
    )
    file_minimum_level = choice(
        "FileMinimumLevel",
        "Verbose Debug Information Warning Error Fatal",
        "Verbose",
        "Lowest level that reaches the file.",
    )
    file_format = choice("FileFormat", "Text Json", "Text", "Format of the file, as for ConsoleFormat.")
    retained_file_count_limit = integer(
        "RetainedFileCountLimit", 30, "Maximum number of log files, after which the oldest are deleted; 0: no limit."
    )
    roll_on_file_size_limit = flag(
        "RollOnFileSizeLimit",
        True,
        "Continue in a numbered file (`log20250131_001.txt`) if a file is full. false: drop the entries until "
        "the next day.",
    )
    to_postgres = flag("ToPostgres", False, "Pass each entry to PostgresCommand, on the main connection.")
    postgres_command = text(
        "PostgresCommand",
        "call log($1,$2,$3,$4,$5)",
        "SQL for each entry. Takes one to five parameters, in this order: level, message, time in UTC, exception "
        "or NULL, channel.",
    )
    postgres_minimum_level = choice(
        "PostgresMinimumLevel",
        "Verbose Debug Information Warning Error Fatal",
        "Verbose",
        "Lowest level that reaches the database.",
    )
    to_open_telemetry = flag(
        "ToOpenTelemetry", False, "Send entries to an OpenTelemetry collector. Needs `rowcall[otel]`."
    )
    otlp_endpoint = text("OTLPEndpoint", "http://localhost:4317", "URL of the collector.")
    otlp_protocol = choice(
        "OTLPProtocol", "Grpc HttpProtobuf", "Grpc", "Protocol: gRPC, or HTTP to `/v1/logs` below OTLPEndpoint."
    )
    otl_resource_attributes = text_map(
        "OTLResourceAttributes",
        {"service.name": "{application}", "service.version": "1.0", "service.environment": "{environment}"},
        "Attributes of the sender for the collector. `{application}` and `{environment}` are replaced. The name "
        "of the key has no P.",
    )
    otlp_headers = text_map("OTLPHeaders", {}, "Additional headers for the collector, such as a token.", secret=True)
    otlp_minimum_level = choice(
        "OTLPMinimumLevel",
        "Verbose Debug Information Warning Error Fatal",
        "Verbose",
        "Lowest level that reaches the collector.",
    )
    output_template = text(
        "OutputTemplate",
        "[{Timestamp:HH:mm:ss.fff} {Level:u3}] {Message:lj} [{SourceContext}]{NewLine}{Exception}",
        "Format of a line on the console and in the file.",
    )
    slow_requests = part(SlowRequestOptions)
    correlation_id_header = text(
        "CorrelationIdHeader",
        None,
        "Header with an id of each request: read from the request or generated, sent with the response, and "
        "logged as `CorrelationId`. null: none.",
    )
