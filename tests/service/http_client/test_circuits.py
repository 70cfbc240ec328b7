"""Records of servers that fail, where there are more of them than the store has room for."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowcall.core.outgoing.address import Origin
from rowcall.service.http_client.circuit_breakers import CircuitBreakers, CircuitOpenError
from rowcall.service.shared_state.environment import LEAST, Environment


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.0, 3600.0])
def test_a_full_table_of_circuit_breakers_fails_no_request(tmp_path: Path, seconds: float) -> None:
    environment = Environment(tmp_path / "circuits", LEAST)
    circuits = CircuitBreakers(environment, 1, seconds)
    first = Origin("http", "first.example", 80)
    circuits.record_failure(first)
    for number in range(20_000):
        origin = Origin("http", f"h{number * 2_654_435_761 % 2**32:x}.example", 80)
        circuits.record_failure(origin)
        if number % 7 == 0:
            circuits.record_success(origin)
    if seconds:
        with pytest.raises(CircuitOpenError):
            circuits.check(first)
    else:
        circuits.check(first)
        assert environment.get(b"chttp://first.example") is None, "its time was over"
    environment.close()
