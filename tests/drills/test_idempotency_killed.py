"""50 parallel repetitions of each request have one effect while workers are killed around COMMIT."""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx

from rowcall.service.installation.script import install_sql
from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

SECONDS = float(os.environ.get("ROWCALL_DRILL_SECONDS") or 15)
INTERVAL = 0.5
REPETITIONS = 50
SQL = """
create table payment (amount int);
create function pay(_amount int) returns text language plpgsql as $$
begin insert into payment values (_amount); perform pg_sleep(0.01); return 'paid ' || _amount; end $$;
comment on function pay(int) is 'HTTP POST /pay
idempotent required';
"""


def repeat(service: Service, amount: int, key: str) -> str:
    """Send the request until it gets a response of the routine, and return that."""
    with service.new_client(timeout=10) as client:
        while True:
            try:
                response = client.post("/pay", json={"amount": amount}, headers={"Idempotency-Key": key})
            except httpx.TransportError:
                continue
            if response.status_code == 200:
                return response.text
            assert response.status_code in (409, 503), response.text


def test_parallel_repetitions_have_one_effect_while_workers_are_killed(
    own_database: Database, serve_once: Serve
) -> None:
    own_database.execute(install_sql())
    service = serve_once(own_database, SQL, {"Service:RequiresAuthorization": "false"}, workers=2)
    ended = threading.Event()

    def kill() -> None:
        while not ended.wait(INTERVAL):
            for pid in service.pids()[:1]:
                os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    amount, end = 0, time.monotonic() + SECONDS
    try:
        with ThreadPoolExecutor(REPETITIONS) as pool:
            while time.monotonic() < end:
                amount += 1
                key = f'"{uuid.uuid4()}"'
                runs = [pool.submit(repeat, service, amount, key) for _ in range(REPETITIONS)]
                assert {run.result() for run in runs} == {f"paid {amount}"}
    finally:
        ended.set()
        killer.join()
    assert own_database.fetch("select count(*), count(distinct amount) from payment") == [(amount, amount)]
    print(f"{amount} keys with {REPETITIONS} repetitions each")
