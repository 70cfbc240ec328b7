"""`buffer_rows`: how many rows are buffered on the way to the client (rendering-41, rendering-42, server-11)."""

from __future__ import annotations

import json
from contextlib import ExitStack

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve

# PostgreSQL sends its buffer when 8 kB have accumulated, and collects all rows of a VOLATILE function first.
ROWS = """language sql stable as $$
    select n, repeat('x', 20000), case when n = 4 then pg_advisory_xact_lock_shared(7)::text end
    from generate_series(1, 5) n $$;"""
SQL = f"""
create function each() returns table (n int, text text, waited text) {ROWS}
comment on function each is 'HTTP GET
buffer_rows 0';
create function pairs() returns table (n int, text text, waited text) {ROWS}
comment on function pairs is 'HTTP GET
buffer_rows = 2';
create function broken(_rows int) returns table (n int, text text) language sql stable as $$
    select 1 / (4 - n), repeat('x', 20000) from generate_series(1, _rows) n $$;
comment on function broken is 'HTTP GET
buffer_rows 2';
create function broken_whole(_rows int) returns table (n int, text text) language sql stable as $$
    select 1 / (2000 - n), repeat('x', 1000) from generate_series(1, _rows) n $$;
comment on function broken_whole is 'HTTP GET
buffer_rows 1';
"""


FILE = """-- HTTP GET
-- buffer_rows 0
select 0 as n, null as waited from generate_series(1, 9);
select n, repeat('x', 20000), case when n = 4 then pg_advisory_xact_lock_shared(7)::text end as waited
from generate_series(1, 5) n;
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = write_files(tmp_path_factory.mktemp("files"), {"two.sql": FILE})
    return serve(database, SQL, file_settings(folder))


@pytest.mark.parametrize("path", ["/api/each", "/api/pairs", "/api/two"])
def test_buffered_rows_are_sent_before_the_query_ends(service: Service, database: Database, path: str) -> None:
    with ExitStack() as held:
        held.enter_context(database.locked(7))
        with service.client.stream("GET", f"{service.url}{path}") as response:
            pieces = response.iter_bytes()
            body = b""
            while body.count(b'xx"') < 2:  # the end of the third row is still with PostgreSQL
                body += next(pieces)
            held.close()
            body += b"".join(pieces)
    answer = json.loads(body)
    rows = answer["result2"] if isinstance(answer, dict) else answer
    assert [row["n"] for row in rows] == [1, 2, 3, 4, 5]


def test_error_after_the_first_rows_aborts_the_response(service: Service) -> None:
    with pytest.raises(httpx.HTTPError):
        service.get("/api/broken?rows=9")


def test_error_in_the_first_rows_gets_a_problem_response(service: Service) -> None:
    assert service.get("/api/broken?rows=1").json()[0]["n"] == 0
    problem(service.get("/api/broken-whole?rows=3000"), 500)


def test_buffer_rows_1_buffers_the_whole_result(service: Service) -> None:
    response = service.get("/api/broken-whole?rows=1500")
    assert len(response.json()) == 1500
    assert int(response.headers["content-length"]) == len(response.content) > 1_500_000
