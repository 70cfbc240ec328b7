"""`Log:ToOpenTelemetry`: entries as OTLP log records, over gRPC or HTTP (logging-5). Needs `rowcall[otel]`."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any

from rowcall.core.config.sections.log import TelemetryLog
from rowcall.service.log.entry import VERBOSE, Entry, level_name
from rowcall.service.startup_error import StartupError

_SEVERITIES = {VERBOSE: 1, logging.DEBUG: 5, logging.INFO: 9, logging.WARNING: 13, logging.ERROR: 17}
"""Severity numbers of OpenTelemetry by level."""
_FATAL = 21
"""Severity number of any other level."""
_TIMEOUT = 10
"""Timeout of an export in seconds."""
_EXCEPTION = re.compile(r"^(?P<type>[\w.]+)(?:: (?P<message>.*))?", re.DOTALL)


class TelemetrySink:
    """Sends each batch as one export request. The exporter of OpenTelemetry's SDK retries."""

    name = "OpenTelemetry"

    def __init__(self, options: TelemetryLog) -> None:
        """Raises `StartupError` if OpenTelemetry is not installed."""
        try:
            from opentelemetry._logs import LogRecord, SeverityNumber
            from opentelemetry.sdk._logs import ReadableLogRecord
            from opentelemetry.sdk._logs.export import LogRecordExportResult
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.util.instrumentation import InstrumentationScope
        except ImportError:
            raise StartupError("Log:ToOpenTelemetry needs the extra: pip install 'rowcall[otel]'") from None
        self._exporter = _exporter(options)
        self._record = LogRecord
        self._readable = ReadableLogRecord
        self._severity = SeverityNumber
        self._success = LogRecordExportResult.SUCCESS
        self._resource = Resource(dict(options.resource))
        self._scope = InstrumentationScope
        self._endpoint = options.endpoint

    def write(self, entries: Sequence[Entry]) -> None:
        """Export entries. Raises `ConnectionError` if the collector does not take them."""
        result = self._exporter.export([self._readable_record(entry) for entry in entries])
        if result != self._success:
            raise ConnectionError(f"{self._endpoint} has not taken {len(entries)} records")

    def give_up(self) -> None:
        """Do nothing: the exporter has a timeout, and the end of the process does not wait for that long."""

    def close(self) -> None:
        self._exporter.shutdown()

    def _readable_record(self, entry: Entry) -> Any:
        nanoseconds = round(entry.time * 1_000_000_000)
        record = self._record(
            timestamp=nanoseconds,
            observed_timestamp=nanoseconds,
            severity_number=self._severity(_SEVERITIES.get(entry.level, _FATAL)),
            severity_text=level_name(entry.level),
            body=entry.message,
            attributes={**entry.properties, **_exception_attributes(entry.exception)},
        )
        return self._readable(record, self._resource, self._scope(entry.source))


def _exporter(options: TelemetryLog) -> Any:
    """Return the exporter of OpenTelemetry for the configured protocol, HTTP or gRPC."""
    headers = dict(options.headers)
    if options.protocol == "HttpProtobuf":
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpExporter

        url = options.endpoint.rstrip("/")
        url = url if url.endswith("/v1/logs") else f"{url}/v1/logs"
        return HttpExporter(endpoint=url, headers=headers, timeout=_TIMEOUT)
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcExporter

    # gRPC requires lower-case names.
    pairs = {name.lower(): value for name, value in headers.items()}
    insecure = not options.endpoint.startswith("https:")
    return GrpcExporter(endpoint=options.endpoint, insecure=insecure, headers=pairs, timeout=_TIMEOUT)


def _exception_attributes(text: str | None) -> dict[str, str]:
    """Return the attributes of an exception by OpenTelemetry's semantic conventions. text: its traceback; None: there
    is no exception, and the result is empty.
    """
    if not text:
        return {}
    last = _EXCEPTION.match(text.rstrip().rsplit("\n", 1)[-1])
    attributes = {"exception.stacktrace": text}
    if last is not None:
        attributes |= {"exception.type": last["type"], "exception.message": last["message"] or ""}
    return attributes
