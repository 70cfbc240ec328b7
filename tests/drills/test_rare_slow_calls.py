"""One call in a hundred takes 300 ms: calls that take a millisecond are all served.

The p99 of another endpoint is reported as a ratio to its p99 without the slow calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function bimodal(_seconds float) returns int language plpgsql stable as
$$ begin perform pg_sleep(_seconds); return 1; end $$;
create function quick() returns int language sql stable as 'select 2';
comment on function bimodal(float) is 'HTTP GET /bimodal
timeout 500ms';
comment on function quick() is 'HTTP GET /quick
timeout 500ms';
"""
SECONDS = 8.0
ONE_IN = 100


def run(service: Service, slow: float) -> float:
    """The p99 of /quick in seconds beside calls of /bimodal of which one in a hundred takes `slow` seconds."""
    end = time.monotonic() + SECONDS

    def call_bimodal(caller: int) -> None:
        number = caller * 23
        with service.new_client() as client:
            while time.monotonic() < end:
                number += 1
                seconds = 0 if number % ONE_IN else slow
                response = client.get(f"/bimodal?seconds={seconds}")
                assert response.status_code == 200 or seconds, response.text

    def call_quick(_caller: int) -> list[float]:
        durations = []
        with service.new_client() as client:
            while time.monotonic() < end:
                began = time.monotonic()
                response = client.get("/quick")
                durations.append(time.monotonic() - began)
                assert (response.status_code, response.text) == (200, "2")
        return durations

    with ThreadPoolExecutor(6) as pool:
        bimodal = [pool.submit(call_bimodal, caller) for caller in range(4)]
        durations = sorted(
            each for future in [pool.submit(call_quick, caller) for caller in range(2)] for each in future.result()
        )
        for future in bimodal:
            future.result()
    return durations[len(durations) * 99 // 100]


def test_short_calls_are_served_beside_rare_slow_calls(
    own_database: Database, serve_once: Serve, record_property: Callable[[str, object], None]
) -> None:
    service = serve_once(own_database, SQL)
    alone = run(service, 0)
    beside = run(service, 0.3)
    record_property("p99 beside slow calls / p99 without", f"{beside / alone:.2f}")
    print(f"p99 of /quick: {alone * 1000:.1f} ms, beside slow calls {beside * 1000:.1f} ms, ratio {beside / alone:.2f}")
