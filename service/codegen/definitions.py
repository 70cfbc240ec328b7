"""Reads sources and parameter defaults of routines from PostgreSQL, for the comments of generated code."""

from __future__ import annotations

from collections.abc import Iterable, Set

from rowcall.core.catalogue.catalog import RoutineKind
from rowcall.core.codegen.comments import Definition, Definitions
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.database.connector import Connector

_DEFINITIONS = """
select p.oid, case when %s and p.prokind in ('f', 'p') then pg_get_functiondef(p.oid) else '' end,
       array(select pg_get_function_arg_default(p.oid, n) from generate_series(1, array_length(
           coalesce(p.proallargtypes, p.proargtypes::oid[]), 1)) n
           where p.proargmodes is null or p.proargmodes[n] in ('i', 'b', 'v') order by n)
from pg_proc p where p.oid = any(%s)"""


async def read_definitions(connector: Connector, endpoints: Iterable[Endpoint], forms: Set[str]) -> Definitions:
    """Return the definitions of routines by oid. forms: the forms of the comments, `None`, `Simple` or `Full`; only
    `Full` needs the sources. Raises `psycopg.Error` and `OSError`."""
    if forms <= {"None"}:
        return {}
    called = (RoutineKind.FUNCTION, RoutineKind.PROCEDURE)
    oids = list({item.routine.oid for item in endpoints if item.routine.kind in called})
    connection = await connector.open_plain()
    try:
        cursor = await connection.execute(_DEFINITIONS, ("Full" in forms, oids))
        rows = await cursor.fetchall()
    finally:
        await connection.close()
    return {oid: Definition(str(text or ""), tuple(defaults)) for oid, text, defaults in rows}  # type: ignore[misc,arg-type]
