"""Ignored objects: annotated objects that discovery leaves out because the role lacks a privilege, because of a switch
of the configuration, or because of their kind.

Without a diagnostic, users would search for a mistake in the comment, which is correct.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from rowcall.core.errors.diagnostics import Diagnostic
from rowcall.service.discovery.filters import NameFilter, RoutineFilter, TableFilter
from rowcall.service.discovery.queries import HIDDEN_COLUMN, SOME_OF_THEM
from rowcall.service.discovery.trust import Owners, Trust

# Built-in objects are excluded by their oids, before thousands of their descriptions are searched.
_ASKS = r"d.objoid >= 16384 and d.description ~ '(?in)^[ \t]*@?http([ \t\r]|$)'"
_NAMES = """
  and left(n.nspname, 3) <> 'pg_' and n.nspname <> 'information_schema'
  and (n.nspname <> 'rowcall' or pg_catalog.to_regclass('rowcall.schema_version') is null)
  and (%(schema_similar_to)s::text is null or n.nspname::text similar to %(schema_similar_to)s)
  and (%(schema_not_similar_to)s::text is null or n.nspname::text not similar to %(schema_not_similar_to)s)
  and (%(include_schemas)s::text[] is null or n.nspname = any(%(include_schemas)s))
  and (%(exclude_schemas)s::text[] is null or n.nspname <> all(%(exclude_schemas)s))
  and (%(name_similar_to)s::text is null or {name}::text similar to %(name_similar_to)s)
  and (%(name_not_similar_to)s::text is null or {name}::text not similar to %(name_not_similar_to)s)
  and (%(include_names)s::text[] is null or {name} = any(%(include_names)s))
  and (%(exclude_names)s::text[] is null or {name} <> all(%(exclude_names)s))
"""

_QUERY = f"""
select n.nspname, p.proowner, format('%%s.%%s(%%s)', n.nspname, p.proname, pg_catalog.oidvectortypes(p.proargtypes)),
       case p.prokind when 'p' then 'procedure' else 'function' end,
       format('%%I.%%I(%%s)', n.nspname, p.proname, pg_catalog.oidvectortypes(p.proargtypes)),
       quote_ident(n.nspname), quote_ident(coalesce({HIDDEN_COLUMN}, rn.nspname)), quote_ident(current_user),
       p.prokind::text,
       p.prorettype in ('pg_catalog.trigger'::regtype, 'pg_catalog.event_trigger'::regtype), lower(l.lanname),
       has_schema_privilege(n.oid, 'USAGE'), has_schema_privilege(rn.oid, 'USAGE') and {HIDDEN_COLUMN} is null,
       pg_has_role(p.proowner, 'USAGE') or has_function_privilege(p.oid, 'EXECUTE'), p.oid::bigint
from pg_catalog.pg_description d
join {{source}} p on p.oid = d.objoid
join pg_catalog.pg_namespace n on n.oid = p.pronamespace
join pg_catalog.pg_language l on l.oid = p.prolang
join pg_catalog.pg_type r on r.oid = p.prorettype
join pg_catalog.pg_namespace rn on rn.oid = r.typnamespace
where d.classoid = 'pg_catalog.pg_proc'::regclass and d.objsubid = 0
  and (not %(served)s or p.prokind not in ('f', 'p') or lower(l.lanname) in ('c', 'internal')
       or p.prorettype in ('pg_catalog.trigger'::regtype, 'pg_catalog.event_trigger'::regtype)
       or not has_schema_privilege(n.oid, 'USAGE') or not has_schema_privilege(rn.oid, 'USAGE')
       or {HIDDEN_COLUMN} is not null
       or not (pg_has_role(p.proowner, 'USAGE') or has_function_privilege(p.oid, 'EXECUTE')))
  and {_ASKS}{_NAMES.format(name="p.proname")}
"""
"""The condition excludes objects that are certainly served, which are nearly all, so that few rows are sent."""
_ROUTINES = _QUERY.replace("{source}", "pg_catalog.pg_proc")
_SOME_ROUTINES = f"{_QUERY.replace('{source}', SOME_OF_THEM)} and d.objoid = any(%(oids)s::oid[])"
_TABLES = f"""
select n.nspname, c.relowner, format('%%s.%%s', n.nspname, c.relname), format('%%I.%%I', n.nspname, c.relname),
       quote_ident(n.nspname), quote_ident(current_user), has_schema_privilege(n.oid, 'USAGE'),
       has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE') or has_table_privilege(c.oid, 'DELETE')
from pg_catalog.pg_description d
join pg_catalog.pg_class c on c.oid = d.objoid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where d.classoid = 'pg_catalog.pg_class'::regclass and d.objsubid = 0 and c.relkind in ('r', 'p', 'v', 'm', 'f')
  and c.relpersistence <> 't' and {_ASKS}{_NAMES.format(name="c.relname")}
