"""Format metrics as text for Prometheus: its own format 0.0.4, or OpenMetrics 1.0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

PLAIN = "text/plain; version=0.0.4; charset=utf-8"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram. bounds: ascending upper bounds of buckets. counts: number of values in each bucket, not cumulative,
    and last those above all bounds. total: sum of the values."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total: float


@dataclass(slots=True)
class Family:
    """One metric. name: without `_total`. kind: counter, gauge or histogram. values: each with its labels."""

    name: str
    kind: str
    help: str
    values: list[tuple[Labels, float | Histogram]] = field(default_factory=list)

    def add(self, value: float | Histogram, **labels: str) -> None:
        self.values.append((tuple(labels.items()), value))


def single_value_family(name: str, kind: str, text: str, value: float) -> Family:
    """Return a metric with one value, without labels. name, kind: as in `Family`. text: explains the metric."""
    return Family(name, kind, text, [((), value)])


def exposition(families: Iterable[Family], *, open_metrics: bool) -> bytes:
    """Return the text of the metrics; families without a value are left out. open_metrics: in the format
    OpenMetrics; otherwise in the text format of Prometheus."""
    lines = [line for family in families if family.values for line in _lines(family, open_metrics=open_metrics)]
    if open_metrics:
        lines.append("# EOF")
    return ("\n".join(lines) + "\n").encode()


def wants_open_metrics(accept: str) -> bool:
    """Return whether `Accept` names OpenMetrics with at least the quality of text/plain (RFC 9110, 12.5.1).

    accept: value of the header; may be empty. A client that does not name OpenMetrics gets format 0.0.4, which all
    clients read.
    """
    qualities: dict[str, float] = {}
    for name, quality in _ranges(accept):
        qualities[name] = max(quality, qualities.get(name, 0.0))
    preferred = qualities.get("application/openmetrics-text", 0.0)
    other = next((qualities[name] for name in ("text/plain", "text/*", "*/*") if name in qualities), 0.0)
    return preferred > 0 and preferred >= other


def _ranges(accept: str) -> Iterator[tuple[str, float]]:
    for part in accept.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = next((piece[2:] for piece in parameters if piece.startswith("q=")), "1")
        try:
            yield name, float(quality)
        except ValueError:
            yield name, 0.0


def _lines(family: Family, *, open_metrics: bool) -> Iterator[str]:
    suffix = "_total" if family.kind == "counter" else ""
    name = family.name if open_metrics else family.name + suffix
    yield f"# HELP {name} {_escape_help(family.help)}"
    yield f"# TYPE {name} {family.kind}"
    for labels, value in family.values:
        if isinstance(value, Histogram):
            yield from _histogram(family.name, labels, value)
        else:
            yield f"{family.name}{suffix}{_labels(labels)} {_number(value)}"


def _histogram(name: str, labels: Labels, histogram: Histogram) -> Iterator[str]:
    so_far = 0.0
    for bound, count in zip((*map(_number, histogram.bounds), "+Inf"), histogram.counts, strict=True):
        so_far += count
        yield f"{name}_bucket{_labels((*labels, ('le', bound)))} {_number(so_far)}"
    yield f"{name}_sum{_labels(labels)} {_number(histogram.total)}"
    yield f"{name}_count{_labels(labels)} {_number(so_far)}"


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escape_label(value)}"' for name, value in labels) + "}" if labels else ""


def _number(value: float) -> str:
    # OpenMetrics requires bounds of buckets as floats: 1.0.
    return repr(float(value))


def _escape_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _escape_label(text: str) -> str:
    return _escape_help(text).replace('"', '\\"')


GAUGES: Mapping[str, str] = {
    "rowcall_database_connections": "Open connections to a database, by pool.",
    "rowcall_database_requests_in_flight": "Requests in flight on the connections of a pool.",
    "rowcall_database_requests_waiting": "Requests that wait for a connection of a pool.",
    "rowcall_event_streams": "Open event streams, by path.",
    "rowcall_http_client_connections": "Open connections to other servers.",
    "rowcall_jobs": "Jobs in the database that wait or run, by queue.",
    "rowcall_mail": "Mail in the database that waits or has failed.",
    "rowcall_requests_in_progress": "Requests in progress, including those to paths without an endpoint.",
    "rowcall_upstream_connections": "Former name of rowcall_http_client_connections; deprecated.",
    "rowcall_webhook_deliveries": "Deliveries in the database that wait or are dead, by subscriber.",
    "rowcall_exchanges_running": "Former name of rowcall_requests_in_progress; deprecated.",
}
"""Gauges that are read from the workers for each request of metrics, with their help texts."""

GAUGES_OF_DATABASE = frozenset({"rowcall_jobs", "rowcall_mail", "rowcall_webhook_deliveries"})
"""Gauges that every worker reads from the database: the largest value is shown instead of the sum."""

FORMER_GAUGES: Mapping[str, str] = {
    "rowcall_http_client_connections": "rowcall_upstream_connections",
    "rowcall_requests_in_progress": "rowcall_exchanges_running",
}
"""Present names of gauges and their former names, which are served as well."""
