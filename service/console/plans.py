"""The plan of an endpoint's statement on request, without running it."""

from __future__ import annotations

from typing import Any

import psycopg

from rowcall.core.endpoint.call import UncallableError, all_present, call_sql
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.service.console.sources import Sources
from rowcall.service.operations.slow_requests import plan_on

_LONGEST = 200_000
"""Characters of a plan."""


def plan(endpoint: Endpoint, sources: Sources) -> dict[str, Any]:
    """Return the generic plan of the endpoint's statement with all parameters. Raises `Problem`: 409 with the reason if
    there is none, 503 if the database cannot be reached.
    """
    name = (endpoint.options.connection or "").casefold()
    if name and name not in sources.options.main_names:
        raise Problem(409, "this endpoint runs on another connection, where the console does not ask")
    if endpoint.passes_through:
        raise Problem(409, "another service answers this endpoint; it has no statement")
    mask = all_present(endpoint)
    try:
        statement = call_sql(endpoint, mask)
    except UncallableError as error:
        raise Problem(409, str(error)) from None
    if statement.lstrip()[:5].lower() == "call ":
        raise Problem(409, "a procedure has no plan")

    async def explain() -> str:
        async with sources.connector.maintenance_connection() as connection:
            return await plan_on(connection, statement.encode(), mask.bit_count())

    try:
        text = sources.run(explain())
    except psycopg.OperationalError as error:
        raise Problem(503, f"the database cannot be asked: {str(error).strip()}") from None
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise Problem(409, f"PostgreSQL has no plan for it: {reason}") from None
    return {"statement": statement, "plan": text[:_LONGEST]}
