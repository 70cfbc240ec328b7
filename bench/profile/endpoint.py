"""Profile of an endpoint of a running service: latency of the client, and the times that the service reports."""

from __future__ import annotations

import http.client
import re
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

_PART = re.compile(r"(\w+);dur=([\d.]+)")
PARTS = ("queue", "database", "render")


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds of one request. `parts`: the values of `Server-Timing`, if any."""

    first_byte: float
    total: float
    size: int
    parts: dict[str, float]


def profile_endpoint(url: str, body: str | None, requests: int) -> list[str]:
    """Return the lines to print. Raises `OSError` if there is no connection."""
    split = urlsplit(url)
    path = (split.path or "/") + (f"?{split.query}" if split.query else "")
    samples = list(_samples(split.hostname or "127.0.0.1", split.port or 80, path, body, requests))
    total = statistics.median(sample.total for sample in samples)
    first_byte = statistics.median(sample.first_byte for sample in samples)
    lines = [f"{requests} requests, {samples[-1].size:,} bytes each; medians"]
    timings = [sample.parts for sample in samples if sample.parts]
    if not timings:
        lines.append("the service sends no times: start it with --HttpServer:ServerTiming=true")
    else:
        medians = {name: statistics.median(parts.get(name, 0.0) for parts in timings) for name in PARTS}
        lines += [_line(name, seconds, total) for name, seconds in medians.items()]
    lines.append(_line("first byte", first_byte, total))
    lines.append(_line("writing", total - first_byte, total))
    lines.append(_line("total", total, total))
    return lines


def _samples(host: str, port: int, path: str, body: str | None, requests: int) -> Iterator[Sample]:
    connection = http.client.HTTPConnection(host, port, timeout=60)
    headers = {} if body is None else {"Content-Type": "application/json"}
    for _ in range(max(1, requests)):
        began = time.perf_counter()
        connection.request("GET" if body is None else "POST", path, body, headers)
        response = connection.getresponse()
        first = response.read(1)
        first_byte = time.perf_counter() - began
        size = len(first) + len(response.read())
        if response.status >= 400:
            raise OSError(f"{path}: status {response.status}")
        parts = {name: float(text) / 1000 for name, text in _PART.findall(response.headers.get("server-timing", ""))}
        yield Sample(first_byte, time.perf_counter() - began, size, parts)
    connection.close()


def _line(name: str, seconds: float, total: float) -> str:
    return f"{name:<12} {seconds * 1000:10.3f} ms {seconds / total * 100:5.1f} %"
