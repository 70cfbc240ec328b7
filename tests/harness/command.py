"""Runs the real command `rowcall` until it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COMMAND = (sys.executable, "-W", "error", "-m", "rowcall.service.cli")


def rowcall(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In `folder`, without the PG… variables of the tests unless they are given."""
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
