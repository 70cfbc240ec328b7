"""`serve` starts the command on a database; every service is stopped and its log checked, whatever the result of the
test."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.identity_provider import IdentityProvider
from tests.harness.service import Service
from tests.harness.upstream import Upstream

Serve = Callable[..., Service]

OPEN = {"Service:RequiresAuthorization": "false"}
"""Most tests do not concern access rules."""


class _Services:
    """The running services of all fixtures of this process."""

    def __init__(self) -> None:
        self.running: list[Service] = []

    def start(
        self,
        folder: Path,
        database: Database,
        sql: str = "",
        settings: Mapping[str, str | None] | None = None,
        workers: int = 1,
        port: int | None = None,
        open_files: int | None = None,
    ) -> Service:
        """Start a service. settings: keys as on the command line; they have precedence over the defaults of the tests.
        None removes a default."""
        if sql:
            database.execute(sql)
        defaults = {"ConnectionStrings:Default": database.conninfo, "HttpServer:Workers": str(workers), **OPEN}
        chosen = {**defaults, **(settings or {})}
        service = Service(folder, {key: value for key, value in chosen.items() if value is not None}, port, open_files)
        self.running.append(service)
        service.wait_until_ready()
        return service

    def stop(self, services: list[Service]) -> None:
        for service in services:
            self.running.remove(service)
        failures = [failure for service in services if (failure := _stop(service))]
        if failures:
            pytest.fail("\n".join(failures))


def _stop(service: Service) -> str:
    try:
        service.stop()
        service.check_log()
    except AssertionError as failure:
        return str(failure)
    return ""


_services = _Services()


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """`serve(database, sql, settings, workers)`: the service runs as long as the tests of the module."""
    yield from _factory(tmp_path_factory)


@pytest.fixture
def serve_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Like `serve`, for a single test."""
    yield from _factory(tmp_path_factory)


def _factory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    started: list[Service] = []

    def start(
        database: Database,
        sql: str = "",
        settings: Mapping[str, str | None] | None = None,
        workers: int = 1,
        port: int | None = None,
        open_files: int | None = None,
    ) -> Service:
        before = len(_services.running)
        try:
            return _services.start(
                tmp_path_factory.mktemp("service"), database, sql, settings, workers, port, open_files
            )
        finally:
            started.extend(_services.running[before:])

    yield start
    _services.stop(started)


@pytest.fixture(autouse=True)
def _no_traceback() -> Iterator[None]:
    """Fail the test that causes a traceback in a log."""
    yield
    for service in _services.running:
        service.check_log()


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    """Provide an HTTP server that endpoints call."""
    server = Upstream()
    yield server
    server.close()


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    """Provide an identity provider."""
    server = IdentityProvider()
    yield server
    server.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Certificate and key for 127.0.0.1."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    files = ["-keyout", str(key), "-out", str(certificate), "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command, *files], check=True, capture_output=True)
    return certificate, key
