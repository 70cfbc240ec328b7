"""What the workers of a host share: seen by others after its commit, bounded, and announced at once."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from rowcall.core.cache.entry import Entry
from rowcall.service.shared_state import message_bus as bus_module
from rowcall.service.shared_state.environment import Environment, Transaction, bytes_in_use
from rowcall.service.shared_state.host_state import HostState
from rowcall.service.shared_state.memory_cache import MemoryCache
from rowcall.service.shared_state.message_bus import MessageBus
from rowcall.service.shared_state.single_flight import CacheLease
from rowcall.service.shared_state.state_folder import PREFIX, StateFolder

MB = 1_048_576

WRITER = """
import sys
from pathlib import Path
from rowcall.service.shared_state.environment import Environment
environment = Environment(Path(sys.argv[1]), 1048576)
with environment.write() as transaction:
    transaction.put(b"whole", b"1")
with environment.write() as transaction:
    transaction.put(b"half", b"1")
    print("in the middle", flush=True)
    sys.stdin.read()
"""

SPEAKER = """
import sys
from pathlib import Path
from rowcall.service.shared_state.message_bus import MessageBus
message_bus = MessageBus(Path(sys.argv[1]))
for number in range(int(sys.argv[2])):
    message_bus.publish("numbers", str(number).encode())
"""


def test_a_killed_writer_leaves_the_last_complete_state(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "one", MB)
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "one")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"in the middle\n"
    assert (environment.get(b"whole"), environment.get(b"half")) == (b"1", None)
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    with environment.write() as transaction:
        transaction.put(b"mine", b"1")
    assert (environment.get(b"half"), environment.get(b"mine")) == (None, b"1")
    environment.close()


def test_used_bytes_are_counted_in_pages_of_the_system(tmp_path: Path) -> None:
    """Pages of LMDB have 16 KiB on Apple silicon; here is no such system, so only its statistics are tested."""

    class LargePages:
        def stat(self) -> dict[str, int]:
            return {"psize": 16_384, "branch_pages": 1, "leaf_pages": 2, "overflow_pages": 3, "depth": 2, "entries": 9}

    assert bytes_in_use(cast("Transaction", LargePages())) == 6 * 16_384
    environment = Environment(tmp_path / "one", MB)
    with environment.write() as transaction:
        transaction.put(b"key", bytes(100_000))
        assert 100_000 < bytes_in_use(transaction) < 100_000 + 3 * os.sysconf("SC_PAGE_SIZE")
    environment.close()


async def _until(heard: list[int], count: int) -> None:
    async with asyncio.timeout(20):
        while len(heard) < count:  # noqa: ASYNC110 (the list is the condition)
            await asyncio.sleep(0)


@pytest.mark.slow
def test_messages_of_several_processes_are_delivered_once_and_in_order(tmp_path: Path) -> None:
    async def listen() -> list[int]:
        message_bus = MessageBus(tmp_path)
        heard: list[int] = []
        message_bus.subscribe("numbers", lambda message: heard.append(int(message)))
        message_bus.subscribe("others", lambda _message: pytest.fail("another topic"))
        speakers = [
            await asyncio.create_subprocess_exec(sys.executable, "-c", SPEAKER, str(tmp_path), "500") for _ in range(2)
        ]
        await _until(heard, 1000)
        for speaker in speakers:
            await speaker.wait()
        message_bus.close()
        return heard

    heard = asyncio.run(listen())
    assert sorted(heard) == sorted([*range(500)] * 2)
    # Each speaker's are in order: what a number follows is the one before it, of the same speaker or of the other.
    expected = [0, 0]
    for number in heard:
        assert number in expected
        expected[expected.index(number)] += 1


def test_a_listener_that_missed_messages_is_notified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus_module, "RETAINED_MESSAGES", 10)

    async def listen() -> tuple[list[int], int]:
        message_bus = MessageBus(tmp_path)
        heard: list[int] = []
        missed: list[int] = []
        message_bus.subscribe("numbers", lambda message: heard.append(int(message)), lambda: missed.append(1))
        for number in range(50):
            message_bus.publish("numbers", str(number).encode())
        await _until(heard, 10)
        message_bus.close()
        return heard, len(missed)

    heard, missed = asyncio.run(listen())
    assert (heard[-10:], missed) == (list(range(40, 50)), 1)


def test_closing_the_shared_state_removes_the_wakeup_pipe_of_the_process(tmp_path: Path) -> None:
    async def subscribe_and_close() -> None:
        host = HostState(tmp_path)
        host.message_bus.subscribe("numbers", lambda _message: None)
        assert len(list((tmp_path / "bells").iterdir())) == 1
        host.close()

    asyncio.run(subscribe_and_close())
    assert list((tmp_path / "bells").iterdir()) == []


def test_the_state_folder_of_a_dead_service_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowcall.service.shared_state.state_folder._SHARED_MEMORY", tmp_path)
    abandoned = tmp_path / f"{PREFIX}x"
    abandoned.mkdir()
    (abandoned / "owner").touch()
    begun = tmp_path / f"{PREFIX}y"
    begun.mkdir()
    first, second = StateFolder(), StateFolder()
    assert {path.name for path in tmp_path.iterdir()} == {begun.name, first.path.name, second.path.name}
    first.remove()
    assert not first.path.exists()
    assert second.path.exists()
    second.remove()


def test_folders_that_another_user_may_have_created_are_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everyone may create a folder in shared memory, with a link to any file as its lock."""
    monkeypatch.setattr("rowcall.service.shared_state.state_folder._SHARED_MEMORY", tmp_path)
    linked, foreign = tmp_path / f"{PREFIX}x", tmp_path / f"{PREFIX}y"
    for folder in (linked, foreign):
        folder.mkdir()
    (tmp_path / "file").touch()
    (linked / "owner").symlink_to(tmp_path / "file")
    StateFolder().remove()
    assert (linked / "owner").is_symlink()
    (foreign / "owner").touch()
    another = os.getuid() + 1
    monkeypatch.setattr("rowcall.service.shared_state.state_folder.os.getuid", lambda: another)
    StateFolder().remove()
    assert (foreign / "owner").exists()


