"""Endless background work starts again when it ends, and the reason is logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from rowcall.service.background import Background
from tests.ext.wire import run, until


async def fail() -> None:
    raise ValueError("broken")


async def give_up() -> None:
    raise asyncio.CancelledError


async def finish() -> None:
    return


@pytest.mark.parametrize("ending", [fail, give_up, finish])
def test_background_work_that_ends_is_restarted(
    ending: Callable[[], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    begun = []

    async def work() -> None:
        begun.append(True)
        await ending()

    async def keep() -> None:
        background = Background()
        background.keep("the work", work)
        await until(lambda: len(begun) == 3)
        background.cancel()
        await until(lambda: not list(background))

    with caplog.at_level(logging.ERROR):
        run(keep())
    assert [record.getMessage().partition(" and ")[0] for record in caplog.records][:2] == ["the work has ended"] * 2


def test_cancelled_background_work_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    async def keep() -> None:
        background = Background()
        background.keep("the work", wait)
        background.start(asyncio.sleep(60))
        await asyncio.sleep(0)
        background.cancel()
        await until(lambda: not list(background))

    run(keep())
    assert caplog.records == []


@pytest.mark.parametrize("ending", [fail, finish])
def test_cancelled_background_work_that_ends_otherwise_is_not_restarted(
    ending: Callable[[], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await ending()

    async def keep() -> None:
        background = Background()
        background.keep("the work", work)
        await asyncio.sleep(0)
        background.cancel()
        await until(lambda: not list(background))

    run(keep())
    assert caplog.records == []


def test_an_error_of_one_time_background_work_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def begin() -> None:
        background = Background()
        background.start(fail())
        await until(lambda: not list(background))

    run(begin())
    assert [record.getMessage() for record in caplog.records] == ["a background task failed"]
