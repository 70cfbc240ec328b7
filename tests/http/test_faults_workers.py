"""Killed processes, schema changes and restarts while clients are served."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import psutil
import pytest

from rowcall.service.supervisor.processes.prefork import possible
from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.load import Load
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function echo(_id int) returns int language sql stable as 'select _id';
create function release() returns int language sql stable as 'select 1';
create function leaving() returns int language sql stable as 'select 1';
create function wait_for(_lock int) returns int language plpgsql volatile as $$
begin perform pg_advisory_xact_lock_shared(_lock); return _lock; end $$;
comment on function echo(int) is 'HTTP GET /echo';
comment on function release() is 'HTTP GET /release';
comment on function leaving() is 'HTTP GET /leaving';
comment on function wait_for(int) is 'HTTP GET /wait-for';
"""

CHANGE = """
create function arriving() returns int language sql stable as 'select 1';
comment on function arriving() is 'HTTP GET /arriving';
drop function leaving();
drop function release();
create function release() returns text language sql stable as $$select 'second'$$;
comment on function release() is 'HTTP GET /release';
"""

CACHED = """
create function wait_for_all(_lock int) returns int language sql volatile as 'select wait_for(_lock)';
comment on function wait_for_all(int) is 'HTTP GET /wait-for-all
cached';
"""

LOCK = 11


def echo(number: int) -> tuple[str, str, bytes]:
    return "GET", f"/echo?id={number}", b""


def reload(service: Service, database: Database, way: str) -> None:
    if way == "notify":
        database.execute("notify rowcall, 'reload'")
    else:
        service.signal(signal.SIGHUP)


def all_workers(service: Service, count: int) -> list[int]:
    """Wait for the expected number of workers and return their process ids."""
    wait_until(lambda: len(service.pids()) == count, f"{count} workers run")
    return service.pids()


def is_served(service: Service, path: str) -> bool:
    """Send a request over a new connection, so that any worker may receive it."""
    with service.new_client() as client:
        return client.get(path).status_code == 200


@pytest.mark.slow
def test_killed_worker_is_replaced(own_database: Database, serve_once: Serve) -> None:
    """Its clients lose their connections; no other client is affected, and no response is wrong."""
    service = serve_once(own_database, SQL, workers=2)
    workers = all_workers(service, 2)
    clients = 16
    with Load(service.port, echo, clients) as load:
        load.wait_for(200)
        os.kill(workers[0], signal.SIGKILL)
        wait_until(lambda: len(service.pids()) == 2 and workers[0] not in service.pids(), "the worker is replaced", 20)
        load.wait_for(300)
        broken = load.statuses()[0]
        load.wait_for(300)
        assert load.statuses()[0] == broken, "connections broke after the worker was replaced"
    assert broken <= 2 * clients
    assert [o for o in load.outcomes if o.status not in (200, 0)] == []
    assert [o for o in load.outcomes if o.status == 200 and o.body != b"%d" % o.number] == []
    assert workers[1] in service.pids()
    wait_until(lambda: not own_database.backends("state <> 'idle'"), "no session of the dead worker is left running")


@pytest.mark.slow
@pytest.mark.skipif(not possible(), reason="workers are started anew on this system")
def test_workers_survive_a_killed_template_process(own_database: Database, serve_once: Serve) -> None:
    """Without the template process, workers are started as new processes."""
    service = serve_once(own_database, SQL, workers=2)
    workers = all_workers(service, 2)
    (template,) = (process for process in service.processes() if process.name() == "rowcall-prefork")
    assert {psutil.Process(worker).ppid() for worker in workers} == {template.pid}
    os.kill(workers[0], signal.SIGKILL)
    service.wait_for_log(f"(pid {workers[0]}) ended with {-signal.SIGKILL} and is replaced")
    wait_until(lambda: len(service.pids()) == 2, "the worker is replaced", 20)
    copied = service.pids()
    template.kill()
    wait_until(lambda: not _runs(template.pid), "the template process has exited")
    assert is_served(service, "/release")
    for worker in copied:
        os.kill(worker, signal.SIGKILL)
        service.wait_for_log(f"(pid {worker}) ended with")
    wait_until(lambda: len(service.pids()) == 2, "both are replaced", 30)
    assert {psutil.Process(worker).ppid() for worker in service.pids()} == {service.process.pid}
    assert is_served(service, "/release")
    assert service.stop() == 0


