"""Redaction: removes values sent to a `sensitive` endpoint from error texts. Code that logs must leave them
out itself.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Awaitable, Iterable, Iterator

from rowcall.core.errors.binding_error import BindingError
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting

HIDDEN = "***"
MOST_PARTS = 10_000
"""Most parts of the arrays and JSON values of a request that are searched in a message. With more, the message is
dropped."""

_PARTS = re.compile(r'"((?:[^"\\]|\\.)*)"|(?:[^\s"{}\[\](),:\\]|\\.)+', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class RedactedLabel(str):
    """The label of a call whose values must not be reported."""

    __slots__ = ()


def hide_values(message: str, values: Iterable[bytes | None]) -> str:
    """Return a message of the server with `HIDDEN` in place of the values of the request, even very short ones, and of
    their parts: the elements of each array, JSON value or composite. A value inside a longer word is not replaced. If
    the values have more than `MOST_PARTS` parts, the result is `HIDDEN` alone.
    """
    texts = {value.decode(errors="replace") for value in values if value}
    parts = [*itertools.islice(itertools.chain.from_iterable(map(_parts, texts)), MOST_PARTS + 1)]
    if len(parts) > MOST_PARTS:
        return HIDDEN
    # One expression for all values, so that an inserted mask is not masked again.
    items = sorted((text for text in texts.union(parts) if text.strip() and text in message), key=len, reverse=True)
    if not items:
        return message
    pattern = "|".join(_whole_word_pattern(text) for text in items)
    return re.sub(pattern, HIDDEN, message)


def _parts(text: str) -> Iterator[str]:
    """If the text has surrounding white space, which PostgreSQL ignores in most types, yield the text without it. Of an
    array, a JSON text or a composite, yield the parts, as they are written and without escapes, and the parts of these.
    """
    stripped = text.strip()
    if stripped != text:
        yield stripped
    if stripped[:1] not in ("{", "[", "(", '"'):
        return
    for match in _PARTS.finditer(text):
        part = match[0] if match[1] is None else match[1]
        yield part
        for value in _unescape(part):
            if value != part:
                yield value
            yield from _parts(value)


def _unescape(part: str) -> set[str]:
    """Return a part with its escapes decoded, once by the rules of PostgreSQL and, if it is valid there, once by those
    of JSON. For a part without escapes, the result is the part alone."""
    values = {_ESCAPED.sub(r"\1", part)}
    if "\\" in part:
        with contextlib.suppress(ValueError):
            values.add(json.loads(f'"{part}"', strict=False))
    return values


def _whole_word_pattern(text: str) -> str:
    """Return a pattern for the text that does not match inside a longer word."""
    before = r"(?<!\w)" if text[0].isalnum() else ""
    behind = r"(?!\w)" if text[-1].isalnum() else ""
    return f"{before}{re.escape(text)}{behind}"


def bind_redacted(bind: Step) -> Step:
    """Wrap the binding step so that the text of its errors contains no values of the request."""

    async def wait(waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except BindingError as error:
            raise error.without_values() from None

    def bind_and_hide(context: RequestContext) -> Waiting:
        try:
            waiting = bind(context)
        except BindingError as error:
            raise error.without_values() from None
        return None if waiting is None else wait(waiting)  # type: ignore[arg-type]  # never a request: nothing runs yet

    return bind_and_hide
