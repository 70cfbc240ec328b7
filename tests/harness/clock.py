"""A service whose wall clock can be set: what runs with `environment` reads it through a small library of ours."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
WORKS = sys.platform == "linux"
"""Elsewhere nothing is loaded in front of the C library."""


class WallClock:
    """`clock.move(-3600)` sets it back by an hour, compared with the machine's."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self._library = folder / "clock.so"
        compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", str(SOURCE), "-o", str(self._library), "-ldl"], check=True)
        self.move(0)

    @property
    def environment(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "TEST_CLOCK": str(self._file)}

    def move(self, seconds: int) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(str(seconds))
        os.replace(new, self._file)
