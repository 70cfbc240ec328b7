"""Connections and workers that are lost while PostgreSQL commits: the work is committed, and its caller does not know.

A COMMIT that waits for a replica that does not exist is committed on disk, but not reported until the wait ends.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from rowcall.service.installation.script import install_sql
from tests.conftest import INSTALLATIONS
from tests.harness.database import Database, create_database
from tests.harness.expect import problem
from tests.harness.replication import replicated
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table payment (id int generated always as identity primary key, amount int not null);
create function pay_later() returns int language sql as
'insert into payment (amount) values (7); select pg_sleep(2); select 1';
comment on function pay_later() is 'HTTP POST /pay-later
job retries 0';
create function pay(_amount int) returns payment language plpgsql as $$
declare made payment;
begin
  insert into payment (amount) values (_amount) returning * into made;
  perform rowcall.enqueue('POST /report');
  perform rowcall.publish('order.paid', to_jsonb(made));
  return made;
end $$;
comment on function pay(int) is 'HTTP POST /pay
idempotent';
create function hook(_event jsonb) returns int language sql as
$$ insert into payment (amount) values ((_event ->> 'amount')::int) returning id $$;
comment on function hook(jsonb) is 'HTTP POST /hook
body_parameter_name _event
verify_webhook github';
create function add(_amount int) returns int language sql as
'insert into payment (amount) values (_amount) returning id';
comment on function add(int) is 'HTTP POST /add';
create function add_slowly(_amount int) returns int language sql as
'insert into payment (amount) values (_amount); select pg_sleep(60); select 1';
comment on function add_slowly(int) is 'HTTP POST /add-slowly';
create procedure steps() language plpgsql as $$
begin
  insert into payment (amount) values (1);
  commit;
  insert into payment (amount) values (2);
end $$;
comment on procedure steps() is 'HTTP POST /steps
idempotent';

create function keep(_folder text, _files json) returns void language sql as 'insert into payment (amount) values (5)';
comment on function keep(text, json) is 'HTTP POST /keep
upload for file_system
param _files is upload metadata
path = {_folder}
unique_name = false';
"""
SECRET = "example"
SETTINGS = {
    "Service:UploadOptions:Enabled": "true",
    "Batch:Enabled": "true",
    "Webhooks:Secrets:github": SECRET,
    "Service:RequiresAuthorization": "false",
}
COMMITTING = "wait_event = 'SyncRep'"

Lose = Callable[..., None]
"""`lose(service, condition)`. condition: of the session whose COMMIT is lost."""


@pytest.fixture
def database(run_folder: Path, tmp_path: Path) -> Iterator[Database]:
    """A database of a server whose commits can wait."""
    (server,) = replicated(INSTALLATIONS[0], run_folder / f"commits-{os.getpid()}-{tmp_path.name}", 0)
    made = create_database(server)
    made.execute(install_sql() + SQL)
    yield made
    server.stop("immediate")


@pytest.fixture
def hosts(database: Database, serve_once: Serve) -> list[Service]:
    return [serve_once(database, settings=SETTINGS) for _ in range(2)]


@pytest.fixture(params=["the connection", "the worker"])
def lose(request: pytest.FixtureRequest, database: Database) -> Lose:
    """Wait for a COMMIT, and lose the connection to PostgreSQL, or the worker, while it waits."""

    def run(service: Service, condition: str = "true") -> None:
        committing = f"{COMMITTING} and {condition}"
        wait_until(lambda: database.backends(committing), "a transaction commits", 30)
        if request.param == "the connection":
            assert database.terminate(committing) == 1
        else:
            os.kill(service.pids()[0], signal.SIGKILL)

    return run


@contextmanager
def commits_wait(database: Database) -> Iterator[None]:
    def set_standby(name: str) -> None:
        database.execute(f"alter system set synchronous_standby_names = '{name}'")
        database.execute("select pg_reload_conf()")
        wait_until(lambda: database.value("show synchronous_standby_names") == name, "the setting is read")

    set_standby("nowhere")
    try:
        yield
    finally:
        set_standby("")


def request_losing_commit(database: Database, service: Service, lose: Lose, path: str, **request: object) -> None:
    """Send a request whose COMMIT is lost. If there is a response, it reports that."""
    with commits_wait(database), ThreadPoolExecutor(1) as pool:
        run = pool.submit(service.request_once, "POST", path, **request)
        lose(service)
        try:
            response = run.result(60)
        except httpx.TransportError:
            return
    assert "it is not known whether it took effect" in problem(response, 503)["detail"]


