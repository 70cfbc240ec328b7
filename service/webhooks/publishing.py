"""The command that publishes the result of a routine, in the transaction of the routine."""

from __future__ import annotations

from collections.abc import Callable

from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.core.endpoint.response_set_by_sql import split_result
from rowcall.service.database.call import Call
from rowcall.service.database.database import Database
from rowcall.service.database.preamble import Values
from rowcall.service.pipeline.services import Services
from rowcall.service.pipeline.sql_call import sql_call
from rowcall.service.request_context.request_context import RequestContext, Step

Publish = tuple[Call, Callable[[RequestContext], Values]]
"""The command, and the function that returns its values for a request that has run."""


def publish_result(endpoint: Endpoint, services: Services) -> Publish | None:
    """Return the command that publishes results; None if they are not published."""
    publishing = endpoint.options.publishing
    if publishing is None:
        return None
    is_json = endpoint.shape.content_type == "application/json" and endpoint.options.content_type is None
    payload = "$2::jsonb" if is_json and not endpoint.options.raw else "to_jsonb($2::text)"
    sql = (
        "select rowcall.publish($1, payload, case when jsonb_typeof(payload) = 'object' then payload ->> $3 end) "
        f"from (select coalesce({payload}, 'null') as payload) p"
    )
    call = sql_call(
        f"{endpoint.name} publish", sql, 3, services, reads=False, sensitive=endpoint.options.sensitive
    )  # fmt: skip
    topic, key = publishing.topic.encode(), key_member(endpoint)
    named = None if key is None else key.encode()
    empty = endpoint.shape.path is ResultPath.VOID
    # A job has no status, so that its result is the body alone.
    set_by_sql = endpoint.sets_response and not services.job_runs

    def values(context: RequestContext) -> Values:
        execution = context.execution
        body = None if execution is None or execution.is_null or empty else execution.body
        if body and set_by_sql:
            body, _, _ = split_result(endpoint, body)
        return [topic, body or None, named]

    return call, values


async def run_and_publish(database: Database, call: Call, check: Step | None, context: RequestContext) -> None:
    """Run a call whose result is published, in one transaction. Raises `Problem` if the call or the commit fails, and
    the errors of `check`; then nothing is published.

    check: raises `Problem` if the call has found a precondition false; None: there is no precondition.
    """
    async with database.transaction(call, context) as transaction:
        await transaction.call()
        if check is not None:
            check(context)
        await transaction.commit()


def key_member(endpoint: Endpoint) -> str | None:
    """Return the name of the member of a result that is the key of its message; None: messages have no key.

    The annotation may name a column as in the database or as in responses; then the name in responses is returned. If
    no column has this name, as in results that are JSON, the name is returned as the annotation has it.
    """
    publishing = endpoint.options.publishing
    if publishing is None or publishing.key is None:
        return None
    key = publishing.key.casefold()
    for column in endpoint.shape.columns:
        if key in column.names:
            return column.key.decode()
    return publishing.key
