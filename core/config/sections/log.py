"""Keys of logging: content, levels and targets."""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.operations.slow_requests import SlowRequestOptions
from rowcall.core.sections.declaration import choice, flag, integer, part, section, text, text_map
from rowcall.core.sections.values import none_for_zero, without_empty

_LEVELS = "Verbose Debug Information Warning Error Fatal"


@section("Log", switch="ToConsole")
class ConsoleLog:
    to_console = flag("ToConsole", True, "Log to standard output.")
    least: str = choice("ConsoleMinimumLevel", _LEVELS, "Verbose", "Lowest level that reaches the console.")
    format: str = choice(
        "ConsoleFormat",
        "Text Json",
        "Text",
        "Format of standard output: lines as in OutputTemplate, or one JSON object for each entry.",
    )


@section("Log", switch="ToFile")
class FileLog:
    """Options of log files. limit: maximum size of a file in bytes; None: no limit. least: lowest level that is
    written. keep: maximum number of files; None: no limit. roll: a full file is followed by a numbered one; otherwise
    entries are dropped until the next day."""

    to_file = flag("ToFile", False, "Log to a file, a new one each day.")
    path: str = text(
        "FilePath",
        "logs/log.txt",
        "Path of the log file; the date is put in front of its extension: `logs/log20250131.txt`. All workers "
        "share it.",
    )
    limit: int | None = integer(
        "FileSizeLimitBytes",
        30_000_000,
        "Maximum size of a log file in bytes; 0: no limit.",
        maximum=2**63 - 1,
        convert=none_for_zero,
    )
    least: str = choice("FileMinimumLevel", _LEVELS, "Verbose", "Lowest level that reaches the file.")
    format: str = choice("FileFormat", "Text Json", "Text", "Format of the file, as for ConsoleFormat.")
    keep: int | None = integer(
        "RetainedFileCountLimit",
        30,
        "Maximum number of log files, after which the oldest are deleted; 0: no limit.",
        convert=none_for_zero,
    )
    roll: bool = flag(
        "RollOnFileSizeLimit",
        True,
        "Continue in a numbered file (`log20250131_001.txt`) if a file is full. false: drop the entries until "
        "the next day.",
    )


@section("Log", switch="ToPostgres")
class PostgresLog:
    to_postgres = flag("ToPostgres", False, "Pass each entry to PostgresCommand, on the main connection.")
    command: str = text(
        "PostgresCommand",
        "call log($1,$2,$3,$4,$5)",
        "SQL for each entry. Takes one to five parameters, in this order: level, message, time in UTC, exception "
        "or NULL, channel.",
    )
    least: str = choice("PostgresMinimumLevel", _LEVELS, "Verbose", "Lowest level that reaches the database.")


@section("Log", switch="ToOpenTelemetry")
class TelemetryLog:
    to_open_telemetry = flag(
        "ToOpenTelemetry", False, "Send entries to an OpenTelemetry collector. Needs `rowcall[otel]`."
    )
    endpoint: str = text("OTLPEndpoint", "http://localhost:4317", "URL of the collector.")
    protocol: str = choice(
        "OTLPProtocol", "Grpc HttpProtobuf", "Grpc", "Protocol: gRPC, or HTTP to `/v1/logs` below OTLPEndpoint."
    )
    resource: Mapping[str, str] = text_map(
        "OTLResourceAttributes",
        {"service.name": "{application}", "service.version": "1.0", "service.environment": "{environment}"},
        "Attributes of the sender for the collector. `{application}` and `{environment}` are replaced. The name "
        "of the key has no P.",
        convert=without_empty,
    )
    headers: Mapping[str, str] = text_map(
        "OTLPHeaders", {}, "Additional headers for the collector, such as a token.", secret=True, convert=without_empty
    )
    least: str = choice("OTLPMinimumLevel", _LEVELS, "Verbose", "Lowest level that reaches the collector.")


@section("Log", "Logging.")
class Log:
    minimal_levels: Mapping[str, str | None] = text_map(
        "MinimalLevels",
        {"rowcall": "Information", "rowcall.client": "Information", "rowcall.http": "Information"},
        "Lowest level of a channel. `rowcall` is the service itself (endpoints, notices, commands, errors), "
        "`rowcall.client` start and configuration, `rowcall.http` one line for each request, `rowcall.database` "
        "connections and what the database reports; other names are prefixes of logger names. null or an unknown "
        "word leaves the channel as it is.",
        choices=f"{_LEVELS} Off None Silent",
    )
    console = part(ConsoleLog)
    file = part(FileLog)
    postgres = part(PostgresLog)
    telemetry = part(TelemetryLog)
    output_template: str = text(
        "OutputTemplate",
        "[{Timestamp:HH:mm:ss.fff} {Level:u3}] {Message:lj} [{SourceContext}]{NewLine}{Exception}",
        "Format of a line on the console and in the file.",
    )
    slow_requests = part(SlowRequestOptions)
    correlation_id_header: str | None = text(
        "CorrelationIdHeader",
        None,
        "Header with an id of each request: read from the request or generated, sent with the response, and "
        "logged as `CorrelationId`. null: none.",
    )
