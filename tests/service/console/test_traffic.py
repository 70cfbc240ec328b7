"""Traffic of the last hour is the difference of counters, from samples of those who look."""

from __future__ import annotations

from rowcall.ext.driver.meter import columns
from rowcall.service.console.traffic import BUCKETS, HOUR, STEP, Traffic
from rowcall.service.metrics.segments import Row

ITEMS = ("GET", "/items")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def rows(requests: int, errors: int = 0, routine: str = "public.items") -> Row:
    """Return counters of successful requests, of which each took the time of the first bucket, and of errors."""
    numbers = dict.fromkeys(columns, 0.0)
    numbers |= {"2xx": float(requests), "5xx": float(errors), BUCKETS[0]: float(requests + errors)}
    return Row(("endpoint", *ITEMS, routine), numbers)


def requests(found: tuple[float, dict[tuple[str, str], dict[str, float]]]) -> tuple[float, float]:
    seconds, traffic = found
    return seconds, traffic[ITEMS]["requests"] if ITEMS in traffic else 0


def test_requests_of_the_first_hour_are_counted_from_the_start() -> None:
    clock = Clock()
    traffic = Traffic(clock)
    clock.now += HOUR - 1
    assert requests(traffic.since([rows(7)])) == (HOUR - 1, 7)


def test_the_first_reading_after_an_hour_counts_subsequent_requests_only() -> None:
    clock = Clock()
    traffic = Traffic(clock)
    clock.now += 10 * HOUR
    assert requests(traffic.since([rows(1000)])) == (0, 0)
    clock.now += 60
    assert requests(traffic.since([rows(1003, 2)])) == (60, 5)


def test_requests_older_than_an_hour_are_left_out() -> None:
    clock = Clock()
    traffic = Traffic(clock)
    for number in range(200):
        clock.now += STEP
        seconds, found = requests(traffic.since([rows(number)]))
        assert seconds <= HOUR
        assert found <= HOUR / STEP
    assert (seconds, found) == (HOUR, HOUR / STEP)


def test_the_number_of_stored_samples_is_limited() -> None:
    clock = Clock()
    traffic = Traffic(clock)
    for _ in range(10_000):
        clock.now += 1
        traffic.since([rows(1)])
    assert len(traffic._samples) <= HOUR / STEP + 1
    assert len({id(sample.numbers[ITEMS]) for sample in traffic._samples}) == 1


def test_overloads_are_counted_together_and_idle_endpoints_left_out() -> None:
    clock = Clock()
    traffic = Traffic(clock)
    _, found = traffic.since([rows(1), rows(2, 1, "public.other"), Row(("worker", "unrouted"), {})])
    assert found[ITEMS]["requests"] == 4
    assert found[ITEMS]["errors"] == 1
    assert found[ITEMS]["statuses"] == {"2xx": 3, "5xx": 1}
    assert 0 < found[ITEMS]["p50Seconds"] <= found[ITEMS]["p99Seconds"]
    clock.now += STEP
    assert traffic.since([rows(0)])[1] == {}
