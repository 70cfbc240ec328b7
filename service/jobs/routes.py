"""The routes of jobs: `GET` shows a job to its owner, or lists the owner's jobs; `DELETE` cancels a job."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Collection, Iterator
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

import orjson

from rowcall.core.auth.claims import ANONYMOUS
from rowcall.core.endpoint.access import ANYONE, Access
from rowcall.core.endpoint.capabilities import Tenant
from rowcall.core.errors.problems import Problem
from rowcall.core.jobs.options import JobOptions
from rowcall.core.text import array_literal, exact_json, json_text, query_text
from rowcall.service.jobs.ownership import job_owners
from rowcall.service.pipeline.fixed_route import FixedRoute, admission
from rowcall.service.pipeline.services import Services
from rowcall.service.pipeline.sql_call import sql_call
from rowcall.service.pipeline.stored_results import open_result
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext

log = logging.getLogger("rowcall.jobs")

_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_SHOW = (
    "select owner, about, coalesce(content_type, ''), coalesce(encode(result, 'hex'), '-') "
    "from rowcall.show_job($1::uuid)"
)
_LIST = "select about from rowcall.list_jobs_of($1::text[], $2, $3, $4, $5::uuid, $6::int)"
_CANCEL = "select rowcall.cancel_job($1::uuid)"
_EVENTS = "text/event-stream"
_EVENT_HEADERS = [
    ("content-type", _EVENTS),
    ("cache-control", "no-store"),
    # nginx would buffer events and deliver them late.
    ("x-accel-buffering", "no"),
]
LOOK_EVERY = 1.0
"""Seconds between two looks at a job whose events are read."""
HEARTBEAT = 15
"""Looks without a change after which a comment shows whether the client is still there."""
_CLOSED = "PyErrAwaitable"
"""Type that Granian returns for data to a disconnected client. It has no importable name."""
_ENDED = ("done", "failed", "cancelled")
"""States of a job that has ended."""
_STATES = ("waiting", "running", *_ENDED)
MOST_LISTED = 500
"""Maximum number of jobs on a page."""


class _Filters(NamedTuple):
    """The filters and the page of a list of jobs. The names of the fields are those of query parameters. None: the
    filter is off.
    """

    state: str | None = None
    queue: str | None = None
    endpoint: str | None = None
    before: str | None = None
    """The id of the last job of the page before."""
    limit: int = 50

    def next_page_target(self, path: str, last: bytes) -> str:
        """Return path and query of the next page. path: of the list. last: the last job of this page, as JSON."""
        named = self._replace(before=orjson.loads(last)["id"])._asdict()
        return f"{path}?{urlencode({name: value for name, value in named.items() if value is not None})}"


def _filters(query: str) -> _Filters:
    """Parse the query string of a list. Raises `Problem` 400 for an unknown parameter or an invalid value."""
    try:
        values = dict(query_text.pairs(query))
    except query_text.QueryTextError as error:
        raise Problem(400, str(error)) from None
    for name in values:
        if name not in _Filters._fields:
            raise Problem(400, f"{name!r} is no filter of jobs; they are {', '.join(_Filters._fields)}")
    state, before, limit = (values.get(name) for name in ("state", "before", "limit"))
    if state is not None and state not in _STATES:
        raise Problem(400, f"state {state!r} is none of {', '.join(_STATES)}")
    if before is not None and not _ID.fullmatch(before):
        raise Problem(400, f"before {before!r} is no id of a job")
    if limit is not None and not (
        limit.isascii() and limit.isdigit() and len(limit) < 10 and 0 < int(limit) <= MOST_LISTED
    ):
        raise Problem(400, f"limit {limit!r} is no number from 1 to {MOST_LISTED}")
    return _Filters(state, values.get("queue"), values.get("endpoint"), before, int(limit or 50))


def job_routes(options: JobOptions, services: Services, tenants: Collection[Tenant] = ()) -> Iterator[FixedRoute]:
    """Yield the routes that show, list and cancel jobs. A caller sees their own jobs of the tenant that the request
    has; a caller with one of the roles in the options sees all jobs. For every other caller, a job does not exist. The
    job of an anonymous caller is shown to every caller who knows its id, and is on no list but that of these roles.

    tenants: where the endpoints with jobs take their tenants from."""
    jobs = _Jobs(options, services, tenants)
    path = f"{options.path.rstrip('/')}/{{id}}"
    authenticate = services.auth.sessions.authenticate
    yield FixedRoute("GET", path, ANYONE, (authenticate, jobs.show))
    list_access = Access()
    admitted = admission(f"{options.path} is", list_access, services.options.auth.schemes.challenge)
    yield FixedRoute("GET", options.path.rstrip("/"), list_access, (authenticate, *admitted, jobs.list))
    yield FixedRoute("DELETE", path, ANYONE, (authenticate, jobs.cancel))


class _Jobs:
    """The steps of the routes."""

    def __init__(self, options: JobOptions, services: Services, tenants: Collection[Tenant]) -> None:
        """tenants: as for `job_routes`."""
        self._tenants = tenants
        self._roles = frozenset(options.roles)
        self._database = services.main_database
        self._keys = services.auth.keys
        self._drain_state = services.drain_state
        own = partial(sql_call, services=services)
        self._show = own("show job", _SHOW, 1)
        self._cancel = own("cancel job", _CANCEL, 1)
        self._list = own("list jobs", _LIST, 6)

    async def list(self, context: RequestContext) -> None:
        """Respond with the jobs of the caller, the newest first; with all jobs if the caller has one of the roles.

        Raises `Problem` 400 for an invalid query string.
        """
        filters = _filters(context.scope.query_string)
        user = context.user
        owners = None
        if self._roles.isdisjoint(user.roles):
            names = [owner.decode(errors="surrogateescape") for owner in job_owners(self._tenants, context)]
            owners = array_literal.literal([*names], quoted=True).encode(errors="surrogateescape")
        async with self._database.transaction(self._list, context) as transaction:
            values = [None if value is None else value.encode() for value in filters[:-1]]
            execution = await transaction.begin_with(self._list, [owners, *values, str(filters.limit + 1).encode()])
            await transaction.commit()
        rows = (execution.body or b"").split(b"\n") if execution.body else []
        headers = [("content-type", "application/json"), ("cache-control", "no-store")]
        if len(rows) > filters.limit:
            del rows[filters.limit :]
            headers.append(("link", f'<{filters.next_page_target(context.scope.path, rows[-1])}>; rel="next"'))
        context.protocol.response_bytes(200, headers, b"[%s]" % b",".join(rows))

    async def show(self, context: RequestContext) -> None:
        """Respond with the state of a job, and its result if it is done; with events of each change if the client
        accepts them. Raises `Problem` 404 if the caller has no such job.
        """
        members = await self._read(context)
        if _EVENTS in (context.scope.headers.get("accept") or ""):
            await self._follow(context, members)
            return
        headers = [("content-type", "application/json"), ("cache-control", "no-store")]
        if members["state"] not in _ENDED:
            headers.append(("retry-after", "1"))
        context.protocol.response_bytes(200, headers, orjson.dumps(members))

    async def _follow(self, context: RequestContext, members: dict[str, Any]) -> None:
        """Send an event with the job at once and after each change, until the job has ended or cannot be read, the
        worker drains, or the client has disconnected. The id of an event is the state of the job. A browser connects
        again after the end, with the last id. If that is the state of an ended job, the response is 204, so that the
        browser stops.

        members: of the job at the beginning, as `show` responds with them.
        """
        if context.scope.headers.get("last-event-id") in _ENDED and members["state"] in _ENDED:
            context.protocol.response_empty(204, [("cache-control", "no-store")])
            return
        gone = asyncio.ensure_future(context.protocol.client_disconnect())
        transport = context.protocol.response_stream(200, _EVENT_HEADERS)
        sent, same = b"", 0
        try:
            while not gone.done():
                text = orjson.dumps(members)
                same = 0 if text != sent else same + 1
                data = b""
                if not same:
                    data = b"event: job\nid: %s\ndata: %s\n\n" % (members["state"].encode(), text)
                elif same % HEARTBEAT == 0:
                    data = b":\n\n"
                sent = text
                if data and not _is_connected(transport.send_bytes(data)):
                    return
                if members["state"] in _ENDED or self._drain_state.stopping:
                    return
                await asyncio.wait({gone}, timeout=LOOK_EVERY)
                try:
                    members = await self._read(context)
                except ClientDisconnectedError:
                    return
                except Problem as problem:
                    # The response has begun: the client learns the reason when it connects again.
                    log.warning(
                        "%s: the events of a job end, because it cannot be read: %s",
                        context.scope.path,
                        problem.detail or problem.title,
                    )
                    return
        finally:
            gone.cancel()
            # Granian ends the body when the transport is released.
            close = getattr(transport, "close", None)
            if close is not None:
                close()

    async def cancel(self, context: RequestContext) -> None:
        """Cancel a job: 200 if it is cancelled now or was before, 202 if it is running and will be. Raises `Problem`:
        404 if the caller has no such job, 409 if it is done or has failed."""
        members = await self._read(context)
        async with self._database.transaction(self._cancel, context) as transaction:
            execution = await transaction.begin_with(self._cancel, [members["id"].encode()])
            await transaction.commit()
        state = (execution.body or b"").decode()
        if state in ("done", "failed"):
            raise Problem(409, f"the job is {state} already")
        status = 200 if state == "cancelled" else 202
        body = orjson.dumps({"id": members["id"], "state": state})
        context.protocol.response_bytes(status, [("content-type", "application/json")], body)

    async def _read(self, context: RequestContext) -> dict[str, Any]:
        """Read the job with the id in the path, and return its members as in the response, with the result if it is
        done. Raises `Problem`: 404 if the caller has no such job, 503 if the result cannot be decrypted.
        """
        path: str = context.scope.path
        number = path.rpartition("/")[2].lower()
        missing = Problem(404, "there is no such job")
        if not _ID.fullmatch(number):
            raise missing
        async with self._database.transaction(self._show, context) as transaction:
            execution = await transaction.begin_with(self._show, [number.encode()])
            await transaction.commit()
        if not execution.body:
            raise missing
        owner, about, content_type, result = execution.body.split(b"\0")
        user = context.user
        roles = frozenset() if user is None else user.roles
        allowed = (ANONYMOUS.encode(), *job_owners(self._tenants, context))
        if owner not in allowed and self._roles.isdisjoint(roles):
            raise missing
        members: dict[str, Any] = exact_json.parse(about)
        if members["state"] == "done":
            stored = None if result == b"-" else bytes.fromhex(result.decode())
            body = None if stored is None else await open_result(self._keys, stored, number.encode())
            members["result"] = _result(content_type.decode(), body)
        return members


def _is_connected(sent: object) -> bool:
    """Return whether the client was still connected when data was sent. sent: the result of `send_bytes`."""
    return sent is not False and type(sent).__name__ != _CLOSED


def _result(content_type: str, value: bytes | None) -> Any:
    """Return the result of a routine: the parsed value if the content type is JSON, else a text; None if it has no
    result. JSON that is invalid or nested too deeply is a text.
    """
    if value is None:
        return None
    if json_text.is_json(content_type) and value:
        with contextlib.suppress(ValueError):
            return exact_json.parse(value)
    return value.decode(errors="replace")
