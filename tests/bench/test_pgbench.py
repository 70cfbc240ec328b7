"""What pgbench prints, of two generations."""

import pytest

from bench.pgbench import read_report

REPORT = """transaction type: call.sql
number of clients: 8
number of transactions actually processed: 5000
number of failed transactions: 0 (0.000%)
latency average = 0.4 ms
initial connection time = 9.1 ms
tps = 2500.000000 (without initial connection time)
"""


def test_the_rate_excludes_connecting() -> None:
    load = read_report(REPORT, [], 0.0)
    assert (load.requests, load.seconds, load.errors) == (5000, 2.0, 0)


def test_failed_transactions_are_errors() -> None:
    assert read_report(REPORT.replace("failed transactions: 0", "failed transactions: 3"), [], 0.0).errors == 3


def test_percentiles_come_from_the_sampled_log() -> None:
    load = read_report(REPORT, [float(n) for n in range(100)], 0.0)
    assert (load.p50, load.p99) == (50.0, 99.0)


def test_unexpected_output_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="unexpected output"):
        read_report("pgbench (20)", [], 0.0)
