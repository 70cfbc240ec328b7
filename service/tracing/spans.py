"""Spans of one request: the request itself, and in it the wait, the database, rendering, and outgoing requests.

They are created with the SDK of OpenTelemetry, which exports them in batches from a thread of its own
(`rowcall[tracing]`).
"""

from __future__ import annotations

import threading
import time
from typing import Any

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from rowcall.core.operations.tracing import TracingOptions
from rowcall.ext.rendering.timed_rows import TimedPlan
from rowcall.service.request_context.protocols import Headers
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext
from rowcall.service.request_context.trace import NAMES, TracedProtocol
from rowcall.service.tracing.recent_spans import RecentSpans

LAST_SENDING = 3.0
"""Seconds for the last export when the service stops."""
CLIENT_GONE = 499
"""Status of a request whose client has disconnected."""

_propagator = TraceContextTextMapPropagator()


class Tracing:
    """The tracer of one worker, active from construction until `close`."""

    def __init__(self, options: TracingOptions) -> None:
        # Only sampled requests get here (`decision`), so the SDK samples all of them.
        self._provider = TracerProvider(ALWAYS_ON, Resource.create(dict(options.resource)), shutdown_on_exit=False)
        url = options.endpoint.rstrip("/")
        exporter = OTLPSpanExporter(
            endpoint=url if url.endswith("/v1/traces") else f"{url}/v1/traces",
            headers=dict(options.headers),
            timeout=10,
        )
        self._provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=options.delay * 1000))
        self.recent = RecentSpans(options.stored) if options.stored else None
        if self.recent is not None:
            self._provider.add_span_processor(self.recent)
        self.tracer = self._provider.get_tracer("rowcall")

    def begin_outgoing_request(self, traceparent: str, method: str, authority: str) -> OutgoingSpan:
        """Begin the span of an outgoing request in a trace that another request has begun."""
        parent = _propagator.extract({"traceparent": traceparent})
        return _begin_span(self.tracer, parent, method, authority)

    def close(self) -> None:
        """Export the remaining spans, for at most `LAST_SENDING` seconds."""
        # An unavailable collector must not delay the end of the service.
        sending = threading.Thread(target=self._provider.shutdown, daemon=True)
        sending.start()
        sending.join(LAST_SENDING)


