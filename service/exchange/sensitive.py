"""Keeps what was sent to a `sensitive` endpoint out of error texts. That it is not logged is for whoever logs."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable

from rowcall.core.errors.binding_error import BindingError
from rowcall.service.exchange.exchange import Exchange, Step, Waiting

HIDDEN = "***"
SHORT = 4
"""A value of fewer characters is hidden only where it is quoted: elsewhere it is part of any text."""


def hide_values(message: str, values: Iterable[bytes | None]) -> str:
    """A message of the server without the values of the request."""
    texts = {value.decode(errors="replace") for value in values if value}
    for text in sorted(texts, key=len, reverse=True):
        message = message.replace(f'"{text}"', f'"{HIDDEN}"')
        if len(text) >= SHORT:
            message = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", HIDDEN, message)
    return message


def bind_discreetly(bind: Step) -> Step:
    """`bind`, with refusals that do not repeat the value they are about."""

    async def wait(waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except BindingError as error:
            raise error.discreetly() from None

    def bind_and_hide(exchange: Exchange) -> Waiting:
        try:
            waiting = bind(exchange)
        except BindingError as error:
            raise error.discreetly() from None
        return None if waiting is None else wait(waiting)  # type: ignore[arg-type]  # never a request: nothing runs yet

    return bind_and_hide
