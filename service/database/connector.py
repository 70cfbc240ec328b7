"""Opens connections for a lane: the options each lane needs, and back-off while the server cannot be reached."""

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

# Keepalives notice a peer that vanished while idle, the user timeout one that vanishes with a request on its way;
# each is blind to what the other sees (driver-29).
KEEPALIVES = {
    "keepalives": "1",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
}

# What the text of values depends on, and the same keepalives for the server's side.
SESSION = {
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}

# As a parameter of its own it wins over `options`, the environment (PGCLIENTENCODING), the role and the database:
# bodies are UTF-8, whatever else the operator prefers (rendering-2).
ENCODING = {"client_encoding": "UTF8"}

CANCELS = 4
"""Cancel requests under way at the same time. Each is a connection of its own, and a server that hangs takes none."""
MAINTENANCE_SECONDS = 30.0
"""What the service asks the database on its own account may take so long; a server that hangs would never end it."""


_LONGEST_STATEMENT = 2**31 - 1
"""Milliseconds that PostgreSQL takes: 24 days."""


def statement_timeout(seconds: float) -> str:
    """As PostgreSQL reads it: milliseconds, of which 0 sets no limit. A limit that is shorter than one is one."""
    return str(min(max(1, round(seconds * 1000)), _LONGEST_STATEMENT)) if seconds else "0"


@dataclass(frozen=True, slots=True)
class ConnectionTarget:
    """Where to connect.

    parameters: libpq keywords. pooler: a transaction pooler stands in between, so nothing may be said at session
    level. timeout: default `statement_timeout` in seconds, 0 for none.
    """

    parameters: Mapping[str, str]
    pooler: bool = False
    timeout: float = 30.0


Attempt = Generator[Any, Any, Any]

_attempts: ContextVar[list[Attempt] | None] = ContextVar("attempts", default=None)


class Session(psycopg.AsyncConnection[tuple[object, ...]]):
    """psycopg's connection, whose attempts to connect and to cancel can be ended.

    An attempt is a generator that holds the `PGconn`. One that times out is left suspended in the traceback of the
    error, and that is a cycle: its socket, and what PostgreSQL makes of it later, would stay until the collector comes
    by. So whoever starts attempts closes them (`closing_attempts`).
    """

    @classmethod
    def _connect_gen(cls, conninfo: str = "") -> Any:
        return _noted(super()._connect_gen(conninfo))

    def _cancel_gen(self) -> Any:
        return _noted(super()._cancel_gen())


class BlockingSession(psycopg.Connection[Any]):
    """The same for whoever waits in a thread of their own."""

    @classmethod
    def _connect_gen(cls, conninfo: str = "") -> Any:
        return _noted(super()._connect_gen(conninfo))


def _noted(attempt: Attempt) -> Attempt:
    begun = _attempts.get()
    if begun is not None:
        begun.append(attempt)
    return attempt


@contextlib.contextmanager
def closing_attempts() -> Iterator[None]:
    """Whatever was begun in the block and has not ended is closed at its end."""
    begun: list[Attempt] = []
    token = _attempts.set(begun)
    try:
        yield
    finally:
        _attempts.reset(token)
        for attempt in begun:
            attempt.close()


class Connector:
    """Opens connections with one set of session options."""

    def __init__(self, target: ConnectionTarget, **session: str) -> None:
        self._target = target
        self._maintenance_lock = asyncio.Lock()
        self._cancels = asyncio.Semaphore(CANCELS)
        parameters = self._parameters(session)
        self._conninfo = make_conninfo(**for_libpq(parameters))
        """Every server that will do."""
        preferred = make_conninfo(**for_libpq(parameters, "primary"))
        self._preferred = preferred if preferred != self._conninfo else None
        """The one to try before, if there is a choice."""

    @property
    def target(self) -> ConnectionTarget:
        return self._target

    def _parameters(self, session: Mapping[str, str]) -> dict[str, str]:
        parameters = {"connect_timeout": "15", **KEEPALIVES, **self._target.parameters, **ENCODING}
        if self._target.pooler:
            return parameters
        settings = {**SESSION, "statement_timeout": statement_timeout(self._target.timeout), **session}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        response = parameters.get("options")
        # The user's own options come last, so they win over ours.
        parameters["options"] = f"{options} {response}" if response else options
        return parameters

    async def open(self) -> Connection:
        """One connection in pipeline mode. Raises `psycopg.OperationalError`."""
        opened = await self.open_plain()
        try:
            connection = Connection(opened.pgconn, asyncio.get_running_loop(), named=not self._target.pooler)
        except ConnectionError as error:
            await opened.close()
            raise psycopg.OperationalError(str(error)) from error
        except BaseException:
            await opened.close()
            raise
        connection.owner = opened
        return connection

    async def cancel(self, connection: Connection, seconds: float) -> None:
        """Asks the server to cancel what the connection runs, and returns when the asking is over, heard or not.

        With libpq 17 and newer without blocking; psycopg's `PGcancel` holds the GIL until the server has answered.
        Raises `psycopg.Error`, also when it takes more than `seconds`.
        """
        owner = connection.owner
        if isinstance(owner, psycopg.AsyncConnection):
            async with self._cancels:
                with closing_attempts():
                    await owner.cancel_safe(timeout=seconds)

    async def open_plain(self) -> psycopg.AsyncConnection[tuple[object, ...]]:
        """A connection of psycopg's own kind, for everything that is not hot. Raises `psycopg.Error`."""
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
                # No descriptor is left, or no port: to callers that is a database which cannot be reached.
                raise psycopg.OperationalError(f"cannot open a connection: {error}") from error

    @contextlib.asynccontextmanager
    async def maintenance_connection(
        self, seconds: float = MAINTENANCE_SECONDS
    ) -> AsyncIterator[psycopg.AsyncConnection[tuple[object, ...]]]:
        """A session for what is no request. There is one at a time, however much is asked, and none for longer than
        `seconds`: its socket is shut down then, which is the one thing that a server that hangs cannot hold up.

        Raises `psycopg.Error`.
        """
        async with self._maintenance_lock, await self.open_plain() as connection:
            timer = asyncio.get_running_loop().call_later(seconds, shut_down, connection)
            try:
                yield connection
            finally:
                timer.cancel()


def shut_down(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
    """Ends what runs there at once; a cancel would have to be answered by the server."""
    with contextlib.suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as end:
        end.shutdown(socket.SHUT_RDWR)


def for_libpq(parameters: Mapping[str, str], preferred: str = "any") -> dict[str, str]:
    """libpq knows no `prefer-primary`: whoever wants it tries for a primary, and then takes any."""
    changed = parameters.get("target_session_attrs") == "prefer-primary"
    return {**parameters, "target_session_attrs": preferred} if changed else dict(parameters)
