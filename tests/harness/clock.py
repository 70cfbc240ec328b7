"""A settable wall clock for a service: with `environment`, it reads the clock through a small preloaded library."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
WORKS = sys.platform == "linux"
"""On other systems, no library can be preloaded before the C library."""


class WallClock:
    """`clock.move(-3600)` sets the clock back by an hour, relative to that of the machine."""

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
