"""Opens connections with the session options of a pool, keepalives and time limits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from rowcall.ext.driver.connection import Connection

# Keepalives detect a peer that disappears while the connection is idle, the user timeout one that disappears while a
# request is being sent; neither detects the other case (driver-29).
KEEPALIVES = {
    "keepalives": "1",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}

# Settings on which the text form of values depends, also that of NULL in arrays, and the same keepalives for the
# server's side.
SESSION = {
    "array_nulls": "on",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}

# As a separate parameter it overrides `options`, the environment (PGCLIENTENCODING), the role and the database: bodies
# are UTF-8, whatever the operator configures (rendering-2).
ENCODING = {"client_encoding": "UTF8"}

CANCELS = 4
"""Concurrent cancel requests. Each is a new connection, and a server that hangs accepts none."""
MAINTENANCE_SECONDS = 30.0
"""Longest time of a maintenance connection, in seconds; without a limit, a server that hangs would block it without
end.
"""


_LONGEST_STATEMENT = 2**31 - 1
"""Largest timeout that PostgreSQL accepts, in milliseconds: 24 days."""


def statement_timeout(seconds: float) -> str:
    """Return a `statement_timeout` in milliseconds: at least 1, and at most the largest timeout that PostgreSQL accepts
    (24 days). seconds: 0: no limit, returned as 0."""
    return str(min(max(1, round(seconds * 1000)), _LONGEST_STATEMENT)) if seconds else "0"


@dataclass(frozen=True, slots=True)
class ConnectionTarget:
    """The server to connect to.

    parameters: libpq keywords with their values. pooler: a transaction pooler is between, so nothing may be set at
    session level. timeout: default `statement_timeout` in seconds, 0 for none. prepares: statements are prepared by
    name, unless there is a pooler.
    """

    parameters: Mapping[str, str]
    pooler: bool = False
    timeout: float = 30.0
    prepares: bool = True


Attempt = Generator[Any, Any, Any]

_attempts: ContextVar[list[Attempt] | None] = ContextVar("attempts", default=None)


class Session(psycopg.AsyncConnection[tuple[object, ...]]):
    """A psycopg connection whose attempts to connect and to cancel can be closed.

    An attempt is a generator that holds the `PGconn`. If the attempt times out, the generator stays suspended in the
    traceback of the error, which is a reference cycle: its socket, and a session that PostgreSQL opens for it later,
    would remain until the garbage collector runs. Code that starts attempts therefore closes them (`closing_attempts`).
    """

    @classmethod
    def _connect_gen(cls, conninfo: str = "") -> Any:
        return _register_attempt(super()._connect_gen(conninfo))

    def _cancel_gen(self) -> Any:
        return _register_attempt(super()._cancel_gen())


class BlockingSession(psycopg.Connection[Any]):
    """`Session` for blocking use in a thread."""

    @classmethod
    def _connect_gen(cls, conninfo: str = "") -> Any:
        return _register_attempt(super()._connect_gen(conninfo))


def _register_attempt(attempt: Attempt) -> Attempt:
    """Add the attempt to those that `closing_attempts` closes, and return it."""
    attempts = _attempts.get()
    if attempts is not None:
        attempts.append(attempt)
    return attempt


@contextlib.contextmanager
def closing_attempts() -> Iterator[None]:
    """Close all connection and cancel attempts that were started in the block and have not ended."""
    attempts: list[Attempt] = []
    token = _attempts.set(attempts)
    try:
        yield
    finally:
        _attempts.reset(token)
        for attempt in attempts:
            attempt.close()


class Connector:
    """Opens connections with one set of session options."""

    def __init__(self, target: ConnectionTarget, **session: str) -> None:
        """session: settings of each connection, by name; ignored behind a transaction pooler."""
        self._target = target
        self._maintenance_lock = asyncio.Lock()
        self._cancels = asyncio.Semaphore(CANCELS)
        parameters = self._parameters(session)
        self._conninfo = make_conninfo(**for_libpq(parameters))
        """Connection string that accepts every suitable server."""
        preferred = make_conninfo(**for_libpq(parameters, "primary"))
        self._preferred = preferred if preferred != self._conninfo else None
        """Connection string to try first, if the target has a preference."""

    @property
    def target(self) -> ConnectionTarget:
        return self._target

    def _parameters(self, session: Mapping[str, str]) -> dict[str, str]:
        """Return the libpq keywords, with settings of the session unless there is a pooler. Keywords and options of the
        target override defaults; the encoding is always UTF-8."""
        parameters = {"connect_timeout": "15", **KEEPALIVES, **self._target.parameters, **ENCODING}
        if self._target.pooler:
            return parameters
        settings = {**SESSION, "statement_timeout": statement_timeout(self._target.timeout), **session}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        own = parameters.get("options")
        # The user's own options come last, so they override the settings above.
        parameters["options"] = f"{options} {own}" if own else options
        return parameters

    @property
    def _names_statements(self) -> bool:
        return self._target.prepares and not self._target.pooler

    async def open(self) -> Connection:
        """Open a connection in pipeline mode. Raises `psycopg.OperationalError`."""
        session = await self.open_plain()
        try:
            connection = Connection(session.pgconn, asyncio.get_running_loop(), named=self._names_statements)
        except ConnectionError as error:
            await session.close()
            raise psycopg.OperationalError(str(error)) from error
        except BaseException:
            await session.close()
            raise
        connection.owner = session
        return connection

    async def cancel(self, connection: Connection, seconds: float) -> None:
        """Send a cancel request for the running statement, and return when the request has ended: the server has
        accepted it, whether or not there was anything to cancel.

        libpq 17 and newer do this without blocking; psycopg's `PGcancel` holds the GIL until the server has answered.
        Raises `psycopg.Error`, also if it takes more than `seconds`.
        """
        owner = connection.owner
        if isinstance(owner, psycopg.AsyncConnection):
            async with self._cancels:
                with closing_attempts():
                    await owner.cancel_safe(timeout=seconds)

    async def open_plain(self) -> psycopg.AsyncConnection[tuple[object, ...]]:
        """Open a plain psycopg connection in autocommit mode, for everything outside the hot path. Raises
        `psycopg.Error`.
        """
        with closing_attempts():
            try:
                if self._preferred is not None:
                    with contextlib.suppress(psycopg.OperationalError):
                        return await Session.connect(self._preferred, autocommit=True)
                return await Session.connect(self._conninfo, autocommit=True)
            except psycopg.Error as error:
                if error.pgconn is not None:
                    error.pgconn.finish()
                raise
            except OSError as error:
                # No file descriptor or port is free: callers treat this as a database that cannot be reached.
                raise psycopg.OperationalError(f"cannot open a connection: {error}") from error

    @contextlib.asynccontextmanager
    async def maintenance_connection(
        self, seconds: float = MAINTENANCE_SECONDS
    ) -> AsyncIterator[psycopg.AsyncConnection[tuple[object, ...]]]:
        """Open a maintenance connection for the block. Each `Connector` has one at a time; further callers wait until
        it is closed. The block may use it for `seconds`: then its socket is shut down, which works even if the server
        hangs.

        Raises `psycopg.Error`.
        """
        async with self._maintenance_lock, await self.open_plain() as connection:
            timer = asyncio.get_running_loop().call_later(seconds, shut_down, connection)
            try:
                yield connection
            finally:
                timer.cancel()


def shut_down(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
    """Shut down the socket, which ends all use of the connection at once. A cancel request would need an answer of the
    server.
    """
    with contextlib.suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as end:
        end.shutdown(socket.SHUT_RDWR)


def for_libpq(parameters: Mapping[str, str], preferred: str = "any") -> dict[str, str]:
    """Return the parameters with `target_session_attrs=prefer-primary`, which libpq does not know, replaced by
    `preferred`; without it, they are unchanged. The caller tries `primary` first, and then `any`.
    """
    changed = parameters.get("target_session_attrs") == "prefer-primary"
    return {**parameters, "target_session_attrs": preferred} if changed else dict(parameters)
