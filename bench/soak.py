"""`python -m bench.soak --seconds 3600`: a service at a share of its maximum rate, with faults at random moments, and
their consequences. The maximum is measured first, by the same clients, for `--measure` seconds.

Every request has a unique number, so that lost, duplicated and mismatched responses are detected: a write with the
response 200 must be in the table, no number may occur twice, and every other response must match its number. The
report also contains sessions and the slopes of memory and descriptors. Faults: backends terminated, one killed (so that
PostgreSQL recovers from a crash), the server stopped or restarted, a table locked, a worker killed, a function changed,
clients that disconnect, that send nothing, that send a body byte by byte, and that read a long response slowly.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psycopg

from bench.postgres import Server, temporary_server
from bench.processes import resident_mebibytes, tree
from bench.services import free_port

RESULTS = Path(__file__).with_name("results")
SESSIONS = 2 + 2 + 8 + 16 + 1
"""Of a worker (docs/performance.md)."""
OWN_SESSIONS = 2
"""Of the supervisor."""
RESPOND_WITHIN = 30.0
EXPECTED = frozenset({200, 503, 504})

SQL = """
create table written (id bigint not null);
create table locked (id int);
insert into locked values (1);
create function echo(_id bigint) returns bigint language sql stable as 'select _id';
create function slow_echo(_id bigint) returns bigint language plpgsql stable as
  $$begin perform pg_sleep(0.01); return _id; end$$;
create function write(_id bigint) returns bigint language sql volatile
  as 'insert into written values (_id) returning id';
create function of_locked(_id bigint) returns bigint language sql stable as 'select _id from locked';
create function rows_of(_id bigint) returns table(id bigint, n int) language sql stable
  as 'select _id, n from generate_series(1, 20) n';
create function many(_id bigint) returns table(id bigint, filler text) language sql stable
  as $$select _id, repeat('x', 100) from generate_series(1, 10000) n$$;
