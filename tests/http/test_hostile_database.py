"""A PostgreSQL whose messages are dropped, repeated, truncated, mutated: no response is lost or swapped.

A client with a timeout is the clock.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.database import Database
from tests.harness.effort import examples, seed
from tests.harness.expect import problem
from tests.harness.hostile_postgres import ADDED, READY, HostilePostgres
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.hostile_database import SQL, attack, hostile_database, is_right

UPLOAD = """
create function hostile_upload(_meta json) returns int language sql as 'select 7';
comment on function hostile_upload is 'HTTP POST /upload
upload for large_object
upload _meta as metadata';
"""
SECONDS = 9.0


@pytest.fixture(scope="module")
def hostile(database: Database, serve: Serve) -> Iterator[tuple[HostilePostgres, Service]]:
    """Provide a service that uses a separate connection for each request."""
    with hostile_database(database) as (proxy, settings):
        own = {
            "ConnectionSettings:Pool:Sharing": "false",
            "Service:CommandTimeout": "3s",
            "Service:UploadOptions:Enabled": "true",
        }
        service = serve(database, SQL + UPLOAD, {**settings, **own})
        yield proxy, service
        service.stop()


class Lost:
    """A rule that drops the first message that contains `part`, and the rest of its segment."""

    def __init__(self, part: bytes) -> None:
        self._part = part
        self._dropping = False
        self.done = False

    def __call__(self, kind: bytes, whole: bytes) -> bytes:
        if not self.done and self._part in whole:
            self._dropping = self.done = True
        dropped, self._dropping = self._dropping, self._dropping and kind != READY
        return b"" if dropped else whole


@pytest.mark.slow
def test_no_response_is_lost_or_swapped(own_database: Database, serve_once: Serve) -> None:
    """The short form of the drill in `tests/drills`."""
    rounds = examples(64)
    attack(
        own_database, serve_once, seed("ROWCALL_TEST_HOSTILE_SEED"), 4, lambda done, _values: done < rounds, share=0.02
    )


@pytest.mark.slow
def test_lost_prepare_reply_costs_only_part_of_the_timeout(hostile: tuple[HostilePostgres, Service]) -> None:
    proxy, service = hostile
    lost = proxy.rule = Lost(b"everywhere ")
    with service.new_client(timeout=SECONDS) as client:
        for number in range(20):
            is_right("/text", str(number), client.get(f"/text?n={number}"))
    assert lost.done


def test_corrupted_prepare_reply_does_not_affect_requests(hostile: tuple[HostilePostgres, Service]) -> None:
    proxy, service = hostile
    changed = []

    def rule(_kind: bytes, whole: bytes) -> bytes:
        if b"everywhere " in whole:
            changed.append(whole)
        return whole.replace(b"everywhere ", b"\xff,verywher ")

    proxy.rule = rule
    for number in range(20):
        is_right("/rows", str(number), service.get(f"/rows?n={number}"))
    assert changed


@pytest.mark.slow
def test_lost_commit_reply_is_reported_within_the_timeout(hostile: tuple[HostilePostgres, Service]) -> None:
    proxy, service = hostile
    lost = proxy.rule = Lost(b"COMMIT")
    with service.new_client(timeout=SECONDS) as client:
        failed = client.post("/upload", files={"file": ("a.txt", b"text", "text/plain")})
        assert lost.done, failed.text
        assert "it is not known whether it took effect" in problem(failed, 504)["detail"]
        assert client.post("/upload", files={"file": ("a.txt", b"text", "text/plain")}).text == "7"


@pytest.mark.slow
@pytest.mark.parametrize("kind", [b"2", b"T", b"D", b"C"])
@pytest.mark.parametrize("ahead", [True, False])
def test_write_is_not_repeated_if_results_follow_a_fatal_error(
    own_database: Database, serve_once: Serve, kind: bytes, ahead: bool
) -> None:
    """Nothing follows the FATAL error of a server that has rolled back and ended; here the write is committed."""
    fatal = ADDED["a fatal error"]

    def rule(found: bytes, whole: bytes) -> bytes:
        return whole if found != kind else fatal + whole if ahead else whole + fatal

    with hostile_database(own_database) as (proxy, settings):
        service = serve_once(own_database, SQL, settings, workers=1)
        for number in range(20):
            proxy.rule = rule if number % 2 else None
            service.post("/write", json={"n": str(number)})
        proxy.rule = None
        assert own_database.fetch("select n from written group by n having count(*) > 1") == []
