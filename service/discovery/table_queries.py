"""The SQL that reads tables and views of PostgreSQL 13 to 18: three statements, whatever their number."""

from __future__ import annotations

TABLES = """
with recursive silent(relation, event) as (
    select r.ev_class, 1 << r.ev_type::text::int
    from pg_catalog.pg_rewrite r
    where r.ev_type > '1' and r.ev_enabled <> 'D'
    group by r.ev_class, r.ev_type
    having bool_or(r.is_instead) and not bool_or(r.ev_action::text ~ ':returningList [(]')
    union
    select w.ev_class, s.event
    from silent s
    join pg_catalog.pg_depend d on d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid = s.relation
      and d.classid = 'pg_catalog.pg_rewrite'::regclass
    join pg_catalog.pg_rewrite w on w.oid = d.objid and w.ev_class <> s.relation and w.ev_enabled <> 'D'
    where (1 << w.ev_type::text::int = s.event or (w.ev_type = '1' and not exists (
        select from pg_catalog.pg_rewrite o
        where o.ev_class = w.ev_class and o.is_instead and o.ev_qual::text = '<>'
          and o.ev_enabled <> 'D' and 1 << o.ev_type::text::int = s.event
    ))) and not exists (
        select from pg_catalog.pg_trigger t
        where t.tgrelid = w.ev_class and t.tgtype & 64 > 0
          and t.tgtype & (case s.event when 8 then 4 when 16 then 8 else 16 end) > 0
    )
), gated(relation, event) as (
    select r.ev_class, 1 << r.ev_type::text::int
    from pg_catalog.pg_rewrite r
    join pg_catalog.pg_class v on v.oid = r.ev_class and v.relkind = 'v'
    where r.ev_type > '1' and r.is_instead and r.ev_qual::text <> '<>' and not exists (
        select from pg_catalog.pg_rewrite o
        where o.ev_class = r.ev_class and o.ev_type = r.ev_type and o.is_instead and o.ev_qual::text = '<>'
    ) and not exists (
        select from pg_catalog.pg_trigger t
        where t.tgrelid = r.ev_class and t.tgtype & 64 > 0
          and t.tgtype & (case 1 << r.ev_type::text::int when 8 then 4 when 16 then 8 else 16 end) > 0
    )
    union
    select w.ev_class, g.event
    from gated g
    join pg_catalog.pg_depend d on d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid = g.relation
      and d.classid = 'pg_catalog.pg_rewrite'::regclass
    join pg_catalog.pg_rewrite w on w.oid = d.objid and w.ev_type = '1' and w.ev_class <> g.relation
    where (array(select relid[1] from regexp_matches(w.ev_action::text, ':relid ([0-9]+)', 'g') as relid))[
        substring(w.ev_action::text from ':fromlist [(][{]RANGETBLREF :rtindex ([0-9]+)[}][)]')::int
    ]::oid = g.relation and not exists (
        select from pg_catalog.pg_rewrite o
        where o.ev_class = w.ev_class and 1 << o.ev_type::text::int = g.event
          and o.is_instead and o.ev_qual::text = '<>'
    ) and not exists (
        select from pg_catalog.pg_trigger t
        where t.tgrelid = w.ev_class and t.tgtype & 64 > 0
          and t.tgtype & (case g.event when 8 then 4 when 16 then 8 else 16 end) > 0
    )
)
select c.oid, c.relkind, n.nspname, c.relname, d.description, c.reltype,
       i.indkey::int2[], coalesce(i.indimmediate, false),
       events.granted & 16 > 0 and has_table_privilege(c.oid, 'DELETE'), events.granted, c.relowner,
       rules.silent, rules.ruled,
       exists (select from pg_catalog.pg_depend x where x.classid = 'pg_catalog.pg_class'::regclass and x.objid = c.oid
           and x.refclassid = 'pg_catalog.pg_extension'::regclass and x.deptype = 'e')
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
left join pg_catalog.pg_index i on i.indrelid = c.oid and i.indisprimary
left join pg_catalog.pg_description d
  on d.classoid = 'pg_catalog.pg_class'::regclass and d.objoid = c.oid and d.objsubid = 0
cross join lateral (
    select case when c.relkind = 'f' and not exists (
        select from pg_catalog.pg_foreign_table f
        join pg_catalog.pg_foreign_server s on s.oid = f.ftserver
        join pg_catalog.pg_foreign_data_wrapper w on w.oid = s.srvfdw
        where f.ftrelid = c.oid and w.fdwhandler <> 0
    ) then 0 else pg_relation_is_updatable(c.oid, true) end
) as possible(granted)
cross join lateral (
    select possible.granted & ~ (select coalesce(bit_or(g.event), 0) from gated g where g.relation = c.oid)
) as events(granted)
cross join lateral (
    select (select coalesce(sum(s.event), 0)::int from silent s where s.relation = c.oid),
           c.relhasrules and exists (
               select from pg_catalog.pg_rewrite r
               where r.ev_class = c.oid and r.ev_type in ('2', '3') and r.ev_enabled <> 'D'
           )
) as rules(silent, ruled)
where c.relkind in ('r', 'p', 'v', 'm', 'f')
  and c.relpersistence <> 't'
  and left(n.nspname, 3) <> 'pg_' and n.nspname <> 'information_schema'
  and (n.nspname <> 'rowcall' or pg_catalog.to_regclass('rowcall.schema_version') is null)
  and has_schema_privilege(n.oid, 'USAGE')
  and (not %(commented)s or d.description is not null)
  and (%(schema_similar_to)s::text is null or n.nspname::text similar to %(schema_similar_to)s)
  and (%(schema_not_similar_to)s::text is null or n.nspname::text not similar to %(schema_not_similar_to)s)
  and (%(include_schemas)s::text[] is null or n.nspname = any(%(include_schemas)s))
  and (%(exclude_schemas)s::text[] is null or n.nspname <> all(%(exclude_schemas)s))
  and (%(name_similar_to)s::text is null or c.relname::text similar to %(name_similar_to)s)
  and (%(name_not_similar_to)s::text is null or c.relname::text not similar to %(name_not_similar_to)s)
  and (%(include_names)s::text[] is null or c.relname = any(%(include_names)s))
  and (%(exclude_names)s::text[] is null or c.relname <> all(%(exclude_names)s))
order by n.nspname, c.relname
"""
"""One row for each relation.

- Temporary relations are excluded, because only their own session sees them.
- `pg_relation_is_updatable` fails for a foreign table whose wrapper has no handler, so it is not called for these.
- If a command has a rule with INSTEAD, also a conditional one, PostgreSQL refuses RETURNING unless an unconditional
  rule has it. This also holds for views over such a relation, and for rules that use it.
- A view whose only INSTEAD rules for a command are conditional is not writable by it, although
  `pg_relation_is_updatable` reports that it is. This also holds for views that are updatable through such a view. The
  relation that such a view updates stands alone in its FROM clause, and is found in the node tree of its rule: the
  dependencies of the rule include the relations of subqueries, too.
- Rules on INSERT and UPDATE prevent ON CONFLICT.
"""

