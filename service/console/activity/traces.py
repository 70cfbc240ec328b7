"""Traces of the last requests: the spans that the workers have stored, while both tracing and the console are on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

from rowcall.core.errors.problems import Problem
from rowcall.service.console.query import whole
from rowcall.service.console.sources import Sources
from rowcall.service.tracing.span_entry import SpanEntry

_TRACE = re.compile(r"[0-9a-f]{32}")
_PAGE = 50
_MOST = 200

Name = tuple[str, str]
"""Method and path of an endpoint."""
Located = tuple[str, SpanEntry]
"""A span with the name of the process that has recorded it."""


def traces(sources: Sources, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the last requests that were traced, newest first. Raises `Problem` 400 for an invalid `limit`."""
    limit = whole(query, "limit", _PAGE, _MOST)
    roots = [] if sources.options.tracing is None else _spans(sources, None)
    roots.sort(key=lambda item: -item[1].begins)
    return {
        "enabled": sources.options.tracing is not None,
        "traces": [{"trace": span.trace, **_span_members(worker, span, span.begins)} for worker, span in roots[:limit]],
    }


def trace(sources: Sources, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the stored spans of the trace `id`, each behind its parent span. Raises `Problem`: 400 for an invalid id,
    404 if no span of it is stored.
    """
    name = query.get("id", "")
    if not _TRACE.fullmatch(name):
        raise Problem(400, f"id: {name[:50]!r} is no trace id of 32 hexadecimal digits")
    spans = [] if sources.options.tracing is None else _spans(sources, name)
    if not spans:
        raise Problem(404, "no span of this trace is stored: it was not sampled, or newer ones have replaced it")
    names = {_name(span) for _, span in spans if span.root}
    served = {(item.method, item.path) for item in sources.snapshot().endpoints if (item.method, item.path) in names}
    first = min(span.begins for _, span in spans)
    last = max(span.ends for _, span in spans)
    return {
        "trace": name,
        "began": first / 1e9,
        "seconds": (last - first) / 1e9,
        "spans": [
            {**_span_members(worker, span, first), "depth": depth, "endpoint": _endpoint(served, span)}
            for depth, (worker, span) in _order_as_tree(spans)
        ],
    }


def _spans(sources: Sources, name: str | None) -> list[Located]:
    """Return the stored spans of a trace, of all workers. name: id of the trace; None: return the first span of each
    request.
    """
    workers = {pid: f"worker {number}" for number, pid in enumerate(sources.workers()) if pid is not None}
    return [
        (workers.get(pid, f"process {pid}"), span)
        for pid, answer in sources.run(sources.spans(name))
        if answer is not None
        for span in answer.spans
    ]


def _span_members(worker: str, span: SpanEntry, zero: int) -> dict[str, Any]:
    """Return the members of a span for JSON. worker: name of the process that has recorded it. zero: start of the
    trace, in nanoseconds since 1970.
    """
    return {
        "span": span.id,
        "name": span.name,
        "kind": span.kind,
        "worker": worker,
        "began": span.begins / 1e9,
        "offsetSeconds": (span.begins - zero) / 1e9,
        "seconds": (span.ends - span.begins) / 1e9,
        "failed": span.failed,
        "attributes": span.attributes,
    }


def _endpoint(served: Set[Name], span: SpanEntry) -> dict[str, str] | None:
    """Return method and path of the endpoint whose request the span represents; None if it represents another
    operation.

    served: method and path of all endpoints.
    """
    method, path = _name(span)
    return {"method": method, "path": path} if span.root and (method, path) in served else None


def _name(span: SpanEntry) -> Name:
    return str(span.attributes.get("http.request.method")), str(span.attributes.get("http.route"))


def _order_as_tree(spans: Sequence[Located]) -> list[tuple[int, Located]]:
    """Return the spans as a tree in depth-first order, siblings by their start, each with its depth. A span whose
    parent is not among them has depth 0; there may be several of these.
    """
    known = {span.id for _, span in spans}
    below: dict[str | None, list[Located]] = {}
    for item in sorted(spans, key=lambda item: (item[1].begins, -item[1].ends)):
        parent = item[1].parent
        below.setdefault(parent if parent in known else None, []).append(item)
    result: list[tuple[int, Located]] = []
    waiting = [(0, item) for item in reversed(below.get(None, []))]
    while waiting:
        depth, item = waiting.pop()
        result.append((depth, item))
        waiting += [(depth + 1, child) for child in reversed(below.get(item[1].id, []))]
    return result
