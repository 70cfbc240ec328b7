"""The version of the schema `rowcall` in a database (`rowcall --install`), which the comment of the schema contains."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

INSTALLED = (
    "coalesce(substring(pg_catalog.obj_description(pg_catalog.to_regnamespace('rowcall')::oid, 'pg_namespace') "
    "from 'version ([0-9]+)')::int, 0)"
)
"""Expression for the version; 0: the schema is not installed."""


async def installed_version(connection: AsyncConnection[Any]) -> int:
    """Return the version. Rows of the connection have to be tuples."""
    row = await (await connection.execute(f"select {INSTALLED}".encode())).fetchone()
    return 0 if row is None else int(row[0])
