"""Definition marks: texts that change with the definition of a function or a relation, made of the `xmin` of catalogue
rows.

They are read when a routine is analysed, and again when a guarded statement is prepared.
"""

from __future__ import annotations

RELATION_MARK = """
pg_catalog.md5(pg_catalog.concat_ws(' ', c.relkind, c.relrowsecurity, c.relforcerowsecurity,
  (select string_agg(concat_ws(':', t.oid, t.xmin, t.tgenabled), ',' order by t.oid)
   from pg_catalog.pg_trigger t where t.tgrelid = c.oid), '/',
  (select string_agg(concat_ws(':', w.oid, w.xmin), ',' order by w.oid)
   from pg_catalog.pg_rewrite w where w.ev_class = c.oid), '/',
  (select string_agg(concat_ws(':', d.oid, d.xmin), ',' order by d.oid)
   from pg_catalog.pg_attrdef d where d.adrelid = c.oid), '/',
  (select string_agg(concat_ws(':', k.oid, k.xmin), ',' order by k.oid)
   from pg_catalog.pg_constraint k where k.conrelid = c.oid), '/',
  (select string_agg(concat_ws(':', y.oid, y.xmin), ',' order by y.oid)
   from pg_catalog.pg_policy y where y.polrelid = c.oid), '/',
  (select string_agg(i.indexrelid::text, ',' order by i.indexrelid)
   from pg_catalog.pg_index i where i.indrelid = c.oid), '/',
  (select string_agg(h.inhrelid::text, ',' order by h.inhrelid)
   from pg_catalog.pg_inherits h where h.inhparent = c.oid)))
"""

EVERYWHERE_MARK = """
pg_catalog.md5(pg_catalog.concat_ws('/', pg_catalog.current_setting('standard_conforming_strings'),
  (select string_agg(concat_ws(':', o.oid, o.xmin), ',' order by o.oid) from pg_catalog.pg_cast o
   where o.castfunc >= 16384),
  (select string_agg(concat_ws(':', o.oid, o.xmin), ',' order by o.oid) from pg_catalog.pg_operator o
   where o.oprcode >= 16384),
  (select string_agg(concat_ws(':', o.oid, o.xmin), ',' order by o.oid) from pg_catalog.pg_constraint o
   where o.contypid <> 0),
  (select string_agg(concat_ws(':', o.oid, o.evtenabled), ',' order by o.oid) from pg_catalog.pg_event_trigger o)))
"""

MARKS = f"""
select pg_catalog.concat_ws(',', 'everywhere ' || {EVERYWHERE_MARK},
  (select string_agg(concat_ws(' ', 'f' || p.oid, p.xmin), ',') from pg_catalog.pg_proc p
   where p.oid = any ($1::pg_catalog.oid[])),
  (select string_agg(concat_ws(' ', 'r' || c.oid, {RELATION_MARK}), ',') from pg_catalog.pg_class c
   where c.oid = any ($2::pg_catalog.oid[])))
"""
"""The marks of some functions and relations as one text, for
`core.catalogue.session_effects.dependencies_unchanged`.
"""
