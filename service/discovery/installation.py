"""The version of the schema `rowcall` in a database (`rowcall --install`)."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection, AsyncCursor

_EXISTS = "select to_regclass('rowcall.schema_version') is not null"
_VERSION = "select coalesce(max(version), 0) from rowcall.schema_version"


async def installed_version(connection: AsyncConnection[Any] | AsyncCursor[Any]) -> int:
    """Return the version, or 0 if the schema is not installed. Rows have to be tuples."""
    row = await (await connection.execute(_EXISTS)).fetchone()
    if row is None or not row[0]:
        return 0
    row = await (await connection.execute(_VERSION)).fetchone()
    return 0 if row is None else int(row[0])
