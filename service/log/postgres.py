"""`Log:ToPostgres`: pass every entry to a command of the operator (logging-4).

A thread of the supervisor writes, on a connection of its own. Failures are reported on the console and never logged, so
that the entry about a failure cannot cause the next failure.
"""

from __future__ import annotations

import datetime
import re
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from rowcall.service.background import pause
from rowcall.service.database.connector import BlockingSession, closing_attempts
from rowcall.service.log.entry import Entry, level_name
from rowcall.service.log.sinks import LostEntriesError
from rowcall.service.startup_error import StartupError

_PARAMETER = re.compile(r"\$(\d+)")
_TEXT = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(?:[A-Za-z_]\w*)?\$.*?\$(?:[A-Za-z_]\w*)?\$", re.DOTALL)
_CONNECT_WITHIN = "5"
"""Timeout of connecting in seconds."""


@dataclass
class _Batch:
    """Entries of one `write`. rows: parameters of the command for each entry that is still to be stored. refused:
    number of rows that the command has refused. refusal: error of the last of them.
    """

    rows: deque[tuple[str | None, ...]]
    refused: int = 0
    refusal: str = ""


class PostgresSink:
    """The sink that stores entries by an SQL command of the operator.

    command: SQL with one to five parameters, from $1 on: level, message, UTC time, exception or NULL, source. Raises
    `StartupError` for other parameters.
    """

    name = "PostgreSQL"

    def __init__(self, command: str) -> None:
        self._command = command
        self._count = parameter_count(command)
        self._parameters: Mapping[str, str] | None = None
        self._parameters_set = threading.Event()
        self._closing = threading.Event()
        self._connection: psycopg.Connection[Any] | None = None

    def connect_to(self, parameters: Mapping[str, str]) -> None:
        """Set the connection parameters (keywords of libpq). Entries wait until then."""
        self._parameters = {"connect_timeout": _CONNECT_WITHIN, **parameters}
        self._parameters_set.set()

    def write(self, entries: Sequence[Entry]) -> None:
        """Store entries; return when they are stored. Waits for `connect_to`, and for a database that is unavailable,
        until `give_up` is called.

        Raises `LostEntriesError` if the command refuses rows (all others are stored), if the server refuses the
        connection, or if the database is unavailable after `give_up`.
        """
        self._parameters_set.wait()
        batch = _Batch(deque(self._row(entry) for entry in entries))
        for attempt in range(1_000_000):
            try:
                self._store(batch)
            except psycopg.OperationalError as error:
                self._disconnect()
                if self._closing.is_set() or not _is_away(error):
                    raise LostEntriesError(batch.refused + len(batch.rows), str(error)) from None
            else:
                if batch.refused:
                    raise LostEntriesError(batch.refused, batch.refusal)
                return
            # The database is unavailable. The queue before this sink is bounded and then drops new entries.
            self._closing.wait(pause(attempt + 2))

    def give_up(self) -> None:
        """From now on, do not wait for an unavailable database."""
        self._closing.set()
        self._parameters_set.set()

    def close(self) -> None:
        self._disconnect()

    def _store(self, batch: _Batch) -> None:
        """Store all rows in one pipeline. If a row is refused, store each row separately, so that only the refused ones
        are lost. Raises `psycopg.OperationalError`, without storing rows separately, if the connection is lost, or if a
        statement is cancelled or meets a lock."""
        connection = self._connection or self._connect()
        try:
            with connection.pipeline(), connection.cursor() as cursor:
                for row in batch.rows:
                    cursor.execute(self._command, row)
        except psycopg.OperationalError:
            raise
        except psycopg.Error:
            self._store_singly(connection, batch)

    def _store_singly(self, connection: psycopg.Connection[Any], batch: _Batch) -> None:
        """Store each row with a statement of its own. A row that was stored or refused is removed from the batch: after
        a loss of the connection, only the others are stored. Raises `psycopg.OperationalError` as `_store` does.
        """
        while batch.rows:
            try:
                connection.execute(self._command, batch.rows[0])
            except psycopg.OperationalError:
                raise
            except psycopg.Error as error:
                batch.refused += 1
                batch.refusal = str(error)
            batch.rows.popleft()

    def _connect(self) -> psycopg.Connection[Any]:
        """Open and return the connection. Raises `psycopg.OperationalError`."""
        if self._parameters is None:
            raise psycopg.OperationalError("the database is not known yet")
        parameters: dict[str, Any] = dict(self._parameters)
        # Statements are not prepared: behind a transaction pooler, the next one may run in another session.
        with closing_attempts():
            connection = BlockingSession.connect(
                **parameters, autocommit=True, prepare_threshold=None, cursor_factory=psycopg.RawCursor
            )
        self._connection = connection
        return connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _row(self, entry: Entry) -> tuple[str | None, ...]:
        """Return the parameters of the command for an entry: level, message, time, exception and source, cut to the
        number of parameters that the command has."""
        # Texts of unknown type: the parameter types of the command determine the conversion.
        moment = datetime.datetime.fromtimestamp(entry.time, datetime.UTC).isoformat()
        row = (level_name(entry.level), _storable(entry.message), moment, _storable(entry.exception), entry.source)
        return row[: self._count]


def parameter_count(command: str) -> int:
    """Return the number of parameters of `command`. Raises `StartupError` unless they are $1 to $n, n from 1 to 5."""
    numbers = {int(number) for number in _PARAMETER.findall(_TEXT.sub("''", command))}
    if not numbers or numbers != set(range(1, len(numbers) + 1)) or len(numbers) > 5:
        names = ", ".join(f"${number}" for number in sorted(numbers)) or "none"
        raise StartupError(
            f"Log:PostgresCommand must have one to five parameters, numbered from $1 without a gap; it has {names}"
        )
    return len(numbers)


def _storable(text: str | None) -> str | None:
    """Return a text with `\\0` in place of NUL characters, which PostgreSQL cannot store; None stays None."""
    return text if text is None else text.replace("\0", "\\0")


def _is_away(error: psycopg.OperationalError) -> bool:
    """Return whether an error means that the database is unavailable, so that waiting is useful: there is no server, it
    is starting or stopping, or it lacks resources. A wrong password, for example, stays wrong.
    """
    state = error.sqlstate or ""
    return not state or state.startswith(("08", "57P", "53"))
