"""Thirty seconds with a hostile upstream: no response is lost or swapped, no worker ends."""

from __future__ import annotations

import time

from tests.harness.database import Database
from tests.harness.effort import seed
from tests.harness.hostile_upstream import Hostile
from tests.harness.upstream import Upstream
from tests.http.conftest import Serve
from tests.http.hostile import SETTINGS, call_all, schema

SECONDS = 30.0


def test_a_hostile_service_does_not_affect_other_requests(own_database: Database, serve_once: Serve) -> None:
    server = Upstream()
    server.on("*", Hostile(seed("ROWCALL_TEST_HOSTILE_SEED")))
    try:
        service = serve_once(own_database, schema(server.url), SETTINGS, workers=2)
        workers = service.pids()
        end = time.monotonic() + SECONDS
        assert call_all(service, 8, lambda _done: time.monotonic() < end) > 1_000
        assert service.pids() == workers
    finally:
        server.close()
