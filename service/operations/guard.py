"""Who may ask about the service, and for how long an answer is good (reference 06, 10.3).

Every worker keeps answers for itself: they are a few seconds old at most, and each says how old it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from rowcall.core.errors.problems import Problem, unauthorized
from rowcall.service.exchange.exchange import Exchange, Step
from rowcall.service.exchange.protocols import Headers
from rowcall.service.options.capabilities.operations import Guarded
from rowcall.service.pipeline.services import Services


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Headers
    body: bytes


Make = Callable[[Exchange], Awaitable[Answer]]


Form = Callable[[Exchange], str]
"""Of answers that differ in it one is kept of each."""


def _one_form(_exchange: Exchange) -> str:
    return ""


def guarded(what: str, options: Guarded, services: Services, make: Make, form: Form = _one_form) -> tuple[Step, ...]:
    """The steps of a path; the last one answers. what: for whom a refusal is about, `/stats/tables`."""
    steps: list[Step] = []
    if services.options.auth.schemes:
        steps.append(services.auth.sessions.authenticate)
    limited = services.limiting(options.rate_limiter) if services.limiting is not None else None
    if limited is not None:
        steps.append(limited)
    if options.closed:
        steps.append(_let_in(what, options, services))
    steps.append(make_answer(make) if options.keep is None else Kept(options.keep, make, form))
    return tuple(steps)


def _let_in(what: str, options: Guarded, services: Services) -> Step:
    challenge = services.options.auth.schemes.challenge

    def let_in(exchange: Exchange) -> None:
        if exchange.user is None:
            raise unauthorized(challenge, f"{what} is for signed-in users")
        if options.roles and options.roles.isdisjoint(exchange.user.roles):
            raise Problem(403, f"{what} is for users with one of the roles {', '.join(sorted(options.roles))}")

    return let_in


def make_answer(make: Make) -> Step:
    async def answer(exchange: Exchange) -> None:
        _send(exchange, await make(exchange))

    return answer


class Kept:
    """An answer that is good for some seconds; of the query string only its `form` counts. Whoever is signed in gets a
    new one."""

    def __init__(self, seconds: float, make: Make, form: Form) -> None:
        self._seconds = seconds
        self._form = form
        self._make = make
        self._answers: dict[tuple[str, ...], tuple[float, Answer]] = {}
        self._making: dict[tuple[str, ...], asyncio.Task[Answer]] = {}

    def __call__(self, exchange: Exchange) -> Awaitable[None] | None:
        scope = exchange.scope
        if (
            exchange.user is not None
            or scope.method not in ("GET", "HEAD")
            or scope.headers.get("authorization") is not None
        ):
            return self._anew(exchange)
        key = (scope.scheme, str(scope.authority or scope.headers.get("host") or ""), self._form(exchange))
        made, answer = self._answers.get(key, (0.0, None))
        age = time.monotonic() - made
        if answer is None or age >= self._seconds:
            return self._renewed(exchange, key)
        _send(exchange, Answer(answer.status, [*answer.headers, ("age", str(int(age)))], answer.body))
        return None

    async def _anew(self, exchange: Exchange) -> None:
        _send(exchange, await self._make(exchange))

    async def _renewed(self, exchange: Exchange, key: tuple[str, ...]) -> None:
        """Those who come meanwhile wait for the same one, which goes on when one of them leaves."""
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.ensure_future(self._make(exchange))
            making.add_done_callback(lambda done: self._keep(key, done))
        _send(exchange, await asyncio.shield(making))

    def _keep(self, key: tuple[str, ...], done: asyncio.Task[Answer]) -> None:
        self._making.pop(key, None)
        if done.cancelled() or done.exception() is not None or done.result().status != 200:
            return
        if len(self._answers) >= MOST_HOSTS:
            self._answers.clear()
        self._answers[key] = time.monotonic(), done.result()


MOST_HOSTS = 64
"""Whoever sends ever new names of hosts must not fill the memory."""


def _send(exchange: Exchange, answer: Answer) -> None:
    exchange.protocol.response_bytes(answer.status, answer.headers, answer.body)
    exchange.answered = True
