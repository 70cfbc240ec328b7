"""Reading from replicas, with real streaming replication: who is read, what is seen, and what happens when one goes."""

from __future__ import annotations

import asyncio
import os
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from rowcall.service.database.connector import ConnectionTarget, Connector
from rowcall.service.database.options import DatabaseOptions
from rowcall.service.database.replicas.options import ReplicaServer
from rowcall.service.database.replicas.primary import Primary
from rowcall.service.database.replicas.replica import Replica
from rowcall.service.installation.script import install_sql
from tests.conftest import INSTALLATIONS
from tests.ext.wire import run, until
from tests.harness.database import Database, create_database
from tests.harness.replication import ReplicatedServer, replicated
from tests.harness.routines import routines
from tests.harness.service import Service
from tests.harness.sql_files import write_files
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

PORT = "select current_setting('port')::int"
REPLICAS = "ConnectionSettings:Replicas:"

SQL = """
create table notes(id serial primary key, note text);
create sequence turns;
comment on table notes is 'HTTP GET
for select';
create view place as select current_setting('port')::int as port;
comment on view place is 'HTTP GET
for select';
""" + routines([
    ("here() returns int stable", PORT, "HTTP GET /here"),
    ("never_changes() returns int immutable", PORT, "HTTP GET /never-changes"),
    ("at_home() returns int stable", PORT, "HTTP GET /at-home\nread_from primary"),
    ("sent() returns int volatile", PORT, "HTTP GET /sent\nread_from replica"),
    ("may_write() returns int volatile", PORT, "HTTP GET /may-write"),
    ("fresh() returns int stable", PORT, "HTTP GET /fresh\nread_from replica within 300 ms"),
    ("limited() returns int stable", PORT, "HTTP GET /limited\ndeadline 30s"),
    ("note(_note text) returns int", f"insert into notes(note) values (_note); {PORT}",
     "HTTP POST /note\nmcp Takes a note.\nmcp_name take_note"),
    ("procedure noted(_note text) language plpgsql",
     "begin insert into notes(note) values (_note); commit; end",
     "HTTP POST /noted"),
    ("seen(_note text) returns json stable",
     "select json_build_object('port', current_setting('port')::int,"
     " 'seen', exists(select from notes where note = _note))", "HTTP GET /seen"),
    ("listed(_note text) returns bool stable", "select exists(select from notes where note = _note)",
     "HTTP GET /listed\ncached\ncache_tags notes"),
    ("turn() returns bigint stable", "select nextval('turns')", "HTTP GET /turn"),
    ("many(_rows int) returns table(n int, filler text) stable",
     "select n, repeat('x', 100) from generate_series(1, _rows) n", "HTTP GET /many"),
    ("held() returns int language plpgsql stable",
     "begin perform pg_advisory_xact_lock_shared(7); return current_setting('port'); end", "HTTP GET /held"),
    ("sign_in(_name text) returns table (user_id text, user_name text, user_roles text[])",
     "select 'id of ' || _name, _name, array[_name]", "HTTP POST /sign-in\nlogin"),
    ("sign_in_fast(_name text) returns table (user_id text, user_name text) stable",
     "select _name, current_setting('port')", "HTTP POST /sign-in-fast\nlogin"),
    ("announced() returns int stable", PORT, "HTTP POST /announced\npublishes port.read"),
    ("once() returns int stable", PORT, "HTTP POST /once\nidempotent"),
    ("who(_user_id text default null) returns json stable",
     "select json_build_object('port', current_setting('port')::int, 'seen', array[_user_id,"
     " current_setting('request.user_id', true), current_setting('request.user_name', true)])",
     "HTTP GET /who\nallow_anonymous\nuser_parameters\nuser_context"),
    ("failing() returns int language plpgsql stable", "begin raise exception 'no'; end", "HTTP GET /failing"),
])  # fmt: skip

Servers = list[ReplicatedServer]


@pytest.fixture(scope="module")
def servers(run_folder: Path) -> Iterator[Servers]:
    if not (INSTALLATIONS and (INSTALLATIONS[0].bin / "pg_basebackup").exists()):
        pytest.skip("no PostgreSQL with pg_basebackup found")
    made = replicated(INSTALLATIONS[0], run_folder / f"replicated-{os.getpid()}", 2)
    yield made
    for server in made:
        if server.running:
            server.stop("immediate")


