"""Clients that leave while the result of another worker, for which their request waits, is on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

from rowcall.core.limits.policy import Kind, Policy
from rowcall.service.limits.host_permits import HostPermits
from rowcall.service.shared_state.environment import LEAST, Environment
from rowcall.service.shared_state.message_bus import MessageBus

OLDEST_FIRST = Policy("gate", Kind.CONCURRENCY, 1, queue=1)
NEWEST_FIRST = Policy("gate", Kind.CONCURRENCY, 1, queue=1, oldest_first=False)


def run(folder: Path, test: Callable[[HostPermits, HostPermits], Coroutine[None, None, None]]) -> None:
    """Run a test with the permits of two workers."""
    environment, message_bus = Environment(folder / "permits", LEAST), MessageBus(folder)

    async def with_permits() -> None:
        here, there = (HostPermits(environment, message_bus, (OLDEST_FIRST,)) for _ in range(2))
        there._process += 1
        await test(here, there)
        here.close()
        there.close()

    asyncio.run(with_permits())
    message_bus.close()
    environment.close()


async def waiting(permits: HostPermits, policy: Policy) -> tuple[int, asyncio.Task[bool]]:
    """Return number and task of a request that waits."""
    number = permits.request_concurrency_permit(policy, "one")
    assert number is not True
    assert number is not False
    task = asyncio.ensure_future(permits.wait(number))
    await asyncio.sleep(0)
    return number, task


def leave(permits: HostPermits, policy: Policy, number: int, task: asyncio.Task[bool]) -> None:
    """End the wait of a request whose client has left."""
    assert not task.done()
    task.cancel()
    permits.end_wait(policy, "one", number)


def test_a_permit_granted_to_an_abandoned_wait_is_returned(tmp_path: Path) -> None:
    async def test(here: HostPermits, there: HostPermits) -> None:
        assert there.request_concurrency_permit(OLDEST_FIRST, "one") is True
        number, task = await waiting(here, OLDEST_FIRST)
        there.release(OLDEST_FIRST, "one")
        leave(here, OLDEST_FIRST, number, task)
        async with asyncio.timeout(30):
            while here._waiting:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
        assert there.request_concurrency_permit(OLDEST_FIRST, "one") is True

    run(tmp_path, test)


def test_an_abandoned_wait_that_is_refused_returns_no_permit(tmp_path: Path) -> None:
    async def test(here: HostPermits, there: HostPermits) -> None:
        assert here.request_concurrency_permit(NEWEST_FIRST, "one") is True
        number, task = await waiting(here, NEWEST_FIRST)
        _, newer = await waiting(there, NEWEST_FIRST)
        leave(here, NEWEST_FIRST, number, task)
        await asyncio.sleep(0.2)
        assert not newer.done(), "the permit is held by the first request"
        here.release(NEWEST_FIRST, "one")
        assert await asyncio.wait_for(newer, 30)
        assert not here._waiting

    run(tmp_path, test)
