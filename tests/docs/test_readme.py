"""The README: the response of its first example, figures of a stored run, targets of images and links."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bench.summary import ordinary, table
from ci.draw_architecture import FILE, drawing
from tests.docs.pages import read_page
from tests.harness.database import Database
from tests.http.conftest import Serve

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
RUN = ROOT / "bench" / "results" / "2026-11-28T1836-vm.json"


@pytest.mark.slow
def test_the_first_example_returns_the_documented_response(own_database: Database, serve_once: Serve) -> None:
    example = re.search(r"^\$ curl 'http://localhost:8080(?P<target>[^']+)'\n(?P<body>.*)\n```", TEXT, re.MULTILINE)
    assert example is not None
    service = serve_once(own_database, read_page(README).sql, {"Service:RequiresAuthorization": None})
    response = service.get(example["target"])
    assert (response.status_code, response.text) == (200, example["body"])


def test_figures_equal_those_of_the_named_run() -> None:
    assert f"({RUN.relative_to(ROOT).with_suffix('.md')})" in TEXT
    run = json.loads(RUN.read_text(encoding="utf-8"))
    for header, line, *rows in (table(run["scenarios"]), ordinary(run["connections"])):
        shown = re.search(rf"{re.escape(header)}\n{re.escape(line)}\n(?P<rows>(?:\|.*\n)+)", TEXT)
        assert shown is not None
        of_the_readme = shown["rows"].splitlines()
        assert len(of_the_readme) <= 6
        assert set(of_the_readme) <= set(rows)


def test_links_and_images_exist() -> None:
    targets = [target.partition("#")[0] for target in re.findall(r"\]\((?!https?:)([^)#][^)]*)\)", TEXT)]
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_named_tests_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", TEXT)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_continuous_integration_runs_the_documented_command() -> None:
    assert "\nmake test " in TEXT
    assert (ROOT / "ci" / "test.sh").read_text(encoding="utf-8").endswith("\nmake test\n")


def test_the_drawing_of_the_architecture_is_current() -> None:
    assert FILE.read_text(encoding="utf-8") == drawing()
