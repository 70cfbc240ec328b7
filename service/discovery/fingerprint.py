"""The fingerprint of the catalogue, which the server computes in milliseconds. If it is unchanged, so is the catalogue.

It consists of sums of hashes, so the order of rows does not matter. Temporary objects, statistics and data are not part
of it. Functions and procedures are divided into many groups with a sum each, so that only the routines of changed
groups have to be read again (`service.discovery.catalogue.discover_changes`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection

from rowcall.service.discovery.queries import GROUPS
from rowcall.service.discovery.trust import ROLES

_HASH = "coalesce(sum(hashtextextended({row}::text, 0)), 0)::text"

# xmin changes with every CREATE OR REPLACE, ALTER, GRANT and COMMENT, even if no column changes.
_ROUTINES = f"""
select part::int, sum(hash)::text from (
  select p.oid::bigint % {GROUPS}, hashtextextended(row(p.oid, p.xmin)::text, 0) from pg_catalog.pg_proc p
  where p.oid >= 16384
    and p.pronamespace not in (select n.oid from pg_catalog.pg_namespace n where left(n.nspname, 3) = 'pg_')
  union all
  select d.objoid::bigint % {GROUPS}, hashtextextended(row(d.objoid, d.xmin)::text, 1) from pg_catalog.pg_description d
  where d.classoid = 'pg_catalog.pg_proc'::regclass and d.objoid >= 16384
) found(part, hash) group by part
"""
_USERS = "left(n.nspname, 3) <> 'pg_' and n.nspname <> 'information_schema'"
_OTHERS = f"""
select pg_catalog.concat_ws(' ',
  (select {_HASH.format(row="row(c.oid, c.relname, c.relkind, c.relacl, c.relowner, c.relnamespace, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity, a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.attidentity, a.attgenerated, a.atthasdef, a.attacl)")}
   from pg_catalog.pg_class c
   join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
   where {_USERS} and c.relkind in ('r', 'v', 'm', 'f', 'p', 'c')),
  (select {_HASH.format(row="row(t.oid, t.xmin)")}
   from pg_catalog.pg_type t join pg_catalog.pg_namespace n on n.oid = t.typnamespace where {_USERS}),
  (select {_HASH.format(row="row(e.oid, e.xmin)")}
   from pg_catalog.pg_enum e join pg_catalog.pg_type t on t.oid = e.enumtypid
   join pg_catalog.pg_namespace n on n.oid = t.typnamespace where {_USERS}),
  (select {_HASH.format(row="row(w.ev_class, w.oid, w.xmin)")}
   from pg_catalog.pg_rewrite w join pg_catalog.pg_class c on c.oid = w.ev_class
   join pg_catalog.pg_namespace n on n.oid = c.relnamespace where {_USERS}),
  (select {_HASH.format(row="d")} from pg_catalog.pg_description d
   where d.classoid in ('pg_catalog.pg_class'::regclass, 'pg_catalog.pg_type'::regclass) and d.objoid >= 16384),
  (select {_HASH.format(row="row(i.indrelid, i.indexrelid, i.indkey, i.indisprimary, i.indimmediate)")}
   from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indrelid
   join pg_catalog.pg_namespace n on n.oid = c.relnamespace where {_USERS}),
  (select {_HASH.format(row="row(found.oid, found.xmin)")}
   from (select oid, xmin, tgrelid from pg_catalog.pg_trigger
         union all select oid, xmin, adrelid from pg_catalog.pg_attrdef
         union all select oid, xmin, polrelid from pg_catalog.pg_policy
         union all select oid, xmin, conrelid from pg_catalog.pg_constraint where conrelid <> 0
         union all select inhparent, xmin, inhrelid from pg_catalog.pg_inherits
        ) found(oid, xmin, relation)
   join pg_catalog.pg_class c on c.oid = found.relation join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where {_USERS}),
  (select {_HASH.format(row="row(o.oid, o.xmin)")} from pg_catalog.pg_operator o where o.oprcode >= 16384),
  (select {_HASH.format(row="row(o.oid, o.xmin)")} from pg_catalog.pg_constraint o where o.contypid <> 0),
  (select {_HASH.format(row="row(o.oid, o.xmin)")} from pg_catalog.pg_cast o where o.castfunc >= 16384),
  (select {_HASH.format(row="row(o.oid, o.xmin)")} from pg_catalog.pg_amproc o where o.amproc >= 16384),
  (select {_HASH.format(row="row(o.rngtypid, o.xmin)")} from pg_catalog.pg_range o where o.rngtypid >= 16384),
  (select {_HASH.format(row="row(o.oid, o.xmin)")} from pg_catalog.pg_event_trigger o),
  (select {_HASH.format(row="row(o.oid, o.xmin)")} from pg_catalog.pg_language o),
  (select {_HASH.format(row="row(o.oid, o.xmin)")} from pg_catalog.pg_extension o),
  (select {_HASH.format(row="row(o.classid, o.objid, o.refobjid)")} from pg_catalog.pg_depend o
   where o.refclassid = 'pg_catalog.pg_extension'::regclass and o.deptype = 'e'),
  (select {_HASH.format(row="row(o.roleid, o.member, o.xmin)")} from pg_catalog.pg_auth_members o),
  (select {_HASH.format(row="row(o.oid, o.rolsuper, o.rolinherit)")} from pg_catalog.pg_roles o),
  (select {_HASH.format(row="row(n.oid, n.nspname, n.nspacl, n.nspowner)")} from pg_catalog.pg_namespace n
   where left(n.nspname, 3) <> 'pg_'))
"""  # noqa: E501 (one row of a catalogue is one line)

_ROLES = f"select {_HASH.format(row='r')} from ({ROLES}) as r"


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The state of a catalogue as sums, to be compared with that of another moment."""

    routines: Mapping[int, str]
    """Sums of functions and procedures with their comments, by group: oid modulo `GROUPS`."""
    others: str
    """Sums of everything else."""

    def changed_groups(self, before: Fingerprint) -> frozenset[int] | None:
        """Return the groups of routines (oid modulo `GROUPS`) that have changed since `before`; None: something other
        than routines has changed.
        """
        if self.others != before.others:
            return None
        return frozenset(group for group, _ in self.routines.items() ^ before.routines.items())


async def catalogue_fingerprint(connection: AsyncConnection[Any]) -> Fingerprint:
    """Compute the fingerprint. If two fingerprints are equal, discovery has the same result. Raises `psycopg.Error`."""
    texts = [str(connection.info.server_version)]
    for query in (_OTHERS, _ROLES):
        row = await (await connection.execute(query.encode())).fetchone()
        texts += [str(part) for part in row or ()]
    rows = await (await connection.execute(_ROUTINES.encode())).fetchall()
    return Fingerprint(dict(rows), " ".join(texts))
