"""Delivers published messages to their subscribers: signed, at least once, and in order for each key.

Every worker of every host takes deliveries from the database. If a worker is killed before its delivery ends, another
worker takes it after a time. `Background.keep` (`service.background`) calls `run` again after the database was lost.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import psycopg

from rowcall.core.catalogue.installation import RESTRICTED
from rowcall.core.outgoing.address import BadUrlError, read_address
from rowcall.core.outgoing.guard import RefusedError
from rowcall.core.outgoing.options import ClientOptions
from rowcall.core.outgoing.reply import retry_after
from rowcall.core.webhooks.options import DeliveryOptions
from rowcall.core.webhooks.signatures import SecretError, signature_headers
from rowcall.service.database.connector import Connector
from rowcall.service.database.queues import LONGEST_WAIT, Attempt, DeliveryLoop
from rowcall.service.discovery.installation import wait_for_installation
from rowcall.service.http_client.client import Client
from rowcall.service.http_client.errors import OutboundError
from rowcall.service.http_client.messages import Headers, OutgoingRequest

if TYPE_CHECKING:
    from rowcall.ext.driver.meter import Meter

log = logging.getLogger("rowcall.webhooks")

CHANNEL = "rowcall_webhooks"
"""Notification channel on which new messages are announced."""
NEEDED = 29
"""Least version of the schema `rowcall`."""
GATHER = 0.005
"""Seconds for which ends of deliveries are gathered before new ones are taken."""
MARGIN = 10.0
"""Seconds after the time limit of a delivery from which its worker counts as lost."""
LARGEST_RESPONSE = 65_536
"""Bytes of a response that are read. The connection of a subscriber that sends more is closed."""
MOST_ERROR = 500
"""Maximum number of characters of a stored error."""

_TAKE = (
    "select message::text, subscriber, attempt, extract(epoch from clock_timestamp() - since)::float8, url, secret, "
    "body, {trace} from rowcall.take_webhooks(%s::text[], %s::text[], %s, %s::float8, %s::float8, %s::text[])"
)
_NEXT = "select rowcall.next_webhook(%s::text[], %s::float8)"


class _Delivery(NamedTuple):
    """One attempt to deliver a message. age: seconds since the first attempt. url, secret: of a subscriber in the
    database.
    """

    message: str
    subscriber: str
    attempt: int
    age: float
    url: str | None
    secret: str | None
    body: str
    trace: str | None
    """Trace context of the request that has published it."""


Record = Callable[[str, str, float, int | None], None]
"""Records an attempt: subscriber, id of the message, its beginning in seconds since 1970, and the status of the
response.
"""


class Span(Protocol):
    """The span of a request to a subscriber."""

    headers: Headers

    def end(self, status: int) -> None:
        """End the span. status: 0 without a response."""


class _Outcome(NamedTuple):
    """The outcome of an attempt. done: the subscriber has confirmed it. status: of the response; None: there is none.
    pause: seconds that the subscriber asks for. given_up: no further attempt can succeed.
    """

    done: bool
    status: int | None
    error: str | None = None
    pause: float = 0.0
    given_up: bool = False


class Deliveries:
    """The deliveries that one worker takes and sends."""

    def __init__(
        self,
        options: DeliveryOptions,
        connector: Connector,
        client: ClientOptions,
        meters: Callable[[str], Meter] | None,
        spans: Callable[[str, str, str], Span] | None,
        record: Record | None,
    ) -> None:
        """meters: returns the meter of a server, by `host:port`; None: nothing is measured. spans: begins a span, from
        trace context, method and host; None: nothing is traced. record: called for each attempt that has ended, for the
        audit trail; None: attempts are not recorded.
        """
        self._record = record
        self._meters = meters
        self._spans = spans
        self._sql = _TAKE.format(trace="null" if spans is None else "rowcall.message_trace(message)")
        self.gauges: list[tuple[str, Mapping[str, str], float]] = []
        """Deliveries of all services in the database, by subscriber and state."""
        self._options = options
        self._client_options = replace(client, follow=0, breaker_failures=0)
        self._client: Client | None = None
        self._configured = {subscriber.name: subscriber for subscriber in options.subscribers}
        self._names = list(self._configured)
        self._running: Counter[str] = Counter()
        """Number of deliveries in progress by subscriber."""
        self._loop = DeliveryLoop(connector, self, _NEXT, (self._names, options.give_up), gather=GATHER)
        self._queue = self._loop.queue
        self._topics = [" ".join(subscriber.topics) for subscriber in options.subscribers]

    async def run(self) -> None:
        """Wait for the needed version of the schema `rowcall`, then deliver until `stop` is called. Raises
        `psycopg.Error` if a connection is lost."""
        async with self._loop.open(CHANNEL) as connection:
            functions = RESTRICTED["Webhooks:Enabled"]
            if self._spans is not None:
                functions = functions | {"message_trace"}
            await wait_for_installation(connection, NEEDED, "Webhooks:Enabled", functions)
            self._client = Client(self._client_options, meters=self._meters)
            try:
                await self._loop.work()
            finally:
                self._client.close()

    def stop(self) -> None:
        """Take no further deliveries. Those that run are given up; other workers repeat them."""
        self._loop.stop()

    async def remove(self, most: int) -> int:
        """Remove up to `most` old messages, and return how many were removed. Raises `psycopg.Error`."""
        return await self._queue.remove("select rowcall.remove_webhooks(%s::float8, %s)", self._options.retention, most)

    async def count(self) -> None:
        """Count the deliveries for `gauges` if metrics are on. Raises `psycopg.Error`."""
        if self._meters is not None:
            rows = await self._queue.query("select subscriber, state, deliveries from rowcall.count_deliveries()")
            self.gauges = [
                ("rowcall_webhook_deliveries", {"subscriber": subscriber, "state": state}, count)
                for subscriber, state, count in rows
            ]

    async def take(self, most: int) -> Sequence[Attempt]:
        """Take up to `most` deliveries, and return the attempts to run. Raises `psycopg.Error`."""
        options = self._options
        running = list(self._running.elements())
        rows = await self._queue.query(
            self._sql, self._names, self._topics, most, options.timeout + MARGIN, options.give_up, running
        )
        deliveries = [_Delivery(*row) for row in rows]
        self._running.update(delivery.subscriber for delivery in deliveries)
        return [self._deliver(delivery) for delivery in deliveries]

    def room(self, running: int) -> tuple[int, float]:
        """Return how many further deliveries may begin now, and the seconds after which the queue is read again at the
        latest. running: deliveries in progress."""
        return self._options.concurrency - running, LONGEST_WAIT

    # --- one delivery ------------------------------------------------------------------------------------------------

    async def _deliver(self, delivery: _Delivery) -> None:
        """Send a delivery and store its outcome. Errors are logged."""
        began = time.time()
        try:
            outcome = await self._attempt(delivery)
            if self._record is not None:
                self._record(delivery.subscriber, delivery.message, began, outcome.status)
            pause = None if outcome.done or outcome.given_up else self._pause(delivery, outcome)
            if pause is None and not outcome.done:
                log.error("webhook %s to %s is dead: %s", delivery.message, delivery.subscriber, outcome.error)
            await self._queue.query(
                "select rowcall.end_delivery(%s::uuid, %s, %s, %s, %s, %s, %s::float8, %s)",
                delivery.message, delivery.subscriber, delivery.attempt, outcome.done, outcome.status, outcome.error,
                pause, outcome.status == 410,
            )  # fmt: skip
        except psycopg.Error as error:
            log.error(
                "webhook %s to %s: its outcome cannot be stored, so it is sent again: %s",
                *(delivery.message, delivery.subscriber, str(error).strip()),
            )
        except Exception:
            log.exception("webhook %s to %s", delivery.message, delivery.subscriber)
        finally:
            self._running[delivery.subscriber] -= 1
            self._running += Counter()  # without subscribers that have none

    async def _attempt(self, delivery: _Delivery) -> _Outcome:
        """Send a delivery once. Failures of the request are outcomes, and not raised."""
        client = self._client
        configured = self._configured.get(delivery.subscriber)
        url = delivery.url if configured is None else configured.url
        if url is None or client is None:
            return _Outcome(False, None, "there is no active subscriber with this name any more", given_up=True)
        secrets = (delivery.secret or "").split() if configured is None else configured.secrets
        body = delivery.body.encode()
        span: Span | None = None
        status = 0
        try:
            headers = signature_headers(secrets, delivery.message, int(time.time()), body)
            address = read_address(url)
            if self._spans is not None and delivery.trace is not None:
                span = self._spans(delivery.trace, "POST", address.origin.authority)
                headers = [*headers, *span.headers]
            request = OutgoingRequest("POST", address, [("content-type", "application/json"), *headers], body)
            async with asyncio.timeout(self._options.timeout):
                response = await client.send(request, named=configured is not None)
                status = response.status
                try:
                    if 200 <= status < 300:
                        # Read for the sake of the connection, of a large body only the beginning.
                        await response.gather(LARGEST_RESPONSE)
                        return _Outcome(True, status)
                finally:
                    response.close()
        except (BadUrlError, SecretError, RefusedError) as error:
            return _Outcome(False, None, str(error)[:MOST_ERROR], given_up=True)
        except TimeoutError:
            missing = "complete response" if status else "response"
            return _Outcome(False, status or None, f"no {missing} within {self._options.timeout:g} s")
        except OutboundError as error:
            return _Outcome(False, status or None, str(error)[:MOST_ERROR])
        finally:
            if span is not None:
                span.end(status)
        requested = retry_after(response.header("retry-after"), time.time()) if status in (429, 503) else None
        return _Outcome(False, status, f"the response has status {status}", requested or 0.0, status == 410)

    def _pause(self, delivery: _Delivery, outcome: _Outcome) -> float | None:
        """Return the seconds before the next attempt; None: there is none."""
        options = self._options
        if delivery.age >= options.give_up:
            return None
        growing = options.backoff * 3.0 ** min(delivery.attempt - 1, 30)
        pause = min(options.longest_pause, growing) * random.uniform(0.75, 1.25)  # noqa: S311 (guards nothing)
        return max(pause, min(outcome.pause, options.longest_pause))