def test_workers_do_not_outlive_a_killed_supervisor(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, workers=2)
    workers = all_workers(service, 2)
    service.process.kill()
    service.process.wait()
    wait_until(lambda: not any(map(_runs, workers)), "the workers stop", 20)
    wait_until(lambda: not own_database.backends(), "their sessions have ended")


def _runs(pid: int) -> bool:
    return bool(psutil.pid_exists(pid)) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.slow
@pytest.mark.parametrize("way", ["notify", "SIGHUP"])
def test_changed_schema_is_activated_without_losing_a_request(
    own_database: Database, serve_once: Serve, way: str
) -> None:
    service = serve_once(own_database, SQL, workers=2)
    assert answer(service.get("/release")) == (200, TEXT, "1")

    def request(number: int) -> tuple[str, str, bytes]:
        return echo(number) if number % 2 else ("GET", "/release", b"")

    with Load(service.port, request) as load:
        load.wait_for(200)
        own_database.execute(CHANGE)
        reload(service, own_database, way)
        wait_until(lambda: is_served(service, "/arriving"), "the new endpoint is served", 20)
        load.wait_for(200)
    echoes = [o for o in load.outcomes if o.number % 2]
    assert [o for o in echoes if (o.status, o.body) != (200, b"%d" % o.number)] == []
    # Endpoints with a changed return type are held back until the new snapshot contains it.
    released = [o for o in load.outcomes if not o.number % 2]
    assert {o.body for o in released if o.status == 200} == {b"1", b"second"}
    assert [o for o in released if o.status != 200 and not (o.status == 503 and b"other columns" in o.body)] == []
    problem(service.get("/leaving"), 404)


@pytest.mark.slow
def test_all_workers_activate_a_snapshot_at_once(own_database: Database, serve_once: Serve) -> None:
    """Once the log reports the change, no worker serves the old snapshot."""
    service = serve_once(own_database, SQL, workers=3)
    all_workers(service, 3)
    own_database.execute(CHANGE)
    reload(service, own_database, "notify")
    service.wait_for_log("schema snapshot 2 is served", 20)
    assert [is_served(service, "/arriving") for _ in range(30)] == [True] * 30
    assert [is_served(service, "/leaving") for _ in range(30)] == [False] * 30


def test_log_lists_changed_endpoints(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL)
    own_database.execute(CHANGE)
    reload(service, own_database, "notify")
    for change in ("added GET /arriving", "changed GET /release", "removed GET /leaving"):
        service.wait_for_log(change, 20)
    lines = service.log.splitlines()
    assert not any("/echo" in line and "changed" in line for line in lines)


BAD = (
    "create function bad() returns int language sql stable as 'select 1'; comment on function bad() is 'HTTP GET /{}';"
)


def test_invalid_endpoint_does_not_affect_others(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL + BAD.format("x" * 3000))
    service.wait_for_log("1 left out: public.bad();")
    assert answer(service.get("/echo?id=1")) == (200, TEXT, "1")
    own_database.execute("create or replace function bad() returns int language sql stable as 'select 2'")
    own_database.execute(CHANGE)
    reload(service, own_database, "notify")
    wait_until(lambda: is_served(service, "/arriving"), "the new endpoint is served", 20)
    service.wait_for_log("schema snapshot 2 is served: 4 endpoints, 1 left out")


@pytest.mark.slow
def test_last_valid_snapshot_stays_if_a_reload_fails(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL)
    assert answer(service.get("/leaving")) == (200, TEXT, "1")
    own_database.execute("create function later() returns int language sql stable as 'select 1'")
    own_database.execute("comment on function later() is 'HTTP GET /later'")
    line = len(service.log)
    with own_database.refusing_connections():
        service.signal(signal.SIGHUP)
        wait_until(lambda: len(service.log) > line, "the failure is logged")
        assert answer(service.get("/leaving")) == (200, TEXT, "1")
    service.signal(signal.SIGHUP)
    wait_until(lambda: is_served(service, "/later"), "the next load succeeds", 20)


