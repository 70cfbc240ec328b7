"""Runs the real command `rowcall` until it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.harness.database import close_sessions
from tests.harness.launcher import Launcher, launcher

STRICT = ("-W", "error")
COMMAND = (sys.executable, *STRICT, "-m", "rowcall.service.cli")


def rowcall(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder`, without the PG… variables of the tests unless they are arguments.

    It may copy the database of a test, which must have no sessions then.
    """
    close_sessions()
    template = launcher(*STRICT)
    if template is not None and not any(map(_changes_python, environment)):
        return _copy(template, folder, arguments, {**clean_environment(), **environment})
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env={**clean_environment(), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def clean_environment() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if not name.startswith("PG")}


def _copy(
    template: Launcher, folder: Path, arguments: tuple[str, ...], environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        code = template.start(arguments, folder, environment, output, errors).wait(120)
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(arguments, code, output.read().decode(), errors.read().decode())


def _changes_python(variable: str) -> bool:
    """Return whether Python reads the variable when it starts or imports, so that a copied process would ignore it."""
    return variable.startswith(("PYTHON", "LANG", "LC_", "PSYCOPG"))
