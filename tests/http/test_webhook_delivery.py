"""Published messages: delivered to their subscribers, signed, at least once, and in order for each key."""

from __future__ import annotations

import base64
import hmac
import json
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from rowcall.service.installation.script import install_sql
from tests.harness.collector import Received, collect_over_http
from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.metrics import admin_of, numbers_of
from tests.harness.service import Service
from tests.harness.upstream import Behaviour, Seen, Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

KEYS = (b"0123456789abcdefghijklmn", b"another key of 24 bytes!")
SECRETS = " ".join("whsec_" + base64.b64encode(key).decode() for key in KEYS)
SQL = """
create function buy(_id int, _fails boolean default false) returns int language plpgsql as $$
begin
  perform rowcall.publish('order.paid', jsonb_build_object('id', _id, 'text', 'a"b'), 'order ' || _id);
  if _fails then raise exception 'not paid'; end if;
  return _id;
end $$;
comment on function buy(int, boolean) is 'HTTP POST /buy';
"""

PROCEDURE = """
create procedure buy_late(_id int) language plpgsql as $$
begin
  commit;
  perform rowcall.publish('order.paid', jsonb_build_object('id', _id));
end $$;
comment on procedure buy_late(int) is 'HTTP POST /buy-late';
"""


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


def settings(upstream: Upstream, **more: str) -> dict[str, str]:
    return {
        "Webhooks:Enabled": "true",
        "Webhooks:Subscribers:shop:Url": upstream.url + "/shop",
        "Webhooks:Subscribers:shop:Secret": SECRETS,
        "Webhooks:Subscribers:shop:Topics:0": "order.*",
        "Webhooks:Backoff": "50 ms",
        "Webhooks:LongestPause": "200 ms",
        "Service:RequiresAuthorization": "false",
        **{"Webhooks:" + name: value for name, value in more.items()},
    }


@pytest.fixture
def start(own_database: Database, upstream: Upstream, serve_once: Serve) -> Callable[..., Service]:
    own_database.execute(install_sql())
    own_database.execute(SQL)
    upstream.on("*", answer({}))
    return lambda workers=2, **more: serve_once(own_database, settings=settings(upstream, **more), workers=workers)


def ids(requests: list[Seen]) -> list[Any]:
    return [json.loads(request.body)["data"]["id"] for request in requests]


def states(database: Database) -> dict[str, int]:
    return dict(database.fetch("select state, count(*) from rowcall.webhook_delivery group by state"))


PRIVATE = Ed25519PrivateKey.from_private_bytes(b"k" * 32)


def private_key() -> str:
    """Return `PRIVATE` as a secret."""
    return "whsk_" + base64.b64encode(b"k" * 32 + PRIVATE.public_key().public_bytes_raw()).decode()


def test_a_private_key_signs_besides_a_secret(start: Callable[..., Service], upstream: Upstream) -> None:
    """Standard Webhooks: `v1a` is a signature by Ed25519."""
    key = private_key()
    secret = SECRETS.split()[0]
    service = start(1, **{"Subscribers:shop:Secret": f"{secret} {key}"})
    assert service.post("/buy", json={"id": 1}).status_code == 200
    wait_until(lambda: upstream.to("/shop"), "the message is delivered", 20)
    (request,) = upstream.to("/shop")
    first, second = (request.header("webhook-signature") or "").split()
    assert first.startswith("v1,")
    assert second.startswith("v1a,")
    signed = f"{request.header('webhook-id')}.{request.header('webhook-timestamp')}.".encode() + request.body
    PRIVATE.public_key().verify(base64.b64decode(second.removeprefix("v1a,")), signed)