@pytest.mark.slow
def test_failed_reload_is_retried_automatically(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, workers=2)
    own_database.execute(
        "create function later() returns int language sql stable as 'select 1';"
        "comment on function later() is 'HTTP GET /later'"
    )
    with own_database.refusing_connections():
        service.signal(signal.SIGHUP)
        service.wait_for_log("the last good one stays")
    wait_until(lambda: is_served(service, "/later"), "the load is repeated", 20)


@pytest.mark.slow
def test_repeated_reloads_leak_no_resources(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL)
    with Load(service.port, echo, clients=4) as load:
        for number in range(10):
            own_database.execute(
                f"create function extra_{number}() returns int language sql stable as 'select 1';"
                f"comment on function extra_{number}() is 'HTTP GET /extra/{number}'"
            )
            reload(service, own_database, "notify")
            wait_until(partial(is_served, service, f"/extra/{number}"), "the new endpoint is served", 20)
    assert [o for o in load.outcomes if o.status != 200] == []
    wait_until(lambda: not own_database.backends("state <> 'idle'"), "every session is idle")
    assert len(own_database.backends()) <= 2 + 2 + 16 + 16 + 2


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_stop_finishes_running_requests_and_refuses_new_ones(
    own_database: Database, serve_once: Serve, workers: int
) -> None:
    service = serve_once(own_database, SQL, workers=workers)
    with ThreadPoolExecutor(4) as clients:
        with own_database.locked(LOCK):
            running = [clients.submit(httpx.get, f"{service.url}/wait-for?lock={LOCK}", timeout=60) for _ in range(4)]
            wait_until(lambda: len(own_database.waiting()) == 4, "four requests run")
            service.signal(signal.SIGTERM)
            wait_until(lambda: _refused(service.port), "new requests are refused")
            assert not any(future.done() for future in running)
        assert [answer(future.result()) for future in running] == [(200, TEXT, str(LOCK))] * 4
    assert service.process.wait(20) == 0
    wait_until(lambda: not own_database.backends(), "every session has ended")


