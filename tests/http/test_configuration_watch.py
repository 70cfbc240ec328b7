"""While watching, a saved configuration file restarts the service; an unusable one does not (testing-14)."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.sql_files import save
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function word() returns text language sql stable as $$ select 'here' $$;
comment on function word() is 'HTTP GET';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, {"Watch:Enabled": "true"}, workers=2)


@pytest.fixture
def file(service: Service) -> Path:
    """Return the default file, which does not exist when the service starts."""
    return Path(f"/proc/{service.process.pid}/cwd").resolve() / "rowcall.json"


def with_prefix(prefix: str) -> str:
    return json.dumps({"Service": {"UrlPathPrefix": prefix}})


def wait_for(service: Service, path: str) -> None:
    """Wait for a success. Each request has a new connection, which is refused while the service restarts."""

    def is_served() -> bool:
        try:
            with service.new_client(timeout=10) as client:
                return client.get(path).status_code == 200
        except httpx.TransportError:
            return False

    wait_until(is_served, f"{path} is served; the log says\n{service.log[-2000:]}", 30)


@pytest.mark.slow
def test_saving_or_removing_the_file_restarts_with_its_settings(service: Service, file: Path) -> None:
    save(file, with_prefix("/saved"))
    wait_for(service, "/saved/word")
    file.unlink()
    wait_for(service, "/api/word")


@pytest.mark.slow
def test_invalid_file_is_logged_and_the_last_configuration_stays(service: Service, file: Path) -> None:
    save(file, with_prefix("/good"))
    wait_for(service, "/good/word")
    save(file, "{ broken")
    service.wait_for_log("the changed configuration cannot be used, the last good one stays: rowcall.json:1:3:")
    save(file, '{"HttpServer": {"Threads": "many"}}')
    service.wait_for_log("rowcall.json:1:28: HttpServer:Threads: 'many' is not a whole number")
    wait_for(service, "/good/word")


@pytest.mark.slow
def test_next_change_is_awaited_after_a_failed_start(service: Service, file: Path) -> None:
    save(file, '{"Service": {"ConnectionName": "nowhere"}}')
    service.wait_for_log("rowcall: Service:ConnectionName is 'nowhere', but ConnectionStrings has Default")
    save(file, with_prefix("/mended"))
    wait_for(service, "/mended/word")


@pytest.mark.slow
def test_watching_service_stops_cleanly_after_a_restart(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", {"Watch:Enabled": "true"})
    save(Path(f"/proc/{service.process.pid}/cwd").resolve() / "rowcall.json", with_prefix("/again"))
    wait_for(service, "/again/word")
    assert service.stop() == 0
    assert service.log.rstrip().endswith("stopped [rowcall]")
