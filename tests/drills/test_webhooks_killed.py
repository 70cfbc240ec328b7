"""Webhooks in their order to a receiver that fails 30 %, while workers of two hosts are killed."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import time
from itertools import cycle

from rowcall.service.installation.script import install_sql
from tests.harness.database import Database
from tests.harness.upstream import Seen, Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SECONDS = float(os.environ.get("ROWCALL_DRILL_SECONDS") or 15)
"""Time for which workers are killed."""
INTERVAL = 0.5
KEYS = 200
MESSAGES = 10_000 if SECONDS >= 60 else 2_000
SETTINGS = {
    "Webhooks:Enabled": "true",
    "Webhooks:Subscribers:shop:Secret": "whsec_ZXhhbXBsZSBzZWNyZXQgb2YgMjQgYnl0ZXM=",
    "Webhooks:Subscribers:shop:Topics:0": "order.*",
    "Webhooks:Backoff": "50 ms",
    "Webhooks:LongestPause": "200 ms",
    "Webhooks:Timeout": "1 second",
    "Service:RequiresAuthorization": "false",
}
PUBLISH = """
select rowcall.publish('order.paid', jsonb_build_object('key', k, 'n', {}), 'key ' || k) from generate_series(1, {}) k
"""


def test_webhooks_are_delivered_in_order_despite_failing_receiver_and_workers(
    own_database: Database, serve_once: Serve
) -> None:
    own_database.execute(install_sql())
    chance = random.Random(11)
    accepted: dict[int, list[int]] = {}

    def receive(request: Seen, _connection: socket.socket) -> bytes:
        if chance.random() < 0.3:
            return answer({}, 500)
        data = json.loads(request.body)["data"]
        accepted.setdefault(data["key"], []).append(data["n"])
        return answer({})

    upstream = Upstream()
    try:
        upstream.on("/shop", receive)
        values = {**SETTINGS, "Webhooks:Subscribers:shop:Url": upstream.url + "/shop"}
        hosts = cycle([serve_once(own_database, settings=values, workers=2) for _ in range(2)])
        for n in range(MESSAGES // KEYS):
            own_database.execute(PUBLISH.format(n, KEYS))
        due, end = time.monotonic(), time.monotonic() + SECONDS
        while time.monotonic() < end:
            for pid in next(hosts).pids()[:1]:
                os.kill(pid, signal.SIGKILL)
            due += INTERVAL
            # The pause between kills is the fault itself, and nothing is expected after it.
            time.sleep(max(0.0, due - time.monotonic()))
        left = (
            "select (select count(*) from rowcall.webhook_message where not assigned)"
            " + (select count(*) from rowcall.webhook_delivery where state = 'waiting')"
        )
        wait_until(lambda: own_database.value(left) == 0, "all messages are delivered", 600)
        states = own_database.fetch("select state, count(*) from rowcall.webhook_delivery group by state")
        assert states == [("done", MESSAGES)]
        # A delivery whose worker was killed before it stored the response is repeated.
        first = {key: list(dict.fromkeys(numbers)) for key, numbers in accepted.items()}
        assert first == {key: list(range(MESSAGES // KEYS)) for key in range(1, KEYS + 1)}
        print(f"{MESSAGES} webhooks, {len(upstream.seen)} requests, {sum(map(len, accepted.values()))} accepted")
    finally:
        upstream.close()
