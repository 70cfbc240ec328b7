"""The step that runs a request with an `Idempotency-Key`, or a webhook, once, and repeats its result.

The key is recorded, and the result stored, in the transaction of the routine. Whatever happens to the service or to a
connection, either all of it is committed or nothing. A procedure or file that commits by itself is recorded before it
runs and marked as finished afterwards: a repetition never runs it again, but may find its outcome unknown.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeGuard

import psycopg

from rowcall.core.auth.claims import owner_of
from rowcall.core.catalogue.catalog import RoutineKind
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem, UnavailableError
from rowcall.core.formats.exports import export_format
from rowcall.ext.driver.execution import Execution, Loss, finished_execution
from rowcall.service.background import Background, pause
from rowcall.service.database.call import Call
from rowcall.service.database.preamble import Values
from rowcall.service.idempotency.key import digest_of
from rowcall.service.pipeline.services import Services
from rowcall.service.pipeline.sql_call import sql_call
from rowcall.service.pipeline.stored_results import open_result, result_sealer
from rowcall.service.request_context.header_values import read_header_lines
from rowcall.service.request_context.protocols import HeadersProtocol
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting
from rowcall.service.request_context.surroundings import with_tenant, zone_of
from rowcall.service.request_context.trace import trace_of

log = logging.getLogger("rowcall")

REPLAYED = ("idempotency-replayed", "true")
"""Header of a response that was stored."""
_SEPARATOR = b"\0"
_BEGIN = (
    "select state, encode(body, 'hex'), body_rows::text, is_null::text, "
    "(extract(epoch from statement_timestamp()) + $4::float8)::float8::text "
    "from rowcall.begin_request($1, $2, $3, $4::float8)"
)
# The time in the result of `_BEGIN` is slightly before the record expires. Until then the record is that of this
# request; later it may be that of a newer request with the same key.
_OWN = "where extract(epoch from clock_timestamp()) < $3::float8"
_FINISH = f"select rowcall.finish_request($1, $2, $4, $5::bigint, $6::boolean) {_OWN}"
_FORGET = f"select rowcall.forget_request($1, $2) {_OWN}"
_SENDER = b"webhook"
"""Owner of the keys of webhooks, which is none of users."""
_LATER = (("retry-after", "1"),)
_BODY = 4
"""Number of the parameter of `_FINISH` that is sent in binary."""
_ATTEMPTS = 8
"""Attempts to change a record outside of the pool, in about ten seconds."""

FindKey = Callable[[RequestContext], str | None]
"""Returns the key of a request, or None if it has none. Raises `Problem`."""


class _State(NamedTuple):
    """A recorded request. word: `new`, `running`, `finished`, or `other` for the key of another request. expires: of
    a new one, in seconds since 1970. result: of a finished one.
    """

    word: str
    expires: bytes
    result: Execution | None


def run_once(
    endpoint: Endpoint,
    call: Call,
    services: Services,
    plain: tuple[Step, ...],
    find_key: FindKey,
    count: Callable[[str], None],
    *,
    set_by_sql: bool,
    check: Step | None,
) -> Step:
    """Return the step that runs requests with a key, once for each key, and enters `plain` for requests without one.
    The step raises `Problem`: 409 while an equal request is running, or if a procedure or file that commits by itself
    may have taken effect in part or its outcome is unknown; 422 if the key belongs to another request; and the errors
    of `find_key` and of the routine.

    count: called with the state of each request with a key: `new`, `running`, `finished`, or `other` for the key of
    another request. set_by_sql: SQL sets the status of the response, so the number of rows is that of the first
    statement. check: raises `Problem` if the call has found a precondition false; then it is rolled back with its key.
    None: there is no precondition.
    """
    once = _RecordedRequests(endpoint, call, services, count, set_by_sql=set_by_sql, check=check)
    run = once.run_committing if endpoint.routine.may_commit else once.run

    def step(context: RequestContext) -> Waiting:
        if _is_replayed(context):
            return None
        key = find_key(context)
        if key is not None:
            return run(context, key)
        context.enter(plain)
        return None

    return step


def find_result(
    endpoint: Endpoint, call: Call, services: Services, find_key: FindKey, count: Callable[[str], None]
) -> Step:
    """Return the step that looks up the key of a request. If a result is stored, the step makes it that of the request,
    and steps in `unless_replayed` and that of `run_once` do nothing. It records nothing, and raises `Problem` 409 and
    422 as `run_once` does; parameters as there.
    """
    once = _RecordedRequests(endpoint, call, services, count)

    def step(context: RequestContext) -> Waiting:
        key = find_key(context)
        return None if key is None else once.find(context, key)

    return step


def unless_replayed(step: Step) -> Step:
    """Return a step that runs `step` unless `find_result` has found the result of the request."""

    def run_unless_replayed(context: RequestContext) -> Waiting:
        return None if _is_replayed(context) else step(context)

    return run_unless_replayed


def _is_replayed(context: RequestContext) -> bool:
    """Return whether the request has its result already, ahead of the step that runs the routine."""
    return context.execution is not None


class _RecordedRequests:
    """Runs the requests of one endpoint once for each key."""

    def __init__(
        self,
        endpoint: Endpoint,
        call: Call,
        services: Services,
        count: Callable[[str], None],
        *,
        set_by_sql: bool = False,
        check: Step | None = None,
    ) -> None:
        self._count = count
        idempotency = endpoint.options.idempotency
        # Senders may add to a webhook when they repeat it, so only its key is compared.
        self._of_webhook = endpoint.options.webhook is not None
        self._named = "this webhook" if self._of_webhook else "a request with this Idempotency-Key"
        self._tenant = endpoint.options.tenant
        self._time_zone = endpoint.options.time_zone
        self._format = export_format(endpoint)
        stored = services.options.webhook_lifetime if idempotency is None else idempotency.seconds
        self._database = services.database
        self._keys = services.auth.keys
        self._seal = result_sealer(endpoint, services)
        self._call = call
        self._seconds = str(stored).encode()
        self._set_by_sql = set_by_sql
        self._check = check
        self._has_version = endpoint.version_index is not None
        self._commits = endpoint.routine.may_commit
        self._kind = "file" if endpoint.routine.kind is RoutineKind.FILE else "procedure"
        own = partial(sql_call, services=services, sensitive=endpoint.options.sensitive)
        self._begin = own(f"{endpoint.name} idempotency begin", _BEGIN, 4)
        self._forget = own(f"{endpoint.name} idempotency forget", _FORGET, 3, reads=False)
        self._finish = own(f"{endpoint.name} idempotency finish", _FINISH, 6, binary=(_BODY - 1,), reads=False)
        self._name = endpoint.name
        self._background = Background()

    async def find(self, context: RequestContext, key: str) -> None:
        """Take the stored result if there is one. Raises `Problem` as `run` does for a known key. A new key stays
        unknown.
        """
        names, values = self._values(context, key)
        async with self._database.transaction(self._begin, context) as transaction:
            state = _state(await transaction.begin_with(self._begin, values))
            is_new = state.word == "new"
            await transaction.commit((self._forget, [*names, state.expires]) if is_new else None)
        if not is_new:
            await self._replay_or_refuse(context, state, names)

    async def run(self, context: RequestContext, key: str) -> None:
        """Run the routine in the transaction that records the key, or take the stored result. Raises `Problem`: 409
        while an equal request is running, 422 if the key belongs to another request, and the errors of the routine.
        """
        names, values = self._values(context, key)
        async with self._database.transaction(self._call, context) as transaction:
            state = _state(await transaction.begin_with(self._begin, values))
            if state.word != "new":
                # The key is free again before the response is sent, so that the next repetition finds it so.
                await transaction.commit()
            if await self._replay_or_refuse(context, state, names):
                return
            await transaction.call()
            if self._check is not None:
                try:
                    self._check(context)
                except Problem:
                    await transaction.roll_back()  # Then the key is free before the response is sent.
                    raise
            await transaction.commit((self._finish, [*names, state.expires, *self._result(context.execution, names)]))

    async def run_committing(self, context: RequestContext, key: str) -> None:
        """Run a procedure or file that commits by itself, or take the stored result. The key is recorded in a
        transaction before the call, and the result in one after it. If nothing is permanent (for example because the
        pool has no room, a setting ahead of the call fails, or a file fails before its first commit), the record of the
        key is deleted; if the result cannot be stored because the service is unavailable, that is done a little later.
        Raises `Problem` as `run` does; 409 also if the outcome of an earlier run is unknown, or if the call has failed
        and may have taken effect in part.
        """
        names, values = self._values(context, key)
        async with self._database.transaction(self._begin, context) as transaction:
            state = _state(await transaction.begin_with(self._begin, values))
            await transaction.commit()
        if await self._replay_or_refuse(context, state, names):
            return
        names.append(state.expires)
        context.execution = None
        try:
            await self._database.run_alone(self._call, context)
        except BaseException as error:
            execution = context.execution
            if not _has_begun(execution) or self._is_rolled_back(execution):
                self._background.start(self._run_later(_FORGET, names))
            elif isinstance(error, Problem) and execution.error is not None:
                raise Problem(
                    409,
                    f"the {self._kind} has failed and may have taken effect in part; its key cannot be used again: "
                    "check the effect, and use another key if the request is still needed",
                ) from None
            raise
        result = [*names, *self._result(context.execution, names)]
        try:
            async with self._database.transaction(self._finish, context) as transaction:
                await transaction.begin_with(self._finish, result)
                await transaction.commit()
        except UnavailableError:
            # The call has taken effect, so its response is sent all the same.
            self._background.start(self._run_later(_FINISH, result))

    def _is_rolled_back(self, execution: Execution) -> bool:
        """Return whether a failed run of a file has no effect, because it failed before its first commit. A procedure
        may have committed before it failed."""
        failed = execution.error is not None and execution.loss == Loss.NOT_LOST
        return failed and not execution.committed and not self._call.commits

    async def _run_later(self, sql: str, values: Values) -> None:
        """Run `_FORGET` or `_FINISH` on a maintenance connection, which needs no room in the pool. After errors of the
        database, repeat it for about ten seconds, then log a warning and give up. values: parameters of the statement.
        """
        typed = [value if value is None or index == _BODY else value.decode() for index, value in enumerate(values, 1)]
        reason = ""
        for attempt in range(_ATTEMPTS):
            try:
                async with self._database.maintenance_connection() as connection:
                    await psycopg.AsyncRawCursor(connection).execute(sql, typed)
            except psycopg.Error as error:
                reason = " ".join(str(error).split())
                await asyncio.sleep(pause(attempt))
            else:
                return
        log.warning(
            "%s: a key stays in use until it expires, as the database cannot be reached: %s", self._name, reason
        )

    def _values(self, context: RequestContext, key: str) -> tuple[Values, Values]:
        """Return the parameters of the SQL statements as two lists: owner (with the tenant of the request) and key; and
        owner, key, digest of the request, and seconds for which the key is stored."""
        owner = _SENDER if self._of_webhook else owner_of(context.user).encode()
        names: Values = [with_tenant(owner, self._tenant, context), key.encode()]
        if self._of_webhook:
            return names, [*names, b"\\x", self._seconds]
        representation = f"{self._format} {zone_of(self._time_zone, context) or ''}".strip()
        if self._has_version:
            headers = context.scope.headers
            sent = ((name, read_header_lines(headers, name)) for name in ("if-match", "if-none-match"))
            conditions = (name + ",".join(lines) for name, lines in sent if lines)
            representation = "\n".join((representation, *conditions))
        return names, [*names, digest_of(context, representation), self._seconds]

    async def _replay_or_refuse(self, context: RequestContext, state: _State, names: Values) -> bool:
        """Count the state of the key. If the response to an equal request is stored, make it the result of this
        request, with the header `Idempotency-Replayed`, and return True. Return False if the key is new.

        names: owner and key. Raises `Problem`: 409 while an equal request is running, 422 if the key belongs to another
        request, 503 if the stored response cannot be decrypted.
        """
        self._count(state.word)
        if state.result is not None:
            stored = state.result
            body = await open_result(self._keys, stored.body or b"", _record(names))
            context.execution = finished_execution(body, stored.rows, stored.is_null)
            if (trace := trace_of(context.protocol)) is not None:
                trace.record_replay()
            context.protocol = HeadersProtocol(context.protocol, [REPLAYED])
            return True
        if state.word == "other":
            raise Problem(
                422, "this Idempotency-Key belongs to a request with another address, body or format; use a new key"
            )
        if state.word == "running":
            unknown = ", or its outcome is not known" if self._commits else ""
            detail = f"{self._named} is still running{unknown}; repeat it later"
            raise Problem(409, detail, headers=_LATER)
        return False

    def _result(self, execution: Execution | None, names: Values) -> Values:
        """Return body, number of rows, and whether the result is NULL, as values to store; NULLs without an execution.
        names: begin with owner and key.
        """
        if execution is None:
            return [None, None, None]
        rows, is_null = execution.rows, execution.is_null
        if self._set_by_sql:
            rows, is_null = execution.first_rows, execution.first_null
        body = execution.body or b""
        stored = body if self._seal is None else self._seal(body, _record(names))
        return [stored, b"%d" % rows, b"true" if is_null else b"false"]


def _record(names: Values) -> bytes:
    """Return what identifies a recorded request. names: begin with owner and key."""
    return b"\0".join(name or b"" for name in names[:2])


def _state(execution: Execution) -> _State:
    """Return the recorded request in the result of `begin_request`."""
    word, body, rows, is_null, expires = (execution.body or b"").split(_SEPARATOR)
    if word != b"finished":
        return _State(word.decode(), expires, None)
    result = finished_execution(bytes.fromhex(body.decode()), int(rows or 0), is_null == b"true")
    return _State(word.decode(), expires, result)


def _has_begun(execution: Execution | None) -> TypeGuard[Execution]:
    """Return whether a run may have had effects. execution: None if none was sent."""
    return execution is not None and execution.loss != Loss.NOT_STARTED and not execution.failed_ahead
