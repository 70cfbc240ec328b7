"""Queries of the system catalogues. Parameters: `%(searched)s`, an array of schema names, and `%(relations)s`, an array
of oids; `{granted}` in `ROLES` is replaced before."""

RELATIONS = """
select c.oid, n.nspname, c.relname, c.relkind::text, e.description,
       case when c.relkind = 'v' then pg_relation_is_updatable(c.oid, true)
            when c.relkind = 'f' and exists (
              select from pg_foreign_table ft join pg_foreign_server fs on fs.oid = ft.ftserver
                   join pg_foreign_data_wrapper w on w.oid = fs.srvfdw
              where ft.ftrelid = c.oid and w.fdwhandler <> 0) then pg_relation_is_updatable(c.oid, true)
       end
from pg_class c join pg_namespace n on n.oid = c.relnamespace
     left join pg_description e on e.objoid = c.oid and e.classoid = 'pg_class'::regclass and e.objsubid = 0
where c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
  and n.nspname not in ('pg_catalog', 'information_schema') and n.nspname not like 'pg\\_toast%%'
"""
"""Of every schema: hidden ones can be tables below views, and junctions. PostgreSQL refuses to say what can be written
of a foreign table whose wrapper has no handler."""

COLUMNS = """
select a.attrelid, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), format_type(a.atttypid, null),
       a.atttypid, a.attnotnull,
       case when a.attgenerated <> '' then null
            when a.attidentity = 'd' then (
              select format('nextval(%%L::regclass)', format('%%I.%%I', sn.nspname, sc.relname))
              from pg_depend sd join pg_class sc on sc.oid = sd.objid and sc.relkind = 'S'
                   join pg_namespace sn on sn.oid = sc.relnamespace
              where sd.refobjid = a.attrelid and sd.refobjsubid = a.attnum and sd.deptype = 'i'
                and sd.classid = 'pg_class'::regclass limit 1)
            when d.adbin is not null then pg_get_expr(d.adbin, d.adrelid)
       end,
       a.attgenerated <> '' or a.attidentity = 'a',
       case when a.atttypmod <> -1 or t.typtype = 'd' then information_schema._pg_char_max_length(
         case when t.typtype = 'd' then t.typbasetype else a.atttypid end,
         case when t.typtype = 'd' then t.typtypmod else a.atttypmod end) end,
       e.description
from pg_attribute a
     join pg_class c on c.oid = a.attrelid and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
     join pg_namespace n on n.oid = c.relnamespace and n.nspname = any(%(searched)s)
     join pg_type t on t.oid = a.atttypid
     left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
     left join pg_description e
       on e.objoid = a.attrelid and e.classoid = 'pg_class'::regclass and e.objsubid = a.attnum
where a.attnum > 0 and not a.attisdropped
order by a.attrelid, a.attnum
"""

CONSTRAINTS = """
select k.oid, k.conname, k.contype::text, k.conrelid, k.conkey, k.confrelid, k.confkey
from pg_constraint k
where k.contype in ('p', 'u', 'f') and k.conparentid = 0 and k.conrelid <> 0
order by k.conname, k.oid
"""

COLUMN_NAMES = """
select a.attrelid, a.attnum, a.attname
from pg_attribute a
where a.attrelid = any(%(relations)s) and a.attnum > 0 and not a.attisdropped
"""

VIEWS = """
select c.oid, r.ev_action::text
from pg_rewrite r join pg_class c on c.oid = r.ev_class and c.relkind in ('v', 'm')
     join pg_namespace n on n.oid = c.relnamespace and n.nspname = any(%(searched)s)
where r.rulename = '_RETURN'
"""

DOMAINS = """
select t.oid, n.nspname, t.typname, t.typbasetype, format_type(t.typbasetype, null), format_type(t.oid, null),
       t.typnotnull, pg_get_expr(t.typdefaultbin, 0), b.typtype::text
from pg_type t join pg_namespace n on n.oid = t.typnamespace join pg_type b on b.oid = t.typbasetype
where t.typtype = 'd' and n.nspname <> 'information_schema'
"""

ENUMS = "select enumtypid, array_agg(enumlabel::text order by enumsortorder) from pg_enum group by enumtypid"

FUNCTIONS = """
select p.oid, n.nspname, p.proname, p.prokind::text, p.provolatile::text, p.proretset, p.prorows,
       p.proargnames, p.proargmodes::text[], p.pronargs, p.pronargdefaults, p.provariadic <> 0,
       (select array_agg(format_type(u.type, null) order by u.place)
        from unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) with ordinality u(type, place)),
       p.proargtypes::oid[],
       t.oid, t.typtype::text, coalesce(b.typname, t.typname), format_type(t.oid, null), p.proconfig,
       obj_description(p.oid, 'pg_proc')
from pg_proc p join pg_namespace n on n.oid = p.pronamespace and n.nspname = any(%(searched)s)
     join pg_type t on t.oid = p.prorettype
     left join pg_type b on b.oid = t.typbasetype
where p.prokind in ('f', 'a') and p.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype)
order by n.nspname, p.proname, p.oid
"""

ROW_TYPES = """
select t.oid, c.oid, n.nspname, c.relname
from pg_type t join pg_class c on c.oid = t.typrelid and c.relkind in ('r', 'p', 'v', 'm', 'f')
     join pg_namespace n on n.oid = c.relnamespace and n.nspname = any(%(searched)s)
"""

CASTS = """
select k.castsource, k.casttarget, format_type(k.castsource, null), format_type(k.casttarget, null),
       n.nspname, p.proname
from pg_cast k join pg_proc p on p.oid = k.castfunc join pg_namespace n on n.oid = p.pronamespace
     join pg_type s on s.oid = k.castsource join pg_type t on t.oid = k.casttarget
where k.castcontext = 'i' and k.castmethod = 'f'
  and ((s.typtype = 'd' and k.casttarget in ('json'::regtype, 'text'::regtype))
       or (t.typtype = 'd' and k.castsource in ('json'::regtype, 'text'::regtype)))
"""

ROLES = """
select r.rolname, s.setting
from pg_auth_members m join pg_roles r on r.oid = m.roleid, unnest(r.rolconfig) s(setting)
where m.member = (select oid from pg_roles where rolname = current_user) and s.setting not like 'array_nulls=%%'
  and exists (select from pg_settings p where p.name = split_part(s.setting, '=', 1) and (p.context = 'user' {granted}))
"""
GRANTED = "or has_parameter_privilege(current_user, p.name, 'set')"
"""Part of `ROLES` from PostgreSQL 15 on."""

TIMEOUT = """
select split_part(setting, '=', 2)
from pg_db_role_setting, unnest(setconfig) setting
where setting like 'statement_timeout=%%'
  and setrole in (0, (select oid from pg_roles where rolname = current_user))
  and setdatabase in (0, (select oid from pg_database where datname = current_database()))
order by setrole = 0, setdatabase = 0
limit 1
"""
"""The `statement_timeout` of the login role: that for this database, for all databases, or of the database."""
