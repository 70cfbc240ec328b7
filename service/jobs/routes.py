"""The addresses of jobs: `GET` shows one to its owner, `DELETE` cancels it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import orjson

from rowcall.core.auth.claims import owner_of
from rowcall.core.endpoint.access import ANYONE
from rowcall.core.errors.problems import Problem
from rowcall.core.jobs.options import JobOptions
from rowcall.core.text import exact_json
from rowcall.service.pipeline.fixed_route import FixedRoute
from rowcall.service.pipeline.own_call import own_call
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext

_ID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_SHOW = (
    "select owner, about, coalesce(content_type, ''), coalesce(encode(result, 'hex'), '-') "
    "from rowcall.show_job($1::uuid)"
)
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


def job_routes(options: JobOptions, services: Services) -> Iterator[FixedRoute]:
    """Yield the routes. Callers see their own jobs; others do not learn that a job exists."""
    jobs = _Jobs(options, services)
    path = f"{options.path.rstrip('/')}/{{id}}"
    authenticate = services.auth.sessions.authenticate
    yield FixedRoute("GET", path, ANYONE, (authenticate, jobs.show))
    yield FixedRoute("DELETE", path, ANYONE, (authenticate, jobs.cancel))


class _Jobs:
    def __init__(self, options: JobOptions, services: Services) -> None:
        self._roles = frozenset(options.roles)
        self._database = services.main_database
        self._drain_state = services.drain_state
        own = partial(own_call, services=services)
        self._show = own("show job", _SHOW, 1)
        self._cancel = own("cancel job", _CANCEL, 1)

    async def show(self, context: RequestContext) -> None:
        """Respond with the state of a job, and its result if it is done; with events of each change if the client
        accepts them. Raises `Problem` 404.
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
        """Send an event for each change until the job has ended. Its id is the state: browsers connect again after the
        end, and get 204, after which they stop.
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
                if data and not _arrives(transport.send_bytes(data)):
                    return
                if members["state"] in _ENDED or self._drain_state.stopping:
                    return
                await asyncio.wait({gone}, timeout=LOOK_EVERY)
                members = await self._read(context)
        finally:
            gone.cancel()
            # Granian ends the body when the transport is released.
            close = getattr(transport, "close", None)
            if close is not None:
                close()

    async def cancel(self, context: RequestContext) -> None:
        """Cancel a job: 200 if it is cancelled, 202 if it is running and will be. Raises `Problem` 404 and 409."""
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
        if owner.decode() != owner_of(user) and self._roles.isdisjoint(roles):
            raise missing
        members: dict[str, Any] = exact_json.parse(about)
        if members["state"] == "done":
            members["result"] = _result(content_type.decode(), result)
        return members


def _arrives(sent: object) -> bool:
    """Whether the client is still there, by the result of sending."""
    return sent is not False and type(sent).__name__ != _CLOSED


def _result(content_type: str, text: bytes) -> Any:
    """Return the result of a routine: JSON, or a text."""
    if text == b"-":
        return None
    value = bytes.fromhex(text.decode())
    if "json" in content_type.partition(";")[0].lower() and value:
        return exact_json.parse(value)
    return value.decode(errors="replace")
