"""Cost of counting for a request: the same request context in the same runner, with and without a meter.

The limit is half a microsecond. Results are compared with `--benchmark-compare-fail`, and by the ratio that
the last test prints; no test fails because of a slow machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from rowcall.ext.driver.meter import Meter, columns
from rowcall.ext.driver.request_context import RequestContext, StepRunner

HEADERS = [("content-type", "application/json")]
BODY = b"1"


class Protocol:
    """A protocol without cost."""

    def response_bytes(self, status: int, headers: Any, body: bytes) -> None:
        pass


def contexts(*ahead: Any) -> Callable[[], None]:
    def respond(context: RequestContext) -> None:
        context.protocol.response_bytes(200, HEADERS, BODY)

    runner = StepRunner(lambda context, waiting: None, lambda context, error: None)
    steps, protocol = (*ahead, respond), Protocol()

    def thousand() -> None:
        for _ in range(1000):
            runner.start(RequestContext(None, protocol), steps)

    return thousand


def meter() -> tuple[Meter, memoryview]:
    memory = memoryview(bytearray(8 * len(columns)))
    return Meter(memory), memory


@pytest.mark.parametrize("counted", [False, True], ids=["bare", "counted"])
def test_thousand_requests(benchmark: Any, counted: bool) -> None:
    benchmark(contexts(*([meter()[0]] if counted else [])))


def test_additional_cost_of_a_request(benchmark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    request_meter, memory = meter()
    bare, counted = contexts(), contexts(request_meter)
    rounds = [(_seconds(bare), _seconds(counted)) for _ in range(300)]
    benchmark(counted)
    more = min(after for _, after in rounds) - min(before for before, _ in rounds)
    with capsys.disabled():
        print(f"\ncounting costs {more * 1e6:.0f} ns a request")  # A round has a thousand requests.
    assert memory.cast("d")[columns.index("2xx")] % 1000 == 0


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
