"""The steps that request a permit before anything else is done for a request (limits-7).

A policy that counts by user needs the user, so its step follows authentication.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.http.forwarded_headers import network_of
from rowcall.core.limits.counting import Decision
from rowcall.core.limits.policy import Kind, Policy, Source, SourceKind
from rowcall.service.limits.host_permits import SIZE, HostPermits
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext, Step, Waiting

if TYPE_CHECKING:
    from rowcall.service.limits.redis_permits import RedisPermits

UNPARTITIONED = "unpartitioned"
"""Name under which callers without a partition are counted."""

Caller = Callable[[RequestContext], str]
"""Returns the name under which the caller of a request is counted."""


def limit_all_callers(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step of a policy that does not depend on the user, or None if the endpoint has no such policy."""
    policy = _policy_of(endpoint, services)
    return None if policy is None or policy.depends_on_user else limit(policy, services)


def limit_callers(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step of a policy that depends on the user, or None if the endpoint has no such policy."""
    policy = _policy_of(endpoint, services)
    return None if policy is None or not policy.depends_on_user else limit(policy, services)


def limit_route(endpoints: Sequence[Endpoint], services: Services) -> Step | None:
    """Return the step that runs before the overload of a route is selected.

    None if no policy applies, if the overloads have different policies, or if the policy depends on the user; in the
    last two cases, each overload has its own step.
    """
    policies = {_policy_of(endpoint, services) for endpoint in endpoints}
    return limit_all_callers(endpoints[0], services) if len(policies) == 1 else None


def _policy_of(endpoint: Endpoint, services: Services) -> Policy | None:
    """Return the policy of the endpoint, else the default one; None: there is neither, or nothing is limited."""
    return services.options.limits.policy(endpoint.options.rate_limiter) if services.limited else None


def limit_named(services: Services, name: str | None) -> Step | None:
    """Return the step for a path without an endpoint, to which the default policy does not apply. None: the path names
    no policy, or an unknown one, which is reported when the options are read.
    """
    policy = services.options.limits.policy(name) if name else None
    return None if policy is None else limit(policy, services)


def limit(policy: Policy, services: Services) -> Step:
    """Return the step of a policy. It waits for a permit, as long as the policy allows. It raises `Problem` with the
    status of the policy if the request gets none, and `ClientDisconnectedError` if the client disconnects meanwhile. If
    the policy is free for users (`free_for_users`), signed-in callers need no permit."""
    permits = _permits(services)
    caller = _caller(policy, services)
    if policy.kind is Kind.CONCURRENCY:
        step = _gate(policy, permits, caller)
    elif services.options.limits.redis is not None:
        step = _shared_window(policy, _redis_permits(services, permits), caller)
    else:
        step = _window(policy, permits, caller)
    if not policy.free_for_users:
        return step

    def limit_anonymous_callers(context: RequestContext) -> Waiting:
        return step(context) if context.user is None else None

    return limit_anonymous_callers


def _permits(services: Services) -> HostPermits:
    """Return the permits of this worker, which all schema snapshots share."""
    host = services.host
    options = services.options.limits
    return host.get_or_create(
        "permits", lambda: HostPermits(host.environment("permits", SIZE), host.message_bus, options.policies)
    )


def _redis_permits(services: Services, permits: HostPermits) -> RedisPermits:
    # The Redis client is imported only if it is used.
    from rowcall.service.limits.redis_permits import RedisPermits

    address = services.options.limits.redis or ""
    return services.host.get_or_create("redis permits", lambda: RedisPermits(address, permits))


# --- who is counted ------------------------------------------------------------------------------------------------


def _caller(policy: Policy, services: Services) -> Caller:
    """Return the function that gives the name under which the caller of a request is counted: the first source of the
    policy that the request has. Equal texts of different sources are different callers. All callers without any source
    are counted together."""
    if not policy.sources:
        return lambda _context: UNPARTITIONED
    texts = [(f"{number} ", _text(source, services)) for number, source in enumerate(policy.sources)]

    def caller(context: RequestContext) -> str:
        for number, text_of in texts:
            text = text_of(context)
            if text:
                return number + text
        return UNPARTITIONED

    return caller


def _text(source: Source, services: Services) -> Callable[[RequestContext], str | None]:
    """Return the function that reads the text of a source (header, claim, client address, or a fixed text) from a
    request. It returns None if the request has no such header, claim or address. An IPv6 address is counted by its
    network."""
    name = source.text
    if source.kind is SourceKind.STATIC:
        return lambda _context: name
    if source.kind is SourceKind.HEADER:
        header = name.lower()
        return lambda context: context.scope.headers.get(header)
    if source.kind is SourceKind.CLAIM:
        return lambda context: None if context.user is None else context.user.first(name)
    address_of = services.auth.address

    def address(context: RequestContext) -> str | None:
        client_address = address_of(context.scope)
        return None if client_address is None else network_of(client_address.decode())

    return address


# --- the two ways to hold one -----------------------------------------------------------------------------------------


def _window(policy: Policy, permits: HostPermits, caller: Caller) -> Step:
    """Return the step for a window or bucket of this host."""
    request_permit = permits.request_permit

    def limit_rate(context: RequestContext) -> Awaitable[None] | None:
        name = caller(context)
        decision = request_permit(policy, name)
        if not decision.allowed:
            raise refusal(policy, decision.wait)
        return wait(context, name, decision) if decision.wait > 0 else None

    async def wait(context: RequestContext, name: str, decision: Decision) -> None:
        connected = False
        try:
            connected = await _wait_for_turn(decision.wait, context)
        finally:
            if not connected and decision.turn is not None:
                permits.put_back(policy, name, decision.turn)
        if not connected:
            raise _disconnect_error()

    return limit_rate


def _shared_window(policy: Policy, permits: RedisPermits, caller: Caller) -> Step:
    """Return the step for a window or bucket in Redis."""

    async def limit_rate_of_all(context: RequestContext) -> None:
        name = caller(context)
        decision = await permits.request_permit(policy, name)
        if not decision.allowed:
            raise refusal(policy, decision.wait)
        connected = decision.wait <= 0
        try:
            connected = connected or await _wait_for_turn(decision.wait, context)
        finally:
            if not connected and decision.turn is not None:
                await asyncio.shield(permits.put_back(policy, name, decision.turn))
        if not connected:
            raise _disconnect_error()

    return limit_rate_of_all


async def _wait_for_turn(seconds: float, context: RequestContext) -> bool:
    """Wait for these seconds until the permit may be used. Return whether the client is still connected."""
    gone = asyncio.ensure_future(context.protocol.client_disconnect())
    try:
        done, _ = await asyncio.wait({gone}, timeout=seconds)
    finally:
        gone.cancel()
    return not done


def _disconnect_error() -> ClientDisconnectedError:
    return ClientDisconnectedError("the client has left while it waited for its turn")


def _gate(policy: Policy, permits: HostPermits, caller: Caller) -> Step:
    """Return the step for a concurrency limit."""

    def limit_concurrency(context: RequestContext) -> Awaitable[None] | None:
        name = caller(context)
        entered = permits.request_concurrency_permit(policy, name)
        if entered is False:
            raise refusal(policy, 1.0)
        if entered is not True:
            return wait(context, name, entered)
        context.at_end(lambda _context, _error: permits.release(policy, name))
        return None

    async def wait(context: RequestContext, name: str, number: int) -> None:
        gone = asyncio.ensure_future(context.protocol.client_disconnect())
        turn = asyncio.ensure_future(permits.wait(number))
        try:
            await asyncio.wait({gone, turn}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            end_waiting(name, number, turn)
            raise
        finally:
            gone.cancel()
        if not turn.done():
            end_waiting(name, number, turn)
            raise _disconnect_error()
        if not turn.result():
            raise refusal(policy, 1.0)
        context.at_end(lambda _context, _error: permits.release(policy, name))

    def end_waiting(name: str, number: int, turn: asyncio.Future[bool]) -> None:
        """Give the permit back, exactly once if the request holds or will hold one. turn: the end of the wait."""
        if not turn.done():
            turn.cancel()
            permits.end_wait(policy, name, number)
        elif turn.result():
            permits.release(policy, name)

    return limit_concurrency


def refusal(policy: Policy, wait: float) -> Problem:
    """Return the response to a request without a permit. wait: seconds until a retry is useful."""
    seconds = max(1, math.ceil(wait))
    quoted = policy.name.replace("\\", "\\\\").replace('"', '\\"')
    headers: list[tuple[str, str]] = [("retry-after", str(seconds))]
    if quoted.isascii() and quoted.isprintable():
        window = "" if policy.kind is Kind.CONCURRENCY else f";w={math.ceil(policy.seconds)}"
        headers += [
            ("ratelimit-policy", f'"{quoted}";q={policy.permits}{window}'),
            ("ratelimit", f'"{quoted}";r=0;t={seconds}'),
        ]
    return Problem(policy.status, policy.message or None, headers=tuple(headers))