order by 3
"""

_SERVED = "fp"
"""`pg_proc.prokind` of functions and procedures."""
_OTHER_KINDS: Mapping[str, str] = {"a": "an aggregate", "w": "a window function"}


async def ignored_routines(
    cursor: AsyncCursor[TupleRow],
    owners: Owners,
    routines: tuple[RoutineFilter, bool] | None,
    oids: Sequence[int] | None = None,
) -> dict[int, Diagnostic]:
    """Return diagnostics of ignored routines by oid. Routines of untrusted owners have none here:
    `trust.untrusted_owner_diagnostics` reports them. Raises `psycopg.Error`.

    routines: the filter, and whether routines are served at all; None: nothing is reported. oids: only these routines;
    None: all.
    """
    if routines is None:
        return {}
    names, served = routines
    query = _ROUTINES if oids is None else _SOME_ROUTINES
    rows = await _rows(cursor, query, names, {"served": served} | ({} if oids is None else {"oids": list(oids)}))
    diagnostics: dict[int, Diagnostic] = {}
    for row in rows:
        reason = _why_no_routine(row, names, served=served)
        if reason is not None and owners.trusts(Trust.of(names), row[0], row[1]):
            diagnostics[row[-1]] = Diagnostic(row[2], None, reason, left_out=1)
    return diagnostics


async def ignored_tables_of(
    cursor: AsyncCursor[TupleRow], owners: Owners, tables: tuple[TableFilter, bool] | None
) -> tuple[Diagnostic, ...]:
    """Return diagnostics of ignored tables and views. Raises `psycopg.Error`. tables: the filter, and whether tables
    are served at all; None: nothing is reported."""
    if tables is None:
        return ()
    names, served = tables
    diagnostics: list[Diagnostic] = []
    for row in await _rows(cursor, _TABLES, names, {}):
        reason = _why_no_table(row, served=served)
        if reason is not None and owners.trusts(Trust.of(names), row[0], row[1]):
            diagnostics.append(Diagnostic(row[2], None, reason, left_out=1))
    return tuple(diagnostics)


async def _rows(cursor: AsyncCursor[TupleRow], query: str, names: NameFilter, more: Mapping[str, Any]) -> list[Any]:
    """Run a query with the conditions of a filter, and return its rows. more: further parameters of the query by name.
    Raises `psycopg.Error`."""
    await cursor.execute(query.encode(), {**NameFilter.parameters(names), **more})
    return await cursor.fetchall()


def _why_no_routine(row: TupleRow, names: RoutineFilter, *, served: bool) -> str | None:
    """Return the message why a routine is left out, with the remedy; None if this module knows no reason.

    row: of `_QUERY`. names: the filter. served: whether routines are served at all.
    """
    _, _, _, kind, signature, schema, return_schema, role, prokind, trigger, language, *allowed, _ = row
    if prokind not in _SERVED:
        return f"left out, as it is {_OTHER_KINDS.get(prokind, 'no function')}: functions and procedures are served"
    if trigger:
        return "left out, as it is a trigger function, which only a trigger can call"
    if not served:
        return "HTTP in its comment has no effect, as Service:RoutineOptions:Enabled is false"
    if language in ("c", "internal") and names.exclude_languages is None and not names.include_languages:
        return f"left out, as its language is {language}: change Service:RoutineOptions:ExcludeLanguages to serve it"
    grants = _format_missing_grants(
        (allowed[0], f"GRANT USAGE ON SCHEMA {schema} TO {role}"),
        (allowed[1], f"GRANT USAGE ON SCHEMA {return_schema} TO {role}"),
        (allowed[2], f"GRANT EXECUTE ON {kind.upper()} {signature} TO {role}"),
    )
    return f"left out, as the role {role} may not execute it: {grants}" if grants else None


def _why_no_table(row: TupleRow, *, served: bool) -> str | None:
    """Return the message why a table or view is left out, with the remedy; None if this module knows no reason.

    row: of `_TABLES`. served: whether tables are served at all.
    """
    _, _, _, quoted, schema, role, uses, touches = row
    if not served:
        return "HTTP in its comment has no effect, as Service:CrudSource:Enabled is false"
    grants = _format_missing_grants(
        (uses, f"GRANT USAGE ON SCHEMA {schema} TO {role}"), (touches, f"GRANT SELECT ON {quoted} TO {role}")
    )
    return f"left out, as the role {role} may neither read nor change it: {grants}" if grants else None


def _format_missing_grants(*grants: tuple[bool, str]) -> str:
    """Return the GRANT statements for privileges that the role lacks, joined with `; `; empty if it lacks none. grants:
    for each privilege, whether the role has it, and the statement that grants it."""
    return "; ".join(dict.fromkeys(_missing_grants(grants)))


def _missing_grants(grants: tuple[tuple[bool, str], ...]) -> Iterator[str]:
    """Yield the GRANT statements for privileges that the role lacks. grants: as for `_format_missing_grants`."""
    return (statement for granted, statement in grants if not granted)
