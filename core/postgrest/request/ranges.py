"""Row ranges: query parameters, the header `Range`, and the header `Content-Range`.

Source: PostgREST's documentation, Pagination and Count; RFC 9110, 14.
"""

from __future__ import annotations

import re

from rowcall.core.postgrest import errors
from rowcall.core.postgrest.request.query_string import MOST_DIGITS
from rowcall.core.postgrest.request.tree import Range

_HEADER = re.compile(rf"([0-9]{{1,{MOST_DIGITS}}})-([0-9]{{0,{MOST_DIGITS}}})")


def top_level(query: Range | None, header: str | None) -> Range:
    """Return the intersection of the range of the query string with the header `Range`. The header is ignored if it is
    malformed, or for a limit of 0.

    Raises `ApiError` (`PGRST103`) if the range is reversed or the intersection is empty.
    """
    result = query or Range()
    if result.limit == 0:
        return result
    match = _HEADER.fullmatch(header) if header is not None else None
    if match is None:
        return result
    first = int(match.group(1))
    last = int(match.group(2)) if match.group(2) else None
    if last is not None and last < first:
        raise errors.unsatisfiable_range(errors.REVERSED_RANGE)
    end = None if result.limit is None else result.offset + result.limit - 1
    offset = max(first, result.offset)
    if last is None or (end is not None and end < last):
        last = end
    if last is not None and last < offset:
        raise errors.unsatisfiable_range(errors.NEGATIVE_LIMIT)
    return Range(offset, None if last is None else last - offset + 1)


def content_range(offset: int, rows: int, total: int | None) -> str:
    """Return the value of `Content-Range`, such as `0-9/25`; `*/25` without rows. offset: number of skipped rows. rows:
    number in the response. total: None: the rows were not counted, and `*` is in its place."""
    count = "*" if total is None else str(total)
    if rows == 0 or total == 0:
        return f"*/{count}"
    return f"{offset}-{offset + rows - 1}/{count}"


def status(offset: int, rows: int, total: int | None) -> int:
    """Return the status of a read: 416 if more rows are skipped than there are (offset > total), 206 if the response
    has not all rows, else 200, also if the rows were not counted (total is None)."""
    if total is None:
        return 200
    if offset > total:
        return 416
    return 206 if rows < total else 200
