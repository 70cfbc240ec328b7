"""How the endpoints of a batch run in its transaction, and which cannot."""

from __future__ import annotations

from collections.abc import Awaitable

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.resolved_parameters import resolved_parameters
from rowcall.core.errors.problems import Problem
from rowcall.service.database.call import Call
from rowcall.service.database.transactions.joint_transaction import JointTransaction
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext, Step


def run_jointly(call: Call, context: RequestContext) -> Awaitable[None]:
    """Run the call of an endpoint in the transaction of the batch, and return the awaitable of its end. The awaitable
    raises `Problem` if the call failed.
    """
    transaction: JointTransaction = context.scope.transaction
    return transaction.run_next(call, context)


def refuse_in_joint_batch(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that refuses an endpoint in a batch with one transaction: it raises `Problem` 400 with the
    reason. None: the endpoint may be part of it, or `services` are not those of such a batch.

    Endpoints with effects that a rollback does not undo are refused.
    """
    reason = _reason(endpoint) if services.joint else None
    if reason is None:
        return None
    detail = f"{endpoint.name} cannot be part of a batch in one transaction: {reason}; post it to ?transaction=false"

    def refuse(_context: RequestContext) -> None:
        raise Problem(400, detail)

    return refuse


def _reason(endpoint: Endpoint) -> str | None:
    """Return why an endpoint cannot run in the transaction of a batch; None if it can."""
    options = endpoint.options
    if options.login or options.logout:
        return "it changes who the caller is"
    if options.upload is not None:
        return "it takes files"
    if options.download is not None:
        return "it sends a file"
    if options.consumed_token is not None or options.issued_token is not None or options.mail is not None:
        return "its tokens and mail have a transaction of their own"
    if options.webhook is not None:
        return "its deliveries are recorded in transactions of their own, so that repetitions are recognized"
    if options.idempotency is not None and options.idempotency.required:
        return "its Idempotency-Key is recorded in a transaction of its own"
    if options.job is not None:
        return "its job is enqueued in a transaction of its own"
    if endpoint.passes_through or options.proxy_out is not None:
        return "another service answers it"
    if options.tenant is not None and options.tenant.connection:
        return "each tenant has a connection of its own"
    if options.connection is not None:
        return f"it runs on the connection {options.connection}"
    if resolved_parameters(endpoint):
        return "SQL of its comment fills parameters on a connection of its own, which does not see earlier requests"
    if options.invalidates:
        return "it invalidates cached responses at once"
    if endpoint.routine.may_commit:
        return "it may commit"
    return None
