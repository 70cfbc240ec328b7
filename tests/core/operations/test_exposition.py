"""Metrics as text, parsed by Prometheus' own Python client."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open_metrics
from prometheus_client.parser import text_string_to_metric_families as read_plain

from rowcall.core.operations.exposition import Family, Histogram, exposition, wants_open_metrics


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", False),
        ("*/*", False),
        ("text/html", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", True),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.7", False),
        ("application/openmetrics-text;q=0", False),
        ("application/openmetrics-text;q=much", False),
    ],
)  # fmt: skip
def test_the_accept_header_selects_the_format(accept: str, expected: bool) -> None:
    assert wants_open_metrics(accept) is expected


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\x00"), max_size=20)


@given(texts, texts, st.floats(0, 1e15), st.lists(st.integers(0, 10**9), min_size=3, max_size=3))
def test_both_formats_have_the_same_values(help_text: str, label: str, value: float, counts: list[int]) -> None:
    requests = Family("requests", "counter", help_text)
    requests.add(value, route=label)
    duration = Family("duration_seconds", "histogram", "time")
    duration.add(Histogram((0.5, 1.0), tuple(map(float, counts)), value), route=label)
    families = [requests, Family("nothing", "gauge", "empty"), duration]
    plain = {f.name: f for f in read_plain(exposition(families, open_metrics=False).decode())}
    text = exposition(families, open_metrics=True).decode()
    opened = {f.name: f for f in read_open_metrics(text)}  # type: ignore[no-untyped-call]  # this parser has no types
    for read in (plain, opened):
        assert set(read) == {"requests", "duration_seconds"}
        assert [(s.name, s.labels, s.value) for s in read["requests"].samples] == [
            ("requests_total", {"route": label}, value)
        ]
        response = [(s.name.removeprefix("duration_seconds_"), s.labels.get("le"), s.value)
                 for s in read["duration_seconds"].samples]  # fmt: skip
        assert response == [
            ("bucket", "0.5", counts[0]),
            ("bucket", "1.0", counts[0] + counts[1]),
            ("bucket", "+Inf", sum(counts)),
            ("sum", None, value),
            ("count", None, sum(counts)),
        ]