class RequestTrace:
    """The trace of one sampled request, until it has ended and its response has begun."""

    sampled = True

    def __init__(
        self, tracing: Tracing, context: RequestContext, name: str, attributes: dict[str, Any], kind: SpanKind
    ) -> None:
        headers = context.scope.headers
        carrier = {name: value for name in NAMES if (value := headers.get(name)) is not None}
        parent = _propagator.extract(carrier)
        self._tracer = tracing.tracer
        self._context: RequestContext | None = context
        self._name = str(attributes.get("code.function.name", ""))
        self._zero = time.time_ns() - time.monotonic_ns()
        self._span = self._tracer.start_span(name, parent, kind, attributes)
        self._trace_context = set_span_in_context(self._span, parent)
        self._status = 0
        self._answered = 0.0
        trace_context = self._span.get_span_context()
        self.trace_id = f"{trace_context.trace_id:032x}"
        self.traceparent = f"00-{self.trace_id}-{trace_context.span_id:016x}-{int(trace_context.trace_flags):02x}"

    def record_response(self, status: int) -> None:
        """Record that the response begins, with this status."""
        if self._status:
            return
        self._status = status
        self._answered = time.monotonic()
        if self._context is None:
            self._finish()

    def end(self, context: RequestContext, error: Exception | None) -> None:
        """Record the spans of the execution, and that the last step has finished (error: None) or a step has failed.
        The span ends now, or, after an error before the response has begun, with the error response. If the client has
        disconnected, no response follows, and the span ends now with status 499."""
        self._record_executions(context)
        self._context = None
        if isinstance(error, ClientDisconnectedError) and not self._status:
            self._status = CLIENT_GONE
        if error is None or self._status:
            self._finish()

    def _finish(self) -> None:
        self._span.set_attribute("http.response.status_code", self._status)
        if self._status >= 500:
            self._span.set_status(Status(StatusCode.ERROR))
            self._span.set_attribute("error.type", str(self._status))
        self._span.end()

    def _record_executions(self, context: RequestContext) -> None:
        """Record the spans of the execution: wait, database, rendering."""
        execution = context.execution
        if execution is None or not execution.began:
            return  # a cached response, or no call
        now = time.monotonic()
        ended = now if execution.streaming or not self._answered or not execution.finished else self._answered
        started = max(execution.began, ended - execution.seconds)
        self._add_span("wait for a connection", execution.began, started)
        attributes = {
            "db.system.name": "postgresql",
            "db.stored_procedure.name": self._name,
            "db.response.returned_rows": execution.rows,
        }
        if execution.error is not None:
            attributes["db.response.status_code"] = execution.error.sqlstate
        database = self._add_span("database", started, ended, SpanKind.CLIENT, attributes)
        if isinstance(execution.plan, TimedPlan):
            # Rendering is spread over the time in which rows arrive; it is shown as if it were at the end.
            seconds = min(execution.plan.seconds, ended - started)
            self._add_span("render", ended - seconds, ended, within=database)

    def _add_span(
        self,
        name: str,
        start: float,
        end: float,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: dict[str, Any] | None = None,
        within: Any = None,
    ) -> Any:
        """Create a finished span and return it. Times are those of the monotonic clock in seconds. within: the parent
        span; None: that of the request.
        """
        trace_context = self._trace_context if within is None else set_span_in_context(within)
        span = self._tracer.start_span(name, trace_context, kind, attributes, start_time=self._moment(start))
        span.end(self._moment(max(start, end)))
        return span

    def _moment(self, monotonic: float) -> int:
        """Convert a time of the monotonic clock to nanoseconds since 1970."""
        return self._zero + round(monotonic * 1_000_000_000)

    def record_replay(self) -> None:
        """Record that the response is the stored one of a former request."""
        self._span.set_attribute("rowcall.idempotency.replayed", True)

    def begin_outgoing_request(self, method: str, authority: str) -> OutgoingSpan:
        """Begin the span of an outgoing request."""
        return _begin_span(self._tracer, self._trace_context, method, authority)


class OutgoingSpan:
    """The span of an outgoing request, until the head of its response has arrived."""

    def __init__(self, span: Any) -> None:
        self._span = span
        carrier: dict[str, str] = {}
        _propagator.inject(carrier, set_span_in_context(span))
        self.headers: Headers = list(carrier.items())

    def end(self, status: int) -> None:
        """End the span. status: 0 without a response."""
        if status:
            self._span.set_attribute("http.response.status_code", status)
        if status >= 400 or not status:
            self._span.set_status(Status(StatusCode.ERROR))
            self._span.set_attribute("error.type", str(status or "no answer"))
        self._span.end()


def _begin_span(tracer: Any, parent: Any, method: str, authority: str) -> OutgoingSpan:
    attributes = {"http.request.method": method, "server.address": authority}
    return OutgoingSpan(tracer.start_span(f"{method} {authority}", parent, SpanKind.CLIENT, attributes))


class SpanProtocol(TracedProtocol):
    """Records when the response begins, and its status."""

    trace: RequestTrace

    def response_empty(self, status: int, headers: Headers) -> None:
        self.inner.response_empty(status, headers)
        self.trace.record_response(status)

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        self.inner.response_bytes(status, headers, body)
        self.trace.record_response(status)

    def response_str(self, status: int, headers: Headers, body: str) -> None:
        self.inner.response_str(status, headers, body)
        self.trace.record_response(status)

    def response_file(self, status: int, headers: Headers, file: str) -> None:
        self.inner.response_file(status, headers, file)
        self.trace.record_response(status)

    def response_file_range(self, status: int, headers: Headers, file: str, start: int, end: int) -> None:
        self.inner.response_file_range(status, headers, file, start, end)
        self.trace.record_response(status)

    def response_stream(self, status: int, headers: Headers) -> Any:
        stream = self.inner.response_stream(status, headers)
        self.trace.record_response(status)
        return stream
