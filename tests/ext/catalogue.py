"""Build a `Codecs` from the types of a real database, as the service does: keys of composites in camel case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowcall.ext.rendering.codecs import Codecs

if TYPE_CHECKING:
    from tests.ext.conftest import Connection

ARRAYS = """
    select a.oid::int8, a.typelem::int8, a.typdelim from pg_type a join pg_type e on e.typarray = a.oid
    where a.oid >= 16384
"""
DOMAINS = "select oid::int8, typbasetype::int8 from pg_type where typtype = 'd' and oid >= 16384"
COMPOSITES = """
    select t.oid::int8, array_agg(a.attname::text order by a.attnum), array_agg(a.atttypid::int8 order by a.attnum)
    from pg_type t join pg_attribute a on a.attrelid = t.typrelid
    where t.typtype = 'c' and t.oid >= 16384 and a.attnum > 0 and not a.attisdropped group by t.oid
"""


def camel_case(name: str) -> str:
    first, *others = [part for part in name.split("_") if part] or [""]
    return first[:1].lower() + first[1:] + "".join(part[:1].upper() + part[1:] for part in others)


def load(connection: Connection, *, resolve_nested: bool = True) -> Codecs:
    codecs = Codecs(resolve_nested)
    for oid, element, delimiter in connection.execute(ARRAYS):
        codecs.define_array(oid, element, delimiter)
    for oid, base in connection.execute(DOMAINS):
        codecs.define_domain(oid, base)
    for oid, names, types in connection.execute(COMPOSITES):
        codecs.define_composite(oid, [(camel_case(n).encode(), t) for n, t in zip(names, types, strict=True)])
    return codecs
