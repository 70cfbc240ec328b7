"""Header fields of successful responses.

Source: PostgREST's documentation, Pagination and Count; Transactions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import orjson

from rowcall.core.postgrest import errors

Headers = list[tuple[str, str]]
VERSION = "16.1"
"""Version of PostgREST that responses show."""
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_DIGITS = re.compile(r"[0-9]{1,9}(?![0-9])")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
VARY = ("vary", "Accept, Prefer, Range")
RENAMED_WARNING = (
    "Embedded resource was referenced by relation name even though it has an alias. "
    "Use the alias in filters, orders and limits instead."
)


def is_header(name: str, value: str) -> bool:
    """Return whether a response can have this header. Message framing belongs to the HTTP server."""
    return _NAME.fullmatch(name) is not None and name.lower() != "transfer-encoding" and is_header_value(value)


def is_header_value(text: str) -> bool:
    """Return whether a text can be the value of a header: it has no control characters other than tab."""
    return _CONTROL.search(text) is None


def set_by_sql(headers: Headers, text: str) -> Headers:
    """Return the headers with those that SQL has set by `response.headers`, which replace headers of the same name.

    headers: with names in lower case, as in the result. text: a JSON array of objects with one member each. Raises
    `ApiError` (`PGRST111`) for any other text.
    """
    own = _pairs(text)
    names = {name for name, _ in own}
    return [item for item in headers if item[0] not in names] + own


def _pairs(text: str) -> Headers:
    """Return names in lower case and values of the headers in a text. Raises `ApiError` (`PGRST111`)."""
    try:
        values = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise errors.invalid_response_headers() from None
    if not isinstance(values, list):
        raise errors.invalid_response_headers()
    result: Headers = []
    for value in values:
        if not isinstance(value, dict) or len(value) != 1:
            raise errors.invalid_response_headers()
        ((name, content),) = value.items()
        if not isinstance(content, str) or not is_header(name, content):
            raise errors.invalid_response_headers()
        result.append((name.lower(), content))
    return result


def is_sendable(status: int) -> bool:
    """Return whether a status can be that of a final response of this service."""
    return 200 <= status <= 599


def status_by_sql(text: str) -> int:
    """Return the status that SQL has set by `response.status`: the number at the beginning of the text. Raises
    `ApiError` (`PGRST112`) if there is none, or it is not sendable."""
    digits = _DIGITS.match(text)
    if digits is None or not is_sendable(int(digits.group())):
        raise errors.invalid_response_status()
    return int(digits.group())


def renamed_warning(targets: Iterable[str]) -> Headers:
    """Return the header that warns of embeds which were addressed by their name although they have an alias.

    targets: names of these embeds; if there are none, the result is empty.
    """
    return [("warning", f'299 PostgRESTv{VERSION} "{RENAMED_WARNING}"')] if any(targets) else []
