"""The applications in examples/ are served as they are, and answer what their README says."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import Page, application_settings, read_page
from tests.docs.test_examples import _wrong
from tests.harness.database import Database
from tests.harness.postgres import free_port
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

APPLICATIONS = sorted(path.parent for path in (Path(__file__).parents[2] / "examples").glob("*/schema.sql"))


@contextlib.contextmanager
def _companion_service(folder: Path) -> Iterator[dict[str, str]]:
    """Start the service that an application calls, on a free port."""
    program = folder / "rates.py"
    if not program.exists():
        yield {}
        return
    port = free_port()
    process = subprocess.Popen([sys.executable, str(program), str(port)])
    try:
        wait_until(lambda: _listens(port), "the service of the example listens")
        yield {"RATES_URL": f"http://127.0.0.1:{port}"}
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("folder", APPLICATIONS, ids=lambda folder: folder.name)
def test_an_application_behaves_as_its_readme_states(folder: Path, own_database: Database, serve_once: Serve) -> None:
    page = read_page(folder / "README.md")
    assert page.contexts
    settings = application_settings(folder)
    with _companion_service(folder) as variables, pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        _check(folder, page, settings, own_database, serve_once)


def _check(folder: Path, page: Page, settings: dict[str, str], own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, (folder / "schema.sql").read_text(encoding="utf-8"), settings)
    wrong = [
        f"line {context.line}: {difference}" for context in page.contexts for difference in _wrong(context, service, {})
    ]
    assert not wrong, "\n".join(wrong)