def _refused(port: int) -> bool:
    """Return whether the port is refused: by the kernel without a listener, or by the service with 503."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/echo?id=1", timeout=5, trust_env=False).status_code == 503
    except httpx.TransportError:
        return True


@pytest.mark.slow
def test_stop_under_load_answers_all_accepted_requests(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, workers=2)
    with Load(service.port, echo) as load:
        load.wait_for(300)
        service.signal(signal.SIGTERM)
        wait_until(lambda: not service.running, "the service ends", 20)
    assert [o for o in load.outcomes if o.status not in (200, 503, 0)] == []
    assert [o for o in load.outcomes if o.status == 200 and o.body != b"%d" % o.number] == []
    assert service.process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_stop_is_limited_by_the_shutdown_timeout(
    own_database: Database, serve_once: Serve, number: signal.Signals
) -> None:
    """A request that never ends does not prevent the end of the service; its query ends too."""
    service = serve_once(own_database, SQL, {"ConnectionSettings:Pool:ShutdownTimeout": "1 second"})
    with own_database.locked(LOCK), socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(f"GET /wait-for?lock={LOCK} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        wait_until(own_database.waiting, "the request runs")
        service.signal(number)
        wait_until(lambda: not service.running, "the service ends", 20)
        wait_until(lambda: not own_database.waiting(), "its query ends")


@pytest.mark.slow
def test_stop_releases_the_leases_of_aborted_requests(own_database: Database, serve_once: Serve) -> None:
    """Requests of both workers wait for one cached response. Their end fails nowhere, which the log would show."""
    settings = {"ConnectionSettings:Pool:ShutdownTimeout": "1 second", "CacheOptions:Enabled": "true"}
    service = serve_once(own_database, SQL + CACHED, settings, workers=2)
    with own_database.locked(LOCK), contextlib.ExitStack() as stack:
        for _ in range(12):
            connection = stack.enter_context(service.connect())
            connection.sendall(f"GET /wait-for-all?lock={LOCK} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        wait_until(own_database.waiting, "one request computes")
        service.signal(signal.SIGTERM)
        wait_until(lambda: not service.running, "the service ends", 20)
    service.wait_for_log("are cut off")


@pytest.mark.slow
def test_reload_requested_during_worker_replacement_is_not_lost(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, workers=2)
    workers = all_workers(service, 2)
    own_database.execute(CHANGE)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    service.signal(signal.SIGHUP)
    wait_until(lambda: not set(workers) & set(service.pids()) and len(service.pids()) == 2, "both are replaced", 20)
    wait_until(lambda: is_served(service, "/arriving"), "the new endpoint is served", 20)
    assert [is_served(service, "/arriving") for _ in range(20)] == [True] * 20


RULE = "has died 5 times in a row"


def kill_again_and_again(service: Service, spared: list[int]) -> bool:
    """Kill every other worker as soon as it exists, until the service backs off."""
    for pid in service.pids():
        if pid not in spared:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return RULE in service.log


@pytest.mark.slow
def test_repeatedly_exiting_worker_is_restarted_with_growing_delay(own_database: Database, serve_once: Serve) -> None:
    """The other worker serves all the time, and everything recovers when the killing ends."""
    service = serve_once(own_database, SQL, workers=2)
    _, other = all_workers(service, 2)
    wait_until(lambda: kill_again_and_again(service, [other]), "the log says so", 60)
    deaths = [line for line in service.log.splitlines() if "ended with -9" in line]
    assert "is replaced: SIGKILL" in deaths[0]
    assert "is replaced in " in deaths[-1]
    assert service.log.count(RULE) == 1
    workers = all_workers(service, 2)
    assert other in workers
    for number in range(10):
        assert answer(service.request_once("GET", f"/echo?id={number}")) == (200, TEXT, str(number))


@pytest.mark.slow
def test_service_stops_while_a_worker_waits_to_be_replaced(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL)
    wait_until(lambda: kill_again_and_again(service, []), "the log says so", 60)
    assert service.stop() == 0


@pytest.mark.slow
@pytest.mark.skipif(not possible(), reason="only /proc shows where the shared state is")
def test_worker_that_cannot_start_logs_the_reason_and_is_retried(own_database: Database, serve_once: Serve) -> None:
    """Here its part of the host's shared memory is missing; once it is restored, the worker starts."""
    settings = {"Service:HttpClientOptions:Enabled": "true", "Service:HttpClientOptions:CircuitBreakerFailures": "3"}
    service = serve_once(own_database, SQL, settings)
    (worker,) = all_workers(service, 1)
    folder = next(
        Path(mapped.path).parents[1] for mapped in psutil.Process(worker).memory_maps() if "circuits" in mapped.path
    )
    aside = folder.with_name("aside-" + folder.name)
    folder.rename(aside)
    os.kill(worker, signal.SIGSEGV)
    assert service.wait_for_log(f"(pid {worker}) ended with").endswith("SIGSEGV [rowcall]")
    line = service.wait_for_log("has died 5 times in a row", 60)
    assert "its last error: this worker ends: FileNotFoundError" in line
    aside.rename(folder)
    wait_until(lambda: is_served(service, "/release"), "a worker serves again", 60)
    service.expect_traceback("FileNotFoundError: ")


def test_signals_until_the_end_do_not_change_the_exit_code(own_database: Database, serve_once: Serve) -> None:
    """The process ignores them from the moment at which its event loop ends."""
    service = serve_once(own_database, SQL, {}, workers=1)
    while service.process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            service.signal(signal.SIGTERM)
        time.sleep(0.0005)  # no wait for a state: leaves the processor to the process that ends
    assert service.process.returncode == 0
