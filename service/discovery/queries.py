"""The SQL that reads the catalogue of PostgreSQL 13 to 18: three statements, whatever the number of routines."""

from __future__ import annotations

GROUPS = 1024
"""Number of groups of functions and procedures, by oid, for the fingerprint."""

OF_GROUPS = f"""
select found.oid from pg_catalog.pg_proc found
where found.oid >= 16384 and found.oid::bigint %% {GROUPS} = any(%(groups)s::bigint[])
"""
"""The oids of all user-defined functions and procedures in some groups."""
SOME_OF_THEM = """
(select found.*, found.xmin as mark from pg_catalog.pg_proc found where found.oid = any(%(oids)s::oid[]))
"""
"""Replaces `pg_proc` in a query by some of its rows. The oids are explicit, so that the rows are found by index
even if the catalogue has no statistics yet, as right after a migration."""

HIDDEN_COLUMN = """
(select ns.nspname from unnest(p.proallargtypes, p.proargmodes) as a(type, mode)
 join pg_catalog.pg_type t on t.oid = a.type join pg_catalog.pg_namespace ns on ns.oid = t.typnamespace
 where a.mode in ('o', 'b', 't') and not has_schema_privilege(ns.oid, 'USAGE') limit 1)
"""
"""Schema of the type of an OUT parameter or a column of the result, on which the role has no USAGE; NULL: there is
none. The return type of routines with several of them is `record`."""

_ROUTINES = r"""
select p.oid, p.prokind = 'p', n.nspname, p.proname, d.description, l.lanname, p.proisstrict,
       p.provolatile, p.proretset, p.prorettype, format_type(p.prorettype, null),
       p.proargtypes::text, p.proallargtypes::text, array_to_string(p.proargmodes, ''), p.proargnames,
       p.pronargdefaults, p.proowner,
       p.prokind = 'p' and l.lanname <> 'sql' and (l.lanname <> 'plpgsql' or p.prosrc ~* '\m(commit|rollback|call)\M'),
       case when p.prosrc = '' then pg_get_functiondef(p.oid) else p.prosrc end ~ 'response[.](status|headers)',
       p.{mark}::text,
       exists (select from pg_catalog.pg_depend x where x.classid = 'pg_catalog.pg_proc'::regclass and x.objid = p.oid
           and x.refclassid = 'pg_catalog.pg_extension'::regclass and x.deptype = 'e')
from {source} p
join pg_catalog.pg_namespace n on n.oid = p.pronamespace
join pg_catalog.pg_language l on l.oid = p.prolang
join pg_catalog.pg_type r on r.oid = p.prorettype
left join pg_catalog.pg_description d
  on d.classoid = 'pg_catalog.pg_proc'::regclass and d.objoid = p.oid and d.objsubid = 0
where p.prokind in ('f', 'p')
  and p.prorettype not in ('pg_catalog.trigger'::regtype, 'pg_catalog.event_trigger'::regtype)
  and left(n.nspname, 3) <> 'pg_' and n.nspname <> 'information_schema'
  and (n.nspname <> 'rowcall' or pg_catalog.to_regclass('rowcall.schema_version') is null)
  and has_schema_privilege(n.oid, 'USAGE')
  and has_schema_privilege(r.typnamespace, 'USAGE')
  and (p.proallargtypes is null or {hidden_column} is null)
  and (pg_has_role(p.proowner, 'USAGE') or has_function_privilege(p.oid, 'EXECUTE'))
  and (%(schema_similar_to)s::text is null or n.nspname::text similar to %(schema_similar_to)s)
  and (%(schema_not_similar_to)s::text is null or n.nspname::text not similar to %(schema_not_similar_to)s)
  and (%(include_schemas)s::text[] is null or n.nspname = any(%(include_schemas)s))
  and (%(exclude_schemas)s::text[] is null or n.nspname <> all(%(exclude_schemas)s))
  and (%(name_similar_to)s::text is null or p.proname::text similar to %(name_similar_to)s)
  and (%(name_not_similar_to)s::text is null or p.proname::text not similar to %(name_not_similar_to)s)
  and (%(include_names)s::text[] is null or p.proname = any(%(include_names)s))
  and (%(exclude_names)s::text[] is null or p.proname <> all(%(exclude_names)s))
  and (%(include_languages)s::text[] is null or lower(l.lanname) = any(%(include_languages)s))
  and (%(exclude_languages)s::text[] is null or lower(l.lanname) <> all(%(exclude_languages)s))
order by n.nspname, p.proname, p.oid
"""
_ROUTINES = _ROUTINES.replace("{hidden_column}", HIDDEN_COLUMN)
ROUTINES = _ROUTINES.replace("{source}", "pg_catalog.pg_proc").replace("{mark}", "xmin")
SOME_ROUTINES = _ROUTINES.replace("{source}", SOME_OF_THEM).replace("{mark}", "mark")
"""The same for some oids. One row for each routine. Descriptions are found by catalogue and oid, because an oid alone
is not unique."""

TYPES = """
with recursive needed(oid) as (
    select unnest(%(roots)s::oid[])
    union
    select related.oid
    from needed
    join pg_catalog.pg_type t on t.oid = needed.oid
    cross join lateral (
        select t.typelem where t.typelem <> 0
        union all
        select t.typbasetype where t.typbasetype <> 0
        union all
        select a.atttypid from pg_catalog.pg_attribute a
        where t.typrelid <> 0 and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
    ) as related(oid)
)
select t.oid, n.nspname, t.typname, format_type(t.oid, null),
       case when e.typarray = t.oid then 'a' else t.typtype::text end,
       t.typelem, t.typdelim, t.typbasetype, d.description, t.typowner
from needed
join pg_catalog.pg_type t on t.oid = needed.oid
join pg_catalog.pg_namespace n on n.oid = t.typnamespace
left join pg_catalog.pg_type e on e.oid = t.typelem
left join pg_catalog.pg_description d
  on d.classoid = 'pg_catalog.pg_type'::regclass and d.objoid = t.oid and d.objsubid = 0
"""
"""The roots and all types that they refer to. `int2vector` has elements but is not an array; only `typarray` shows
that."""

ATTRIBUTES = """
select t.oid, a.attname, a.atttypid, format_type(a.atttypid, a.atttypmod)
from pg_catalog.pg_type t
join pg_catalog.pg_attribute a on a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped
where t.oid = any(%(composites)s::oid[])
  and has_schema_privilege(t.typnamespace, 'USAGE')
order by t.oid, a.attnum
"""
"""Attributes of composites and tables in schemas that the role may use; other types have no attributes."""
