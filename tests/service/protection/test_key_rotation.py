"""Hosts that share where keys are kept: one key for all of them, and each learns what another has put there
(protection-1 to protection-7)."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from rowcall.core.protection.key_ring import SECRET, Key, KeyRing, element_text, plain_secret
from rowcall.service.database.connector import ConnectionTarget, Connector
from rowcall.service.protection.key_encryption import PlaintextSecrets
from rowcall.service.protection.key_rotation import KeyRotation, Renewal
from rowcall.service.protection.key_storage import Folder, Storage, Table
from tests.harness.database import Database

DAY = 86_400.0
HOSTS = 8

STORAGE = """
create table protection_key (name text primary key, data text not null);
create procedure store_key(text, text) language sql as 'insert into protection_key values ($1, $2)';
"""


def host(storage: Storage, publish: Callable[[KeyRing], None] = lambda ring: None) -> KeyRotation:
    return KeyRotation(storage, PlaintextSecrets(), Renewal(90 * DAY), publish)


def new_key(age: float = 0.0) -> Key:
    now = time.time()
    return Key(os.urandom(16), now - age, now - age, now - age + 90 * DAY, os.urandom(SECRET))


async def started(storages: list[Storage]) -> list[set[bytes]]:
    """The keys that each host knows when all have started at once."""
    hosts = [host(storage) for storage in storages]
    await asyncio.gather(*(each.start() for each in hosts))
    return [{key.id for key in each.ring.keys} for each in hosts]


def test_hosts_that_start_simultaneously_create_one_key(tmp_path: Path) -> None:
    known = asyncio.run(started([Folder(tmp_path / "keys") for _ in range(HOSTS)]))
    assert len(set.union(*known)) == 1
    assert len(list((tmp_path / "keys").glob("key-*.json"))) == 1


def test_hosts_that_share_a_database_create_one_key(database: Database) -> None:
    database.execute(STORAGE)
    target = ConnectionTarget({name: str(value) for name, value in conninfo_to_dict(database.conninfo).items()})

    async def run() -> list[set[bytes]]:
        tables = [Table(Connector(target), "select data from protection_key", "call store_key($1, $2)")] * HOSTS
        return await started(list(tables))

    assert len(set.union(*asyncio.run(run()))) == 1
    assert database.value("select count(*) from protection_key") == 1


def test_hosts_create_one_successor_of_a_key(tmp_path: Path) -> None:
    async def run() -> list[set[bytes]]:
        folder = Folder(tmp_path)
        old = new_key(age=89 * DAY)
        await folder.store(old.name, element_text(old, plain_secret(old.secret)))
        return await started([Folder(tmp_path) for _ in range(HOSTS)])

    assert len(set.union(*asyncio.run(run()))) == 2


def test_a_folder_that_cannot_be_locked_is_used(tmp_path: Path) -> None:
    (tmp_path / ".lock").mkdir()
    assert len(asyncio.run(started([Folder(tmp_path)]))[0]) == 1


@pytest.mark.slow
def test_a_key_added_to_the_folder_is_loaded(tmp_path: Path) -> None:
    newer = new_key()

    async def run() -> None:
        learnt = asyncio.Event()

        def look(ring: KeyRing) -> None:
            if newer.id in {key.id for key in ring.keys}:
                learnt.set()

        keeper = host(Folder(tmp_path), look)
        await keeper.start()
        running = asyncio.create_task(keeper.run())
        await Folder(tmp_path).store(newer.name, element_text(newer, plain_secret(newer.secret)))
        await asyncio.wait_for(learnt.wait(), 60)
        running.cancel()

    asyncio.run(run())


def test_a_deleted_key_is_reported_once_and_still_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        keeper = host(Folder(tmp_path / "keys"))
        await keeper.start()
        (key,) = keeper.ring.keys
        shutil.rmtree(tmp_path / "keys")
        for _ in range(2):
            await keeper.check()
        assert keeper.ring.keys == (key,)

    with caplog.at_level(logging.ERROR, "rowcall"):
        asyncio.run(run())
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        f"key-{caplog.records[0].getMessage()[4:40]} is missing in the key storage, or cannot be read there any more"
    ]