def test_the_state_folder_of_a_service_killed_before_locking_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowcall.service.shared_state.state_folder._SHARED_MEMORY", tmp_path)
    abandoned = [tmp_path / f"rowcall-begun-{os.getuid()}-{name}" for name in "xy"]
    for folder in (*abandoned, begun := tmp_path / f"rowcall-begun-{os.getuid()}-z"):
        folder.mkdir()
    (abandoned[0] / "owner").touch()
    for folder in abandoned:
        os.utime(folder, (0, 0))
    first = StateFolder()
    assert {path.name for path in tmp_path.iterdir()} == {begun.name, first.path.name}
    first.remove()


def test_a_state_folder_is_invisible_until_it_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another service starts at each moment at which this one makes its folder."""
    monkeypatch.setattr("rowcall.service.shared_state.state_folder._SHARED_MEMORY", tmp_path)
    others: list[StateFolder] = []
    lock = fcntl.flock

    def start_another_first(descriptor: int, operation: int) -> None:
        monkeypatch.setattr("rowcall.service.shared_state.state_folder.fcntl.flock", lock)
        others.append(StateFolder())
        lock(descriptor, operation)

    monkeypatch.setattr("rowcall.service.shared_state.state_folder.fcntl.flock", start_another_first)
    first = StateFolder()
    others.append(StateFolder())
    assert {first.path, *(other.path for other in others)} == set(tmp_path.iterdir())
    assert (first.path / "owner").exists()
    for folder in (first, *others):
        folder.remove()


@pytest.mark.slow
def test_cached_responses_stay_within_their_memory_and_the_latest_remain(tmp_path: Path) -> None:
    """100,000 answers of 1 kB where 32 MB may be used."""

    async def fill() -> tuple[int, int, int]:
        host = HostState(tmp_path)
        size = 32 * MB
        responses = MemoryCache(host.cached_responses("answers", size), host.message_bus)
        body = b"x" * 1024
        for number in range(100_000):
            lease = responses.begin(b"key %d" % number, 1.0)
            assert not isinstance(lease, Entry)
            _as_ticket(lease).keep(Entry(body, 1), None if number % 2 else 3600.0)
        taken = host.cached_responses("answers", size).used
        file = (tmp_path / "answers" / "memory").stat().st_blocks * 512
        latest = sum(responses.get(b"key %d" % number) is not None for number in range(99_000, 100_000))
        host.close()
        return taken, file, latest

    taken, file, latest = asyncio.run(fill())
    assert taken <= 32 * MB
    assert file <= 32 * MB
    assert latest == 1000


def _as_ticket(found: object) -> CacheLease:
    return found  # type: ignore[return-value]


def test_cached_responses_of_very_different_sizes_never_fill_the_memory(tmp_path: Path) -> None:
    async def fill() -> int:
        host = HostState(tmp_path)
        responses = MemoryCache(host.cached_responses("answers", 4 * MB), host.message_bus)
        for number in range(2_000):
            result = responses.begin(b"key %d" % number, 1.0)
            if hasattr(result, "keep"):
                _as_ticket(result).keep(Entry(b"x" * (number * 7919 % 600_000), 1), None)
        last = sum(responses.get(b"key %d" % number) is not None for number in range(1_990, 2_000))
        host.close()
        return last

    assert asyncio.run(fill()) > 0
