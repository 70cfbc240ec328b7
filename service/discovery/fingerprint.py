"""One text that changes whenever discovery could find something else: worked out by the server, in some milliseconds.

Sums of hashes, so that the order of rows does not matter. Temporary objects, statistics and data are no part of it.
"""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from rowcall.service.discovery.catalogue import Wanted
from rowcall.service.discovery.queries import ROUTINES
from rowcall.service.discovery.trust import ROLES

_HASH = "coalesce(sum(hashtextextended({row}::text, 0)), 0)::text"

# xmin changes with every CREATE OR REPLACE, ALTER and GRANT, whatever the columns show.
_ROUTINES = f"""
select {_HASH.format(row="row(found, p.xmin)")}
from ({ROUTINES}) as found join pg_catalog.pg_proc p using (oid)
"""
_OTHERS = f"""
select pg_catalog.concat_ws(' ',
  (select {_HASH.format(row="row(c.oid, c.relname, c.relkind, c.relacl, c.relowner, c.relnamespace, a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attidentity, a.attgenerated, a.atthasdef, a.attacl)")}
   from pg_catalog.pg_class c
   join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
   where left(n.nspname, 3) <> 'pg_' and n.nspname <> 'information_schema' and c.relkind in ('r', 'v', 'm', 'f', 'p', 'c')),
  (select {_HASH.format(row="row(t.oid, t.typname, t.typbasetype, t.typtypmod, t.typnotnull, t.typowner, t.typacl)")}
   from pg_catalog.pg_type t join pg_catalog.pg_namespace n on n.oid = t.typnamespace
   where left(n.nspname, 3) <> 'pg_' and n.nspname <> 'information_schema'),
  (select {_HASH.format(row="row(w.ev_class, w.xmin)")}
   from pg_catalog.pg_rewrite w join pg_catalog.pg_class c on c.oid = w.ev_class
   join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where left(n.nspname, 3) <> 'pg_' and n.nspname <> 'information_schema'),
  (select {_HASH.format(row="d")} from pg_catalog.pg_description d
   where d.classoid in ('pg_catalog.pg_class'::regclass, 'pg_catalog.pg_type'::regclass, 'pg_catalog.pg_proc'::regclass)
     and d.objoid >= 16384),
  (select {_HASH.format(row="row(i.indrelid, i.indkey, i.indisprimary)")} from pg_catalog.pg_index i
   join pg_catalog.pg_class c on c.oid = i.indrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where i.indisprimary and left(n.nspname, 3) <> 'pg_' and n.nspname <> 'information_schema'),
  (select {_HASH.format(row="row(p.oid, p.xmin)")} from pg_catalog.pg_proc p
   join pg_catalog.pg_namespace n on n.oid = p.pronamespace where p.oid >= 16384 and left(n.nspname, 3) <> 'pg_'),
  (select {_HASH.format(row="row(found.oid, found.xmin)")}
   from (select oid, xmin, tgrelid from pg_catalog.pg_trigger where not tgisinternal
         union all select oid, xmin, adrelid from pg_catalog.pg_attrdef
         union all select oid, xmin, polrelid from pg_catalog.pg_policy
         union all select oid, xmin, conrelid from pg_catalog.pg_constraint where contype = 'c' and conrelid <> 0
        ) found(oid, xmin, relation)
   join pg_catalog.pg_class c on c.oid = found.relation join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where left(n.nspname, 3) <> 'pg_' and n.nspname <> 'information_schema'),
  (select {_HASH.format(row="row(o.oid, o.xmin)")} from pg_catalog.pg_operator o where o.oprcode >= 16384),
  (select {_HASH.format(row="row(o.oid, o.xmin)")} from pg_catalog.pg_constraint o where o.contypid <> 0),
  (select {_HASH.format(row="row(n.oid, n.nspname, n.nspacl)")} from pg_catalog.pg_namespace n
   where left(n.nspname, 3) <> 'pg_'))
"""  # noqa: E501 (one row of a catalogue is one line)

_ROLES = f"select {_HASH.format(row='r')} from ({ROLES}) as r"


async def catalogue_fingerprint(connection: AsyncConnection[Any], wanted: Wanted) -> str:
    texts = []
    if wanted.routines is not None:
        row = await (await connection.execute(_ROUTINES.encode(), wanted.routines.parameters())).fetchone()
        texts += [str(part) for part in row or ()]
    for query in (_OTHERS, _ROLES):
        row = await (await connection.execute(query.encode())).fetchone()
        texts += [str(part) for part in row or ()]
    return " ".join(texts)