@pytest.mark.slow
def test_a_delivery_continues_the_trace_of_its_request(
    own_database: Database, upstream: Upstream, serve_once: Serve
) -> None:
    trace, caller = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    own_database.execute(install_sql())
    own_database.execute(SQL + PROCEDURE)
    upstream.on("*", answer({}))
    with collect_over_http() as collector:
        more = {"Tracing:Enabled": "true", "Tracing:Interval": "50ms", "Tracing:Endpoint": collector.url}
        service = serve_once(own_database, settings={**settings(upstream), **more}, workers=2)
        sampled = {"traceparent": f"00-{trace}-{caller}-01"}
        not_sampled = {"traceparent": f"00-{trace}-{caller}-00"}
        for path, number, headers in (("/buy", 1, sampled), ("/buy-late", 2, sampled), ("/buy", 3, not_sampled)):
            service.post(path, json={"id": number}, headers=headers).raise_for_status()
        own_database.execute("select rowcall.publish('order.paid', '{\"id\": 4}')")
        wait_until(lambda: len(upstream.to("/shop")) == 4, "all messages are delivered", 20)
        sent = {number: request.header("traceparent") for request in upstream.to("/shop") for number in ids([request])}
        assert (sent[3], sent[4]) == (None, None)
        for number, name in ((1, "POST /buy"), (2, "POST /buy-late")):
            _, trace_id, span_id, flags = (sent[number] or "").split("-")
            assert (trace_id, flags) == (trace, "01")
            # A delivery that failed and was repeated has further spans.
            parent = wait_until(partial(parent_of, collector, span_id), "the span has arrived", 20)
            request: Span = wait_until(partial(span_of, collector, parent), "that of the request has arrived", 20)
            assert request.name == name


def span_of(collector: Received, span_id: str) -> Span | None:
    return next((span for span in collector.spans if span.span_id.hex() == span_id), None)


def parent_of(collector: Received, span_id: str) -> str | None:
    span = span_of(collector, span_id)
    return None if span is None else span.parent_span_id.hex()


def test_a_message_is_delivered_after_its_commit(
    start: Callable[..., Service], own_database: Database, upstream: Upstream
) -> None:
    service = start()
    assert service.post("/buy", json={"id": 1}).status_code == 200
    problem(service.post("/buy", json={"id": 2, "fails": True}), 400)
    assert service.post("/buy", json={"id": 3}).status_code == 200
    wait_until(lambda: len(upstream.to("/shop")) == 2, "both messages are delivered", 20)
    # Messages of different keys have no order.
    assert sorted(ids(upstream.to("/shop"))) == [1, 3]
    request = next(request for request in upstream.to("/shop") if ids([request]) == [1])
    assert (request.method, request.header("content-type")) == ("POST", "application/json")
    message = json.loads(request.body)
    assert (message["type"], message["data"]) == ("order.paid", {"id": 1, "text": 'a"b'})
    number, when = request.header("webhook-id"), request.header("webhook-timestamp")
    assert abs(time.time() - int(when or "0")) < 60
    signed = f"{number}.{when}.".encode() + request.body
    expected = [f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}" for key in KEYS]
    assert (request.header("webhook-signature") or "").split() == expected
    wait_until(lambda: states(own_database) == {"done": 2}, "the ends are stored")
    assert own_database.value("select count(*) from rowcall.webhook_message where key = 'order 2'") == 0
    own_database.execute("select rowcall.publish('invoice.sent', '1'), rowcall.publish('order', '1')")
    own_database.execute("select rowcall.publish('order.a.b', '{\"id\": 9}')")
    wait_until(lambda: 9 in ids(upstream.to("/shop")), "a topic below is delivered")
    assert len(upstream.to("/shop")) == 3


