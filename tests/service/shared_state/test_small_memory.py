"""Less shared memory than configured, as in a container: access to a page without memory ends the process."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

FILLING = """
import logging, subprocess, sys
from pathlib import Path

import lmdb

from rowcall.service.shared_state.environment import Environment

logging.basicConfig(format="%(message)s")
memory = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={sys.argv[2]}", "none", str(memory)], check=True)
(memory / "store").mkdir()
first = Environment(memory / "store" / "answers", 268_435_456)
second = Environment(memory / "store" / "message_bus", 67_108_864)
again = Environment(memory / "store" / "answers2", 1_000_000)
other = subprocess.run(
    [sys.executable, "-c", "import sys; from pathlib import Path; from rowcall.service.shared_state.environment import "
     "Environment; print(Environment(Path(sys.argv[1]), 268_435_456).size)", str(memory / "store" / "answers")],
    capture_output=True, text=True, check=True,
)
assert int(other.stdout) == first.size < 268_435_456, (other.stdout, first.size)
for environment in (first, second, again):
    try:
        for number in range(1_000_000):
            with environment.write() as transaction:
                transaction.put(b"%d" % number, bytes(100_000))
    except lmdb.MapFullError:
        print("full", environment.size)
"""


CHOOSING = """
import logging, subprocess, sys

from rowcall.service.shared_state.state_folder import StateFolder

logging.basicConfig(format="%(message)s")
subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={sys.argv[2]}", "none", "/dev/shm"], check=True)
folder = StateFolder()
print(folder.path.parent)
folder.remove()
"""


TAKEN = """
import os, socket, subprocess, sys

subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={sys.argv[2]}", "none", "/dev/shm"], check=True)
with socket.create_server(("127.0.0.1", 0)) as other:
    url = f"http://127.0.0.1:{other.getsockname()[1]}"
    connection = "--ConnectionStrings:Default=postgresql://127.0.0.1:1/none"
    command = [sys.executable, "-m", "rowcall.service.cli", f"--Urls={url}", connection]
    print(subprocess.run(command, cwd=sys.argv[1], check=False).returncode)
print(os.listdir("/dev/shm"))
"""


KEEPING = """
import logging, subprocess, sys
from pathlib import Path

from rowcall.core.cache.entry import Entry
from rowcall.service.shared_state.host_state import HostState

logging.basicConfig(format="%(message)s")
memory = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={sys.argv[2]}", "none", str(memory)], check=True)
(memory / "store").mkdir()
first = HostState(memory / "store").cached_responses("answers", 268_435_456)
again = HostState(memory / "store").cached_responses("answers", 268_435_456)
assert again.size == first.size < 268_435_456
for number in range(20_000):
    first.store(b"%d" % number, Entry(bytes(1_000), 1), 1.0, 1.0)
assert again.find(b"19999", 1.0) is not None
print(first.size, first.count)
"""


def run(folder: Path, size: str, script: str = FILLING) -> subprocess.CompletedProcess[str]:
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("there is no unshare (util-linux), which gives a process file systems of its own")
    command = [unshare, "-rm", sys.executable, "-c", script, str(folder), size]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode and ("unshare:" in done.stderr or "mount:" in done.stderr):
        pytest.skip(f"this machine does not let a process have file systems of its own: {done.stderr.strip()}")
    return done


@pytest.mark.slow
def test_memory_is_divided_in_advance_and_a_full_share_is_an_error(tmp_path: Path) -> None:
    done = run(tmp_path, "16m")
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("full") == 3
    result = (
        "has 16 MB free, which is too little for the 256 MB of 'answers': it has 5.2 MB; give it more room (docker run"
    )
    assert result in done.stderr


@pytest.mark.slow
def test_cached_responses_use_half_of_the_available_memory(tmp_path: Path) -> None:
    done = run(tmp_path, "8m", KEEPING)
    assert done.returncode == 0, done.stderr[-2000:]
    size, count = map(int, done.stdout.split())
    assert 4 * 1_048_576 - 65_536 <= size <= 4 * 1_048_576
    assert 1_500 < count < 4_000
    assert "too little for the 256 MB of 'answers': it has 4.0 MB" in done.stderr


def test_too_little_memory_is_reported_with_the_file(tmp_path: Path) -> None:
    done = run(tmp_path, "600k")
    assert done.returncode == 1
    assert "No space left on device, of which" in done.stderr
    assert f"{tmp_path}/store/answers/data.mdb" in done.stderr


@pytest.mark.parametrize(("size", "base"), [("20m", "/dev/shm"), ("4m", tempfile.gettempdir())])
def test_the_shared_state_is_on_disk_if_shared_memory_is_too_small(tmp_path: Path, size: str, base: str) -> None:
    done = run(tmp_path, size, CHOOSING)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == base
    assert ("/dev/shm has 4.0 MB free" in done.stderr) == (size == "4m")


@pytest.mark.slow
def test_a_failed_start_leaves_no_shared_state(tmp_path: Path) -> None:
    done = run(tmp_path, "64m", TAKEN)
    assert "Address already in use" in done.stdout + done.stderr
    assert done.stdout.splitlines()[-2:] == ["1", "[]"]
