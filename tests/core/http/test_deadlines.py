"""Forms of the headers with which clients announce how long they wait."""

from __future__ import annotations

import pytest

from rowcall.core.http.deadlines import seconds_left

NOW = 1_790_000_000.0
"""2026-09-21T14:13:20Z"""


@pytest.mark.parametrize(
    ("name", "value", "seconds"),
    [
        ("request-timeout", "5", 5.0),
        ("request-timeout", " 0.25 ", 0.25),
        ("request-timeout", "500ms", 0.5),
        ("request-timeout", "-1", None),
        ("request-timeout", "soon", None),
        ("grpc-timeout", "2S", 2.0),
        ("grpc-timeout", "250m", 0.25),
        ("grpc-timeout", "1H", 3600.0),
        ("grpc-timeout", "123456789S", None),
        ("grpc-timeout", "5", None),
        ("x-envoy-expected-rq-timeout-ms", "1500", 1.5),
        ("x-envoy-expected-rq-timeout-ms", "1s", None),
        ("deadline", "2026-09-21T14:13:25Z", 5.0),
        ("deadline", "0001-01-01T00:00:00+05:00", None),
        ("deadline", "Mon, 99999999999999999999 Sep 2026 14:13:15 GMT", None),
        ("deadline", "2026-09-21T16:13:20.500+02:00", 0.5),
        ("deadline", "Mon, 21 Sep 2026 14:13:15 GMT", -5.0),
        ("deadline", "1790000001.5", 1.5),
        ("deadline", "2026-09-21T14:13:25", None),
        ("deadline", "١٢", None),
        ("deadline", "tomorrow", None),
        ("deadline", "9" * 400, None),
    ],
)
def test_a_header_gives_the_remaining_seconds(name: str, value: str, seconds: float | None) -> None:
    assert seconds_left(name, value, NOW) == (None if seconds is None else pytest.approx(seconds))
