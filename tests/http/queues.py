"""Requests that wait for a permit, and leave, or are over, before they get it."""

from __future__ import annotations

import contextlib
import select

from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until

DEADLINES = {"Service:Deadlines:RequestHeaders:0": "Request-Timeout"}


def one_waits_again_when_one_is_over(service: Service, path: str) -> None:
    """Of an endpoint as below, and with DEADLINES."""
    for _ in range(2):
        problem(service.get(path, headers={"Request-Timeout": "0.2"}), 504)


def one_waits_again_when_one_has_left(service: Service, path: str) -> None:
    """Of an endpoint whose only permit is taken, with room for one that waits. No other gets a permit in time."""
    left = f"{path} responded 499"
    for number in (1, 2):
        with contextlib.ExitStack() as impatient:
            asking = [impatient.enter_context(service.connect()) for _ in range(2)]
            for connection in asking:
                connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            answered, _, _ = select.select(asking, [], [], 30)
            assert len(answered) == 1, "one waits, the other is refused at once"
            assert answered[0].recv(12) == b"HTTP/1.1 429"
        wait_until(lambda number=number: service.log.count(left) == number, "it is noticed to be gone")  # type: ignore[misc]
