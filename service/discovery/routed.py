"""Types and routines of endpoints that run on another database than the one where they were found.

Names are the same there, but oids are not, and types of results are identified by oid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from psycopg import AsyncConnection

from rowcall.core.catalogue.catalog import Routine, TypeInfo
from rowcall.core.text.naming import quote_qualified
from rowcall.service.discovery.catalogue import load_types

FIRST_USER_OID = 16384

_SAME_NAMES = """
select t.oid from unnest(%s::text[], %s::text[]) wanted(schema, name)
join pg_catalog.pg_namespace n on n.nspname = wanted.schema
join pg_catalog.pg_type t on t.typnamespace = n.oid and t.typname = wanted.name
"""

_MISSING = """
select wanted.number from unnest(%s::text[], %s::text[]) with ordinality wanted(signature, relation, number)
where case when wanted.signature is not null then pg_catalog.to_regprocedure(wanted.signature)::oid
           else pg_catalog.to_regclass(wanted.relation)::oid end is null
order by wanted.number
"""


async def types_of_the_same_names(
    connection: AsyncConnection[Any], types: Iterable[TypeInfo]
) -> Mapping[int, TypeInfo]:
    """Return the types of this database with the names of `types`, by their oids here. Built-in types are omitted,
    because their oids are the same everywhere."""
    user_types = [info for info in types if info.oid >= FIRST_USER_OID]
    if not user_types:
        return {}
    names = ([info.schema for info in user_types], [info.name for info in user_types])
    rows = await (await connection.execute(_SAME_NAMES, names)).fetchall()
    return await load_types(connection, [row[0] for row in rows]) if rows else {}


async def missing_routines(connection: AsyncConnection[Any], routines: Sequence[Routine]) -> list[Routine]:
    """Return the routines that this database lacks, or has with other parameter types, with a single query."""
    async with connection.transaction():
        # The search path under which the names of types were read.
        await connection.execute("select pg_catalog.set_config('search_path', 'public', true)")
        signatures = [_signature(routine) if routine.source is None else None for routine in routines]
        relations = [quote_qualified(routine.schema, routine.name) for routine in routines]
        rows = await (await connection.execute(_MISSING, (signatures, relations))).fetchall()
    return [routines[row[0] - 1] for row in rows]


def _signature(routine: Routine) -> str:
    types = ",".join(parameter.type_name for parameter in routine.parameters)
    return f"{quote_qualified(routine.schema, routine.name)}({types})"
