"""Cached responses with the lock that macOS uses, which is the id of the process that holds it: all tests of the table,
with extensions built for this lock."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import rowcall.core
import rowcall.ext.response_cache

BUILT = Path(rowcall.ext.response_cache.__path__[0])
CORE = Path(rowcall.core.__path__[0])
COMPILER = shutil.which(os.environ.get("CC", "cc").split()[0])
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "darwin", reason="it is the lock here, and so tested everywhere"),
    pytest.mark.skipif(COMPILER is None, reason="no C compiler found (cc, or what CC names)"),
    pytest.mark.skipif(not (BUILT / "shard.c").exists(), reason="no C files beside the extensions: not built here"),
]

RUN = """
import sys, pytest, rowcall.ext.response_cache.shard as shard
assert shard.__file__.startswith(sys.argv[1]), shard.__file__
sys.exit(pytest.main(sys.argv[2:]))
"""


def test_the_lock_by_process_has_the_guarantees_of_the_robust_lock(tmp_path: Path) -> None:
    folder = tmp_path / "rowcall" / "ext" / "response_cache"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.py").touch()
    (tmp_path / "rowcall" / "core").symlink_to(CORE, target_is_directory=True)
    flags = ["-shared", "-fPIC", "-O1", "-w", "-DROWCALL_LOCK_BY_PROCESS", f"-I{sysconfig.get_path('include')}"]
    for source in BUILT.glob("*.c"):
        command = [str(COMPILER), *flags, f"-I{BUILT}", str(source), "-o", str(folder / (source.stem + SUFFIX))]
        subprocess.run(command, check=True)
    assert b"pthread_mutex_lock" not in (folder / f"shard{SUFFIX}").read_bytes()
    tests = Path(__file__).with_name("test_table.py")
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-c",
            RUN,
            folder,
            "-q",
            "--noconftest",
            "-c",
            os.devnull,
            "-p",
            "no:cacheprovider",
            tests,
        ],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
