"""Sends mail that waits in the database: at least once, repeated while the mail server is away.

Every worker of every host takes mail from the database. If a worker is killed before its attempt ends, another worker
takes the mail after a time. `Background.keep` (`service.background`) calls `run` again after the database was lost.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import psycopg

from rowcall.core.accounts.message import MailError, message_of, recipients_of, sender_of
from rowcall.core.accounts.options import MailOptions
from rowcall.core.catalogue.installation import RESTRICTED
from rowcall.service.accounts.transports import FinalError, MailTransport, TransientError, transport_of
from rowcall.service.database.connector import Connector
from rowcall.service.database.queues import LONGEST_WAIT, Attempt, DeliveryLoop
from rowcall.service.discovery.installation import wait_for_installation

log = logging.getLogger("rowcall.mail")

CHANNEL = "rowcall_mail"
NEEDED = 26
"""Least version of the schema `rowcall`."""
LONGEST_PAUSE = 3600.0
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
        self._loop = DeliveryLoop(connector, self, "select rowcall.next_mail()")
        self._queue = self._loop.queue
        self._transport: MailTransport = transport_of(options)
        self._sent: list[float] = []
        """Times of the mails of the last minute."""

    async def run(self) -> None:
        """Send mail until `stop` is called. Raises `psycopg.Error` if the connection is lost."""
        async with self._loop.open(CHANNEL) as connection:
            try:
                await wait_for_installation(connection, NEEDED, "Mail:Enabled", RESTRICTED["Mail:Enabled"])
                await self._loop.work()
            finally:
                await self._transport.close()

    def stop(self) -> None:
        """Take no further mail. Attempts that run are given up; other workers repeat them."""
        self._loop.stop()

    async def remove(self, most: int) -> int:
        """Remove up to `most` old mails, and return how many were removed. Raises `psycopg.Error`."""
        return await self._queue.remove("select rowcall.remove_mail(%s::float8, %s)", self._options.retention, most)

    async def count(self) -> None:
        """Update the gauges if they are counted. Raises `psycopg.Error`."""
        if self._counts:
            rows = await self._queue.query("select state, mails from rowcall.count_mail()")
            self.gauges = [("rowcall_mail", {"state": state}, count) for state, count in rows]

    async def take(self, most: int) -> Sequence[Attempt]:
        """Take up to `most` waiting mails from the database. Return an attempt to send each. Raises `psycopg.Error`."""
        rows = await self._queue.query(_TAKE, most, STEPS * self._options.timeout + MARGIN)
        return [self._deliver(_QueuedMail(*row)) for row in rows]

    def room(self, running: int) -> tuple[int, float]:
        """Return how many mails may be sent now (0 or less: none), and the seconds until there may be more.

        running: number of mails that are being sent.
        """
        free = self._options.concurrency - running
        most, now = self._options.per_minute, time.monotonic()
        self._sent = [moment for moment in self._sent if now - moment < 60]
        if most is None:
            return free, LONGEST_WAIT
        left = most - len(self._sent) - running
        pause = LONGEST_WAIT if left > 0 or not self._sent else max(0.05, 60 - (now - self._sent[0]))
        return min(free, left), min(pause, LONGEST_WAIT)

    async def _deliver(self, waiting: _QueuedMail) -> None:
        """Send a mail and store the outcome in the database. Errors are logged; without a stored outcome, the mail is
        sent again.
        """
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
            await self._transport.send(sender_of(waiting.message), recipients, message, waiting.id)
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
