"""A service with a hostile PostgreSQL, and clients that compare each response with the expected one."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx

from tests.harness.database import Database
from tests.harness.hostile_postgres import HostilePostgres, Mutations
from tests.harness.hostile_upstream import owners
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

MARK = b"hostile_"

SETTINGS = {"Service:CommandTimeout": "300ms", "ConnectionSettings:Pool:QueueTimeout": "2s"}

SQL = """
create table written (n text);
create function hostile_signed(_n text) returns text language sql stable as
$$ select format('<%s %s>', _n, left(encode(sha256(convert_to(_n, 'UTF8')), 'hex'), 16)) $$;
create function hostile_text(_n text) returns text language sql stable as 'select hostile_signed(_n)';
create function hostile_rows(_n text) returns table(value text, row_number int) language sql stable as
$$ select hostile_signed(_n), row_number::int from generate_series(1, 3) row_number $$;
create function hostile_json(_n text) returns json language sql stable as
$$ select json_build_object('value', hostile_signed(_n)) $$;
create function hostile_write(_n text) returns text language sql as
$$ insert into written values (_n); select hostile_signed(_n) $$;
create function hostile_nothing(_n text) returns void language sql stable as '';
comment on function hostile_text is 'HTTP GET /text';
comment on function hostile_rows is 'HTTP GET /rows';
comment on function hostile_json is 'HTTP GET /json';
comment on function hostile_write is 'HTTP POST /write';
comment on function hostile_nothing is 'HTTP GET /nothing';
"""

PATHS = ("/text", "/rows", "/json", "/write", "/nothing")
Judge = Callable[[str, str, httpx.Response], None]


@contextmanager
def hostile_database(database: Database) -> Iterator[tuple[HostilePostgres, dict[str, str]]]:
    """Provide the proxy, and the settings of a service behind it."""
    proxy = HostilePostgres(database.server.port, MARK)
    conninfo = database.conninfo.replace(f":{database.server.port}/", f":{proxy.port}/")
    try:
        yield proxy, {**SETTINGS, "ConnectionStrings:Default": conninfo}
    finally:
        proxy.close()


def send(client: httpx.Client, path: str, nonce: str) -> httpx.Response:
    return client.post(path, json={"n": nonce}) if path == "/write" else client.get(f"{path}?n={nonce}")


def is_right(path: str, nonce: str, response: httpx.Response) -> None:
    """Check that the successful response is complete and belongs to this request."""
    signed = f"<{nonce} {hashlib.sha256(nonce.encode()).hexdigest()[:16]}>"
    match path:
        case "/nothing":
            right = response.status_code == 204 and not response.content
        case "/rows":
            right = response.json() == [{"value": signed, "rowNumber": number} for number in (1, 2, 3)]
        case "/json":
            right = response.json() == {"value": signed}
        case _:
            right = response.text == signed
    assert right, (path, nonce, response.status_code, response.content)


def is_not_exchanged(path: str, nonce: str, response: httpx.Response) -> None:
    """Check that no intact value in the successful response belongs to another request."""
    assert owners(response.content) <= {nonce}, (path, nonce, response.content)


def call_all(service: Service, callers: range, goes_on: Callable[[int], bool], judge: Judge) -> Counter[str]:
    """Send requests to all paths with several clients while `goes_on(round)`. Return the nonces that succeeded.

    A response is either a success that `judge` accepts, or a problem with 5xx.
    """

    def work(caller: int) -> Counter[str]:
        number = 0
        succeeded: Counter[str] = Counter()
        with service.new_client(timeout=9) as client:
            while goes_on(number):
                for place, path in enumerate(PATHS):
                    nonce = str((caller * 1_000_000 + number) * 10 + place)
                    response = send(client, path, nonce)
                    if response.status_code < 300:
                        judge(path, nonce, response)
                        succeeded[nonce] += 1
                    else:
                        assert response.status_code >= 500, (path, response.status_code, response.text)
                        assert response.json()["status"] == response.status_code
                number += 1
        return succeeded

    with ThreadPoolExecutor(len(callers)) as pool:
        return sum(pool.map(work, callers), Counter())


def attack(
    database: Database, serve: Serve, seed: int, callers: int, goes_on: Callable[[int, bool], bool], share: float
) -> None:
    """Run the whole drill, without and with changed values: `goes_on(round, values)`.

    Afterwards each path is served, no worker has ended, and each successful write has taken effect once.
    """

    def goes_on_with(values: bool) -> Callable[[int], bool]:
        return lambda done: goes_on(done, values)

    with hostile_database(database) as (proxy, settings):
        service = serve(database, SQL, settings, workers=2)
        try:
            workers = service.pids()
            for values in (False, True):
                mutations = proxy.rule = Mutations(seed, share, values=values)
                first = 1 + callers * values
                judge = is_not_exchanged if values else is_right
                succeeded = call_all(service, range(first, first + callers), goes_on_with(values), judge)
                proxy.rule = None
                assert succeeded
                assert mutations.counts
                if not values:
                    _check_writes(database, succeeded)
            wait_until(lambda: all(send(service.client, path, "1").status_code < 300 for path in PATHS), "all is well")
            assert service.pids() == workers
        finally:
            service.stop()


def _check_writes(database: Database, succeeded: Counter[str]) -> None:
    """Check that each successful write has taken effect once, and no other one more than once."""
    written = Counter({row[0]: row[1] for row in database.fetch("select n, count(*) from written group by n")})
    assert max(written.values()) == 1
    place = str(PATHS.index("/write"))
    assert {nonce for nonce in succeeded if nonce.endswith(place)} <= set(written)
