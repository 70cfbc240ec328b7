"""Recording of used refresh tokens in a worker: it asks the supervisor, which answers for all workers."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Callable

from rowcall.core.auth.token_families import Mark
from rowcall.core.errors.problems import unavailable

ANSWER_WITHIN = 10.0
"""Timeout of an answer of the supervisor in seconds."""


def new_mark() -> Mark:
    """Return the mark of the first refresh token of a sign-in."""
    return Mark(secrets.token_urlsafe(16), 0)


class RefreshTokenUse:
    """Questions of one worker to the supervisor.

    The worker sets `ask`, a function that sends a question: number, mark, and the time until which the use is to be
    recorded (seconds since 1970). The result arrives by `answer`. Without `ask`, every question times out.
    """

    def __init__(self) -> None:
        self.ask: Callable[[int, Mark, float], None] | None = None
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[bool | None]] = {}

    async def is_first(self, mark: Mark, lifetime: float) -> bool:
        """Let the supervisor record the use of the refresh token with this mark. Return True if it is the first use of
        the token, and no token of the family has been used twice. lifetime: seconds for which a token that is issued
        now is accepted.

        Raises:
            Problem: 503, if the supervisor does not answer within `ANSWER_WITHIN` seconds, or does not know.
        """
        number = next(self._numbers)
        future: asyncio.Future[bool | None] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        if self.ask is not None:
            self.ask(number, mark, time.time() + lifetime)
        try:
            first: bool | None = await asyncio.wait_for(future, ANSWER_WITHIN)
        except TimeoutError:
            first = None
        finally:
            del self._waiting[number]
        if first is None:
            raise unavailable("it is unknown whether this refresh token has been used before")
        return first

    def answer(self, number: int, first: bool | None) -> None:
        """Store the result of the question with this number. first: whether the use was the first; None: the supervisor
        does not know.
        """
        future = self._waiting.get(number)
        if future is not None and not future.done():
            future.set_result(first)
