"""More callers than the store of the host has room for: some are counted anew, and no request fails for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import lmdb
import pytest

from rowcall.core.limits.policy import Kind, Policy
from rowcall.service.limits.host_permits import HostPermits
from rowcall.service.shared_state.environment import LEAST, Environment
from rowcall.service.shared_state.message_bus import MessageBus

WINDOW = Policy("window", Kind.FIXED_WINDOW, 100, 3600.0)
GATE = Policy("gate", Kind.CONCURRENCY, 5)
CALLERS = 12_000


@pytest.mark.slow
def test_a_full_permit_store_refuses_no_caller_and_is_cleaned_up(tmp_path: Path) -> None:
    environment, message_bus = Environment(tmp_path / "permits", LEAST), MessageBus(tmp_path)

    async def crowd() -> None:
        permits = HostPermits(environment, message_bus, (WINDOW, GATE))
        for number in range(CALLERS):
            # Far apart from each other, as keys are.
            assert permits.request_permit(WINDOW, f"{number * 2_654_435_761 % 2**32:x}").allowed
            assert permits.request_concurrency_permit(GATE, "one") is True
            permits.release(GATE, "one")
        assert permits._warned
        permits._sweep()
        permits.close()

    asyncio.run(crowd())
    message_bus.close()
    environment.close()


def test_the_cleanup_continues_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment, message_bus = Environment(tmp_path / "permits", LEAST), MessageBus(tmp_path)

    def fail(*_args: object, **_options: object) -> bool:
        raise lmdb.MapFullError("write")

    async def sweep() -> None:
        permits = HostPermits(environment, message_bus, (WINDOW,))
        before = permits._sweeping
        monkeypatch.setattr(environment, "write", fail)
        permits._sweep()
        assert permits._sweeping is not before
        assert permits.request_concurrency_permit(GATE, "one") is True
        permits.release(GATE, "one")
        assert permits.request_permit(WINDOW, "one").allowed
        permits.close()

    asyncio.run(sweep())
    message_bus.close()
    environment.close()
