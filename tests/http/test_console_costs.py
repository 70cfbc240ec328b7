"""The console does nothing while no page is open: it has no thread, no task and no timer that could.

`python -m bench.observability` measures the rest, the metrics of each request.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.console import console_client
from tests.harness.console_in_process import ConsoleInProcess, console_in_process
from tests.harness.database import Database
from tests.harness.snapshots import read_snapshot, settings_of
from tests.harness.waiting import wait_until

TOKEN = "an operator's token of this test"
SETTINGS = {"Console:Enabled": "true", "Console:Url": "http://127.0.0.1:0", "Admin:BearerToken": TOKEN}
SQL = "create function item() returns int language sql as 'select 1'; comment on function item() is 'HTTP GET /item';"


@pytest.fixture
def console(database: Database, tmp_path: Path) -> Iterator[ConsoleInProcess]:
    database.execute(SQL)
    with console_in_process(settings_of(database, SETTINGS), read_snapshot(database), tmp_path) as running:
        yield running


def activities(console: ConsoleInProcess) -> tuple[set[threading.Thread], set[str]]:
    """Return the threads of this process that could act for the console, and the tasks of its event loop."""

    async def tasks() -> set[str]:
        return {task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()}

    # Idle threads of the executor wait for work that only a task gives them.
    threads = {thread for thread in threading.enumerate() if not thread.name.startswith("asyncio_")}
    return threads, asyncio.run_coroutine_threadsafe(tasks(), console.loop).result()


@pytest.mark.slow
def test_workers_are_polled_only_while_a_page_is_open(console: ConsoleInProcess) -> None:
    idle = activities(console)
    assert idle[1] == set()
    assert console.samples == []
    with console_client(console.url, TOKEN) as client:
        with client.stream("GET", "/console/api/live") as stream:
            lines = stream.iter_lines()
            while len(console.samples) < 3:
                assert next(lines) is not None
            assert activities(console)[0] > idle[0]
        wait_until(lambda: activities(console) == idle, "nothing is left of the page that was closed", 60)
