"""Event streams with further features: ids and replay, heartbeats, events of committed transactions, last values, the
end."""

from __future__ import annotations

import signal
import threading

import psutil
import pytest

from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function publish(_text text, _hint text default null) returns text language plpgsql as $$begin
    if _hint is null then raise info '%', _text; else raise info '%', _text using hint = _hint; end if;
    return 'published';
end$$;
comment on function publish(text, text) is E'HTTP POST\\nsse';
create function gauge(_text text) returns void language plpgsql as $$begin raise info '%', _text; end$$;
comment on function gauge(text) is E'HTTP POST\\nsse\\nsse_last_value';
create function publish_many(_from int, _to int) returns void language plpgsql as $$begin
    for n in _from .. _to loop raise info '%', n; end loop;
end$$;
comment on function publish_many(int, int) is E'HTTP POST\\nsse_publish';
create function settle(_text text, _fails boolean default false) returns text language plpgsql as $$begin
    raise info 'begun %', _text;
    if _fails then raise exception 'no'; end if;
    raise info 'settled %', _text; return 'ok';
end$$;
comment on function settle(text, boolean) is E'HTTP POST\\nsse_publish\\nsse_after_commit';
create table settled (id int unique deferrable initially deferred);
create function settle_late(_id int) returns void language plpgsql as $$begin
    insert into settled values (_id); raise info 'settled %', _id;
