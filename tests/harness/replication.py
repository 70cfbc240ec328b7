"""Streaming replication between real clusters: a primary, and standbys created by `pg_basebackup`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.harness.postgres import Installation, PostgresServer, free_port
from tests.harness.waiting import wait_until


class ReplicatedServer(PostgresServer):
    """A cluster that can be copied, or a copy."""

    def create(self) -> None:
        super().create()
        with (self.data / "postgresql.conf").open("a") as file:
            file.write("wal_level = replica\nmax_wal_senders = 10\nhot_standby = on\nwal_keep_size = 256MB\n")
            # Statements that wait for a lock on a standby must not be cancelled by the replay.
            file.write(
                "max_standby_streaming_delay = -1\nwal_receiver_timeout = 5s\nwal_retrieve_retry_interval = 200ms\n"
            )

    def follow(self, primary: PostgresServer) -> None:
        """Become a standby of `primary`, from a copy of it. The port is unchanged."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        if not (self.folder / "port").exists():
            (self.folder / "port").write_text(str(free_port()))
        self._run(
            "pg_basebackup", "--pgdata", str(self.data), "--dbname", f"{primary.conninfo()}?application_name=copy",
            "--checkpoint", "fast", "--wal-method", "stream", "--write-recovery-conf", "--no-sync",
        )  # fmt: skip
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(f"port = {self.port}\nunix_socket_directories = '{self.folder}'\n")
        self.start()

    def promote(self) -> None:
        self._run("pg_ctl", "promote", "--pgdata", str(self.data), "--wait", "--timeout", "60", "--silent")

    def ask(self, sql: str) -> object:
        """Return the first column of the first row."""
        with psycopg.connect(self.conninfo(), autocommit=True) as connection:
            row = connection.execute(sql.encode()).fetchone()
        return None if row is None else row[0]

    def has_reached(self, primary: PostgresServer) -> bool:
        with psycopg.connect(primary.conninfo(), autocommit=True) as connection:
            row = connection.execute("select pg_current_wal_flush_lsn()::text").fetchone()
        return row is not None and self.ask(f"select pg_last_wal_replay_lsn() >= '{row[0]}'::pg_lsn") is True

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Pause the replay: the standby receives the changes of the primary, but they are not visible."""
        self.ask("select pg_wal_replay_pause()")
        wait_until(lambda: self.ask("select pg_get_wal_replay_pause_state()") == "paused", "the replay is paused")
        try:
            yield
        finally:
            if self.running:
                self.ask("select pg_wal_replay_resume()")


def replicated(installation: Installation, folder: Path, standbys: int) -> list[ReplicatedServer]:
    """Return the running primary and its running standbys."""
    primary = ReplicatedServer(installation, folder.with_name(f"{folder.name}-0"))
    primary.create()
    primary.start()
    servers = [primary]
    for number in range(1, standbys + 1):
        standby = ReplicatedServer(installation, folder.with_name(f"{folder.name}-{number}"))
        standby.follow(primary)
        servers.append(standby)
    return servers
