"""The services of the benchmark: how to start them, wait for them and stop them.

One row of `SERVICES` is one service. All use the same database over the same unix socket, with the same pool size.
"""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO

from bench.postgres import Server
from bench.scenarios import CACHE_NAMES, REST_NAMES, SECRET, WITH_JSON_SCHEMA, WITH_OPEN_SCHEMA, Scenario

PEERS = Path(__file__).with_name("peers")
PROGRAMS = Path(sys.executable).parent
POOL = 16
READY_WITHIN = 30.0


@dataclass(frozen=True, slots=True)
class Setting:
    """The parameters of a service."""

    server: Server
    port: int
    responses: Path
    """The file with the constant responses."""
    rowcall: Path
    workers: int
    database: str = "bench"
    signed: bool = False
    """A scenario sends a token, so rowcall loads the code that verifies tokens."""
    rest: bool = False
    """A scenario uses PostgREST's interface."""
    redis: str | None = None
    """Address of a Redis, if a scenario caches responses."""


@dataclass(frozen=True, slots=True)
class Service:
    """How to start a service: the command, and its description for the report."""

    name: str
    about: str
    command: Callable[[Setting], list[str]]
    scenarios: frozenset[str] | None = None
    """Scenarios that it supports; None: all."""

    lacks: frozenset[str] = frozenset()
    """Scenarios that it does not support."""
    keyed: bool = True
    """Whether it supports requests with random keys."""
    repeats: bool = False
    """Whether it repeats the first responses of the others, and is started after them."""

    def supports(self, scenario: Scenario) -> bool:
        is_supported = scenario.name not in self.lacks and (self.scenarios is None or scenario.name in self.scenarios)
        return is_supported and (self.keyed or not scenario.keys)


def fastapi(setting: Setting) -> list[str]:
    listen = ["--host", "127.0.0.1", "--port", str(setting.port), "--workers", "1", "--loop", "uvloop"]
    quiet = ["--http", "httptools", "--no-access-log", "--log-level", "warning"]
    return [str(PROGRAMS / "uvicorn"), "--app-dir", str(PEERS), *listen, *quiet, "fastapi_app:app"]


def granian(application: str) -> Callable[[Setting], list[str]]:
    def command(setting: Setting) -> list[str]:
        listen = ["--interface", "rsgi", "--loop", "uvloop", "--workers", "1", "--port", str(setting.port)]
        quiet = ["--log-level", "warning", "--working-dir", str(PEERS)]
        return [str(PROGRAMS / "granian"), *listen, *quiet, application]

    return command


def loop_constant(setting: Setting) -> list[str]:
    return [sys.executable, str(PEERS / "loop_constant.py")]


def fastify(setting: Setting) -> list[str]:
    node = shutil.which("node")
    if node is None:
        raise ServiceError("node is not installed")
    install_fastify()
    return [node, str(PEERS / "fastify" / "server.js")]


def install_fastify() -> None:
    """Install the versions of package-lock.json, once."""
    folder = PEERS / "fastify"
    if (folder / "node_modules").is_dir():
        return
    try:
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise ServiceError(f"`npm ci` in {folder} failed: {getattr(error, 'stderr', error)}") from error


TABLES_AND_FILES = (
    "--Service:CrudSource:Enabled=true",
    "--Service:SqlFileSource:Enabled=true",
    f"--Service:SqlFileSource:FilePattern={Path(__file__).with_name('files')}/*.sql",
)
"""Settings for the scenarios of tables and SQL files."""


CACHE = (
    "--CacheOptions:Enabled=true",
    "--CacheOptions:HybridCacheUseRedisBackend=true",
    *(
        f"--CacheOptions:Profiles:{name.lower()}:{key}={value}"
        for name in ("Memory", "Redis", "Hybrid")
        for key, value in (("Enabled", "true"), ("Type", name), ("Expiration", "1 hour"))
    ),
)
"""Settings for the scenarios of cached responses."""


REST = (
    "--PostgRest:Enabled=true",
    "--PostgRest:Path=/rest",
    "--PostgRest:Schemas=bench_rest",
    "--PostgRest:AnonymousRole=bench_anon",
)
"""Settings for the scenarios of PostgREST's interface."""


def rowcall(*options: str, workers: int | None = None, schema: str = "bench") -> Callable[[Setting], list[str]]:
    def command(setting: Setting) -> list[str]:
        return [
            str(setting.rowcall),
            f"--ConnectionStrings:Default={setting.server.conninfo(setting.database)}",
            f"--Urls=http://127.0.0.1:{setting.port}",
            f"--HttpServer:Workers={workers or setting.workers}",
            "--Log:ConsoleMinimumLevel=Warning",
            *(["--Auth:JwtAuth=true", f"--Auth:JwtSecret={SECRET}"] if setting.signed else []),
            *(CACHE if setting.redis else []),
            *(REST if setting.rest else []),
            *([f"--CacheOptions:RedisConfiguration={setting.redis}"] if setting.redis else []),
            # The database of the start-up check has its routines in other schemas.
            *([f"--Service:IncludeSchemas:0={schema}"] if setting.database != "many" else []),
            *(TABLES_AND_FILES if setting.database != "many" and schema == "bench" else []),
            *options,
        ]

    return command


