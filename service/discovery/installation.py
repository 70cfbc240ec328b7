"""Reads the schema `rowcall` (`rowcall --install`): its version, from its comment, and the rights to use it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from typing import Any

from psycopg import AsyncConnection

from rowcall.core.catalogue.installation import NOT_INSTALLED, Installation

log = logging.getLogger("rowcall")

_VERSION = (
    "coalesce(substring(pg_catalog.obj_description(pg_catalog.to_regnamespace('rowcall')::oid, 'pg_namespace') "
    "from 'version ([0-9]+)')::int, 0)"
)
_REFUSED = (
    "array(select distinct p.proname::text from pg_catalog.pg_proc p"
    " where p.pronamespace = pg_catalog.to_regnamespace('rowcall')::oid"
    " and not pg_catalog.has_function_privilege(p.oid, 'EXECUTE'))"
)
INSTALLED = f"{_VERSION}, current_user::text, {_REFUSED}"
"""Columns from which `installation_of` makes the result."""
_LOOK_AGAIN = 5.0
"""Seconds between two checks while something is missing."""


def installation_of(version: int, role: str, refused: Iterable[str]) -> Installation:
    """Return the state of the schema `rowcall` from the columns of `INSTALLED`. version: 0 if it is not installed.
    role: the current one. refused: names of functions of the schema that the role may not execute."""
    return Installation(version, role, frozenset(refused))


async def read_installation(connection: AsyncConnection[Any]) -> Installation:
    """Return the state of the schema `rowcall` in this database. Rows of the connection have to be tuples. Raises
    `psycopg.Error`.
    """
    row = await (await connection.execute(f"select {INSTALLED}".encode())).fetchone()
    return NOT_INSTALLED if row is None else installation_of(*row)


async def wait_for_installation(
    connection: AsyncConnection[Any], needed: int, feature: str, functions: Collection[str]
) -> None:
    """Wait until the database has this version of the schema `rowcall`, or a later one, and the role may execute these
    functions of it. Meanwhile, each different obstacle is logged once as an error. Raises `psycopg.Error`.

    connection: in autocommit mode, with rows as tuples. needed: least version. feature: the key of the configuration
    that needs the functions. functions: their names.
    """
    reported = ""
    while (obstacle := unmet(await read_installation(connection), needed, functions)) is not None:
        if obstacle != reported:
            log.error("%s needs %s", feature, obstacle)
            reported = obstacle
        await asyncio.sleep(_LOOK_AGAIN)


def unmet(installation: Installation, needed: int, functions: Iterable[str]) -> str | None:
    """Return what is missing in the database with its remedy; None: nothing. needed: least version of the schema
    `rowcall`. functions: names of those that the role has to execute.
    """
    if installation.version < needed:
        return f"version {needed} of the schema rowcall: run rowcall --install"
    right = installation.missing_right(functions)
    return None if right is None else f"a right: {right}"
