"""Steps before and after tests: statements on a connection of their own, or a shell command."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import psycopg

from rowcall.core.testing.options import PreparationStep
from rowcall.service.database.connector import Connector
from rowcall.service.startup_error import StartupError

Connect = Callable[[str | None], Connector]
"""Name of a connection, None for the main connection → its connector. Raises StartupError."""

MOST_SHOWN = 2000
"""Most characters that are shown of the output of a failed command."""


class PreparationError(Exception):
    """A step has failed; the message names it."""


class Preparation:
    """Runs the steps before and after tests. connect: returns the connector for a connection. channel: name of the log
    channel.
    """

    def __init__(self, connect: Connect, channel: str) -> None:
        self._connect = connect
        self._log = logging.getLogger(channel)

    async def run_all(self, steps: Iterable[PreparationStep]) -> None:
        """Run the steps in order until the first failure. Raises PreparationError."""
        for step in steps:
            await self.run(step)

    async def try_all(self, steps: Iterable[PreparationStep]) -> None:
        """Run all steps, and only log failures."""
        for step in steps:
            try:
                await self.run(step)
            except PreparationError as error:
                self._log.warning("teardown: %s", error)

    async def run(self, step: PreparationStep) -> None:
        """Run a step. Raises PreparationError."""
        self._log.debug("step %s", step.name)
        try:
            if step.command is not None:
                await self._command(step, step.command)
            elif step.sql is not None:
                await self._statements(step, step.sql)
            else:
                await self._statements(step, _read(step.sql_file or ""))
        except (psycopg.Error, OSError, StartupError, PreparationError) as error:
            raise PreparationError(f"step {step.name}: {error_text(error)}") from error

    async def _statements(self, step: PreparationStep, text: str) -> None:
        """Run SQL statements on a new connection, without a statement timeout. Raises `psycopg.Error` and
        `StartupError`.
        """
        async with await self._connect(step.connection).open_plain() as connection:
            await connection.execute("set statement_timeout = 0")
            await connection.execute(text.encode())

    async def _command(self, step: PreparationStep, command: str) -> None:
        """Run a shell command. Raises `PreparationError` with its output if it fails."""
        # A file instead of a pipe, because background processes of the command would keep a pipe open.
        with tempfile.TemporaryFile() as output:
            process = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                command,
                cwd=_check_folder(step.folder),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                await process.wait()
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
                raise
            output.seek(0)
            text = output.read().decode(errors="replace").strip()
        if text:
            self._log.debug("step %s: %s", step.name, text)
        if process.returncode:
            more = f": {text[-MOST_SHOWN:]}" if text else ""
            raise PreparationError(f"the command ended with exit code {process.returncode}{more}")


def _check_folder(folder: str | None) -> str | None:
    """Return the folder; None: none is configured. Raises PreparationError if it does not exist or cannot be
    reached.
    """
    if folder is not None and not os.path.isdir(folder):
        raise PreparationError(f"its WorkingDirectory {folder!r} is no folder that this user can reach")
    return folder


def _read(path: str) -> str:
    """Return the text of a SQL file in UTF-8. Raises PreparationError if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PreparationError(f"its SqlFile {path!r} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise PreparationError(f"its SqlFile {path!r} is not UTF-8") from error


def error_text(error: Exception) -> str:
    """Return an error as text: for an error of PostgreSQL its SQLSTATE and message, with detail and hint on further
    lines; for an error without a message its type.
    """
    if isinstance(error, psycopg.Error) and error.sqlstate:
        return "\n".join((f"{error.sqlstate}: {error.diag.message_primary or error}", *_more(error)))
    text = str(error).strip() or type(error).__name__
    return " ".join(text.split()) if isinstance(error, psycopg.Error) else text


def _more(error: psycopg.Error) -> list[str]:
    parts = (("detail", error.diag.message_detail), ("hint", error.diag.message_hint))
    return [f"{name}: {text}" for name, text in parts if text]
