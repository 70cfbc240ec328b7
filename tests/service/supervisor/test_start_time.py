"""From which moment "Started in" counts."""

from __future__ import annotations

import subprocess
import sys
import time

from rowcall.service import IMPORTED_AT
from rowcall.service.supervisor.start import begin_start, process_start

_START_OF_CHILD = """
import sys
sys.stdin.readline()
from rowcall.service.supervisor.start import process_start
print(process_start())
"""
_TICK = 0.01
"""Seconds: what the kernel rounds down to."""


def test_the_start_time_is_that_of_the_process_and_not_of_imports() -> None:
    before = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-c", _START_OF_CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        created = time.monotonic()
        output, _ = child.communicate("\n")
    assert before - _TICK <= float(output) <= created
    assert process_start() < IMPORTED_AT


def test_a_restart_after_a_changed_configuration_resets_the_start_time() -> None:
    begin_start()
    before = time.monotonic()
    assert before <= begin_start() <= time.monotonic()
