"""Opens connections for a lane: the options each lane needs, and back-off while the server cannot be reached."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Mapping
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import make_conninfo

from rowcall.ext.driver.connection import Connection

# Keepalives notice a peer that vanished while idle, the user timeout one that vanishes with a request on its way;
# each is blind to what the other sees (reference 08, 13).
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
# bodies are UTF-8, whatever else the operator prefers (reference 02, 1).
ENCODING = {"client_encoding": "UTF8"}

LONGEST_PAUSE = 5.0


_LONGEST_STATEMENT = 2**31 - 1
"""Milliseconds that PostgreSQL takes: 24 days."""


def statement_timeout(seconds: float) -> str:
    """As PostgreSQL reads it: milliseconds, of which 0 sets no limit. A limit that is shorter than one is one."""
    return str(min(max(1, round(seconds * 1000)), _LONGEST_STATEMENT)) if seconds else "0"


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect.

    parameters: libpq keywords. pooler: a transaction pooler stands in between, so nothing may be said at session
    level. timeout: default `statement_timeout` in seconds, 0 for none.
    """

    parameters: Mapping[str, str]
    pooler: bool = False
    timeout: float = 30.0


class Connector:
    """Opens connections with one set of session options."""

    def __init__(self, target: Target, **session: str) -> None:
        self._target = target
        parameters = self._parameters(session)
        self._conninfo = make_conninfo(**for_libpq(parameters))
        """Every server that will do."""
        preferred = make_conninfo(**for_libpq(parameters, "primary"))
        self._preferred = preferred if preferred != self._conninfo else None
        """The one to try before, if there is a choice."""

    def _parameters(self, session: Mapping[str, str]) -> dict[str, str]:
        parameters = {"connect_timeout": "15", **KEEPALIVES, **self._target.parameters, **ENCODING}
        if self._target.pooler:
            return parameters
        settings = {**SESSION, "statement_timeout": statement_timeout(self._target.timeout), **session}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        given = parameters.get("options")
        # The user's own options come last, so they win over ours.
        parameters["options"] = f"{options} {given}" if given else options
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

    @staticmethod
    async def cancel(connection: Connection, seconds: float) -> None:
        """Asks the server to cancel what the connection runs, and returns when the asking is over, heard or not.

        With libpq 17 and newer without blocking; psycopg's `PGcancel` holds the GIL until the server has answered.
        Raises `psycopg.Error`, also when it takes more than `seconds`.
        """
        owner = connection.owner
        if isinstance(owner, psycopg.AsyncConnection):
            await owner.cancel_safe(timeout=seconds)

    async def open_plain(self) -> psycopg.AsyncConnection[tuple[object, ...]]:
        """A connection of psycopg's own kind, for everything that is not hot."""
        if self._preferred is not None:
            with contextlib.suppress(psycopg.OperationalError):
                return await psycopg.AsyncConnection.connect(self._preferred, autocommit=True)
        return await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)


def for_libpq(parameters: Mapping[str, str], preferred: str = "any") -> dict[str, str]:
    """libpq knows no `prefer-primary`: whoever wants it tries for a primary, and then takes any."""
    changed = parameters.get("target_session_attrs") == "prefer-primary"
    return {**parameters, "target_session_attrs": preferred} if changed else dict(parameters)


def pause(attempt: int) -> float:
    """Seconds to wait before attempt number `attempt` (from 0): doubling from 50 ms, with jitter, bounded."""
    longest = min(LONGEST_PAUSE, 0.05 * 2.0 ** min(attempt, 16))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 (spreads load, guards nothing)