SERVICES = (
    Service("rowcall", "this project", rowcall()),
    Service(
        "fastapi",
        "FastAPI + asyncpg + orjson on uvicorn (uvloop, httptools), 1 worker",
        fastapi,
        lacks=frozenset({"cache-hybrid"}),
    ),
    Service("fastify", "Fastify + pg (Node), named prepared statements, 1 process", fastify, lacks=CACHE_NAMES),
    Service(
        "psycopg",
        "granian (RSGI) + psycopg pool + orjson, 1 worker",
        granian("granian_psycopg:app"),
        lacks=CACHE_NAMES | REST_NAMES,
        keyed=False,
    ),
    Service(
        "rowcall-json",
        "rowcall with JSON that PostgreSQL makes (json_agg, to_json)",
        rowcall(schema="bench_json"),
        WITH_JSON_SCHEMA,
    ),
    Service(
        "rowcall-open",
        "rowcall with the same token, at endpoints without authorization or without claims in their routine",
        rowcall(schema="bench_open"),
        WITH_OPEN_SCHEMA,
    ),
    Service(
        "constant",
        "limit: granian with a constant response of the same bytes",
        granian("granian_constant:app"),
        lacks=REST_NAMES,
        keyed=False,
        repeats=True,
    ),
    Service(
        "constant-loop",
        "limit: rowcall's HTTP/1.1 server with a constant response of the same bytes, without the rest of rowcall",
        loop_constant,
        lacks=REST_NAMES,
        keyed=False,
        repeats=True,
    ),
)
# Other configurations of rowcall, measured beside the default.
VARIANTS = (
    Service("rowcall-granian", "granian serves HTTP", rowcall("--HttpServer:Engine=Granian")),
    Service("rowcall-2-workers", "two workers", rowcall(workers=2)),
    Service(
        "rowcall-unshared",
        "no pipelining: one request at a time on each connection",
        rowcall("--ConnectionSettings:Pool:Sharing=false"),
    ),
    Service(
        "rowcall-pooler",
        "as behind a transaction pooler: no statement is prepared by name",
        rowcall("--ConnectionSettings:Pool:TransactionPooler=true"),
    ),
)
BY_NAME = MappingProxyType({service.name: service for service in SERVICES + VARIANTS})


class ServiceError(Exception):
    """A service cannot be measured; the message contains the reason and is part of the report."""


@dataclass(slots=True)
class StartedService:
    """A started service."""

    service: Service
    port: int
    process: subprocess.Popen[bytes]
    log: IO[bytes]

    @property
    def name(self) -> str:
        return self.service.name

    def stop(self) -> None:
        """Stop the process group of this service, first with SIGTERM, then with SIGKILL."""
        for signum in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is None:
                os.killpg(self.process.pid, signum)
            try:
                self.process.wait(10)
                break
            except subprocess.TimeoutExpired:
                continue
        self.log.close()

    def log_tail(self) -> str:
        self.log.seek(0)
        return self.log.read().decode(errors="replace").strip()[-250:]


def start(service: Service, setting: Setting) -> StartedService:
    """Start the service without waiting for it."""
    environment = os.environ | setting.server.environment(setting.database)
    environment |= {
        "BENCH_DSN": setting.server.conninfo(setting.database),
        "BENCH_POOL": str(POOL),
        "BENCH_PORT": str(setting.port),
        "BENCH_RESPONSES": str(setting.responses),
        "BENCH_REDIS": setting.redis or "",
        "NODE_ENV": "production",
        "TZ": "UTC",
    }
    command = service.command(setting)
    log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the service runs
    try:
        process = subprocess.Popen(
            command, env=environment, cwd=setting.responses.parent, stdout=log, stderr=log, start_new_session=True
        )
    except OSError as error:
        log.close()
        raise ServiceError(str(error)) from error
    return StartedService(service, setting.port, process, log)


def wait_until_ready(running: StartedService, scenario: Scenario, poll: float = 0.05) -> float:
    """Send requests until the service responds; return the seconds that this took."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < READY_WITHIN:
        if running.process.poll() is not None:
            raise ServiceError(f"ended with code {running.process.returncode}: {running.log_tail()}")
        try:
            send_request(running.port, scenario)
        except OSError:
            time.sleep(poll)
            continue
        return time.perf_counter() - begin
    raise ServiceError(f"no response within {READY_WITHIN:.0f} s: {running.log_tail()}")


def send_request(port: int, scenario: Scenario) -> tuple[int, bytes]:
    """Send one request outside of the measurement and return status and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = dict(scenario.headers) | ({"Content-Type": "application/json"} if scenario.body else {})
    try:
        connection.request(scenario.method, scenario.path, scenario.body or None, headers)
        response = connection.getresponse()
        return response.status, response.read()
    except http.client.HTTPException as error:
        raise OSError(str(error)) from error
    finally:
        connection.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
