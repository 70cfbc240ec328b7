"""What subscribers of webhooks can rely on: when deliveries are repeated, what ends them, what is stored how long."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from rowcall.service.installation.script import install_sql
from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdefghijklmn").decode()

Start = Callable[..., Service]


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    server.on("*", answer({}))
    yield server
    server.close()


@pytest.fixture
def start(own_database: Database, upstream: Upstream, serve_once: Serve) -> Start:
    own_database.execute(install_sql())
    settings = {
        "Webhooks:Enabled": "true",
        "Webhooks:Subscribers:shop:Url": upstream.url + "/shop",
        "Webhooks:Subscribers:shop:Secret": SECRET,
        "Webhooks:Subscribers:shop:Topics:0": "*",
        "Service:RequiresAuthorization": "false",
    }
    return lambda **more: serve_once(
        own_database, settings={**settings, **{f"Webhooks:{name}": value for name, value in more.items()}}
    )


def publish(database: Database, number: int = 1) -> None:
    database.execute(f"select rowcall.publish('order.paid', '{{\"id\": {number}}}')")


def failed(database: Database, attempts: int = 1) -> tuple[float, str]:
    """Wait for the end of an attempt that has failed. Return the seconds until the next one, and the error."""
    query = (
        "select extract(epoch from run_at - clock_timestamp())::float, error from rowcall.webhook_delivery "
        f"where attempts = {attempts} and error is not null and state = 'waiting'"
    )
    ((seconds, error),) = wait_until(lambda: database.fetch(query), "the attempt has failed", 30)
    return seconds, error


def again(database: Database) -> None:
    """Let the next attempt begin at once."""
    database.execute(
        "update rowcall.webhook_delivery set run_at = now(), error = null; delete from rowcall.webhook_target;"
        "notify rowcall_webhooks"
    )


@pytest.mark.slow
def test_messages_published_while_the_service_is_stopped_are_delivered(
    start: Start, own_database: Database, upstream: Upstream
) -> None:
    """A host that is killed in the middle of a delivery repeats it after its start, with the same id."""
    begun = threading.Event()

    def never(_seen: Seen, connection: socket.socket) -> bytes | None:
        begun.set()
        connection.recv(1)
        return None

    first = start()
    upstream.on("/shop", never)
    publish(own_database, 1)
    assert begun.wait(30)
    for process in first.processes():
        process.kill()
    upstream.on("/shop", answer({}))
    publish(own_database, 2)
    start()
    done = "select count(*) from rowcall.webhook_delivery where state = 'done'"
    wait_until(lambda: own_database.value(done) == 2, "both messages are delivered", 60)
    sent = [(json.loads(request.body)["data"]["id"], request.header("webhook-id")) for request in upstream.to("/shop")]
    assert sorted(number for number, _ in sent) == [1, 1, 2]
    assert len(set(sent)) == 2


def test_delays_between_attempts_grow(start: Start, own_database: Database, upstream: Upstream) -> None:
    upstream.on("/shop", answer({}, 500))
    start(Backoff="100 seconds", LongestPause="1000 seconds")
    publish(own_database)
    # A busy machine may look late.
    for attempt, expected in ((1, 100), (2, 300), (3, 900), (4, 1000)):
        seconds, error = failed(own_database, attempt)
        assert 0.75 * expected - 60 < seconds < 1.25 * expected
        assert error == "the response has status 500"
        again(own_database)
    sent = upstream.to("/shop")
    assert len({request.header("webhook-id") for request in sent}) == 1
    assert len({request.body for request in sent}) == 1


@pytest.mark.parametrize(("status", "expected"), [(503, 500), (429, 500), (500, 10)])
def test_retry_after_of_a_subscriber_delays_the_next_attempt(
    start: Start, own_database: Database, upstream: Upstream, status: int, expected: int
) -> None:
    upstream.on("/shop", answer({}, status, [("Retry-After", "500")]))
    start(Backoff="10 seconds")
    publish(own_database)
    seconds, _ = failed(own_database)
    assert 0.75 * expected - 60 < seconds < 1.25 * expected


def test_a_redirect_counts_as_failure(start: Start, own_database: Database, upstream: Upstream) -> None:
    upstream.on("/shop", answer({}, 302, [("Location", upstream.url + "/elsewhere")]))
    start(Backoff="100 seconds")
    publish(own_database)
    assert failed(own_database)[1] == "the response has status 302"
    assert upstream.to("/elsewhere") == []


def test_a_response_has_a_time_limit(start: Start, own_database: Database, upstream: Upstream) -> None:
    is_over = threading.Event()

    def wait(_request: Seen, _connection: socket.socket) -> None:
        is_over.wait(60)

    upstream.on("/shop", wait)
    start(Backoff="100 seconds", Timeout="300 ms")
    publish(own_database)
    assert failed(own_database)[1] == "no response within 0.3 s"
    is_over.set()


@pytest.mark.slow
def test_delivered_messages_are_removed_and_dead_messages_retained(
    start: Start, own_database: Database, upstream: Upstream
) -> None:
    start(Retention="1 hour", GiveUpAfter="0 seconds")
    publish(own_database, 1)
    ends = "select state from rowcall.webhook_delivery order by number"
    wait_until(lambda: own_database.fetch(ends) == [("done",)], "the first is delivered", 30)
    upstream.on("/shop", answer({}, 500))
    publish(own_database, 2)
    wait_until(lambda: own_database.fetch(ends) == [("done",), ("dead",)], "the second is dead", 30)
    own_database.execute("update rowcall.webhook_message set created = now() - interval '61 minutes'")
    wait_until(lambda: own_database.fetch(ends) == [("dead",)], "the delivered one is removed", 30)
    assert own_database.fetch("select payload ->> 'id' from rowcall.webhook_message") == [("2",)]
    own_database.execute(
        "insert into rowcall.webhook_message (topic, payload, created, assigned)"
        " select 'order.paid', '{}', now() - interval '2 hours', true from generate_series(1, 25000)"
    )
    count = "select count(*) from rowcall.webhook_message"
    wait_until(lambda: own_database.value(count) == 1, "all old messages are removed", 40)


def test_messages_of_a_period_are_replayed(start: Start, own_database: Database, upstream: Upstream) -> None:
    start()
    for number in (1, 2, 3):
        publish(own_database, number)
    done = "select count(*) from rowcall.webhook_delivery where state = 'done'"
    wait_until(lambda: own_database.value(done) == 3, "all are delivered", 30)
    own_database.execute(
        "update rowcall.webhook_message"
        " set created = '2026-01-01T12:00Z'::timestamptz + (payload ->> 'id')::int * '1 hour'::interval"
    )
    replay = "select rowcall.replay_webhooks('order.paid', '2026-01-01T14:00Z', '2026-01-01T15:00Z'{})"
    assert own_database.value(replay.format("")) == 1
    wait_until(lambda: len(upstream.to("/shop")) == 4, "it is delivered again", 30)
    assert json.loads(upstream.to("/shop")[-1].body)["data"] == {"id": 2}
    assert own_database.value(replay.format(", 'another'")) == 0


@pytest.mark.slow
def test_a_delivery_is_left_to_services_that_know_its_subscriber(
    own_database: Database, upstream: Upstream, start: Start
) -> None:
    """A subscriber that is added while hosts with the former configuration still run."""
    former = start()
    start(**{"Subscribers:added:Url": upstream.url + "/added", "Subscribers:added:Secret": SECRET})
    upstream.on("/added", answer({}, 500))
    own_database.execute(
        "begin; select rowcall.publish('order.paid', '{}') from generate_series(1, 20);"
        "insert into rowcall.webhook_delivery (message, subscriber, number)"
        " select id, 'added', number from rowcall.webhook_message;"
        "insert into rowcall.webhook_delivery (message, subscriber, number, since)"
        " select id, 'removed', number, now() - interval '4 days' from rowcall.webhook_message; commit"
    )
    ends = (
        "select subscriber, state, count(*) from rowcall.webhook_delivery where attempts > 0 group by 1, 2 order by 1"
    )
    expected = [("added", "waiting", 20), ("removed", "dead", 20), ("shop", "done", 20)]
    wait_until(lambda: own_database.fetch(ends) == expected, "each delivery is attempted", 60)
    assert "to added is dead" not in former.log


def test_a_slow_subscriber_leaves_places_to_others(start: Start, own_database: Database, upstream: Upstream) -> None:
    places = threading.Semaphore(0)

    def slow(_seen: Seen, _connection: socket.socket) -> bytes:
        places.acquire(timeout=60)
        return answer({})

    upstream.on("/shop", slow)
    quick = {"Url": upstream.url + "/quick", "Secret": SECRET, "Topics:0": "quick"}
    start(
        Concurrency="2", **{"Subscribers:shop:Topics:0": "slow"}, **{f"Subscribers:quick:{k}": quick[k] for k in quick}
    )
    own_database.execute("select rowcall.publish('slow', '1') from generate_series(1, 20)")
    wait_until(lambda: len(upstream.to("/shop")) == 2, "the slow subscriber has all places", 30)
    own_database.execute("select rowcall.publish('quick', '1') from generate_series(1, 3)")
    places.release()
    wait_until(lambda: len(upstream.to("/quick")) == 3, "the other subscriber has its messages", 30)
    assert len(upstream.to("/shop")) <= 3
    places.release(100)
    done = "select count(*) from rowcall.webhook_delivery where state = 'done'"
    wait_until(lambda: own_database.value(done) == 23, "all messages are delivered", 60)


def test_deliveries_of_a_key_are_given_up_by_the_time_of_their_first_attempt(
    start: Start, own_database: Database, upstream: Upstream
) -> None:
    """The second one waits behind the first one."""
    upstream.on("/shop", answer({}, 500))
    start(GiveUpAfter="1 hour", Backoff="100 seconds")
    own_database.execute("select rowcall.publish('order.paid', '{}', 'k') from generate_series(1, 2)")
    failed(own_database)
    own_database.execute("update rowcall.webhook_delivery set since = now() - interval '2 hours'")
    again(own_database)
    ends = "select state, attempts, status from rowcall.webhook_delivery order by number"
    expected = [("dead", 2, 500), ("waiting", 1, 500)]
    wait_until(lambda: own_database.fetch(ends) == expected, "the second one has failed once", 30)


def test_workers_of_former_versions_look_rarely_if_nothing_waits(own_database: Database) -> None:
    """They do not know which deliveries are left to others, so they look each second while there are any."""
    own_database.execute(install_sql())
    assert own_database.value("select rowcall.next_delivery()") is None
    own_database.execute(
        "select rowcall.publish('order.paid', '{}');"
        "insert into rowcall.webhook_delivery (message, subscriber, number)"
        " select id, 'other', number from rowcall.webhook_message"
    )
    assert own_database.value("select rowcall.next_delivery()") == 1
