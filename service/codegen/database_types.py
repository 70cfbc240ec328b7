"""Writes the type `Database` for clients of PostgREST's interface.

It is made of the schema snapshot, and of what the snapshot does not contain: the types of the database, and functions
whose argument is a row.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import psycopg

from rowcall.core.codegen.postgrest.database_types import database_types
from rowcall.core.codegen.postgrest.type_names import CompositeType, EnumType, Name, RowFunction, TypeNames
from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.service.codegen.writing import replace_file
from rowcall.service.database.connector import Connector

log = logging.getLogger("rowcall")

_TYPES = """
select format_type(t.oid, null), t.typtype::text, n.nspname, t.typname, format_type(t.typbasetype, null),
       c.relkind::text, t.typcategory = 'S',
       case when t.typtype = 'e' then (
         select array_agg(e.enumlabel::text order by e.enumsortorder) from pg_enum e where e.enumtypid = t.oid) end,
       case when c.relkind = 'c' then (
         select json_agg(json_build_array(a.attname, format_type(a.atttypid, null)) order by a.attnum)
         from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped) end
from pg_type t join pg_namespace n on n.oid = t.typnamespace left join pg_class c on c.oid = t.typrelid
where n.nspname not in ('pg_catalog', 'information_schema') and n.nspname not like 'pg\\_toast%%'
  and t.typcategory <> 'A'
order by n.nspname, t.typname
"""
_ROW_FUNCTIONS = """
select n.nspname, p.proname, coalesce(p.proargnames[1], ''), an.nspname, ac.relname, format_type(p.prorettype, null),
       rn.nspname, rc.relname, p.proretset, not p.proretset or p.prorows = 1
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     join pg_type a on a.oid = p.proargtypes[0]
     join pg_class ac on ac.oid = a.typrelid and ac.relkind in ('r', 'p', 'v', 'm', 'f')
     join pg_namespace an on an.oid = ac.relnamespace
     join pg_type r on r.oid = p.prorettype
     left join pg_class rc on rc.oid = r.typrelid and rc.relkind in ('r', 'p', 'v', 'm', 'f')
     left join pg_namespace rn on rn.oid = rc.relnamespace
where p.prokind = 'f' and p.pronargs = 1 and n.nspname = any(%s) and an.nspname = any(%s)
order by n.nspname, p.proname, p.oid
"""


async def write_database_types(connector: Connector, catalogue: PostgRestCatalogue, path: Path) -> bool:
    """Write the file with the types of PostgREST's interface if its content has changed; return whether this succeeded.
    Errors are logged.
    """
    schemas = catalogue.options.schemas
    try:
        types = await read_type_names(connector, schemas)
        await asyncio.to_thread(_write, catalogue, types, path)
    except (OSError, psycopg.Error) as error:
        log.error("the types of PostgREST's interface cannot be written: %s", str(error).strip())
        return False
    return True


def _write(catalogue: PostgRestCatalogue, types: TypeNames, path: Path) -> None:
    text = database_types(catalogue.schema, types, catalogue.options.schemas)
    try:
        known = path.read_text(encoding="utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        known = None
    if known != text:
        replace_file(path, text)
        log.info("%s is written: types of PostgREST's interface", path)


async def read_type_names(connector: Connector, schemas: tuple[str, ...]) -> TypeNames:
    """Read the types of the database, and the functions of exposed schemas with a row as their argument.

    Raises `psycopg.Error` and `OSError`.
    """
    connection = await connector.open_plain()
    try:
        # So that names of types are printed with their schemas.
        await connection.execute("set search_path to ''")
        types = await (await connection.execute(_TYPES)).fetchall()
        exposed = list(schemas)
        functions = await (await connection.execute(_ROW_FUNCTIONS, (exposed, exposed))).fetchall()
    finally:
        await connection.close()
    return _type_names(types, functions)


def _type_names(types: list[Any], functions: list[Any]) -> TypeNames:
    enums: dict[str, EnumType] = {}
    composites: dict[str, CompositeType] = {}
    rows: dict[str, tuple[Name, bool]] = {}
    domains: dict[str, str] = {}
    texts: set[str] = set()
    for name, kind, schema, plain, base, relation, is_text, labels, attributes in types:
        if kind == "e":
            enums[name] = EnumType((schema, plain), tuple(labels or ()))
        elif kind == "d":
            domains[name] = base
        elif relation == "c":
            composites[name] = CompositeType((schema, plain), tuple((item, text) for item, text in attributes or ()))
        elif relation is not None:
            rows[name] = (schema, plain), relation in "vm"
        elif is_text:
            texts.add(name)
    return TypeNames(
        enums,
        composites,
        rows,
        domains,
        frozenset(texts),
        tuple(
            RowFunction(
                (schema, name),
                argument,
                (origin_schema, origin),
                returned,
                None if target is None else (target_schema, target),
                returns_set,
                single,
            )
            for (
                schema,
                name,
                argument,
                origin_schema,
                origin,
                returned,
                target_schema,
                target,
                returns_set,
                single,
            ) in functions
        ),
    )
