"""Parameters that an SQL expression of the comment fills: `_token = select …` (execution-17 to execution-19).

The statements run in sequence, in the order of the comment and on one connection, so that a later one sees the values
and session effects of an earlier one. A request cannot supply such a value: one that it sends is dropped after binding.
The call itself follows with its own settings; the statements do not see these, and no error policy applies to their
errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.resolved_parameters import (
    ResolvedParameter,
    metadata_parameter,
    resolved_parameters,
    unsupplied_parameters,
)
from rowcall.core.errors.error_policy import ErrorPolicy
from rowcall.ext.rendering.rows import Renderer
from rowcall.service.database.call import Call
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.database.transactions.shared_session import SharedSession
from rowcall.service.request_context.arguments import record_nulls, remove_argument, set_argument
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response.headers import argument_text

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services


def discard_supplied_values(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that drops values which a request supplies for parameters that only the service fills: resolved
    parameters, and the one for the metadata of uploads. None: there are no such parameters."""
    targets = unsupplied_parameters(endpoint)
    if not targets:
        return None
    unfilled = _unfilled_metadata(endpoint, services)

    def discard(context: RequestContext) -> None:
        for target in targets:
            remove_argument(context, target)
        if unfilled is not None:
            set_argument(context, unfilled, None)
        context.has_null = None in context.arguments

    return discard


def _unfilled_metadata(endpoint: Endpoint, services: Services) -> int | None:
    """Return the index of the parameter for the metadata of uploads if it is NULL, because the files are forwarded to
    another service and it has no default; else None."""
    forwarded = services.options.outbound.proxy.forward_uploads and endpoint.options.proxy is not None
    index = metadata_parameter(endpoint)
    if not forwarded or endpoint.passes_through or index is None or endpoint.parameters[index].has_default:
        return None
    return index


def resolve(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that runs the statements and sets their parameters, or None if the comment has no such
    expression.
    """
    statements = [_Statement(endpoint, item, services) for item in resolved_parameters(endpoint)]
    if not statements:
        return None
    database = services.database
    pending = endpoint.outgoing.pending

    async def fill(context: RequestContext) -> None:
        async with database.shared_session() as calls:
            for statement in statements:
                set_argument(context, statement.target, await statement.run(context, calls))
        record_nulls(context, pending)

    return fill


UNDECIDED = frozenset({"42P18", "42725", "42804", "42883", "42P08", "22P02", "22007"})
"""Errors that may come from values without a type: PostgreSQL infers none, several, or the wrong one."""


class _Statement:
    """One SQL expression of an endpoint. Its values first have no type, so that PostgreSQL infers one; if that fails,
    they have the types of their parameters.
    """

    def __init__(self, endpoint: Endpoint, resolved: ResolvedParameter, services: Services) -> None:
        self.target = resolved.target
        self._values = resolved.values
        self._texts = (resolved.sql, resolved.typed)
        self._typed = 0
        """The form that works: 0 untyped, 1 typed. It is the mask of the request."""
        self._call = Call(
            label=f"{endpoint.name} {endpoint.parameters[resolved.target].db_name}",
            build=lambda typed: (self._texts[typed], len(self._values)),
            renderer=Renderer(services.codecs, "rows", True, False, []),
            pace=PoolAssignment(services.options.database.pools.slow),
            volatile=True,
            existed=False,
            policy=ErrorPolicy({}, services.options.policies.timeout),
            hear=services.hear(endpoint),
            sensitive=endpoint.options.sensitive,
        )

    async def run(self, context: RequestContext, calls: SharedSession) -> bytes | None:
        """Run the expression, and return the first value of the first row, or NULL if there is no row.

        Raises: Problem: it failed.
        """
        inner = RequestContext(context.scope, context.protocol)
        inner.user = context.user  # a claim of it may be the tenant of events
        texts = [None if index is None else argument_text(context, index) for index in self._values]
        inner.arguments = [None if text is None else text.encode() for text in texts]
        await self._run_either(inner, calls)
        self._call.existed = True
        request = inner.execution
        rows = orjson.loads(request.body) if request is not None and request.body else []
        return None if not rows or rows[0] is None else str(rows[0]).encode()

    async def _run_either(self, inner: RequestContext, calls: SharedSession) -> None:
        """Run the expression with untyped or typed values, whichever worked last. If PostgreSQL cannot determine types,
        run it in the other way; if that works, it is the first choice from then on.

        Raises:
            Problem: the first run failed, and the other one failed too or was not made.
        """
        inner.mask = self._typed
        failed = await calls.attempt(self._call, inner)
        if failed.succeeded:
            return
        if self._values and failed.error is not None and failed.error.sqlstate in UNDECIDED:
            inner.mask = 1 - self._typed
            if (await calls.attempt(self._call, inner)).succeeded:
                self._typed = inner.mask
                return
            inner.mask = self._typed
        await calls.recover(self._call, inner, failed)
