"""Generated clients in Python: type checks, and use in the process of the test."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any


def load_client(path: Path) -> Any:
    """Return the module of a generated client. It is not added to `sys.modules`, where others have the same name."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def type_errors(folder: Path, *names: str) -> str:
    """Return what strict mypy reports about files of a folder, which can import each other; empty: nothing."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", *names]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    return "" if done.returncode == 0 else done.stdout + done.stderr
