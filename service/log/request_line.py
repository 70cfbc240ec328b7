"""The data of a request for the log, and the log entry that it becomes.

A worker only appends a tuple; the supervisor formats it in the thread that writes it.
"""

from __future__ import annotations

import logging

from rowcall.service.log.entry import Entry, escape_unprintable

CHANNEL = "rowcall.http"

RequestRecord = tuple[float, str, str, int, float, str, str, str]
"""A request: time of its end (seconds since 1970), method, path without query, status, duration in seconds, name of the
endpoint, correlation id, trace id. The last three may be empty."""


def request_entry(seen: RequestRecord) -> Entry:
    """Return the log entry of a request, `HTTP GET /api/orders responded 200 in 1.2345 ms` (logging-6). Its level is
    Error for a status of 500 or more, else Information."""
    moment, method, path, status, seconds, endpoint, correlation, trace = seen
    path = escape_unprintable(path)
    milliseconds = f"{seconds * 1000:.4f}"
    properties = {"Method": method, "Path": path, "Status": status, "Elapsed": float(milliseconds)}
    if endpoint:
        properties["Endpoint"] = endpoint
    if correlation:
        properties["CorrelationId"] = correlation
    if trace:
        properties["TraceId"] = trace
    return Entry(
        moment,
        logging.ERROR if status >= 500 else logging.INFO,
        CHANNEL,
        f"HTTP {escape_unprintable(method)} {path} responded {status} in {milliseconds} ms",
        None,
        properties,
    )
