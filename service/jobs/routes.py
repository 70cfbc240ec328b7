"""The addresses of jobs: `GET` shows one to its owner, `DELETE` cancels it."""

from __future__ import annotations

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
        own = partial(own_call, services=services)
        self._show = own("show job", _SHOW, 1)
        self._cancel = own("cancel job", _CANCEL, 1)

    async def show(self, context: RequestContext) -> None:
        """Respond with the state of a job, and its result if it is done. Raises `Problem` 404."""
        members = await self._read(context)
        headers = [("content-type", "application/json"), ("cache-control", "no-store")]
        if members["state"] not in _ENDED:
            headers.append(("retry-after", "1"))
        context.protocol.response_bytes(200, headers, orjson.dumps(members))

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


def _result(content_type: str, text: bytes) -> Any:
    """Return the result of a routine: JSON, or a text."""
    if text == b"-":
        return None
    value = bytes.fromhex(text.decode())
    if "json" in content_type.partition(";")[0].lower() and value:
        return exact_json.parse(value)
    return value.decode(errors="replace")
