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
VARY = ("vary", "Accept, Prefer, Range")
_IS_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_CONTROL = re.compile(r"[\0-\x08\x0a-\x1f\x7f]").search
_DIGITS = re.compile(r"[0-9]{1,9}(?![0-9])").match
RENAMED_WARNING = (
    "Embedded resource was referenced by relation name even though it has an alias. "
    "Use the alias in filters, orders and limits instead."
)


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
        if not isinstance(content, str) or not is_sendable_header(name, content):
            raise errors.invalid_response_headers()
        result.append((name.lower(), content))
    return result


def is_sendable_header(name: str, value: str) -> bool:
    """Return whether SQL can set a header with this name and value (RFC 9110, 5.1 and 5.5). `Transfer-Encoding` belongs
    to the HTTP server, which also refuses a wrong `Content-Length`."""
    return _IS_TOKEN(name) is not None and _CONTROL(value) is None and name.lower() != "transfer-encoding"


def is_sendable(status: int) -> bool:
    """Return whether a status can be that of a final response of this service."""
    return 200 <= status <= 599


def status_by_sql(text: str) -> int:
    """Return the status that SQL has set by `response.status`; text behind the number is ignored. Raises `ApiError`
    (`PGRST112`) if the text does not begin with a number, or the status is not sendable."""
    digits = _DIGITS(text)
    if digits is None or not is_sendable(int(digits[0])):
        raise errors.invalid_response_status()
    return int(digits[0])


def renamed_warning(targets: Iterable[str]) -> Headers:
    """Return the header that warns of embeds which were addressed by their name although they have an alias.

    targets: names of these embeds; if there are none, the result is empty.
    """
    return [("warning", f'299 PostgRESTv{VERSION} "{RENAMED_WARNING}"')] if any(targets) else []