@pytest.fixture(scope="module")
def shop(servers: Servers) -> Database:
    made = create_database(servers[0])
    made.execute(install_sql() + SQL)
    for standby in servers[1:]:
        wait_until(lambda item=standby: item.has_reached(servers[0]), "the standby has it")  # type: ignore[misc]
    return made


def settings(shop: Database, *replicas: ReplicatedServer, **others: str) -> dict[str, str]:
    result = {f"ConnectionStrings:Replica{port.port}": port.conninfo(shop.name) for port in replicas}
    return {
        **result,
        REPLICAS + "Enabled": "true",
        REPLICAS + "CheckInterval": "50ms",
        **{REPLICAS + name: value for name, value in others.items()},
    }


@pytest.fixture(scope="module")
def service(shop: Database, servers: Servers, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = tmp_path_factory.mktemp("files")
    write_files(folder, {"read.sql": f"-- HTTP GET /read\n-- single\n{PORT} as port;"})
    chosen = settings(shop, *servers[1:], MaxLag="") | {
        "Service:SqlFileSource:FilePattern": f"{folder}/*.sql",
        "Service:CrudSource:Enabled": "true",
        "Auth:CookieAuth": "true",
        "Batch:Enabled": "true",
        "CacheOptions:Enabled": "true",
        "Service:McpOptions:Enabled": "true",
        "Service:McpOptions:UrlPath": "/mcp",
    }
    made = serve(shop, "", chosen, workers=2)
    wait_until(lambda: made.log.count("is read from") == 4, "both workers know both replicas")
    return made


@pytest.mark.slow
def test_read_only_routines_are_distributed_over_the_replicas(service: Service, servers: Servers) -> None:
    ports = {server.port for server in servers[1:]}
    for path in ("/here", "/never-changes", "/sent", "/limited"):
        assert {int(service.get(path).text) for _ in range(40)} == ports, path
    assert {int(service.get("/read").text) for _ in range(20)} == ports


@pytest.mark.parametrize("path", ["/at-home", "/may-write"])
def test_other_routines_run_on_the_primary(service: Service, servers: Servers, path: str) -> None:
    assert {int(service.get(path).text) for _ in range(20)} == {servers[0].port}


def test_claims_reach_the_replicas_and_do_not_reach_other_requests(service: Service, servers: Servers) -> None:
    sessions: dict[str | None, dict[str, str]] = {None: {}}
    for name in ("alma", "bo"):
        cookie = service.post("/sign-in", json={"name": name}).headers["set-cookie"]
        sessions[name] = {"Cookie": cookie.partition(";")[0]}
    service.client.cookies.clear()
    ports = set()
    for _ in range(10):
        for caller, headers in sessions.items():
            body = service.get("/who", headers=headers).json()
            ports.add(body["port"])
            received = [None if each == "" else each for each in body["seen"]]
            assert received == (
                [None, None, None] if caller is None else [f"id of {caller}", f"id of {caller}", caller]
            )
    assert ports == {server.port for server in servers[1:]}


def test_sign_ins_and_calls_that_write_something_of_the_service_run_on_the_primary(
    service: Service, servers: Servers, shop: Database
) -> None:
    before = shop.value("select count(*) from rowcall.webhook_message")
    for _ in range(4):
        cookie = service.post("/sign-in-fast", json={"name": "cy"}).headers["set-cookie"].partition(";")[0]
        service.client.cookies.clear()
        assert service.get("/who", headers={"Cookie": cookie}).json()["seen"][2] == str(servers[0].port)
        for path in ("/announced", "/once"):
            response = service.post(path, headers={"Idempotency-Key": f'"{uuid.uuid4()}"'})
            assert response.text == str(servers[0].port), path
    assert shop.value("select count(*) from rowcall.webhook_message") == before + 4


def test_tables_are_read_from_replicas_too(service: Service, servers: Servers) -> None:
    ports = {row["port"] for _ in range(20) for row in service.get("/api/place").json()}
    assert ports == {server.port for server in servers[1:]}


@pytest.mark.slow
def test_large_results_from_replicas_release_their_connections(service: Service, servers: Servers) -> None:
    for _ in range(40):
        assert len(service.get("/many?rows=20000").json()) == 20_000
    busy = "select count(*) from pg_stat_activity where state = 'active' and query like '%many%'"
    for server in servers[1:]:
        wait_until(lambda item=server: item.ask(busy + " and pid <> pg_backend_pid()") == 0, "nothing runs")  # type: ignore[misc]


@pytest.mark.slow
@pytest.mark.parametrize("write", ["/note", "/noted"])
def test_a_client_reads_its_own_writes(service: Service, servers: Servers, write: str) -> None:
    note = f"by {write}"
    with httpx.Client(base_url=service.url, timeout=60) as writer, ExitStack() as still:
        for standby in servers[1:]:
            still.enter_context(standby.standing_still())
        written = writer.post(write, json={"note": note})
        assert written.is_success, written.text
        token = written.headers["read-after"]
        assert f"rowcall-position={token}; max-age=60; path=/; httponly; samesite=lax" in written.headers["set-cookie"]
        # Every worker knows it, whichever worker has run the write.
        for _ in range(10):
            assert writer.get("/seen", params={"note": note}).json() == {"port": servers[0].port, "seen": True}
            by_header = service.get("/seen", params={"note": note}, headers={"Read-After": token}).json()
            assert by_header == {"port": servers[0].port, "seen": True}
            other_client = service.get("/seen", params={"note": note}).json()
            assert other_client["seen"] is False
            assert other_client["port"] != servers[0].port
        still.close()
        result = wait_until(
            lambda: (one := writer.get("/seen", params={"note": note}).json())["port"] != servers[0].port and one,
            "a replica has it",
        )
        assert result["seen"] is True


def test_a_response_that_is_cached_after_an_invalidation_is_not_older(
    service: Service, servers: Servers, shop: Database
) -> None:
    note = {"note": "that is listed"}
    with ExitStack() as still:
        for standby in servers[1:]:
            still.enter_context(standby.standing_still())
        assert service.get("/listed", params=note).text == "f"
        assert service.post("/note", json=note).is_success
        service.client.cookies.clear()
        shop.execute("notify rowcall, 'forget notes'")
        wait_until(lambda: service.get("/listed", params=note).text == "t", "it is computed again")
    assert service.get("/listed", params=note).text == "t"


@pytest.mark.parametrize("query", ["", "?transaction=false"])
def test_a_batch_and_its_client_read_their_own_writes(service: Service, servers: Servers, query: str) -> None:
    note = f"by a batch{query}"
    with httpx.Client(base_url=service.url, timeout=60) as writer, ExitStack() as still:
        for standby in servers[1:]:
            still.enter_context(standby.standing_still())
        expected = {"port": servers[0].port, "seen": True}
        requests = [
            {"method": "POST", "path": "/note", "body": {"note": note}},
            {"method": "GET", "path": f"/seen?note={quote(note)}"},
        ]
        written = writer.post(f"/batch{query}", json=requests)
        assert written.json()[1]["body"] == expected
        assert writer.get("/seen", params={"note": note}).json() == expected
        by_header = service.get("/seen", params={"note": note}, headers={"Read-After": written.headers["read-after"]})
        assert by_header.json() == expected
        assert service.get("/seen", params={"note": note}).json()["seen"] is False


def test_a_read_only_batch_sends_no_position(service: Service) -> None:
    read = service.post("/batch", json=[{"path": "/here"}, {"path": "/seen?note=none"}])
    assert read.status_code == 200
    assert not {"read-after", "set-cookie"} & set(read.headers)


@pytest.mark.slow
def test_a_write_is_not_answered_with_504_because_its_position_is_late(servers: Servers, serve_once: Serve) -> None:
    shop = create_database(servers[0])
    shop.execute(SQL)
    shop.execute("""create function pg_current_wal_insert_lsn() returns pg_lsn language sql as
        $$ select pg_sleep(30); select pg_catalog.pg_current_wal_insert_lsn() $$""")
    shop.execute(f'alter database "{shop.name}" set search_path = public, pg_catalog')
    limits = {"Batch:Enabled": "true", "Batch:Timeout": "1s", "Service:Deadlines:RequestHeaders:0": "Request-Timeout"}
    service = serve_once(shop, "", settings(shop, servers[1]) | limits)
    note = {"note": "late"}
    batch = [{"method": "POST", "path": "/note", "body": note}]
    for written in (
        service.request_once("POST", "/batch", json=batch),
        service.request_once("POST", "/note", json=note, headers={"request-timeout": "1"}),
    ):
        assert (written.status_code, written.headers.get("read-after")) == (200, "primary"), written.text
    assert shop.value("select count(*) from notes") == 2


def test_a_client_of_tools_reads_its_own_writes(service: Service, servers: Servers) -> None:
    with httpx.Client(base_url=service.url, timeout=60) as writer, ExitStack() as still:
        for standby in servers[1:]:
            still.enter_context(standby.standing_still())
        call = {"name": "take_note", "arguments": {"note": "by a tool"}}
        written = writer.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
        assert written.json()["result"]["structuredContent"] == {"value": servers[0].port}
        assert "read-after" in written.headers
        expected = {"port": servers[0].port, "seen": True}
        assert writer.get("/seen", params={"note": "by a tool"}).json() == expected


@pytest.mark.parametrize("token", ["primary", "nonsense", "FFFFFFFF/FFFFFFFF"])
def test_invalid_positions_are_read_from_the_primary(service: Service, servers: Servers, token: str) -> None:
    assert int(service.get("/here", headers={"Read-After": token}).text) == servers[0].port


def test_a_replica_with_too_much_lag_is_not_used(service: Service, servers: Servers) -> None:
    ports = {server.port for server in servers[1:]}
    wait_until(lambda: int(service.get("/fresh").text) in ports, "the replicas have caught up")
    with servers[1].standing_still(), servers[2].standing_still():
        httpx.post(f"{service.url}/note", json={"note": "far"}, timeout=60)
        # 20 requests in a row, so that both workers receive some.
        wait_until(
            lambda: all(int(service.get("/fresh").text) == servers[0].port for _ in range(20)), "it is read elsewhere"
        )
        assert int(service.get("/here").text) in ports
    wait_until(lambda: int(service.get("/fresh").text) in ports, "the replicas have caught up")


def test_routines_that_write_despite_their_declaration_move_to_the_primary(service: Service) -> None:
    turns = [int(service.get("/turn").text) for _ in range(20)]
    assert turns == sorted(set(turns))
    service.wait_for_log("writes, whatever it says of itself: it is no longer sent to replicas")


def test_an_error_of_the_routine_is_not_repeated_on_the_primary(service: Service, servers: Servers) -> None:
    before = service.log.count("runs on the primary")
    assert service.get("/failing").json()["title"] == "no"
    assert service.log.count("runs on the primary") == before


def test_a_read_waits_for_a_replica_that_is_about_to_replay_the_write(
    shop: Database, servers: Servers, serve_once: Serve
) -> None:
    service = serve_once(shop, "", settings(shop, servers[1], WaitForWrite="30s"))
    wait_until(lambda: int(service.get("/here").text) == servers[1].port, "the replica is read from")
    begun = threading.Event()

    def read(token: str) -> dict[str, object]:
        with httpx.Client(base_url=service.url, timeout=60) as client:
            begun.set()
            response: dict[str, object] = client.get(
                "/seen", params={"note": "soon"}, headers={"Read-After": token}
            ).json()
            return response

    with ThreadPoolExecutor(1) as pool:
        with servers[1].standing_still():
            token = httpx.post(f"{service.url}/note", json={"note": "soon"}, timeout=60).headers["read-after"]
            reading = pool.submit(read, token)
            assert begun.wait(10)
            assert service.get("/seen?note=soon").json() == {"port": servers[1].port, "seen": False}
        assert reading.result() == {"port": servers[1].port, "seen": True}


def test_a_cancelled_wait_ends_the_queries_of_the_position(shop: Database, servers: Servers) -> None:
    def target(server: ReplicatedServer) -> ConnectionTarget:
        found = conninfo_to_dict(server.conninfo(shop.name))
        return ConnectionTarget({name: str(value) for name, value in found.items()})

    async def work() -> None:
        primary = Primary(Connector(target(servers[0])))
        replica = Replica(ReplicaServer("one", target(servers[1]), DatabaseOptions()))
        await primary.sample()
        await replica.check(primary)
        assert replica.up
        before = asyncio.all_tasks()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(replica.wait_until_replayed(2**64 - 1, 60), 0.05)
        await until(lambda: asyncio.all_tasks() <= before)
        replica.close()
        primary.close()
        await replica.database.close()

    run(work())


@pytest.mark.slow
def test_a_replica_that_fails_does_not_fail_requests(shop: Database, servers: Servers, serve_once: Serve) -> None:
    service = serve_once(shop, "", settings(shop, servers[2]))
    wait_until(lambda: int(service.get("/here").text) == servers[2].port, "the replica is read from")
    for _ in range(60):  # so often that it shares connections
        assert int(service.get("/here").text) == servers[2].port

    def held() -> httpx.Response:
        return service.request_once("GET", "/held")

    with ThreadPoolExecutor(4) as pool, psycopg.connect(servers[2].conninfo(shop.name), autocommit=True) as other:
        other.execute("select pg_advisory_lock(7)")
        waiting = [pool.submit(held) for _ in range(4)]
        there = "select count(*) from pg_stat_activity where wait_event = 'advisory'"
        wait_until(lambda: servers[2].ask(there) == 4, "they wait on the replica")
        servers[2].stop("immediate")
        assert [int(item.result().text) for item in waiting] == [servers[0].port] * 4
    for _ in range(20):
        assert int(service.get("/here").text) == servers[0].port
    service.wait_for_log("is not read from: it cannot be queried")
    servers[2].start()
    wait_until(lambda: int(service.get("/here").text) == servers[2].port, "it is read from again")
    for _ in range(20):
        assert int(service.get("/here").text) == servers[2].port


@pytest.mark.slow
def test_a_replica_that_hangs_is_not_used(shop: Database, servers: Servers, serve_once: Serve) -> None:
    service = serve_once(shop, "", settings(shop, servers[2]))
    wait_until(lambda: int(service.get("/here").text) == servers[2].port, "the replica is read from")
    with servers[2].hanging():
        assert int(service.get("/here").text) == servers[0].port
        service.wait_for_log("it cannot be queried: no answer within 2 s")
        assert int(service.get("/here").text) == servers[0].port
    wait_until(lambda: int(service.get("/here").text) == servers[2].port, "it is read from again")


@pytest.mark.slow
def test_a_service_starts_without_its_replica(shop: Database, servers: Servers, serve_once: Serve) -> None:
    away = settings(shop) | {
        "ConnectionStrings:ReplicaAway": "postgresql://postgres@127.0.0.1:1/x",
        "ConnectionStrings:Replica": shop.conninfo,
    }
    service = serve_once(shop, "", away | {"Service:UseMultipleConnections": "true"})
    assert int(service.get("/here").text) == servers[0].port
    service.wait_for_log("replica ReplicaAway is not read from")
    service.wait_for_log("replica Replica is not read from: it is no replica")


@pytest.mark.slow
def test_a_promoted_standby_becomes_the_primary(run_folder: Path, tmp_path: Path, serve_once: Serve) -> None:
    """Both hosts stand in both strings: who is what is found out."""
    if not (INSTALLATIONS and (INSTALLATIONS[0].bin / "pg_basebackup").exists()):
        pytest.skip("no PostgreSQL with pg_basebackup found")
    first, second = replicated(INSTALLATIONS[0], run_folder / f"{tmp_path.name}-failover", 1)
    try:
        shop = create_database(first)
        shop.execute(SQL)
        wait_until(lambda: second.has_reached(first), "the standby has it")
        hosts = f"postgresql://postgres@127.0.0.1:{first.port},127.0.0.1:{second.port}/{shop.name}"
        service = serve_once(
            shop,
            "",
            settings(shop)
            | {
                "ConnectionStrings:Default": f"{hosts}?target_session_attrs=read-write",
                "ConnectionStrings:Replicas": hosts,
            },
            workers=2,
        )
        wait_until(lambda: service.log.count(f":{second.port}) is read from") == 2, "both workers know the replica")
        wait_until(
            lambda: all(int(service.get("/here").text) == second.port for _ in range(20)), "the replica is read from"
        )
        assert int(httpx.post(f"{service.url}/note", json={"note": "1"}, timeout=60).text) == first.port
        first.stop("immediate")
        assert int(service.get("/here").text) == second.port
        second.promote()
        writes = wait_until(
            lambda: (
                (one := httpx.post(f"{service.url}/note", json={"note": "2"}, timeout=60)).status_code == 200 and one
            ),
            "it is written again",
            30,
        )
        assert int(writes.text) == second.port
        assert int(service.get("/here").text) == second.port
        first.follow(second)
        wait_until(
            lambda: all(int(service.get("/here").text) == first.port for _ in range(20)), "the old one is read from", 30
        )
        assert int(httpx.post(f"{service.url}/note", json={"note": "3"}, timeout=60).text) == second.port
    finally:
        for server in (first, second):
            if server.running:
                server.stop("immediate")
