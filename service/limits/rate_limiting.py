"""The step that asks for a permit before anything else is done for a request (limits-7).

A policy that counts by who is calling needs the caller first, so its step stands behind the one that finds that out.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.limits.counting import Decision
from rowcall.core.limits.policy import Kind, Policy, Source, SourceKind
from rowcall.service.limits.host_permits import SIZE, HostPermits
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext, Step

if TYPE_CHECKING:
    from rowcall.service.limits.redis_permits import RedisPermits

UNPARTITIONED = "unpartitioned"

Caller = Callable[[RequestContext], str]


def limit_anybody(endpoint: Endpoint, services: Services) -> Step | None:
    """For policies that do not ask who is calling."""
    policy = _policy_of(endpoint, services)
    return None if policy is None or policy.asks_who_calls else limit(policy, services)


def limit_callers(endpoint: Endpoint, services: Services) -> Step | None:
    """For those that do."""
    policy = _policy_of(endpoint, services)
    return None if policy is None or not policy.asks_who_calls else limit(policy, services)


def limit_route(endpoints: Sequence[Endpoint], services: Services) -> Step | None:
    """For several endpoints on one route, before it is known which of them is meant. None where they do not have one
    policy, or who is calling is not known yet: then each asks for its own permit."""
    policies = {_policy_of(endpoint, services) for endpoint in endpoints}
    return limit_anybody(endpoints[0], services) if len(policies) == 1 else None


def _policy_of(endpoint: Endpoint, services: Services) -> Policy | None:
    return services.options.limits.policy(endpoint.options.rate_limiter) if services.limited else None


def limit_named(services: Services, name: str | None) -> Step | None:
    """For a path that is no endpoint. The default policy is not for those; a name that is none is told at the start,
    where the options are read.
    """
    policy = services.options.limits.policy(name) if name else None
    return None if policy is None else limit(policy, services)


def limit(policy: Policy, services: Services) -> Step:
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

    def limit_strangers(context: RequestContext) -> Awaitable[None] | None:
        return step(context) if context.user is None else None  # type: ignore[return-value]

    return limit_strangers


def _permits(services: Services) -> HostPermits:
    """One for each worker, whichever edition it serves."""
    host = services.host
    options = services.options.limits
    return host.once(
        "permits", lambda: HostPermits(host.environment("permits", SIZE), host.message_bus, options.policies)
    )


def _redis_permits(services: Services, permits: HostPermits) -> RedisPermits:
    # Redis's client is only for those who use it.
    from rowcall.service.limits.redis_permits import RedisPermits

    address = services.options.limits.redis or ""
    return services.host.once("redis permits", lambda: RedisPermits(address, permits))


# --- whose permits ----------------------------------------------------------------------------------------------------


def _caller(policy: Policy, services: Services) -> Caller:
    """What tells callers apart. Texts of different sources never mean the same caller."""
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
        found = address_of(context.scope)
        return None if found is None else found.decode()

    return address


# --- the two ways to hold one -----------------------------------------------------------------------------------------


def _window(policy: Policy, permits: HostPermits, caller: Caller) -> Step:
    ask = permits.ask

    def limit_rate(context: RequestContext) -> Awaitable[None] | None:
        name = caller(context)
        decision = ask(policy, name)
        if not decision.allowed:
            raise refusal(policy, decision.wait)
        return wait(context, name, decision) if decision.wait > 0 else None

    async def wait(context: RequestContext, name: str, decision: Decision) -> None:
        stays = False
        try:
            stays = await _stays(decision.wait, context)
        finally:
            if not stays and decision.turn is not None:
                permits.give_back(policy, name, decision.turn)
        if not stays:
            raise _gone()

    return limit_rate


def _shared_window(policy: Policy, permits: RedisPermits, caller: Caller) -> Step:
    async def limit_rate_of_all(context: RequestContext) -> None:
        name = caller(context)
        decision = await permits.ask(policy, name)
        if not decision.allowed:
            raise refusal(policy, decision.wait)
        stays = decision.wait <= 0
        try:
            stays = stays or await _stays(decision.wait, context)
        finally:
            if not stays and decision.turn is not None:
                await asyncio.shield(permits.give_back(policy, name, decision.turn))
        if not stays:
            raise _gone()

    return limit_rate_of_all


async def _stays(seconds: float, context: RequestContext) -> bool:
    """Whether somebody still waits for the answer when the permit may be used."""
    gone = asyncio.ensure_future(context.protocol.client_disconnect())
    try:
        done, _ = await asyncio.wait({gone}, timeout=seconds)
    finally:
        gone.cancel()
    return not done


def _gone() -> ClientDisconnectedError:
    return ClientDisconnectedError("the client has left while it waited for its turn")


def _gate(policy: Policy, permits: HostPermits, caller: Caller) -> Step:
    def limit_concurrency(context: RequestContext) -> Awaitable[None] | None:
        name = caller(context)
        entered = permits.enter(policy, name)
        if entered is False:
            raise refusal(policy, 1.0)
        if entered is not True:
            return wait(context, name, entered)
        context.at_end(lambda _context, _error: permits.leave(policy, name))
        return None

    async def wait(context: RequestContext, name: str, number: int) -> None:
        gone = asyncio.ensure_future(context.protocol.client_disconnect())
        turn = asyncio.ensure_future(permits.wait(number))
        try:
            await asyncio.wait({gone, turn}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            turn.cancel()
            permits.abandon(policy, name, number)
            raise
        finally:
            gone.cancel()
        if not turn.done():
            turn.cancel()
            permits.abandon(policy, name, number)
            raise _gone()
        if not turn.result():
            raise refusal(policy, 1.0)
        context.at_end(lambda _context, _error: permits.leave(policy, name))

    return limit_concurrency


def refusal(policy: Policy, wait: float) -> Problem:
    """The answer to a request for which there is no permit. wait: seconds until it is worth asking again."""
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
