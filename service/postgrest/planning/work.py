"""What a planned request asks of the database, and how its result becomes the response."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from rowcall.core.postgrest.negotiation import Negotiated
from rowcall.core.postgrest.response_headers import VARY
from rowcall.core.postgrest.sql.output import Statement
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.postgrest.result import Result

Headers = list[tuple[str, str]]


class Response(NamedTuple):
    """A response. Header names are in lower case. body: None: there is none."""

    status: int
    headers: Headers
    body: bytes | None = None


class RunOptions(NamedTuple):
    """How work runs, which does not depend on values of the request.

    read_only: access mode. check: result → None; if it raises `ApiError`, the transaction is rolled back. hoisted:
    settings of a function that apply to the transaction. isolation: of the transaction, None for the default.
    """

    read_only: bool
    check: Callable[[Result], None] | None = None
    hoisted: tuple[tuple[str, str], ...] = ()
    isolation: str | None = None
    raw: bool = False
    """The result is rows of one text, such as an execution plan; they are the body of `Result`."""
    repeatable: bool = False
    """Running it twice does no harm, so that it may share a connection with other requests."""


@dataclass(slots=True)
class Work:
    """One transaction and its response.

    statement: the main statement. respond: result → response, or an awaitable of it if that takes long; raises
    `ApiError`. estimate: a statement whose first column is an execution plan as JSON, run before the main statement.
    pace: record of the durations of the main statement, once it has begun; None: the statement may not be pipelined.
    """

    statement: Statement
    respond: Callable[[Result], Response | Awaitable[Response]]
    options: RunOptions
    estimate: Statement | None = None
    pace: PoolAssignment | None = None


def explain_instead(work: Work, negotiated: Negotiated, headers: Headers) -> Work:
    """Return `work`; if the client has requested the execution plan, return work that explains its statement instead.

    negotiated: contains whether the plan is requested, and its format. headers: of the response with the plan, in
    addition to its content type.
    """
    media = negotiated.plan
    if media is None:
        return work
    settings = [f"FORMAT {media.plan_format.upper()}", *(f"{option.upper()} true" for option in media.plan_options)]
    statement = Statement(f"EXPLAIN ({', '.join(settings)}) {work.statement.sql}", work.statement.parameters)

    def respond(result: Result) -> Response:
        return Response(200, [("content-type", negotiated.content_type), *headers, VARY], result.body)

    return Work(statement, respond, work.options._replace(check=None, raw=True), work.estimate)
