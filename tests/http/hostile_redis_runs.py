"""Requests to a service with a hostile Redis: shared by the short test and the drill."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.harness.hostile_redis import HostileRedis
from tests.harness.service import Service

SQL = """
create function echoed(_a text) returns text language sql as $$ select 'value of ' || _a $$;
comment on function echoed(text) is 'HTTP GET
allow_anonymous
cached
rate_limiter many';
create function rows_of(_a text) returns table (a text, n int) language sql as
    $$ select _a, n from generate_series(1, 3) n $$;
comment on function rows_of(text) is 'HTTP GET
allow_anonymous
cached';
"""
KEYS = 12
CLIENTS = 4


def settings(proxy: HostileRedis, kind: str) -> dict[str, str]:
    place = f"127.0.0.1:{proxy.port}"
    return {
        "CacheOptions:Enabled": "true",
        "CacheOptions:Type": kind,
        "CacheOptions:HybridCacheUseRedisBackend": "true",
        "CacheOptions:RedisConfiguration": place,
        "RateLimiterOptions:Enabled": "true",
        "RateLimiterOptions:RedisConfiguration": place,
        "RateLimiterOptions:Policies:many:Type": "FixedWindow",
        "RateLimiterOptions:Policies:many:Enabled": "true",
        "RateLimiterOptions:Policies:many:PermitLimit": "100000000",
        "RateLimiterOptions:Policies:many:WindowSeconds": "3600",
    }


def check_one(service: Service, key: str) -> None:
    """Check that a GET is never an error, and never the response of another key."""
    response = service.get(f"/api/echoed?a={key}")
    assert (response.status_code, response.text) == (200, f"value of {key}")
    rows = service.get(f"/api/rows-of?a={key}")
    assert (rows.status_code, rows.json()) == (200, [{"a": key, "n": n} for n in (1, 2, 3)])


def survive(service: Service, proxy: HostileRedis, more: Callable[[], bool], seed: int) -> None:
    """Run rounds of requests. more: whether another round follows."""
    workers = service.pids()
    proxy.hostile = True
    with ThreadPoolExecutor(CLIENTS) as clients:
        numbers = random.Random(seed)
        while more():
            keys = [f"k{numbers.randrange(KEYS)}" for _ in range(10 * CLIENTS)]
            for done in [clients.submit(check_one, service, key) for key in keys]:
                done.result(60)
    proxy.hostile = False
    assert proxy.attacks
    for number in range(KEYS):
        check_one(service, f"k{number}")
    assert service.pids() == workers, "no worker has ended"