@pytest.mark.slow
def test_failed_deliveries_are_repeated_until_they_are_dead_and_can_be_replayed(
    start: Callable[..., Service], own_database: Database, upstream: Upstream
) -> None:
    upstream.on("/shop", answer({}, 500))
    start(GiveUpAfter="500 ms")
    own_database.execute("select rowcall.publish('order.paid', '{\"id\": 1}')")
    wait_until(lambda: states(own_database) == {"dead": 1}, "the delivery is dead", 20)
    (row,) = own_database.fetch("select attempts, status, error from rowcall.webhook_delivery")
    assert row[0] > 2
    assert row[1:] == (500, "the response has status 500")
    requests = upstream.to("/shop")
    assert len({request.header("webhook-id") for request in requests}) == 1
    upstream.on("/shop", answer({}))
    assert own_database.value("select rowcall.replay_webhooks('order.*', now() - interval '1 hour')") == 1
    assert own_database.value("select rowcall.replay_webhooks('other', now() - interval '1 hour')") == 0
    wait_until(lambda: states(own_database) == {"done": 1}, "it is delivered at last", 20)
    assert upstream.to("/shop")[-1].header("webhook-id") == requests[0].header("webhook-id")


def test_large_response_confirms_a_message(
    start: Callable[..., Service], own_database: Database, upstream: Upstream
) -> None:
    upstream.on("/shop", answer("x" * 1_000_000, 201))
    start()
    own_database.execute("select rowcall.publish('order.paid', '{\"id\": 1}') from generate_series(1, 3)")
    wait_until(lambda: states(own_database) == {"done": 3}, "the deliveries are done", 20)
    assert own_database.fetch("select distinct attempts, status from rowcall.webhook_delivery") == [(1, 201)]


