"""Waiting for a condition with a deadline, so that no test sleeps for a guessed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, TypeVar

Value = TypeVar("Value")

POLL_SECONDS = 0.02
"""Shortest interval between two checks of a condition."""
SHARE = 4
"""Factor between the duration of a check and the pause after it, so that checks in a database use little CPU."""
LONGEST_PAUSE = 0.1


def wait_until(condition: Callable[[], Value | Literal[False] | None], what: str, seconds: float = 20.0) -> Value:
    """Return the first true value of `condition`; fail the test if there is none within `seconds`.

    The default is long, because other processes may use all processors.
    """
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        value = condition()
        if value:
            return value
        now = time.monotonic()
        if now > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain: {what} (last seen: {value!r})")
        time.sleep(max(POLL_SECONDS, min(SHARE * (now - began), LONGEST_PAUSE)))
