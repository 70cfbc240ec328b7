"""Many guesses at once: checking passwords is the most expensive operation that anonymous callers can start."""

from __future__ import annotations

import threading

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import member_sql

SQL = """
create function plain() returns text language sql stable as $$select 'fast'$$;
comment on function plain() is E'HTTP GET\\nallow_anonymous';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, member_sql() + SQL, {"Auth:CookieAuth": "true"})


def test_a_flood_of_logins_does_not_delay_other_requests(service: Service) -> None:
    """Some are checked, the others refused at once, and all other requests are answered meanwhile."""
    statuses: list[int] = []

    def flood() -> None:
        with service.new_client(timeout=600) as client:
            body = {"nick": "kiri", "passphrase": "guess"}
            statuses.append(client.post("/api/sign-in", json=body).status_code)

    threads = [threading.Thread(target=flood) for _ in range(60)]
    for thread in threads:
        thread.start()
    answered = 0
    while any(thread.is_alive() for thread in threads):
        assert answer(service.get("/api/plain")) == (200, TEXT, "fast")
        answered += 1
    assert len(statuses) == 60
    assert set(statuses) == {401, 503}
    assert statuses.count(401) >= 33
    # At least one for each check: the checks do not block the event loop.
    assert answered > statuses.count(401)


def test_logins_of_unknown_users_take_the_time_of_a_check(service: Service) -> None:
    """The check for an unknown user waits in the same queue as the others and takes the same time."""
    statuses: list[int] = []

    def flood() -> None:
        with service.new_client(timeout=600) as client:
            body = {"nick": "unknown", "passphrase": "guess"}
            statuses.append(client.post("/api/sign-in", json=body).status_code)

    threads = [threading.Thread(target=flood) for _ in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) == {401, 503}