COLUMNS = """
select a.attrelid, a.attnum, a.attname, a.atttypid, format_type(a.atttypid, a.atttypmod),
       a.attnotnull and not a.atthasdef and a.attidentity = '' and t.typdefault is null,
       a.attidentity, a.attgenerated <> '',
       has_column_privilege(a.attrelid, a.attnum, 'SELECT'),
       events.granted & 8 > 0 and (written.allowed or events.granted & 8 > events.automatic & 8)
         and has_column_privilege(a.attrelid, a.attnum, 'INSERT'),
       events.granted & 4 > 0 and written.allowed and has_column_privilege(a.attrelid, a.attnum, 'UPDATE'),
       has_schema_privilege(t.typnamespace, 'USAGE')
from unnest(%(tables)s::oid[], %(events)s::int[]) as wanted(oid, granted)
join pg_catalog.pg_class c on c.oid = wanted.oid
cross join lateral (
    select wanted.granted, case c.relkind when 'v' then pg_relation_is_updatable(c.oid, false) else wanted.granted end
) as events(granted, automatic)
join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join pg_catalog.pg_type t on t.oid = a.atttypid
cross join lateral (
    select c.relkind <> 'v' or pg_column_is_updatable(c.oid, a.attnum, true)
) as written(allowed)
order by a.attrelid, a.attnum
"""
"""Bits of the commands: 4 UPDATE, 8 INSERT, 16 DELETE. For a view that is insertable only by a trigger, all columns are
insertable."""

OPERATORS = """
select distinct on (t.oid) t.oid, n.nspname, o.oprname
from unnest(%(types)s::oid[]) as wanted(oid)
join pg_catalog.pg_type t on t.oid = wanted.oid
join pg_catalog.pg_opclass c on c.opcdefault and (c.opcintype = t.oid or exists (
    select from pg_catalog.pg_cast b
    where b.castsource = t.oid and b.casttarget = c.opcintype and b.castmethod = 'b' and b.castcontext = 'i'
))
join pg_catalog.pg_am m on m.oid = c.opcmethod and m.amname in ('btree', 'hash')
join pg_catalog.pg_amop e on e.amopfamily = c.opcfamily
  and e.amoplefttype = c.opcintype and e.amoprighttype = c.opcintype
  and e.amopstrategy = case m.amname when 'btree' then 3 else 1 end
join pg_catalog.pg_operator o on o.oid = e.amopopr
join pg_catalog.pg_namespace n on n.oid = o.oprnamespace
order by t.oid, c.opcintype <> t.oid, m.amname
"""
"""The equality of each type's default operator class: its own, or that of the type to which it is binary coercible."""
