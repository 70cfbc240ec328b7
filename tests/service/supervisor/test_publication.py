"""The numbers of schema snapshots that the supervisor publishes to its workers."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from rowcall.service.supervisor.processes.workers import Workers


async def _activated() -> None:
    """Do nothing before the activation."""


def test_the_number_of_a_failed_publication_is_not_used_again() -> None:
    async def publish_twice() -> None:
        none = cast(Any, None)
        workers = Workers(0, none, None, first_messages=none, hear=none, on_gone=none)
        numbers = []
        for _ in range(2):
            snapshot = SchemaSnapshot(workers.next_number, (), {})
            assert await workers.publish(snapshot, _activated) == "no worker could be started; the log says why"
            numbers.append(snapshot.number)
        assert (numbers, workers.snapshot.number) == ([1, 2], 0)

    asyncio.run(publish_twice())
