"""Decide whether a request is traced, before anything is created for it: most requests are not, and must cost very
little."""

from __future__ import annotations

import random
import re
import secrets
from functools import cached_property

from rowcall.core.operations.tracing import TracingOptions
from rowcall.service.request_context.protocols import Headers
from rowcall.service.request_context.request_context import RequestContext

_PARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?P<trace>(?!0{32})[0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-(?P<flags>[0-9a-f]{2})(?:-.*)?"
)


def is_sampled(traceparent: str | None, options: TracingOptions) -> bool:
    """Return whether a request is sampled: as its caller has decided, if callers are trusted and `traceparent` (the
    header) states it; otherwise at random, with the configured ratio.
    """
    parent = _PARENT.fullmatch(traceparent) if traceparent and options.trusts else None
    if parent is not None:
        return bool(int(parent["flags"], 16) & 1)
    return options.ratio > 0 and random.random() < options.ratio  # noqa: S311 (not a secret)


class UnsampledTrace:
    """The trace of a request that is not sampled. Its ids are computed on first use."""

    sampled = False

    def __init__(self, context: RequestContext) -> None:
        self._headers = context.scope.headers

    @cached_property
    def trace_id(self) -> str:
        parent = _PARENT.fullmatch(self._headers.get("traceparent") or "")
        return secrets.token_hex(16) if parent is None else parent["trace"]

    @cached_property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{secrets.token_hex(8)}-00"

    def record_replay(self) -> None:
        """Record nothing."""

    def begin_outgoing_request(self, _method: str, _authority: str) -> UnsampledOutgoingRequest:
        return UnsampledOutgoingRequest(self.traceparent, self._headers.get("tracestate"))


class UnsampledOutgoingRequest:
    """An outgoing request of a trace that is not sampled. It carries the trace nevertheless (W3C
    Trace Context, 3.4).
    """

    def __init__(self, traceparent: str, state: str | None) -> None:
        self.headers: Headers = [("traceparent", traceparent)]
        if state:
            self.headers.append(("tracestate", state))

    def end(self, status: int) -> None:
        """Record nothing."""