create function changing(_id bigint) returns bigint language sql stable as 'select _id';
comment on function echo(bigint) is 'HTTP GET /echo';
comment on function slow_echo(bigint) is 'HTTP GET /slow-echo';
comment on function write(bigint) is 'HTTP POST /write';
comment on function of_locked(bigint) is 'HTTP GET /of-locked
timeout 2s';
comment on function rows_of(bigint) is 'HTTP GET /rows-of';
comment on function many(bigint) is 'HTTP GET /many';
comment on function changing(bigint) is 'HTTP GET /changing';
"""

CHANGED = """
drop function changing(bigint);
create function changing(_id bigint) returns {type} language sql stable as $$select {value}$$;
comment on function changing(bigint) is 'HTTP GET /changing';
"""

READS = ("/echo", "/slow-echo", "/rows-of", "/of-locked", "/changing", "/many")


@dataclass(slots=True)
class Observations:
    """What the clients of the run have observed."""

    statuses: Counter[int] = field(default_factory=Counter)
    """0: the connection ended without a response."""
    stored: set[int] = field(default_factory=set)
    """Writes with the response 200."""
    mismatched: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    late: int = 0
    """Requests without a response within `RESPOND_WITHIN`."""


def is_expected(path: str, number: int, body: bytes) -> bool:
    match path:
        case "/rows-of":
            return body == b"[" + b",".join(b'{"id":%d,"n":%d}' % (number, n) for n in range(1, 21)) + b"]"
        case "/many":
            return body.count(b'{"id":%d,' % number) == 10_000 and body.endswith(b"}]")
        case "/changing":
            return body in (b"%d" % number, b'{"id": %d}' % number)
    return body == b"%d" % number


@dataclass(slots=True)
class Pace:
    """Schedule of the next request for all clients together."""

    interval: float = 0.0
    """Seconds between two requests; 0: no pause."""
    _due: float = 0.0

    async def turn(self) -> None:
        if self.interval:
            now = time.monotonic()
            self._due = max(self._due + self.interval, now - 1)  # A delay by a fault is not followed by a burst.
            if self._due > now:
                await asyncio.sleep(self._due - now)


class Client:
    """Sends one request at a time, over successive connections."""

    def __init__(self, port: int, observations: Observations, numbers: Iterator[int], pace: Pace) -> None:
        self._port = port
        self._observations = observations
        self._numbers = numbers
        self._pace = pace
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self, until: float) -> None:
        while time.monotonic() < until:
            await self._pace.turn()
            number = next(self._numbers)
            writes = number % 4 == 0
            path = "/write" if writes else READS[number % len(READS)]
            try:
                status, body = await asyncio.wait_for(self._request(path, number, writes=writes), RESPOND_WITHIN)
            except TimeoutError:
                self._observations.late += 1
                self._close()
                continue
            except (OSError, EOFError, ValueError):
                self._observations.statuses[0] += 1
                self._close()
                await asyncio.sleep(0.05)
                continue
            self._check(path, number, status, body)
        self._close()

    def _check(self, path: str, number: int, status: int, body: bytes) -> None:
        self._observations.statuses[status] += 1
        if status not in EXPECTED:
            self._observations.unexpected.append(f"{path} {status} {body[:200]!r}")
        elif status == 200 and not is_expected(path, number, body):
            self._observations.mismatched.append(f"{path} {number} {body[:200]!r}")
        elif status == 200 and path == "/write":
            self._observations.stored.add(number)

    async def _request(self, path: str, number: int, *, writes: bool) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        if writes:
            content = b'{"id":%d}' % number
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            writer.write(head.encode() + b"Content-Length: %d\r\n\r\n" % len(content) + content)
        else:
            writer.write(f"GET {path}?id={number} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            if number % 997 == 0:
                self._close()
                raise EOFError("the client has disconnected")
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
        if headers.get("transfer-encoding") == "chunked":
            body = await _chunks(reader)
        else:
            body = await reader.readexactly(int(headers.get("content-length", "0")))
        if headers.get("connection") == "close":
            self._close()
        return int(lines[0].split(" ")[1]), body

    def _close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int(await reader.readline(), 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readexactly(2)
    return body


class Faults:
    """Faults, one after another, at random moments."""

    def __init__(self, server: Server, supervisor: int, port: int, seconds: float, *, spare_workers: bool) -> None:
        self._server = server
        self._spare_workers = spare_workers
        self._conninfo = f"{server.conninfo('soak')} application_name=soak"
        self._supervisor = supervisor
        self._port = port
        self._seconds = seconds
        self.done: Counter[str] = Counter()
        self._changes = itertools.cycle((("jsonb", "jsonb_build_object('id', _id)"), ("bigint", "_id")))

    async def run(self, until: float) -> None:
        kinds: tuple[Callable[[], Awaitable[None]], ...] = (
            self.terminate, self.crash, self.hang, self.restart, self.lock, self.change, self.send_nothing,
            self.send_and_read_slowly,
        )  # fmt: skip
        if not self._spare_workers:
            kinds += (self.kill_worker,)
        chosen = random.Random(13)  # A fixed seed for the same order of faults in each run.
        waiting: list[Callable[[], Awaitable[None]]] = []
        while (seconds_left := until - time.monotonic()) > 15:
            await asyncio.sleep(min(seconds_left, chosen.uniform(0.5, 1.5) * self._seconds))
            # All faults occur once before one is repeated.
            waiting = waiting or chosen.sample(kinds, len(kinds))
            kind = waiting.pop()
            with contextlib.suppress(psycopg.Error, ProcessLookupError):
                await kind()
                self.done[kind.__name__] += 1

    async def _execute(self, sql: str) -> None:
        async with await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True) as session:
            await session.execute(sql.encode())

    async def terminate(self) -> None:
        await self._execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")

    async def crash(self) -> None:
        backends = [pid for pid in tree(self._server.pid) if pid != self._server.pid and _is_client_backend(pid)]
        if backends:
            os.kill(backends[0], signal.SIGKILL)

    async def hang(self) -> None:
        family = list(tree(self._server.pid))
        for pid in family:
            os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(3)
        finally:
            for pid in family:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    async def restart(self) -> None:
        await asyncio.to_thread(self._server.control, "restart", "-m", "fast")

    async def lock(self) -> None:
        async with await psycopg.AsyncConnection.connect(self._conninfo) as session:
            await session.execute("lock table locked in access exclusive mode")
            await asyncio.sleep(4)

    async def kill_worker(self) -> None:
        os.kill(workers(self._supervisor)[0], signal.SIGKILL)

    async def change(self) -> None:
        kind, value = next(self._changes)
        await self._execute(CHANGED.format(type=kind, value=value))

    async def send_nothing(self) -> None:
        opened = [await asyncio.open_connection("127.0.0.1", self._port) for _ in range(20)]
        for number, (_, writer) in enumerate(opened):
            writer.write((b"", b"GET /echo", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")[number % 3])
        await asyncio.sleep(2)
        for _, writer in opened:
            writer.close()

    async def send_and_read_slowly(self) -> None:
        """Ten clients send a body byte by byte, ten read 1 MB slowly, and then all disconnect."""
        opened = [await asyncio.open_connection("127.0.0.1", self._port, limit=1) for _ in range(20)]
        body = b'{"id":-1' + b" " * 100
        for number, (_, writer) in enumerate(opened):
            if number % 2:
                writer.write(b"POST /write HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: 1000\r\n\r\n")
            else:
                writer.write(b"GET /many?id=7 HTTP/1.1\r\nHost: x\r\n\r\n")
        for byte in body:
            for number, (reader, writer) in enumerate(opened):
                with contextlib.suppress(OSError, TimeoutError):
                    if writer.is_closing():
                        continue
                    if number % 2:
                        writer.write(bytes((byte,)))
                    else:
                        await asyncio.wait_for(reader.read(1), 1)
            await asyncio.sleep(0.05)
        for _, writer in opened:
            writer.close()


def _is_client_backend(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b" soak " in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def workers(supervisor: int) -> list[int]:
    pids = []
    for pid in tree(supervisor):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text() == "rowcall-worker\n":
                pids.append(pid)
    return pids


def descriptors(supervisor: int) -> int:
    count = 0
    for pid in (supervisor, *workers(supervisor)):
        with contextlib.suppress(OSError):
            count += len(os.listdir(f"/proc/{pid}/fd"))
    return count


@dataclass(slots=True)
class Watch:
    """Samples of the service under load."""

    server: Server
    supervisor: int
    most_sessions: int = 0
    memory: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    """Of each worker: times (s) and MiB."""
    descriptors: list[tuple[float, float]] = field(default_factory=list)

    async def run(self, until: float) -> None:
        while time.monotonic() < until:
            for pid in workers(self.supervisor):
                self.memory.setdefault(pid, []).append((time.monotonic(), resident_mebibytes(pid)))
            self.descriptors.append((time.monotonic(), descriptors(self.supervisor)))
            with contextlib.suppress(psycopg.Error, TimeoutError):
                async with asyncio.timeout(10):
                    self.most_sessions = max(self.most_sessions, await sessions(self.server))
            await asyncio.sleep(1)

    def longest(self) -> list[tuple[float, float]]:
        """The memory of the worker that lived longest."""
        return max(self.memory.values(), key=len, default=[])


def slope(samples: list[tuple[float, float]]) -> float:
    """Return the slope of the regression line per hour. samples: (seconds, value); the first third is ignored."""
    settled = samples[len(samples) // 3 :]
    if len(settled) < 3:
        return 0.0
    return round(statistics.linear_regression(*zip(*settled, strict=True)).slope * 3600, 1)


async def sessions(server: Server) -> int:
    """Return the number of sessions of the service; those of this program have a name."""
    sql = "select count(*) from pg_stat_activity where datname = 'soak' and application_name <> 'soak'"
    conninfo = server.conninfo("soak")
    async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True, application_name="soak") as session:
        row = await (await session.execute(sql)).fetchone()
    return 0 if row is None else int(row[0])


@contextmanager
def service(server: Server, worker_count: int) -> Iterator[tuple[int, int, Path]]:
    """Provide the process id of the supervisor, the port, and the log."""
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix="rowcall-soak-"))
    log = folder / "service.log"
    settings = {
        "ConnectionStrings:Default": f"{server.conninfo('soak')} connect_timeout=5",
        "Urls": f"http://127.0.0.1:{port}",
        "HttpServer:Workers": str(worker_count),
        "HttpServer:Limits:RequestHeadersTimeout": "5 seconds",
        "Service:CommandTimeout": "5 seconds",
        "Service:RequiresAuthorization": "false",
    }
    command = [sys.executable, "-m", "rowcall.service.cli", *(f"--{key}={value}" for key, value in settings.items())]
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while b"Started in" not in log.read_bytes():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the service has not started:\n{log.read_text('utf-8')}")
            time.sleep(0.1)
        yield process.pid, port, log
    finally:
        process.terminate()
        process.wait(60)


@asynccontextmanager
async def concurrently(*works: Awaitable[None]) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(work) for work in works]
    yield
    await asyncio.gather(*tasks)


async def soak(server: Server, supervisor: int, port: int, arguments: argparse.Namespace) -> dict[str, object]:
    observations = Observations()
    numbers = itertools.count(1)
    watch = Watch(server, supervisor)
    faults = Faults(server, supervisor, port, arguments.every, spare_workers=arguments.spare_workers)
    before = descriptors(supervisor)
    pace = Pace()
    clients = [Client(port, observations, numbers, pace) for _ in range(arguments.clients)]
    until = time.monotonic() + arguments.measure
    async with concurrently(*(client.run(until) for client in clients)):
        pass
    limit = observations.statuses.total() / arguments.measure
    pace.interval = 1 / (limit * arguments.share)
    until = time.monotonic() + arguments.seconds
    async with concurrently(*(client.run(until) for client in clients), watch.run(until), faults.run(until)):
        pass
    await asyncio.sleep(12)  # Until idle connections are closed and abandoned requests have ended.
    rows = Counter(int(line) for line in server.psql("-c", "select id from written", database="soak").split())
    return {
        "seconds": arguments.seconds,
        "limit_per_second": round(limit),
        "requests": sum(observations.statuses.values()) + observations.late,
        "statuses": {str(status): count for status, count in sorted(observations.statuses.items())},
        "faults": dict(faults.done),
        "lost": len(observations.stored - rows.keys()),
        "duplicated": sum(count > 1 for count in rows.values()),
        "mismatched": len(observations.mismatched),
        "unexpected": len(observations.unexpected),
        "without response": observations.late,
        "most_sessions": watch.most_sessions,
        "sessions_allowed": arguments.workers * SESSIONS + OWN_SESSIONS,
        "sessions_after": await sessions(server),
        "descriptors_before": before,
        "descriptors_after": descriptors(supervisor),
        "descriptors_per_hour": slope(watch.descriptors),
        "memory_mib_per_hour": slope(watch.longest()),
        "memory_mib": [round(memory) for _, memory in watch.longest()[:: max(1, len(watch.longest()) // 20)]],
        "examples": [*observations.mismatched[:5], *observations.unexpected[:5]],
    }


def verdict(results: dict[str, object]) -> list[str]:
    """Return the violations."""
    none = ("lost", "duplicated", "mismatched", "unexpected", "without response")
    wrong = [f"{results[name]} {name}" for name in none if results[name]]
    if int(str(results["most_sessions"])) > int(str(results["sessions_allowed"])):
        wrong.append("more sessions than documented")
    return wrong


@dataclass(frozen=True, slots=True)
class SoakResult:
    """The result that is written to `bench/results`."""

    arguments: dict[str, object]
    results: dict[str, object]
    tracebacks: int


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.soak", description=__doc__.partition("\n")[0] if __doc__ else ""
    )
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--share", type=float, default=0.7, help="share of the maximum rate that is requested")
    parser.add_argument("--measure", type=float, default=20.0, help="seconds for measuring the maximum rate")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two faults, on average")
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--spare-workers", action="store_true", help="kill no worker, to watch its memory for longer")
    parser.add_argument("--postgres", default="auto")
    parser.add_argument("--save", action="store_true", help="write the result to bench/results")
    arguments = parser.parse_args()
    with temporary_server(arguments.postgres) as server:
        server.psql("-c", "create database soak", database="postgres")
        server.psql("-c", SQL, database="soak")
        with service(server, arguments.workers) as (supervisor, port, log):
            results = asyncio.run(soak(server, supervisor, port, arguments))
        tracebacks = log.read_text("utf-8", errors="replace").count("Traceback (most recent call last)")
    record = SoakResult({key: value for key, value in vars(arguments).items() if key != "save"}, results, tracebacks)
    text = json.dumps(asdict(record), indent=2)
    print(text)
    if arguments.save:
        RESULTS.joinpath(f"soak-{time.strftime('%Y-%m-%dT%H%M')}.json").write_text(text + "\n", encoding="utf-8")
    wrong = verdict(results)
    print("; ".join(wrong) if wrong else "no lost, duplicated or mismatched responses")
    return 1 if wrong or tracebacks else 0


if __name__ == "__main__":
    sys.exit(main())
