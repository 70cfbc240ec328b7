"""The version of the schema `rowcall` in a database (`rowcall --install`), which the comment of the schema contains."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from psycopg import AsyncConnection

log = logging.getLogger("rowcall")

INSTALLED = (
    "coalesce(substring(pg_catalog.obj_description(pg_catalog.to_regnamespace('rowcall')::oid, 'pg_namespace') "
    "from 'version ([0-9]+)')::int, 0)"
)
"""Expression for the version; 0: the schema is not installed."""
_LOOK_AGAIN = 5.0


async def installed_version(connection: AsyncConnection[Any]) -> int:
    """Return the version of the schema `rowcall` in this database; 0 if it is not installed. Rows of the connection
    have to be tuples."""
    row = await (await connection.execute(f"select {INSTALLED}".encode())).fetchone()
    return 0 if row is None else int(row[0])


async def wait_for_installation(connection: AsyncConnection[Any], needed: int, feature: str) -> None:
    """Return when the database has this or a later version of the schema. Until then, it is checked regularly, and the
    lack is logged once. feature: key of the configuration that needs it.
    """
    is_reported = False
    while await installed_version(connection) < needed:
        if not is_reported:
            log.error("%s needs version %d of the schema rowcall: run rowcall --install", feature, needed)
            is_reported = True
        await asyncio.sleep(_LOOK_AGAIN)