def test_repeated_request_on_another_host_gets_the_stored_response(
    hosts: list[Service], database: Database, lose: Lose
) -> None:
    request = {"json": {"amount": 40}, "headers": {"idempotency-key": "key-1"}}
    request_losing_commit(database, hosts[0], lose, "/pay", **request)
    again = hosts[1].request_once("POST", "/pay", **request)
    assert (again.status_code, again.json()) == (200, {"id": 1, "amount": 40})
    assert again.headers["idempotency-replayed"] == "true"
    effects = "select (select count(*) from payment), (select count(*) from rowcall.job), "
    assert database.fetch(effects + "(select count(*) from rowcall.webhook_message)") == [(1, 1, 1)]


def test_repeated_webhook_takes_effect_once(hosts: list[Service], database: Database, lose: Lose) -> None:
    body = b'{"amount": 40}'
    signature = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    request = {"content": body, "headers": {"x-hub-signature-256": signature, "content-type": "application/json"}}
    request_losing_commit(database, hosts[0], lose, "/hook", **request)
    again = hosts[1].request_once("POST", "/hook", **request)
    assert (again.text, again.headers["idempotency-replayed"]) == ("1", "true")
    assert database.value("select count(*) from payment") == 1


@pytest.mark.slow
def test_procedure_with_commits_is_not_repeated_after_a_lost_commit(
    hosts: list[Service], database: Database, lose: Lose
) -> None:
    request = {"headers": {"idempotency-key": "key-1"}}
    request_losing_commit(database, hosts[0], lose, "/steps", **request)
    # The COMMIT of the key was lost, so the procedure has not begun.
    again = hosts[1].request_once("POST", "/steps", **request)
    assert "its outcome is not known" in problem(again, 409)["detail"]
    assert database.value("select count(*) from payment") == 0


def test_uploaded_file_remains_after_a_lost_commit(
    hosts: list[Service], database: Database, lose: Lose, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    files = [("file", ("horn.txt", b"It rings.", "text/plain"))]
    request_losing_commit(database, hosts[0], lose, f"/keep?folder={folder}", files=files)
    assert database.value("select amount from payment") == 5
    assert (folder / "horn.txt").read_bytes() == b"It rings."
    if not (left := [path for path in folder.iterdir() if path.name != "horn.txt"]):
        hosts[0].wait_for_log("its files stay, although it may have been rolled back: horn.txt")
    assert all(path.suffix == ".settled" for path in left)


def test_batch_is_not_repeated_after_a_lost_commit(hosts: list[Service], database: Database, lose: Lose) -> None:
    requests = [{"method": "POST", "path": "/add", "body": {"amount": n}} for n in (1, 2)]
    request_losing_commit(database, hosts[0], lose, "/batch", json=requests)
    assert database.fetch("select amount from payment order by id") == [(1,), (2,)]
    assert hosts[0].request_once("POST", "/add", json={"amount": 3}).status_code == 200


def test_batch_of_a_killed_worker_is_rolled_back(hosts: list[Service], database: Database) -> None:
    requests = [{"method": "POST", "path": path, "body": {"amount": 1}} for path in ("/add", "/add-slowly")]
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(hosts[0].request_once, "POST", "/batch", json=requests)
        sleeping = "wait_event = 'PgSleep'"
        wait_until(lambda: database.backends(sleeping), "the second request runs", 30)
        os.kill(hosts[0].pids()[0], signal.SIGKILL)
        with pytest.raises(httpx.TransportError):
            run.result(60)
    database.terminate(sleeping)
    wait_until(lambda: not database.backends(sleeping), "the transaction has ended", 30)
    assert database.value("select count(*) from payment") == 0


@pytest.mark.slow
def test_finished_job_is_not_repeated_after_a_lost_commit(database: Database, serve_once: Serve, lose: Lose) -> None:
    service = serve_once(database, settings={**SETTINGS, "Jobs:Enabled": "true"})
    location = service.post("/pay-later").headers["location"]
    (backend,) = wait_until(lambda: database.backends("wait_event = 'PgSleep'"), "the job runs", 30)
    with commits_wait(database):
        lose(service, f"pid = {backend}")
    ended = wait_until(lambda: (job := service.get(location).json())["state"] != "running" and job, "the job has ended")
    assert (ended["state"], ended["attempts"]) == ("done", 1)
    assert database.value("select count(*) from payment") == 1