end$$;
comment on function settle_late(int) is E'HTTP POST\\nsse_publish\\nsse_after_commit = true';
"""
SETTINGS = {
    "Service:ServerSentEvents:Replay": "true",
    "Service:ServerSentEvents:ReplayEvents": "100",
    "Service:ServerSentEvents:Heartbeat": "1 second",
    "Service:ServerSentEvents:Retry": "1500ms",
}
STREAM = "/api/publish/info"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS, workers=2)


@pytest.fixture(scope="module")
def single_worker(database: Database, service: Service, serve: Serve) -> Service:
    """A service on which an event that was published reaches no stream that begins later. With several workers, one may
    still be on its way to the worker of the stream."""
    return serve(database, "", SETTINGS, workers=1)


def publish(service: Service, *texts: str) -> None:
    """Publish over new connections: any of the workers may receive them, and none may have ended."""
    for text in texts:
        assert service.request_once("POST", "/api/publish", json={"text": text}).status_code == 200


def test_reconnecting_client_receives_missed_events(service: Service) -> None:
    with EventStream(service, STREAM) as stream:
        publish(service, "one", "two")
        stream.wait_for("one", "two")
        last = stream.last_id
    publish(service, "three", "four")
    for _ in range(4):
        with EventStream(service, STREAM, {"last-event-id": last}) as again:
            again.wait_for("three", "four")
            after = again.last_id
    with EventStream(service, STREAM, {"last-event-id": after}) as nothing_missed:
        publish(service, "five")
        nothing_missed.wait_for("five")


def test_client_without_received_events_can_resume(single_worker: Service) -> None:
    publish(single_worker, "before")
    with EventStream(single_worker, STREAM) as stream:
        stream.wait(lambda: stream.last_id, "an id without an event")
        last = stream.last_id
    publish(single_worker, "meanwhile")
    with EventStream(single_worker, STREAM, {"last-event-id": last}) as again:
        again.wait_for("meanwhile")


def test_replay_contains_only_events_the_reader_may_receive(service: Service) -> None:
    with EventStream(service, STREAM + "?a") as stream:
        publish(service, "first")
        stream.wait_for("first")
        last = stream.last_id
    service.post("/api/publish", json={"text": "for b"}, headers={"x-npgsqlrest-id": "b"})
    service.post("/api/publish", json={"text": "for a"}, headers={"x-npgsqlrest-id": "a"})
    service.post("/api/publish", json={"text": "for members", "hint": "authorize"})
    with EventStream(service, STREAM + "?a", {"last-event-id": last}) as again:
        again.wait_for("for a")


def test_gap_is_reported_if_the_replay_buffer_is_exceeded(service: Service) -> None:
    with EventStream(service, STREAM) as stream:
        publish(service, "last seen")
        stream.wait_for("last seen")
        last = stream.last_id
    service.post("/api/publish-many", json={"from": 1, "to": 150})
    with EventStream(service, STREAM, {"last-event-id": last}) as again:
        again.wait_for(*(str(number) for number in range(51, 151)))
        assert 'event: gap\ndata: {"missed":null}\n\n' in again.text


def test_gap_is_reported_to_a_client_of_an_earlier_run(single_worker: Service) -> None:
    publish(single_worker, "since the restart")
    with EventStream(single_worker, STREAM, {"last-event-id": "0123abcd.7"}) as stream:
        stream.wait_for_message("since the restart")
        assert stream.text.index("event: gap") < stream.text.index("data: since the restart")


@pytest.mark.parametrize("last", ["nonsense", "-1", "zz.zz", "é", "a" * 3000])
def test_unknown_last_event_id_is_treated_as_a_new_client(single_worker: Service, last: str) -> None:
    publish(single_worker, "old")
    with EventStream(single_worker, STREAM, {"last-event-id": last}) as stream:
        publish(single_worker, "new")
        stream.wait_for("new")


def test_stream_sends_retry_and_heartbeats(single_worker: Service) -> None:
    with EventStream(single_worker, STREAM) as stream:
        assert stream.text.startswith("retry: 1500\n\n")
        stream.wait(lambda: "\n:\n\n" in stream.text, "a heartbeat")
        assert stream.messages == []


def test_a_stream_begins_with_the_last_value(service: Service) -> None:
    for value in ("17 degrees", "18 degrees"):
        service.post("/api/gauge", json={"text": value})
    with EventStream(service, "/api/gauge/info") as stream:
        stream.wait_for("18 degrees")
    with EventStream(service, STREAM) as other:
        publish(service, "end")
        other.wait_for("end")
    service.post("/api/gauge", json={"text": "of job 1"}, headers={"x-npgsqlrest-id": "job-1"})
    service.post("/api/gauge", json={"text": "of job 2"}, headers={"x-npgsqlrest-id": "job-2"})
    with EventStream(service, "/api/gauge/info?job-1") as item:
        item.wait_for("of job 1")


def test_events_are_sent_after_their_transaction_commits(service: Service) -> None:
    with EventStream(service, STREAM) as stream:
        assert service.post("/api/settle", json={"text": "it", "fails": True}).status_code == 400
        assert service.post("/api/settle", json={"text": "that"}).status_code == 200
        stream.wait_for("begun that", "settled that")


def test_events_of_a_failed_commit_are_not_sent(service: Service) -> None:
    """A deferred constraint fails after the last row."""
    with EventStream(service, STREAM) as stream:
        statuses = [service.post("/api/settle-late", json={"id": number}).status_code for number in (1, 1, 2)]
        assert [status == 204 for status in statuses] == [True, False, True]
        stream.wait_for("settled 1", "settled 2")


def test_a_killed_worker_loses_no_event(service: Service) -> None:
    streams = [EventStream(service, STREAM) for _ in range(20)]
    publish(service, "before")
    for stream in streams:
        stream.wait_for("before")
    before = service.pids()
    psutil.Process(before[0]).kill()
    lost = [stream for stream in streams if not _receives_events(stream, service)]
    publish(service, "meanwhile")
    wait_until(lambda: len(set(service.pids()) | set(before)) == 3, "the worker is replaced")
    publish(service, "after")
    for stream in streams:
        if stream in lost:
            with EventStream(service, STREAM, {"last-event-id": stream.last_id}) as again:
                again.wait_for_message("after")
                assert again.messages[-2:] == ["meanwhile", "after"]
                assert again.messages.count("meanwhile") == 1
        else:
            stream.wait_for_message("after")
            assert stream.messages[-2:] == ["meanwhile", "after"]
        stream.socket.close()


def _receives_events(stream: EventStream, service: Service) -> bool:
    count = len(stream.messages)
    publish(service, "ping")
    stream.wait(lambda: stream.cut or len(stream.messages) > count, "an event, or the end")
    return not stream.cut


def test_streams_end_cleanly_when_the_service_stops(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {}, workers=2)
    streams = [EventStream(service, STREAM) for _ in range(6)]
    service.signal(signal.SIGTERM)
    times = set()
    for stream in streams:
        stream.wait_for_end()
        assert stream.ended
        times.add(stream.text)
        stream.socket.close()
    assert all(text.startswith("retry: ") for text in times)
    assert len(times) > 1, "all come back at the same moment"
    assert service.stop() == 0


def test_removing_a_stream_path_ends_only_its_streams(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {}, workers=2)
    begun: list[EventStream] = []
    busy = threading.Semaphore(0)

    def open_streams() -> None:
        """While there is something to begin: some requests are sent before the change, and begin after it."""
        own = [EventStream(service, "/api/gauge/info")]
        busy.release()
        while own[-1].status == 200:
            own.append(EventStream(service, "/api/gauge/info"))
            if len(own) > 20:
                own.pop(0).socket.close()
        begun.extend(own)

    with EventStream(service, STREAM) as stays, EventStream(service, "/api/gauge/info") as ends:
        begin = [threading.Thread(target=open_streams) for _ in range(3)]
        for thread in begin:
            thread.start()
        for _ in begin:
            assert busy.acquire(timeout=30)
        own_database.execute("comment on function gauge(text) is 'HTTP POST'; notify rowcall, 'reload'")
        for thread in begin:
            thread.join()
        for stream in (ends, *begun):
            with stream:
                if stream.status == 200:
                    stream.wait_for_end()
                    assert stream.ended
        publish(service, "still here")
        stays.wait_for("still here")
