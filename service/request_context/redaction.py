"""Keeps what was sent to a `sensitive` endpoint out of error texts. That it is not logged is for whoever logs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Awaitable, Iterable

from rowcall.core.errors.binding_error import BindingError
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting

HIDDEN = "***"
MOST_PARTS = 1000
"""Of a value that is taken apart."""

_PARTS = re.compile(r'"((?:[^"\\]|\\.)*)"|[^\s"{}\[\](),:]+')


class Redacted(str):
    """What a call is labelled with whose values must not be told."""

    __slots__ = ()


def hide_values(message: str, values: Iterable[bytes | None]) -> str:
    """A message of the server without the values of the request, of any length, nor what arrays and JSON hold."""
    texts = {value.decode(errors="replace") for value in values if value}
    parts = {part for text in texts for part in _parts(text)}
    # A mask that has been put in must not be masked itself.
    items = sorted((text for text in texts | parts if text.strip()), key=len, reverse=True)
    if not items:
        return message
    pattern = "|".join(_alone(text) for text in items)
    return re.sub(pattern, HIDDEN, message)


def _parts(text: str) -> Iterable[str]:
    if text[:1] not in ("{", "[", "("):
        return ()
    values = (match[1] if match[1] is not None else match[0] for match in _PARTS.finditer(text))
    return itertools.islice(values, MOST_PARTS)


def _alone(text: str) -> str:
    """Where it is no part of a longer word."""
    before = r"(?<!\w)" if text[0].isalnum() else ""
    behind = r"(?!\w)" if text[-1].isalnum() else ""
    return f"{before}{re.escape(text)}{behind}"


def bind_redacted(bind: Step) -> Step:
    """`bind`, with refusals that do not repeat the value they are about."""

    async def wait(waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except BindingError as error:
            raise error.redacted() from None

    def bind_and_hide(context: RequestContext) -> Waiting:
        try:
            waiting = bind(context)
        except BindingError as error:
            raise error.redacted() from None
        return None if waiting is None else wait(waiting)  # type: ignore[arg-type]  # never a request: nothing runs yet

    return bind_and_hide
