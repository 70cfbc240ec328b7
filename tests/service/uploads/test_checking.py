"""A command that checks uploads ends with its request, with all processes that it has started."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from pathlib import Path

import psutil
import pytest

from rowcall.service.uploads.checking import passes
from rowcall.service.uploads.spool import SpooledFile
from tests.ext.wire import run, until


@pytest.mark.slow
def test_child_processes_of_a_check_command_end_with_it(tmp_path: Path) -> None:
    result = tmp_path / "child"
    script = f"sleep 600 & echo $! > {result}.new; mv {result}.new {result}; wait"

    async def cancelled() -> psutil.Process:
        with tempfile.TemporaryFile(buffering=0) as empty:
            checking = asyncio.create_task(passes(("sh", "-c", script), SpooledFile("a", "", empty, 0)))
            await until(result.exists)
            child = psutil.Process(int(result.read_text()))
            checking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await checking
            return child

    _, alive = psutil.wait_procs([run(cancelled())], 30)
    assert alive == []


def test_a_check_command_cancelled_during_its_start_ends(tmp_path: Path) -> None:
    marker = str(tmp_path / "marker")
    script = f"sh -c 'sleep 600' {marker} & wait"

    async def cancelled() -> None:
        with tempfile.TemporaryFile(buffering=0) as empty:
            checking = asyncio.create_task(passes(("sh", "-c", script), SpooledFile("a", "", empty, 0)))
            await asyncio.sleep(0)  # the task has asked for the process and has not got it
            checking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await checking

    run(cancelled())
    assert [process for process in psutil.process_iter(["cmdline"]) if marker in (process.info["cmdline"] or [])] == []
