"""The tutorial, step by step in a folder of its own: its requests, stream, client, page, tests and deployment."""

from __future__ import annotations

import json
import re
import subprocess
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.docs.pages import FOLDER, RequestContext, Stream, fits, flat, read_page
from tests.docs.test_examples import _differences, _send
from tests.harness import node
from tests.harness.browser import TIMEOUT, browser, needs_browser
from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

TUTORIAL = FOLDER / "tutorial.md"
TEXT = TUTORIAL.read_text(encoding="utf-8")
PAGE = read_page(TUTORIAL)
_FILE = re.compile(r"^```\w+ (?P<name>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SQL = re.compile(r"^```sql\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
COMPILE = re.search(r"^npx -p typescript@\S+ tsc (?P<options>.*)$", TEXT, re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The reader's folder with all files of the tutorial."""
    for block in _FILE.finditer(TEXT):
        path = tmp_path / block["name"]
        path.parent.mkdir(exist_ok=True)
        path.write_text(block["text"], encoding="utf-8")
    return tmp_path


def _settings(folder: Path) -> dict[str, str | None]:
    settings = {key: value for key, value in PAGE.settings.items() if not key.startswith("ConnectionStrings:")}
    return {
        **settings,
        "Service:RequiresAuthorization": None,
        "Service:ClientCodeGen:FilePath": str(folder / "web" / "api.ts"),
        "StaticFiles:RootPath": str(folder / "wwwroot"),
    }


def _run_examples(service: Service, database: Database | None = None) -> None:
    """Run the requests and streams in the order of the page.

    database: where the SQL between them is executed too, while the service watches the catalogue.
    """
    known: dict[str, str] = {}
    steps = list(_SQL.finditer(TEXT)) if database is not None else []
    for example in PAGE.contexts:
        while database is not None and steps and TEXT.count("\n", 0, steps[0].start()) < example.line:
            sql = steps.pop(0)["text"]
            database.execute(sql)
            for method, path in re.findall(r"HTTP (\w+) (/\S+?)'?$", sql, re.MULTILINE):
                wait_until(partial(_is_served, service, method, path), f"{method} {path} is served")
        if isinstance(example, Stream):
            _check_stream(service, example)
        else:
            _check(service, example, known)


def _is_served(service: Service, method: str, path: str) -> bool:
    return "there is no endpoint at" not in service.request(method, path).text


def _check(service: Service, example: RequestContext, known: dict[str, str]) -> None:
    differences = list(_differences(example, _send(service.client, example, known), known))
    assert not differences, f"line {example.line}: {differences}"


def _check_stream(service: Service, example: Stream) -> None:
    cookies = "; ".join(f"{name}={value}" for name, value in service.client.cookies.items())
    with EventStream(service, example.opening.target, {"Cookie": cookies}) as stream:
        for sent in example.requests:
            response = service.client.request(sent.method, sent.target, content=sent.body.encode())
            assert response.status_code == 200
        stream.wait(lambda: fits(example.promised, stream.body.decode()), "what the tutorial shows")


def test_each_step_takes_effect_while_the_service_runs(own_database: Database, serve_once: Serve, folder: Path) -> None:
    service = serve_once(own_database, "", {**_settings(folder), "Watch:Enabled": "true"}, workers=2)
    _run_examples(service, own_database)
    assert "export async function addNote(" in (folder / "web" / "api.ts").read_text(encoding="utf-8")
    assert "<title>Notes</title>" in service.get("/").text


@pytest.mark.slow
def test_the_deployed_application_needs_no_superuser(own_database: Database, serve_once: Serve, folder: Path) -> None:
    own_database.execute(PAGE.sql)
    conninfo = own_database.conninfo_as("note_web")
    files = ("rowcall.json", "production.json")
    done = rowcall(folder, *files, "--validate", DATABASE=conninfo)
    assert done.returncode == 0, done.stdout + done.stderr
    audited = rowcall(folder, *files, "--audit", DATABASE=conninfo)
    assert audited.returncode == 0, audited.stdout + audited.stderr
    production = dict(flat(json.loads((folder / "production.json").read_text(encoding="utf-8"))))
    settings = {**_settings(folder), **production, "ConnectionStrings:Default": conninfo, "HttpServer:Workers": "1"}
    service = serve_once(own_database, "", settings)
    _run_examples(service)
    assert service.get("/health").status_code == 200


def test_the_tests_of_the_tutorial_pass(own_database: Database, folder: Path) -> None:
    own_database.execute(PAGE.sql)
    shown = re.search(r"^\$ rowcall --test\n(?P<output>.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert shown is not None
    done = rowcall(folder, "--test", f"--ConnectionStrings:Default={own_database.conninfo}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert fits(shown["output"], done.stdout), done.stdout


@pytest.mark.slow
def test_the_page_compiles_with_the_generated_client(own_database: Database, folder: Path) -> None:
    own_database.execute(PAGE.sql)
    _build(folder, own_database)
    assert 'from "./api.js"' in (folder / "wwwroot" / "page.js").read_text(encoding="utf-8")


def _build(folder: Path, database: Database) -> None:
    done = rowcall(folder, "--generate", f"--ConnectionStrings:Default={database.conninfo}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert COMPILE is not None
    compiler = node.packages() / "typescript" / "lib" / "tsc.js"
    command = [node.node(), str(compiler), *COMPILE["options"].split()]
    compiled = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert compiled.returncode == 0, compiled.stdout + compiled.stderr


@needs_browser
@pytest.mark.slow
def test_the_page_shows_a_note_as_soon_as_it_is_added(own_database: Database, serve_once: Serve, folder: Path) -> None:
    own_database.execute(PAGE.sql)
    _build(folder, own_database)
    service = serve_once(own_database, "", _settings(folder))
    assert service.post("/sign-up", json={"name": "ada", "password": "open sesame"}).status_code == 200
    with browser() as opened:
        page = opened.new_page()
        page.set_default_timeout(TIMEOUT)
        page.on("pageerror", lambda error: pytest.fail(str(error)))
        page.goto(service.url)
        expect(page.locator("#message")).to_have_text("Please sign in.")
        page.get_by_label("Name").fill("ada")
        page.get_by_label("Password").fill("open sesame")
        with page.expect_response("**/notes/added*"):
            page.get_by_role("button", name="Sign in").click()
        page.get_by_label("Note").fill("Water the fern")
        page.get_by_role("button", name="Add").click()
        expect(page.locator("#notes li")).to_have_text(["Water the fern"])
