"""Redaction: removes values sent to a `sensitive` endpoint from error texts. Code that logs must leave them
out itself.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Awaitable, Iterable

from rowcall.core.errors.binding_error import BindingError
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting

HIDDEN = "***"
MOST_PARTS = 1000
"""Most parts that are taken from an array or JSON value."""

_PARTS = re.compile(r'"((?:[^"\\]|\\.)*)"|[^\s"{}\[\](),:]+')


class RedactedLabel(str):
    """The label of a call whose values must not be reported."""

    __slots__ = ()


def hide_values(message: str, values: Iterable[bytes | None]) -> str:
    """Return a message of the server with `HIDDEN` in place of the values of the request, even very short ones, and of
    their parts: the first `MOST_PARTS` elements of each array, JSON value or composite. A value inside a longer word is
    not replaced."""
    texts = {value.decode(errors="replace") for value in values if value}
    parts = {part for text in texts for part in _parts(text)}
    # One expression for all values, so that an inserted mask is not masked again.
    items = sorted((text for text in texts | parts if text.strip()), key=len, reverse=True)
    if not items:
        return message
    pattern = "|".join(_alone(text) for text in items)
    return re.sub(pattern, HIDDEN, message)


def _parts(text: str) -> Iterable[str]:
    """Return the first `MOST_PARTS` parts of an array, a JSON text or a composite; nothing for other texts."""
    if text[:1] not in ("{", "[", "("):
        return ()
    values = (match[1] if match[1] is not None else match[0] for match in _PARTS.finditer(text))
    return itertools.islice(values, MOST_PARTS)


def _alone(text: str) -> str:
    """Return a pattern for the text that does not match inside a longer word."""
    before = r"(?<!\w)" if text[0].isalnum() else ""
    behind = r"(?!\w)" if text[-1].isalnum() else ""
    return f"{before}{re.escape(text)}{behind}"


def bind_redacted(bind: Step) -> Step:
    """Wrap `bind` so that its errors do not repeat the values that they are about."""

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
