"""Audit trail: record each call when its response begins, and pass the records to a configured command in batches.

Recording never delays a request: records wait in a bounded queue of each worker. If the queue is full, for example
because the database is unavailable, the oldest records are dropped, and their number is logged. Records contain no
values of requests.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import orjson
import psycopg

from rowcall.core.auth.claims import IMPERSONATOR_ID, IMPERSONATOR_NAME, User
from rowcall.core.auth.commands import number_placeholders
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.operations.audit_trail import AuditTrailOptions
from rowcall.service.background import pause
from rowcall.service.database.database import Database
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.protocols import Headers, ObservedProtocol
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext, Step

log = logging.getLogger("rowcall")

CLIENT_GONE = 499
"""Status of a call whose client has disconnected before the response."""
MOST_SHOWN = 200
"""Characters of a path that no endpoint has."""
_NO_CALLER = dict.fromkeys(("userId", "userName", "impersonatorId", "impersonatorName", "scheme", "address"))
LAST_WRITING = 5.0
"""Seconds for writing the remaining records when the service stops."""
_LONGEST_APART = 5.0
"""Seconds after which records that are written one at a time leave the maintenance connection to others."""


def record_call(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that records calls of an endpoint, or None if they are not recorded.

    The step precedes all steps that may refuse a request, so that refused calls are recorded too.
    """
    options = services.options.audit_trail
    if options is None or not options.records(endpoint.options.audit):
        return None
    return _audit_step(options, services, endpoint.name, f"{endpoint.routine.schema}.{endpoint.routine.name}")


def record_path(method: str, services: Services) -> Step | None:
    """Return the step that records requests without an endpoint, by their paths; None if they are not recorded."""
    options = services.options.audit_trail
    if options is None or not options.everything:
        return None
    trail = trail_of(options, services)

    def note(context: RequestContext) -> None:
        _observe(_Call(trail, context, f"{method} {context.scope.path[:MOST_SHOWN]}", None, services))

    return note


def record_signing(services: Services, method: str, path: str) -> tuple[Step, ...]:
    """Return steps that record calls of reserved paths that start, renew or end a session; empty for GET, and if they
    are not recorded.
    """
    options = services.options.audit_trail
    if options is None or not options.signing or method == "GET":
        return ()
    return (_audit_step(options, services, f"{method} {path}", None),)


def _audit_step(options: AuditTrailOptions, services: Services, name: str, routine: str | None) -> Step:
    """Return the step that records calls under this name. routine: its schema and name; None: a reserved path, which
    has none.
    """
    trail = trail_of(options, services)

    def note(context: RequestContext) -> None:
        _observe(_Call(trail, context, name, routine, services))

    return note


def delivery_recorder(services: Services) -> Callable[[str, str, float, int | None], None] | None:
    """Return the function that records attempts to deliver webhooks (`AuditTrail.add_delivery`); None: they are not
    recorded.
    """
    options = services.options.audit_trail
    return None if options is None or not options.everything else trail_of(options, services).add_delivery


def trail_of(options: AuditTrailOptions, services: Services) -> AuditTrail:
    """Return the audit trail of this worker, which all schema snapshots share."""
    return services.host.get_or_create("audit trail", lambda: AuditTrail(options, services.main_database))


class _Call:
    """One call until it is recorded."""

    __slots__ = ("_began", "_name", "_routine", "_services", "_trail", "context")

    def __init__(
        self, trail: AuditTrail, context: RequestContext, name: str, routine: str | None, services: Services
    ) -> None:
        self._trail: AuditTrail | None = trail
        self.context = context
        self._name = name
        self._routine = routine
        self._services = services
        self._began = time.time()

    def record_response(self, status: int) -> None:
        """Record the call, once, with the status of its response."""
        trail, self._trail = self._trail, None
        if trail is None:
            return
        user: User | None = self.context.user
        address = self._services.auth.address(self.context.scope)
        job = getattr(self.context.scope, "job", None)
        identity = self._services.options.auth.identity
        trail.add(
            {
                "at": datetime.datetime.fromtimestamp(self._began, datetime.UTC),
                "endpoint": self._name,
                "job": None if job is None else job.id,
                "message": None,
                "routine": self._routine,
                "userId": None if user is None else user.first(identity.user_id),
                "userName": None if user is None else user.first(identity.user_name),
                "impersonatorId": None if user is None else user.first(IMPERSONATOR_ID),
                "impersonatorName": None if user is None else user.first(IMPERSONATOR_NAME),
                "scheme": None if user is None else user.scheme,
                "address": None if address is None else address.decode(),
                "status": status,
                "milliseconds": round((time.time() - self._began) * 1000, 3),
            }
        )

    def end(self, _context: RequestContext, error: Exception | None) -> None:
        """Record a call whose client has disconnected before the response."""
        if isinstance(error, ClientDisconnectedError):
            self.record_response(CLIENT_GONE)


def _observe(call: _Call) -> None:
    """Record the call when its response begins."""
    call.context.protocol = AuditedProtocol(call, call.context.protocol)
    call.context.at_end(call.end)


