"""Thirty seconds with a hostile PostgreSQL: no response is lost or swapped, no worker ends."""

from __future__ import annotations

import time

from tests.harness.database import Database
from tests.harness.effort import seed
from tests.http.conftest import Serve
from tests.http.hostile_database import attack

SECONDS = 30.0


def test_a_hostile_database_does_not_affect_other_callers(own_database: Database, serve_once: Serve) -> None:
    begin = time.monotonic()

    def goes_on(_done: int, values: bool) -> bool:
        return time.monotonic() - begin < (SECONDS if values else SECONDS / 2)

    attack(own_database, serve_once, seed("ROWCALL_TEST_HOSTILE_SEED"), 8, goes_on, share=0.01)
