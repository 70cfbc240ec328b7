"""Sends mail that waits in the database: at least once, repeated while the mail server is away.

Every worker of every host takes mail from the database. If a worker is killed before its attempt ends, another worker
takes the mail after a time. `Background.keep` (`service.background`) calls `run` again after the database was lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import psycopg

from rowcall.core.accounts.message import MailError, message_of, recipients_of
from rowcall.core.accounts.options import MailOptions
from rowcall.core.catalogue.installation import RESTRICTED
from rowcall.service.accounts.transports import FinalError, MailTransport, TransientError, transport_of
from rowcall.service.database.connector import Connector
from rowcall.service.database.queue_connection import QueueConnection
from rowcall.service.discovery.installation import wait_for_installation

log = logging.getLogger("rowcall.mail")

CHANNEL = "rowcall_mail"
NEEDED = 12
"""Least version of the schema `rowcall`."""
LONGEST_WAIT = 5.0
"""Seconds after which a worker looks for mail without a notification."""
LONGEST_PAUSE = 3600.0
TIDY = 5.0
MOST_REMOVED = 1000
MARGIN = 30.0
"""Seconds after the time limit of an attempt from which its worker counts as lost."""
STEPS = 8
"""Commands of one mail to the server, each of which may take the time limit."""
MOST_ERROR = 500

_TAKE = (
    "select id::text, attempts, extract(epoch from clock_timestamp() - created)::float8, created, message"
    " from rowcall.take_mail(%s, %s::float8)"
)


class _QueuedMail(NamedTuple):
    """A mail that waits to be sent. created, age: when it was enqueued, and the seconds since then. message: decoded
    JSON.
    """

    id: str
    attempt: int
    age: float
    created: datetime
    message: Any


class MailDelivery:
    """Sends waiting mail in one worker, up to `concurrency` at the same time."""

    def __init__(self, options: MailOptions, connector: Connector, *, counts: bool = False) -> None:
        """counts: `gauges` are updated, for the metrics."""
        self._counts = counts
        self.gauges: list[tuple[str, Mapping[str, str], float]] = []
        """Mail of all services in the database, by state."""
        self._options = options
        self._queue = QueueConnection(connector)
        self._transport: MailTransport = transport_of(options)
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._sent: list[float] = []
        """Times of the mails of the last minute."""
        self._stopping = False

    async def run(self) -> None:
        """Send mail until the connection is lost. Raises `psycopg.Error`."""
        async with self._queue.open(CHANNEL, lambda _payload: self._wake.set()) as connection:
            try:
                await wait_for_installation(connection, NEEDED, "Mail:Enabled", RESTRICTED["Mail:Enabled"])
                await self._work()
            finally:
                await self._transport.close()

    def stop(self) -> None:
        """Take no further mail. Attempts that run are given up; other workers repeat them."""
        self._stopping = True
        for task in list(self._tasks):
            task.cancel()

    async def _work(self) -> None:
        tidied = -TIDY
        lease = STEPS * self._options.timeout + MARGIN
        while not self._stopping:
            self._wake.clear()
            self._queue.check()
            if time.monotonic() - tidied > TIDY:
                tidied = time.monotonic()
                await self._queue.query(
                    "select rowcall.remove_mail(%s::float8, %s)", self._options.retention, MOST_REMOVED
                )
                if self._counts:
                    rows = await self._queue.query("select state, mails from rowcall.count_mail()")
                    self.gauges = [("rowcall_mail", {"state": state}, count) for state, count in rows]
            free, pause = self._room()
            rows = await self._queue.query(_TAKE, free, lease) if free > 0 else []
            for row in rows:
                task = asyncio.get_running_loop().create_task(self._deliver(_QueuedMail(*row)))
                self._tasks.add(task)
                task.add_done_callback(self._ended)
            if not rows or len(rows) >= free:
                await self._wait(pause if free <= 0 or rows else await self._next())

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _room(self) -> tuple[int, float]:
        """Return how many mails may be sent now (0 or less: none), and the seconds until there may be more."""
        free = self._options.concurrency - len(self._tasks)
        most, now = self._options.per_minute, time.monotonic()
        self._sent = [moment for moment in self._sent if now - moment < 60]
        if most is None:
            return free, LONGEST_WAIT
        left = most - len(self._sent) - len(self._tasks)
        pause = LONGEST_WAIT if left > 0 or not self._sent else max(0.05, 60 - (now - self._sent[0]))
        return min(free, left), min(pause, LONGEST_WAIT)

    async def _next(self) -> float:
        ((seconds,),) = await self._queue.query("select rowcall.next_mail()")
        return LONGEST_WAIT if seconds is None else min(LONGEST_WAIT, max(0.01, float(seconds)))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()

    async def _deliver(self, waiting: _QueuedMail) -> None:
        try:
            error, pause = await self._attempt(waiting)
            mail = (waiting.id, waiting.attempt, error)
            if error is not None and pause is None:
                topic = self._options.failure_topic
                await self._queue.query("select rowcall.fail_mail(%s::uuid, %s, %s, %s)", *mail, topic)
            else:
                await self._queue.query("select rowcall.end_mail(%s::uuid, %s, %s, %s::float8)", *mail, pause)
        except psycopg.Error as lost:
            log.error("mail %s: its outcome cannot be stored, so it is sent again: %s", waiting.id, str(lost).strip())
        except Exception:
            log.exception("mail %s", waiting.id)

    async def _attempt(self, waiting: _QueuedMail) -> tuple[str | None, float | None]:
        """Send the mail. Return the error (None: the mail was sent) and the seconds until the next attempt (None: there
        is no further attempt). Failures are logged.
        """
        try:
            message = message_of(waiting.message, waiting.id, waiting.created.astimezone(UTC))
            recipients = recipients_of(waiting.message)
            await self._transport.send(waiting.message["from"], recipients, message, waiting.id)
            self._sent.append(time.monotonic())
        except (MailError, FinalError) as error:
            log.error("mail %s is not sent: %s", waiting.id, str(error)[:MOST_ERROR])
            return str(error)[:MOST_ERROR], None
        except TransientError as error:
            if waiting.age >= self._options.give_up:
                log.error("mail %s is given up: %s", waiting.id, str(error)[:MOST_ERROR])
                return str(error)[:MOST_ERROR], None
            growing = self._options.backoff * 2.0 ** min(waiting.attempt - 1, 20)
            pause = min(LONGEST_PAUSE, growing) * random.uniform(0.75, 1.25)  # noqa: S311 (guards nothing)
            log.warning("mail %s: attempt %d failed: %s", waiting.id, waiting.attempt, str(error)[:MOST_ERROR])
            return str(error)[:MOST_ERROR], pause
        return None, None
