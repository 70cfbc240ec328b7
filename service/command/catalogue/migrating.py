"""`--migrate`: run the numbered SQL files of a folder that the main database does not have yet, each once.

The files are plain SQL, which psql and editors read; only their names matter to the service. Migration tools of Python
need a format or a program of their own around each file.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from rowcall.core.config.sections.migrations import Migrations
from rowcall.core.sqlfile.splitting import split
from rowcall.service.command.configuration_files import load
from rowcall.service.command.serve import connections, require_readable
from rowcall.service.command.switches import Arguments
from rowcall.service.database.connector import Connector
from rowcall.service.options.from_settings import worker_options
from rowcall.service.startup_error import StartupError, require_folder

_NAME = re.compile(r"(\d{1,18})[-_](.+)\.sql")
_ALONE = re.compile(r"\A\s*--\s*no transaction\s*$", re.MULTILINE | re.IGNORECASE)
"""First line of a file that cannot run in a transaction, such as `create index concurrently`."""
_CONTROL = frozenset({"begin", "start", "commit", "end", "rollback", "abort"})
_TO_SAVEPOINT = re.compile(r"rollback (?:(?:work|transaction) )?to\b")
_LOCK = "select pg_advisory_lock(hashtextextended('rowcall migrations', 0))"
_TABLE = """
create schema if not exists rowcall;
create table if not exists rowcall.migration (
    number bigint primary key,
    name text not null,
    checksum text not null,
    applied timestamptz not null default clock_timestamp(),
    seconds double precision not null
);
comment on table rowcall.migration is 'Migrations that `rowcall --migrate` has run.'
"""
_OWN_ROLE = "reset role; reset session authorization"
"""Statement that runs after each migration: a migration may act as another role, and the next one must not."""
_CLEAN_SESSION = """
reset all; discard temp; discard sequences; deallocate all; unlisten *; set statement_timeout = 0
"""
"""Statements that run between migrations: what one has set or created for its session must not reach the next one,
which may run by itself in another database. The lock stays, unlike with DISCARD ALL."""
PENDING = 3
"""Exit code of `--check` if there are migrations to run."""


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration: one numbered SQL file."""

    number: int
    name: str
    """Name of the file."""
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text with uniform line ends."""
        return hashlib.sha256(self.sql.replace("\r\n", "\n").encode()).hexdigest()

    @property
    def runs_alone(self) -> bool:
        """Whether the file runs without a transaction, as its first line, `-- no transaction`, demands."""
        return _ALONE.match(self.sql) is not None


def migrate(arguments: Arguments) -> int:
    """Run the migrations and print their names; with `--check`, only list them. Raises ConfigError, StartupError.

    Returns the exit code: `PENDING` if `--check` lists migrations that have not run.
    """
    settings = load(arguments).settings
    require_readable(settings)
    folder = Path(settings.read(Migrations).folder)
    migrations = read_migrations(folder)
    with connections(settings, demo=arguments.has("--demo")) as opened:
        connector = Connector(worker_options(settings, opened).target)
        return asyncio.run(_migrate(connector, migrations, check=arguments.has("--check")))


def read_migrations(folder: Path) -> list[Migration]:
    """Return the migrations of a folder by number. Raises `StartupError` for a folder that is missing or cannot be
    read, and for files that cannot be ordered or read, or would end the transaction in which they run.
    """
    require_folder("Migrations:Folder", folder)
    try:
        paths = sorted(path for path in folder.iterdir() if path.name.endswith(".sql"))
    except OSError as error:
        raise StartupError(f"Migrations:Folder: the folder {folder} cannot be read: {error.strerror}") from None
    migrations: dict[int, Migration] = {}
    for path in paths:
        match = _NAME.fullmatch(path.name)
        if match is None:
            raise StartupError(f"{path}: the name has to be a number, - and a text, such as 001-accounts.sql")
        number = int(match[1])
        if number in migrations:
            raise StartupError(f"{path}: {migrations[number].name} has the same number")
        try:
            migrations[number] = migration = Migration(number, path.name, path.read_text(encoding="utf-8-sig"))
        except (OSError, UnicodeDecodeError) as error:
            raise StartupError(f"{path} cannot be read: {error}") from None
        word = None if migration.runs_alone else _transaction_control(migration.sql)
        if word is not None:
            raise StartupError(
                f"{path}: {word} would end the transaction in which it runs; begin the file with `-- no transaction`"
            )
    return [migrations[number] for number in sorted(migrations)]


def _transaction_control(sql: str) -> str | None:
    """Return the word of the first statement of a migration that begins or ends a transaction; None: there is none."""
    words = (statement.words for statement in split(sql).statements if statement.words)
    return next((text for text in map(_control_word, words) if text is not None), None)


def _control_word(words: tuple[str, ...]) -> str | None:
    """Return the word with which a statement begins or ends a transaction; None: it does neither. words: of the
    statement, as `split` returns them."""
    if words == ("prepare", "transaction"):
        return "prepare transaction"
    if _TO_SAVEPOINT.match(" ".join(words)):
        return None
    return words[0] if words[0] in _CONTROL else None


async def _migrate(connector: Connector, migrations: Sequence[Migration], *, check: bool) -> int:
    """Run the migrations that have not run, and let services read the database again; with `check`, only list them.
    Return the exit code. Raises `StartupError`.
    """
    try:
        async with await connector.open_plain() as connection:
            await connection.set_autocommit(True)
            # `_CLEAN_SESSION` deallocates prepared statements.
            connection.prepare_threshold = None
            await connection.execute("set statement_timeout = 0")
            if not check:
                # Of several services that start at the same time, one runs them; the others wait.
                await connection.execute(_LOCK)
                await connection.execute(_TABLE)
            pending = _pending_migrations(migrations, await _applied_migrations(connection))
            if check:
                print("\n".join(f"to run: {migration.name}" for migration in pending) or "nothing to run")
                return PENDING if pending else 0
            for migration in pending:
                await _run(connection, migration)
            await connection.execute("notify rowcall, 'reload'")
    except psycopg.Error as error:
        raise StartupError(f"the database cannot be migrated: {str(error).strip()}") from None
    last = f", the last one is {migrations[-1].name}" if migrations else ""
    print(f"{len(pending)} of {len(migrations)} migrations run{last}")
    return 0


async def _applied_migrations(connection: psycopg.AsyncConnection[Any]) -> dict[int, tuple[str, str]]:
    """Return name and checksum of the migrations that have run, by number."""
    cursor = await connection.execute("select to_regclass('rowcall.migration') is not null")
    if not (await cursor.fetchone() or (False,))[0]:
        return {}
    cursor = await connection.execute("select number, name, checksum from rowcall.migration")
    return {number: (name, checksum) for number, name, checksum in await cursor.fetchall()}


def _pending_migrations(migrations: Sequence[Migration], applied: dict[int, tuple[str, str]]) -> list[Migration]:
    """Return the migrations to run. Raises `StartupError` if a file that has run is missing or has changed, or if a
    file that has not run has a lower number than one that has. applied: as `_applied_migrations` returns it."""
    numbers = {migration.number for migration in migrations}
    for number, (name, _) in sorted(applied.items()):
        if number not in numbers:
            raise StartupError(f"{name} has run, and its file is missing")
    last = max(applied, default=-1)
    pending = []
    for migration in migrations:
        if migration.number in applied:
            if applied[migration.number][1] != migration.checksum:
                raise StartupError(f"{migration.name} has changed since it has run; write another migration instead")
        elif migration.number < last:
            raise StartupError(
                f"{migration.name} has not run, but {applied[last][0]} with a higher number has: give it a new number"
            )
        else:
            pending.append(migration)
    return pending


async def _run(connection: psycopg.AsyncConnection[Any], migration: Migration) -> None:
    """Run one migration and record it, in one transaction unless it must run alone. Then reset the settings of the
    session, and print the name of the migration and its duration. Raises `StartupError`."""
    began = time.monotonic()
    record = "insert into rowcall.migration (number, name, checksum, seconds) values (%s, %s, %s, %s)"
    values = [migration.number, migration.name, migration.checksum]
    try:
        if migration.runs_alone:
            for statement in split(migration.sql).statements:
                await connection.execute(statement.text.encode())
            if connection.info.transaction_status != TransactionStatus.IDLE:
                raise StartupError(f"{migration.name}: it leaves a transaction open, which is rolled back; end it")
            await connection.execute(_OWN_ROLE)
            await connection.execute(record, [*values, time.monotonic() - began])
        else:
            async with connection.transaction():
                await connection.execute(migration.sql.encode())
                await connection.execute(_OWN_ROLE)
                await connection.execute(record, [*values, time.monotonic() - began])
    except psycopg.Error as error:
        raise StartupError(f"{migration.name}: {_format_error(error, migration)}") from None
    await connection.execute(_CLEAN_SESSION)
    print(f"{migration.name} ({time.monotonic() - began:.2f} s)")


def _format_error(error: psycopg.Error, migration: Migration) -> str:
    """Return an error as text, with the line of the file at which it is, if known."""
    position = error.diag.statement_position
    text = f"{error.diag.message_primary or str(error).strip()} ({error.sqlstate})"
    if position is None or migration.runs_alone:
        return text
    return f"line {migration.sql.count(chr(10), 0, int(position)) + 1}: {text}"
