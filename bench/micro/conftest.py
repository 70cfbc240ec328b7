"""A PostgreSQL server for the micro-benchmarks, started by the harness of the tests."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.harness import postgres as postgres_servers
from tests.harness.database import Database, create_database


@pytest.fixture(scope="session")
def database() -> Iterator[Database]:
    with tempfile.TemporaryDirectory(prefix="rowcall-micro-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = postgres_servers.PostgresServer(postgres_servers.installations()[0], folder / "server")
        server.create()
        server.start()
        yield create_database(server)
        server.stop("immediate")
