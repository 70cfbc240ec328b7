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
    recorded (seconds since 1970). The result arrives by `answer`. Without `ask`, every question times out. It also sets
    `report_failure`, a function that sends mark and time of a use without effect.
    """

    def __init__(self) -> None:
        self.ask: Callable[[int, Mark, float], None] | None = None
        self.report_failure: Callable[[Mark, float], None] | None = None
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

    def allow_again(self, mark: Mark, lifetime: float) -> None:
        """Let the supervisor accept one more use of the token with this mark, on all workers. To be called only after
        `is_first` has returned True for the token, and the use had no effect. lifetime: as for `is_first`.
        """
        if self.report_failure is not None:
            self.report_failure(mark, time.time() + lifetime)

    def answer(self, number: int, first: bool | None) -> None:
        """Store the result of the question with this number. first: whether the use was the first; None: the supervisor
        does not know.
        """
        future = self._waiting.get(number)
        if future is not None and not future.done():
            future.set_result(first)
