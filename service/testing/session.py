"""The connection of a test file: its statements run with psycopg, its requests with the driver.

Both share one `PGconn`. Between requests psycopg uses it; during a request it is in pipeline mode and read by the
driver, without named prepared statements, so that the session may be changed in any way by the test.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from rowcall.core.testing.outcome import Notice
from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.service.database.connector import Connector
from rowcall.service.database.first_connection import OpeningRetries
from rowcall.service.startup_error import StartupError

SET, RELEASE, BACK = (f"{what} rowcall_request" for what in ("savepoint", "release savepoint", "rollback to savepoint"))
"""Commands for the savepoint before each statement of a request in the transaction of a test."""
RENEW = (
    b"close all; set session authorization default; reset all; deallocate all; unlisten *; "
    b"select pg_advisory_unlock_all(); discard plans; discard temp; discard sequences"
)
"""The parts of DISCARD ALL, which itself cannot be sent together with the end of a transaction."""
CANCEL_SECONDS = 2.0
"""Time limit for cancelling a running statement."""


Hear = Callable[[Notice], None]


class Session:
    """A session of a test. An open transaction is rolled back at its end.

    connector: has opened the connection. opened: the connection, which this object closes. hear: called with each
    notice.
    """

    def __init__(self, connector: Connector, opened: psycopg.AsyncConnection[tuple[object, ...]], hear: Hear) -> None:
        self.plain = opened
        self.hear = hear
        self._connector = connector
        # Because a test may deallocate any statement.
        opened.prepare_threshold = None
        self._socket = opened.pgconn.socket
        self._marked = False
        """The savepoint of this request is set."""
        self._pending = ""
        """Statements that are sent with the next one."""
        self._recorded_settings: dict[str, str] = {}
        """Settings that requests have changed, with their previous values."""
        self.driver = Connection(opened.pgconn, asyncio.get_running_loop(), named=False)
        self.driver.owner = opened
        self.driver.on_notice = self._notice
        # The session state after a request is part of the test, so it is not reset.
        self.driver.owned = True
        self._leave()

    @classmethod
    async def open(cls, connector: Connector, hear: Hear) -> Session:
        """Open a connection with the connector, and return a session on it. hear: called with each notice. Raises
        `psycopg.Error`."""
        return cls(connector, await connector.open_plain(), hear)

    # --- state -----------------------------------------------------------------------------------------------------

    @property
    def lost(self) -> bool:
        """Whether the connection is closed."""
        return self.plain.closed

    @property
    def in_transaction(self) -> bool:
        """Whether the test has an open transaction."""
        return self._status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    @property
    def aborted(self) -> bool:
        """Whether an error has aborted the transaction of the test."""
        return self._status == TransactionStatus.INERROR

    @property
    def _status(self) -> int:
        return TransactionStatus.UNKNOWN if self.plain.closed else self.plain.pgconn.transaction_status

    def _notice(
        self, _label: str | None, severity: str, _state: str, message: str, _context: str | None, _owner: object = None
    ) -> None:
        self.hear(Notice(severity, message))

    # --- statements ------------------------------------------------------------------------------------------------

    async def run(self, text: str) -> psycopg.AsyncCursor[tuple[object, ...]]:
        """Run one statement of the test as written, and return the cursor with its result. Raises `psycopg.Error`."""
        if self._pending:
            await self.plain.execute(self._take_pending().as_bytes(None))
        return await self.plain.execute(text.encode())

    async def command(self, composed: sql.Composed) -> None:
        """Run one or several statements of the runner itself. Raises `psycopg.Error`."""
        await self.plain.execute(self._take_pending() + composed)

    async def fetch(self, composed: sql.Composed) -> list[tuple[object, ...]]:
        """Return the rows of a query of the runner itself. Raises `psycopg.Error`."""
        if self._pending:
            await self.plain.execute(self._take_pending())
        return await (await self.plain.execute(composed)).fetchall()

    def _take_pending(self) -> sql.Composed:
        """Return the pending statements and clear them, to send them together with the next ones."""
        pending, self._pending = self._pending, ""
        return sql.Composed([sql.SQL(pending)])

    # --- requests --------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """Lend the connection to the driver while the block runs.

        In a transaction of the test, a failing request undoes only its own changes, and settings of a request end with
        it, as if it had a transaction of its own. Raises `psycopg.Error` if the connection is lost.
        """
        in_transaction = self.in_transaction
        self._recorded_settings.clear()
        self._marked = False
        self._enter()
        try:
            yield
        finally:
            self._leave()
        if self.lost:
            raise psycopg.OperationalError(self.driver.close_reason or "the connection to the database was lost")
        if in_transaction and self._marked:
            self._pending = f"{BACK}; {RELEASE}; " if self.aborted else f"{RELEASE}; "
        elif self.in_transaction and not in_transaction:
            # The service would not commit it either.
            await self.run("rollback")
        await self._restore_settings(local=in_transaction)

    def mark(self) -> tuple[str, ...]:
        """Return the commands to run before a statement in the transaction of a test: they set a savepoint for this
        statement, or return to the last one if the transaction is aborted.
        """
        if self.aborted:
            return (BACK,)
        commands = (RELEASE, SET) if self._marked else (SET,)
        self._marked = True
        return commands

    async def record_settings(self, names: Iterable[str]) -> None:
        """During a request: record the values of these settings, to restore them afterwards. Settings that are recorded
        already are left as they are; in an aborted transaction nothing is recorded.
        """
        unknown = [name for name in names if name not in self._recorded_settings]
        if not unknown or self.aborted or self.lost:
            return
        async with self._release_connection():
            calls = sql.SQL(", ").join(
                sql.SQL("current_setting({}, true)").format(sql.Literal(name)) for name in unknown
            )
            cursor = await self.plain.execute(sql.SQL("select {}").format(calls))
            row = await cursor.fetchone()
        self._recorded_settings |= {name: str(value or "") for name, value in zip(unknown, row or (), strict=False)}

    async def _restore_settings(self, *, local: bool) -> None:
        """Restore the settings that requests have changed. local: only until the end of the transaction."""
        if not self._recorded_settings:
            return
        calls = (
            sql.SQL("set_config({}, {}, {})").format(sql.Literal(name), sql.Literal(value), sql.Literal(local))
            for name, value in self._recorded_settings.items()
        )
        await self.command(sql.SQL("select {}").format(sql.SQL(", ").join(calls)))
        self._recorded_settings.clear()

    @contextlib.asynccontextmanager
    async def _release_connection(self) -> AsyncIterator[None]:
        """Give the connection back to psycopg for the block, during a request."""
        self._leave()
        try:
            yield
        finally:
            self._enter()

    def _enter(self) -> None:
        """Give the connection to the driver, in pipeline mode."""
        if not self.lost and self.driver.state != ConnectionState.CLOSED:
            self.plain.pgconn.enter_pipeline_mode()
            asyncio.get_running_loop().add_reader(self._socket, self.driver.on_readable)

    def _leave(self) -> None:
        """Give the connection back to psycopg."""
        if not self.lost and self.driver.state != ConnectionState.CLOSED:
            asyncio.get_running_loop().remove_reader(self._socket)
            with contextlib.suppress(psycopg.Error):
                self.plain.pgconn.exit_pipeline_mode()

    # --- the end ---------------------------------------------------------------------------------------------------

    async def renew(self) -> bool:
        """Reset the session to its initial state, with an open transaction rolled back, which costs a tenth of a new
        session. Return whether this was possible. Later notices are ignored until `hear` is set.
        """
        self.hear = _ignore_notice
        if self.lost or self.driver.state != ConnectionState.READY:
            return False
        try:
            await self.plain.execute(b"rollback; " + RENEW if self.in_transaction else RENEW)
        except psycopg.Error:
            return False
        return True

    async def close(self) -> None:
        """Cancel a running statement, roll back and close. Never raises, and takes a few seconds at most."""
        if self.lost:
            return
        with contextlib.suppress(psycopg.Error, OSError, TimeoutError):
            async with asyncio.timeout(2 * CANCEL_SECONDS):
                if self._status == TransactionStatus.ACTIVE:
                    await self._connector.cancel(self.driver, CANCEL_SECONDS)
                elif self.in_transaction:
                    await self.run("rollback")
        self.driver.close("the test is over")
        await self.plain.close()


class SessionPool:
    """Sessions for successive files. A session is used again if its file was run without an exception."""

    def __init__(self, opening: OpeningRetries) -> None:
        """opening: has the number of attempts for an unavailable server, such as one that has crashed."""
        self._opening = opening
        self._idle: dict[str, Session] = {}
        """Sessions for use by the next file, by key of the database."""
        self._hopeless = False
        """All attempts to open a session have failed once, so there is only one attempt from then on."""

    @contextlib.asynccontextmanager
    async def session(self, connector: Connector, hear: Hear, key: str | None) -> AsyncIterator[Session]:
        """Provide a session during the block. hear: called with its notices. key: equal for the same database; None:
        the session is new and is not used again. Raises `psycopg.Error` or StartupError.
        """
        session = None if key is None else self._idle.pop(key, None)
        if session is None or session.lost:
            session = await self._open(connector, hear)
        session.hear = hear
        passed = False
        try:
            yield session
            passed = True
        finally:
            if passed and key is not None and await session.renew():
                self._idle[key] = session
            else:
                await session.close()

    async def _open(self, connector: Connector, hear: Hear) -> Session:
        """Open a session. An unavailable server is tried repeatedly; once all attempts have failed, later sessions get
        only one attempt. Raises `StartupError` if repeated attempts fail, `psycopg.Error` if a single one does."""
        if self._hopeless:
            return await Session.open(connector, hear)
        try:
            return await self._opening.attempt("open the connection of a test", partial(Session.open, connector, hear))
        except StartupError:
            # Only wait for the server once: for the next file, the error is immediate.
            self._hopeless = True
            raise

    async def close(self) -> None:
        """Close the idle sessions."""
        for session in self._idle.values():
            await session.close()
        self._idle.clear()


def _ignore_notice(_notice: Notice) -> None:
    """Ignore notices between two files."""