@pytest.mark.slow
def test_incomplete_response_is_a_failure_with_its_status(
    start: Callable[..., Service], own_database: Database, upstream: Upstream
) -> None:
    def stop_within_body(_request: Seen, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{")
        connection.recv(1)

    upstream.on("/shop", stop_within_body)
    start(GiveUpAfter="0", Timeout="2 seconds")
    own_database.execute("select rowcall.publish('order.paid', '{\"id\": 1}')")
    wait_until(lambda: states(own_database) == {"dead": 1}, "the delivery is dead", 20)
    expected = [(200, "no complete response within 2 s")]
    assert own_database.fetch("select status, error from rowcall.webhook_delivery") == expected


def test_subscribers_in_the_database_receive_messages(
    start: Callable[..., Service], own_database: Database, upstream: Upstream
) -> None:
    upstream.on("/gone", answer({}, 410))
    secret = SECRETS.split()[0]
    rows = [
        ("partner", upstream.url + "/partner", "{*}"),
        ("gone", upstream.url + "/gone", "{order.*}"),
        ("inner", f"http://localhost:{upstream.port}/inner", "{*}"),
    ]
    start()
    for name, url, topics in rows:
        own_database.execute(
            "insert into rowcall.webhook_subscriber (name, url, topics, secret) "
            f"values ('{name}', '{url}', '{topics}', '{secret}')"
        )
    own_database.execute("select rowcall.publish('order.paid', '{\"id\": 1}')")
    # The addresses of the table may be those of customers, so the guard of outgoing requests applies to them.
    wait_until(lambda: states(own_database) == {"done": 1, "dead": 3}, "those of the table are refused", 20)
    error = own_database.value("select error from rowcall.webhook_delivery where subscriber = 'inner'")
    assert "not allowed" in error or "not public" in error, error
    assert upstream.to("/partner") == []


def test_allowed_networks_admit_subscribers_of_the_database(
    own_database: Database, upstream: Upstream, serve_once: Serve
) -> None:
    own_database.execute(install_sql())
    upstream.on("*", answer({}))
    upstream.on("/gone", answer({}, 410))
    secret = private_key()
    allowed = {"Service:HttpClientOptions:AllowedNetworks:0": "127.0.0.0/8"}
    serve_once(own_database, settings=settings(upstream) | allowed)
    for name in ("partner", "gone"):
        own_database.execute(
            f"insert into rowcall.webhook_subscriber (name, url, secret) "
            f"values ('{name}', '{upstream.url}/{name}', '{secret}')"
        )
    own_database.execute("select rowcall.publish('invoice.sent', '{\"id\": 1}')")
    wait_until(lambda: states(own_database) == {"done": 1, "dead": 1}, "both deliveries have ended", 20)
    (request,) = upstream.to("/partner")
    assert (request.header("webhook-signature") or "").startswith("v1a,")
    assert ids([request]) == [1]
    with pytest.raises(Exception, match="webhook_subscriber_secret_check"):
        own_database.execute("update rowcall.webhook_subscriber set secret = 'whpk_x'")
    # 410 ends a subscription.
    assert own_database.fetch("select name from rowcall.webhook_subscriber where active") == [("partner",)]


@pytest.mark.slow
def test_a_failing_subscriber_is_paused(
    start: Callable[..., Service], own_database: Database, upstream: Upstream
) -> None:
    upstream.on("/shop", answer({}, 503))
    start()
    own_database.execute("select rowcall.publish('order.paid', '{\"id\": 1}') from generate_series(1, 200)")
    paused = "select count(*) from rowcall.webhook_target where paused_until > clock_timestamp()"
    wait_until(lambda: own_database.value(paused) == 1, "the subscriber is paused", 20)
    assert len(upstream.to("/shop")) < 180
    upstream.on("/shop", answer({}))
    wait_until(lambda: states(own_database) == {"done": 200}, "everything is delivered", 60)


@pytest.mark.slow
def test_invalid_topics_and_settings_are_refused(own_database: Database, upstream: Upstream, tmp_path: Path) -> None:
    own_database.execute(install_sql())
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"the topic 'a b' is not valid"):
        own_database.execute("select rowcall.publish('a b', '{}')")
    for key, value, message in (
        ("Url", "ftp://x", "Webhooks:Subscribers:shop:Url: the scheme ftp is neither http nor https"),
        ("Secret", "secret!", "Webhooks:Subscribers:shop:Secret is not base64"),
        ("Secret", "", "Webhooks:Subscribers:shop:Secret is empty"),
    ):
        values = settings(upstream) | {f"Webhooks:Subscribers:shop:{key}": value}
        done = rowcall(
            tmp_path,
            "--validate",
            f"--ConnectionStrings:Default={own_database.conninfo}",
            *(f"--{name}={text}" for name, text in values.items()),
        )
        assert done.returncode == 1
        assert message in done.stdout + done.stderr
        assert SECRETS not in done.stdout + done.stderr


@pytest.mark.slow
def test_deliveries_begin_after_the_schema_is_installed(
    own_database: Database, upstream: Upstream, serve_once: Serve
) -> None:
    upstream.on("*", answer({}))
    service = serve_once(own_database, settings=settings(upstream))
    service.wait_for_log("Webhooks:Enabled needs version 29 of the schema rowcall: run rowcall --install")
    own_database.execute(install_sql())
    own_database.execute("select rowcall.publish('order.paid', '{\"id\": 1}')")
    wait_until(lambda: ids(upstream.to("/shop")) == [1], "it is delivered after the installation", 30)


def test_secrets_are_readable_by_the_service_only(own_database: Database) -> None:
    own_database.execute(install_sql())
    own_database.execute("select rowcall.publish('order.paid', '{}')")
    assert own_database.value("select has_schema_privilege('pg_monitor', 'rowcall', 'usage')")
    for name in (
        "take_deliveries",
        "take_webhooks",
        "next_webhook",
        "end_delivery",
        "replay_webhooks",
        "remove_webhooks",
    ):
        function = f"(select oid from pg_proc where proname = '{name}')"
        assert not own_database.value(f"select has_function_privilege('pg_monitor', {function}, 'execute')"), name
    assert not own_database.value("select has_table_privilege('pg_monitor', 'rowcall.webhook_subscriber', 'select')")


@pytest.mark.slow
def test_attempts_are_in_the_audit_trail(own_database: Database, upstream: Upstream, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    own_database.execute(
        SQL + "create table call (entry jsonb); create procedure audit_trail(_calls json) language sql "
        "begin atomic insert into call select c::jsonb from json_array_elements(_calls) c; end"
    )
    responses = iter((answer({}, 500), answer({})))
    upstream.on("/shop", lambda _request, _socket: next(responses))
    more = {"Service:AuditTrail:Enabled": "true", "Service:AuditTrail:Interval": "100 milliseconds"}
    service = serve_once(own_database, settings=settings(upstream) | more, workers=2)
    assert service.post("/buy", json={"id": 1}).status_code == 200
    calls = (
        "select entry ->> 'endpoint', (entry ->> 'status')::int, message.id is not null from call "
        "left join rowcall.webhook_message message on message.id::text = entry ->> 'message' order by 1, 2"
    )
    expected = [("POST /buy", 200, False), ("webhook to shop", 200, True), ("webhook to shop", 500, True)]
    wait_until(lambda: own_database.fetch(calls) == expected, "both attempts are recorded", 20)


@pytest.mark.slow
def test_metrics_count_waiting_jobs_and_messages(own_database: Database, upstream: Upstream, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    own_database.execute("select rowcall.enqueue('POST /nowhere', '{}', _queue => 'slow') from generate_series(1, 3)")
    own_database.execute(SQL + "comment on function buy(int, boolean) is 'HTTP POST /buy\njob'")
    own_database.execute("select rowcall.publish('order.paid', '{\"id\": 1}') from generate_series(1, 2)")
    upstream.on("/shop", answer({}, 410))
    admin = {"Metrics:Enabled": "true", "Admin:Url": "http://127.0.0.1:0", "Jobs:Enabled": "true"}
    service = serve_once(own_database, settings=settings(upstream) | admin, workers=2)
    with admin_of(service) as client:
        wait_until(
            lambda: (
                numbers_of(client).of("rowcall_jobs", queue="slow", state="waiting") == 3
                and numbers_of(client).of("rowcall_webhook_deliveries", subscriber="shop", state="dead") == 2
            ),
            "the metrics count what is in the database",
            40,
        )


@pytest.mark.slow
def test_messages_are_ordered_and_complete_despite_failures_and_killed_workers(
    own_database: Database, upstream: Upstream, serve_once: Serve
) -> None:
    """A receiver that fails at random, and two hosts whose workers are killed, get every message in order by key."""
    own_database.execute(install_sql())
    chance = random.Random(7)
    accepted: list[tuple[int, int]] = []

    def receive(request: Seen, _connection: socket.socket) -> bytes:
        if chance.random() < 0.3:
            return answer({}, 500)
        data = json.loads(request.body)["data"]
        accepted.append((data["key"], data["n"]))
        return answer({})

    behaviour: Behaviour = receive
    upstream.on("/shop", behaviour)
    values = settings(upstream, Timeout="1 second")
    hosts = [serve_once(own_database, settings=values, workers=2) for _ in range(2)]
    for n in range(60):
        own_database.execute(
            "select rowcall.publish('order.paid', jsonb_build_object('key', k, 'n', "
            f"{n}), 'key ' || k) from generate_series(1, 20) k"
        )
    killed = 0
    deadline = time.monotonic() + 120
    left = "select count(*) from rowcall.webhook_delivery where state = 'waiting'"
    new = "select count(*) from rowcall.webhook_message where not assigned"
    while (own_database.value(left) or own_database.value(new)) and time.monotonic() < deadline:
        time.sleep(0.5)
        if killed < 6:
            os.kill(hosts[killed % 2].pids()[0], signal.SIGKILL)
            killed += 1
    assert states(own_database) == {"done": 1200}
    for key in range(1, 21):
        first = list(dict.fromkeys(n for k, n in accepted if k == key))
        assert first == list(range(60)), key
