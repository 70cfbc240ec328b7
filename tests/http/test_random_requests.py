"""Thousands of random requests for random routines: an answer for each, and never one of surprise.

`ROWCALL_RANDOM_REQUESTS` makes it longer; `ROWCALL_RANDOM_SEED` repeats a run that failed.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from tests.harness.database import Database
from tests.harness.effort import examples, seed
from tests.harness.load import REQUEST_SECONDS, Connection
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.random_routines import Request, Routine, request, routines, shown
from tests.http.random_types import Types

ROUTINES = examples(300)
REQUESTS = int(os.environ.get("ROWCALL_RANDOM_REQUESTS", examples(10_000)))
pytestmark = pytest.mark.drawn

SEED = seed("ROWCALL_RANDOM_SEED")
CLIENTS = 12

SQLSTATE = re.compile(r"[0-9A-Z]{5}")
EXPECTED = {200, 204, 400, 404, 405}
TOO_LARGE = {414, 431}
HEAD_LIMIT = 40_960
"""Bytes of the request line and the headers, docs/http-server.md. Arrays of composites of texts can have more."""


@pytest.fixture(scope="module")
def schema() -> list[Routine]:
    return []


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, schema: list[Routine]) -> Service:
    random = Random(SEED)
    types = Types(random)
    schema += routines(random, types, ROUTINES)
    return serve(database, ";\n".join([*types.sql, *(routine.sql for routine in schema)]), workers=2)


def unexpected(sent: Request, status: int, body: bytes) -> str:
    """What is wrong with an answer, or nothing."""
    if status in EXPECTED or (status in TOO_LARGE and _head_size(sent) > HEAD_LIMIT):
        return ""
    if status != 500:
        return f"status {status}"
    if sent.method == "HEAD":
        return ""  # the log names the cause of the error, and a traceback in it fails the test
    problem = json.loads(body)
    if SQLSTATE.fullmatch(problem["detail"]):
        return ""
    # A JSON value of the wrong type is answered 500 by the rules of the field (binding-11).
    return "" if problem["detail"].startswith("parameter '") else f"500 of our own: {problem}"


def _head_size(sent: Request) -> int:
    headers = sum(len(f"{name}: {value}\r\n") for name, value in sent.headers.items())
    return len(f"{sent.method} {sent.target} HTTP/1.1\r\nHost: load\r\nContent-Length: {len(sent.body)}\r\n") + headers


async def _client(port: int, requests: Iterator[Request], statuses: Counter[int], wrong: list[str]) -> None:
    connection = await Connection.open(port)
    for sent in requests:
        response = connection.send(sent.method, sent.target, sent.body, sent.headers)
        try:
            status, body = await asyncio.wait_for(response, REQUEST_SECONDS)
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            wrong.append(f"{type(error).__name__}: {error}\n{shown(sent)}")
            await connection.end()
            connection = await Connection.open(port)
            continue
        statuses[status] += 1
        if message := unexpected(sent, status, body):
            wrong.append(f"{message}\n{shown(sent)}")
        if connection.closing:
            await connection.end()
            connection = await Connection.open(port)
    await connection.end()


@pytest.mark.slow
def test_every_random_request_gets_a_documented_response(service: Service, schema: list[Routine]) -> None:
    random = Random(f"{SEED} requests")
    requests = iter([request(random, random.choice(schema)) for _ in range(REQUESTS)])
    statuses: Counter[int] = Counter()
    wrong: list[str] = []

    async def run() -> None:
        await asyncio.gather(*(_client(service.port, requests, statuses, wrong) for _ in range(CLIENTS)))

    asyncio.run(run())
    assert not wrong, f"ROWCALL_RANDOM_SEED={SEED}: {len(wrong)} of {statuses}\n" + "\n\n".join(wrong[:5])
    assert statuses[200] + statuses[204] > REQUESTS // 4, (
        f"too few requests were good ones to prove anything: {statuses}"
    )
    assert service.running
