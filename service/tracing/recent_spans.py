"""The last spans of a worker for the console: references in a bounded ring, which are described on request."""

from __future__ import annotations

from collections import deque

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.trace import StatusCode

from rowcall.service.tracing.span_entry import SpanEntry

MOST_TRACES = 100
MOST_SPANS = 500
"""Most roots in a list, and most spans of a trace."""
_LONGEST = 1000
"""Characters of an attribute."""


class RecentSpans(SpanProcessor):
    """A span processor of OpenTelemetry that stores the last spans. Thread-safe."""

    def __init__(self, most: int) -> None:
        """most: maximum number of stored spans; the oldest ones are dropped."""
        self._spans: deque[ReadableSpan] = deque(maxlen=most)

    def on_end(self, span: ReadableSpan) -> None:
        self._spans.append(span)

    def roots(self) -> tuple[SpanEntry, ...]:
        """Return the root spans of the latest requests, those without a parent in this process: at most `MOST_TRACES`,
        oldest first."""
        found = [span for span in self._spans.copy() if _is_root(span)]
        return tuple(_entry(span) for span in found[-MOST_TRACES:])

    def of(self, trace: str) -> tuple[SpanEntry, ...]:
        """Return the stored spans of a trace, at most `MOST_SPANS`, in the order of their ends. trace: its id in
        hexadecimal digits. Raises `ValueError` for another text."""
        number = int(trace, 16)
        found = [span for span in self._spans.copy() if span.context.trace_id == number]
        return tuple(_entry(span) for span in found[:MOST_SPANS])


def _is_root(span: ReadableSpan) -> bool:
    return span.parent is None or span.parent.is_remote


def _entry(span: ReadableSpan) -> SpanEntry:
    attributes = {
        name: value if isinstance(value, bool | int | float) else str(value)[:_LONGEST]
        for name, value in (span.attributes or {}).items()
    }
    return SpanEntry(
        f"{span.context.trace_id:032x}",
        f"{span.context.span_id:016x}",
        None if span.parent is None else f"{span.parent.span_id:016x}",
        _is_root(span),
        span.name,
        span.kind.name.lower(),
        span.start_time or 0,
        span.end_time or 0,
        span.status.status_code is StatusCode.ERROR,
        attributes,
    )
