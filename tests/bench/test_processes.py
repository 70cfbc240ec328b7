"""CPU time and memory of a process tree, on real processes."""

import os
import subprocess
import sys

import pytest

from bench.processes import PROC, usage

pytestmark = pytest.mark.skipif(not PROC.joinpath("self", "stat").exists(), reason="needs /proc")

# More than the test requires: the system counts in ticks, cuts off what is less, and two counts differ by a tick.
BURN = "import time\nwhile time.process_time() < 0.3: pass\n"


def test_running_and_ended_children_are_counted() -> None:
    before = usage(os.getpid())
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}]); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        during = usage(child.pid)
        whole = usage(os.getpid())
        child.communicate(b"\n")
    assert during.cpu >= 0.2
    assert during.resident[child.pid] > 1
    assert whole.cpu - before.cpu >= 0.2


def test_an_ended_process_has_no_usage() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert usage(child.pid).cpu == 0
