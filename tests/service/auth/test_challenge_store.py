"""The store of issued challenges of one host."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rowcall.service.auth.passkeys import challenge_store
from rowcall.service.auth.passkeys.challenge_store import ADD, LOGIN, REGISTER, HostChallengeStore, IssuedChallenge
from rowcall.service.shared_state.host_state import HostState


def test_challenges_expire(tmp_path: Path) -> None:
    async def use() -> None:
        host = HostState(tmp_path)
        issue = IssuedChallenge(ADD, "digest", "{}")
        await HostChallengeStore(host, 60).remember("1", issue)
        await HostChallengeStore(host, -1).remember("2", issue)
        assert await HostChallengeStore(host, 60).find("1", ADD) == issue
        with pytest.raises(LookupError):
            await HostChallengeStore(host, 60).find("2", ADD)
        assert await HostChallengeStore(host, 60).find("3", ADD) is None
        host.close()

    asyncio.run(use())


def test_anonymous_challenges_do_not_displace_those_of_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(challenge_store, "MOST", 2)

    async def use() -> None:
        host = HostState(tmp_path)
        store = HostChallengeStore(host, 60)
        issues = [IssuedChallenge(flow, "") for flow in (LOGIN, REGISTER, REGISTER, ADD)]
        room = [await store.remember(str(number), issue) for number, issue in enumerate(issues)]
        assert room == [True, True, False, True]
        host.close()

    asyncio.run(use())