class AuditedProtocol(ObservedProtocol):
    """Protocol that passes the status to the audit trail when a response begins."""

    __slots__ = ("_call",)

    def __init__(self, call: _Call, protocol: Any) -> None:
        super().__init__(protocol)
        self._call = call

    def response_empty(self, status: int, headers: Headers) -> None:
        self.inner.response_empty(status, headers)
        self._call.record_response(status)

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        self.inner.response_bytes(status, headers, body)
        self._call.record_response(status)

    def response_str(self, status: int, headers: Headers, body: str) -> None:
        self.inner.response_str(status, headers, body)
        self._call.record_response(status)

    def response_file(self, status: int, headers: Headers, file: str) -> None:
        self.inner.response_file(status, headers, file)
        self._call.record_response(status)

    def response_file_range(self, status: int, headers: Headers, file: str, start: int, end: int) -> None:
        self.inner.response_file_range(status, headers, file, start, end)
        self._call.record_response(status)

    def response_stream(self, status: int, headers: Headers) -> Any:
        stream = self.inner.response_stream(status, headers)
        self._call.record_response(status)
        return stream


class AuditTrail:
    """The queue of records of one worker, and the task that writes them."""

    def __init__(self, options: AuditTrailOptions, database: Database) -> None:
        self._options = options
        self._database = database
        sql, self._takes = number_placeholders(options.command)
        self._sql = sql.encode()
        self._calls: deque[dict[str, object]] = deque()
        self._dropped = 0
        self._apart = 0
        """Number of calls at the head of the queue that the command has refused together, and which are written one at
        a time."""
        self._refused = 0
        """Number of calls that it has refused since the last message, and its last error."""
        self._refusal = ""
        self._writing: asyncio.Task[None] | None = None

    def add(self, call: dict[str, object]) -> None:
        """Add a record to the queue and have it written. If the queue is full, the oldest record is dropped. call: the
        members of the record.
        """
        if len(self._calls) >= self._options.most:
            self._calls.popleft()
            self._dropped += 1
        self._calls.append(call)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write())

    def add_delivery(self, subscriber: str, message: str, began: float, status: int | None) -> None:
        """Add a record of an attempt to deliver a webhook. message: its id. began: seconds since 1970. status: of the
        subscriber's response; None: there is none.
        """
        self.add(
            {
                **_NO_CALLER,
                "at": datetime.datetime.fromtimestamp(began, datetime.UTC),
                "endpoint": f"webhook to {subscriber}",
                "job": None,
                "message": message,
                "routine": None,
                "status": status,
                "milliseconds": round((time.time() - began) * 1000, 3),
            }
        )

    async def _write(self) -> None:
        """After the configured delay, write batches until the queue is empty, and repeat failed ones. After that, the
        next `add` starts a new task."""
        attempt = 0
        await asyncio.sleep(self._options.seconds)
        try:
            while self._calls:
                attempt = 0 if await self._write_batch() else attempt + 1
                if attempt:
                    await asyncio.sleep(pause(attempt))
        finally:
            self._writing = None

    async def _write_batch(self) -> bool:
        """Write the records at the head of the queue; return False if this has to be tried again. If the operator's
        command refuses some of them together, they are written one at a time, so that only those that it refuses are
        lost. Losses are logged."""
        clock = asyncio.get_running_loop().time
        try:
            async with self._database.maintenance_connection() as connection:
                if not self._apart:
                    await self._run_command(connection, min(len(self._calls), self._options.batch))
                end = clock() + _LONGEST_APART
                while self._apart and clock() < end:
                    await self._run_command(connection, 1)
        except (psycopg.OperationalError, OSError) as error:
            log.error("the audit trail cannot be written, %d calls wait: %s", len(self._calls), str(error).strip())
            return False
        self._log_losses()
        return True

    async def _run_command(self, connection: psycopg.AsyncConnection[Any], count: int) -> None:
        """Pass the first `count` records of the queue to the operator's command, and remove them from the queue. If the
        command refuses several records, they stay in the queue, to be passed one at a time. If it refuses a single
        record, that record is lost. Raises `psycopg.OperationalError` and `OSError` if the database is unavailable."""
        text = _json_text([self._calls[number] for number in range(count)])
        dropped = self._dropped
        try:
            await psycopg.AsyncRawCursor(connection).execute(self._sql, [text for _ in self._takes])
        except psycopg.OperationalError:
            raise
        except psycopg.Error as error:
            if count > 1:
                self._apart = count
                return
            self._refused += 1
            self._refusal = str(error).strip()
        # `add` may have dropped the oldest of these calls meanwhile.
        for _ in range(max(0, count - (self._dropped - dropped))):
            self._calls.popleft()
        self._apart = max(0, self._apart - 1) if self._calls else 0

    def _log_losses(self) -> None:
        """Log how many records are lost since the last time."""
        if self._refused:
            log.error("Service:AuditTrail:Command refuses %d calls, which are lost: %s", self._refused, self._refusal)
            self._refused = 0
        if self._dropped:
            log.error("%d calls are missing in the audit trail: too many waited to be written", self._dropped)
            self._dropped = 0

    async def finish(self) -> None:
        """Write the remaining records when the service stops, for at most `LAST_WRITING` seconds, and only until a
        batch fails. Those that are left are lost, which is logged."""
        if self._writing is not None:
            self._writing.cancel()
        try:
            async with asyncio.timeout(LAST_WRITING):
                while self._calls and await self._write_batch():
                    pass
        except TimeoutError:
            pass
        self._log_losses()
        if self._calls:
            log.error("%d calls are missing in the audit trail: the service has ended before", len(self._calls))


def _json_text(records: list[dict[str, object]]) -> str:
    """Return records as a JSON array, with `\\0` in place of NUL, which a path may have and PostgreSQL does not read
    from JSON.
    """
    text = orjson.dumps(records).decode()
    if "\\u0000" not in text:
        return text
    return orjson.dumps([{name: _without_nul(value) for name, value in record.items()} for record in records]).decode()


def _without_nul(value: object) -> object:
    return value.replace("\0", "\\0") if isinstance(value, str) else value
