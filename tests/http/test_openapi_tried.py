"""The served OpenAPI documents of the demo and of the record shop, tried out by schemathesis with all of its
checks: anonymous and signed in, OpenAPI 3.0 and 3.1.

Few examples, the same in each run; tests/drills/test_openapi_at_length.py sends many.
"""

from __future__ import annotations

import importlib.resources
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from rowcall.service.embedded import demo
from tests.docs.pages import application_settings
from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

VERSIONS = ("3.0", "3.1")
EXCLUDED = ("/round", "/forecast")
"""Their responses take as long as a parameter says, and a second for each value."""
ROOT = Path(__file__).parents[2]
SHOP = ROOT / "examples" / "record-shop"


@dataclass(frozen=True)
class Application:
    services: Mapping[str, Service]
    """By version of the document."""
    credentials: Mapping[str, str]
    """What signs a user in who may call every endpoint."""
    cookie: str


def _described(version: str) -> dict[str, str]:
    return {
        "Service:OpenApiOptions:Enabled": "true",
        "Service:OpenApiOptions:FileName": "",
        "Service:OpenApiOptions:SpecVersion": version,
        "Service:RequiresAuthorization": "false",
    }


def _serve_versions(serve: Serve, database: Database, sql: str, settings: dict[str, str]) -> dict[str, Service]:
    database.execute(sql)
    return {version: serve(database, settings={**settings, **_described(version)}) for version in VERSIONS}


@pytest.fixture(scope="module")
def couriers(database: Database, serve: Serve) -> Application:
    schema = importlib.resources.files(demo).joinpath("schema.sql").read_text(encoding="utf-8")
    services = _serve_versions(serve, database, schema, dict(demo.SETTINGS))
    return Application(services, {"name": "dagny", "password": "bells"}, ".AspNetCore.Cookies")


@pytest.fixture(scope="module")
def shop(database: Database, serve: Serve) -> Application:
    schema = (SHOP / "schema.sql").read_text(encoding="utf-8")
    services = _serve_versions(serve, database, schema, application_settings(SHOP))
    return Application(services, {"name": "vera", "password": "needle"}, "record-shop")


def try_out(
    application: Application,
    version: str,
    folder: Path,
    *,
    signed_in: bool,
    count: int,
    phases: str = "coverage,fuzzing",
) -> None:
    """count: examples for each operation. folder: where schemathesis runs, and may write."""
    service = application.services[version]
    authentication = _authentication(application, service) if signed_in else ""
    output = run_schemathesis(service, folder, authentication, count=count, phases=phases)
    # Else every operation that asks for a user would have been refused, which is no failure.
    assert ("Authentication failed" in output) is not signed_in, output


def run_schemathesis(
    service: Service, folder: Path, configuration: str, *, count: int, phases: str = "coverage,fuzzing"
) -> str:
    """Try out the document of a service, and return what schemathesis prints. configuration: that of schemathesis."""
    file = folder / "schemathesis.toml"
    file.write_text(configuration)
    arguments = ["--config-file", str(file), "run", f"{service.url}/openapi.json"]
    arguments += ["--checks", "all", "--exclude-checks", "positive_data_acceptance,negative_data_rejection"]
    arguments += ["--phases", phases, "--max-examples", str(count)]
    arguments += ["--generation-deterministic", "--no-shrink", "--continue-on-failure", "--no-color"]
    arguments += [argument for path in EXCLUDED for argument in ("--exclude-path", path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": "tests.harness.schemathesis_checks"}
    command = [str(Path(sys.executable).with_name("st")), *arguments]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def _authentication(application: Application, service: Service) -> str:
    with service.new_client() as client:
        response = client.post("/sign-in", json=dict(application.credentials))
        return f'[auth.openapi.cookieAuth]\napi_key = "{response.cookies[application.cookie]}"\n'


SIGNED_IN = pytest.mark.parametrize("signed_in", [False, True], ids=["anonymous", "signed-in"])


@pytest.mark.slow
def test_the_record_shop_conforms_to_its_document_at_boundary_values(shop: Application, tmp_path: Path) -> None:
    try_out(shop, "3.1", tmp_path, signed_in=True, count=1, phases="coverage")


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@SIGNED_IN
def test_the_demo_conforms_to_its_document(
    couriers: Application, version: str, signed_in: bool, tmp_path: Path
) -> None:
    try_out(couriers, version, tmp_path, signed_in=signed_in, count=4)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
@SIGNED_IN
def test_the_record_shop_conforms_to_its_document(
    shop: Application, version: str, signed_in: bool, tmp_path: Path
) -> None:
    try_out(shop, version, tmp_path, signed_in=signed_in, count=4)
