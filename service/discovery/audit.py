"""Reads facts about the privileges of a service: its role, SECURITY DEFINER routines, policies
(`core.operations.audit`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg import AsyncConnection
from psycopg.rows import tuple_row

from rowcall.core.operations.audit import DatabaseFacts, Definer, OpenWrites, Role, TableFacts

# PostgreSQL reports a superuser as a member of every role, so the memberships of a superuser are not read.
ROLE = """
select r.rolname, r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb,
       (select d.datdba = r.oid from pg_catalog.pg_database d where d.datname = current_database()),
       array(select m.rolname::text from pg_catalog.pg_roles m
             where not r.rolsuper and m.rolname = any(%(reaching)s) and pg_has_role(m.oid, 'MEMBER') order by 1)
from pg_catalog.pg_roles r where r.rolname = current_user
"""
REACHING = (
    "pg_execute_server_program",
    "pg_read_all_data",
    "pg_read_server_files",
    "pg_write_all_data",
    "pg_write_server_files",
)
"""Predefined roles whose members can read or change all data, or reach the server's files or programs."""

DEFINERS = """
select p.oid, p.oid::regprocedure::text, o.rolname, o.rolsuper,
       (select substr(c, 13) from unnest(p.proconfig) c where c like 'search_path=%%' limit 1), p.prosrc = ''
from pg_catalog.pg_proc p
join pg_catalog.pg_namespace n on n.oid = p.pronamespace
join pg_catalog.pg_roles o on o.oid = p.proowner
where p.prosecdef and p.prorettype <> 'pg_catalog.trigger'::regtype
  and left(n.nspname, 3) <> 'pg_' and n.nspname <> 'information_schema'
  and has_schema_privilege(n.oid, 'USAGE') and has_function_privilege(p.oid, 'EXECUTE')
  and not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_proc'::regclass
                  and d.objid = p.oid and d.deptype = 'e')
order by 2
"""

PUBLIC_SCHEMAS = """
select n.nspname::text
from pg_catalog.pg_namespace n
cross join lateral aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
where a.grantee = 0 and a.privilege_type = 'CREATE' and left(n.nspname, 3) <> 'pg_'
order by 1
"""

TABLES = """
select c.oid, format('%%I.%%I', n.nspname, c.relname), c.relkind in ('v', 'm'), c.relrowsecurity,
       row_security_active(c.oid), pg_has_role(c.relowner, 'USAGE'),
       array(select lower(p) from unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE']) p
             where has_table_privilege(c.oid, p)
                or (p in ('SELECT', 'INSERT', 'UPDATE') and has_any_column_privilege(c.oid, p))),
       coalesce('security_invoker=true' = any(c.reloptions) or 'security_invoker=on' = any(c.reloptions), false)
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.oid = any(%(served)s::oid[]) or (c.relrowsecurity and has_schema_privilege(n.oid, 'USAGE')
                                         and has_any_column_privilege(c.oid, 'SELECT'))
order by 2
"""


OPEN_WRITES = """
select format('%%I.%%I', n.nspname, c.relname), written.privileges,
       c.relrowsecurity or coalesce('security_invoker=true' = any(c.reloptions)
                                    or 'security_invoker=on' = any(c.reloptions), false)
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
cross join lateral (
  select array_agg(lower(p)) as privileges from unnest(array['INSERT', 'UPDATE', 'DELETE']) p
  where has_table_privilege(%(role)s, c.oid, p)
     or (p <> 'DELETE' and has_any_column_privilege(%(role)s, c.oid, p))) written
where n.nspname = any(%(schemas)s) and c.relkind in ('r', 'p', 'v', 'f') and not c.relispartition
  and written.privileges is not null and has_schema_privilege(%(role)s, n.oid, 'USAGE')
order by 1
"""
ROLE_EXISTS = "select from pg_catalog.pg_roles where rolname = %(role)s"


async def read_facts(
    connection: AsyncConnection[Any],
    served: Sequence[int],
    anonymous: str | None = None,
    exposed: Sequence[str] = (),
) -> DatabaseFacts:
    """Read the facts about the role of the service, its privileges and policies.

    served: oids of the tables and views behind endpoints. anonymous: anonymous role of PostgREST's interface, about
    whose writes facts are read too; None: there is none. exposed: names of the schemas of that
    interface. Raises `psycopg.Error`.
    """
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute("set local search_path to pg_catalog")
        await cursor.execute(ROLE, {"reaching": list(REACHING)})
        role = await cursor.fetchone()
        await cursor.execute(DEFINERS.replace("%%", "%"))
        definers = await cursor.fetchall()
        await cursor.execute(PUBLIC_SCHEMAS)
        schemas = await cursor.fetchall()
        await cursor.execute(TABLES, {"served": list(served)})
        tables = await cursor.fetchall()
        open_writes: list[Any] = []
        if anonymous is not None:
            await cursor.execute(ROLE_EXISTS, {"role": anonymous})
            if await cursor.fetchone() is not None:
                await cursor.execute(OPEN_WRITES, {"role": anonymous, "schemas": list(exposed)})
                open_writes = await cursor.fetchall()
    assert role is not None  # noqa: S101 (a connection always has a role)
    return DatabaseFacts(
        _role(*role),
        tuple(Definer(*row) for row in definers),
        tuple(_table(*row) for row in tables),
        tuple(OpenWrites(name, tuple(privileges), has_policies) for name, privileges, has_policies in open_writes),
        tuple(row[0] for row in schemas),
    )


def _role(
    name: str, superuser: bool, bypasses: bool, roles: bool, databases: bool, owner: bool, memberships: list[str]
) -> Role:
    """Return the facts about the role of the service. Parameters: columns of `ROLE`. bypasses: row level security.
    roles, databases: it may create them. owner: it owns the database. memberships: those of `REACHING`.
    """
    return Role(name, superuser, bypasses, roles, databases, owner, tuple(memberships))


def _table(
    oid: int, name: str, is_view: bool, secured: bool, holds: bool, owned: bool, privileges: list[str], invoker: bool
) -> TableFacts:
    """Return the facts about a relation. A view with SECURITY INVOKER counts as having policies.

    Parameters: columns of `TABLES`. secured: row level security is enabled. holds: it applies to the role of the
    service. owned: the role has the rights of the owner. privileges: of the role, in lower case. invoker: a view has
    SECURITY INVOKER.
    """
    return TableFacts(oid, name, is_view, secured or invoker, holds or invoker, owned, frozenset(privileges))
