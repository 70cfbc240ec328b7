"""The one row that a main statement returns."""

from __future__ import annotations

from typing import NamedTuple

from rowcall.core.postgrest.sql.output import COLUMNS
from rowcall.service.postgrest.statement_cache import SEPARATOR


class Result(NamedTuple):
    """A row of `core.postgrest.sql.output.COLUMNS`. total: rows without a range; None if they are not counted.

    headers, status: as set by SQL, None if not set. inserted: None if the statement does not count inserted rows. keys:
    JSON of the key of an inserted row.
    """

    total: int | None
    rows: int
    body: bytes
    headers: str | None
    status: str | None
    inserted: int | None
    keys: str | None
    estimate: int | None = None
    """Rows that the planner expects without range, if the work asks for it."""


_COLUMNS = len(COLUMNS)
NO_ROW = Result(None, 0, b"", None, None, None, None)


def read_result(row: bytes | None) -> Result:
    """Read a rendered row; without one, return `NO_ROW`. Raises `ValueError` for another number of columns."""
    if not row:
        return NO_ROW
    fields = row.split(SEPARATOR)
    if len(fields) != _COLUMNS:
        raise ValueError(f"the main statement returned {len(fields)} columns instead of {_COLUMNS}")
    total, rows, body, headers, status, inserted, keys = fields
    return Result(
        int(total) if total else None,
        int(rows or 0),
        body,
        headers.decode() if headers else None,
        status.decode() if status else None,
        int(inserted) if inserted else None,
        keys.decode() if keys else None,
    )
