"""Reads the dependency graph for `core.sqlfile.session_effects`: sources of functions and definitions of relations.

It takes a handful of statements, whatever the number of objects. Each object has a mark, which changes with its
definition. `service.database.session.marks` reads the marks again with the same expressions, to check that an analysis
is still valid.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import TupleRow, tuple_row

from rowcall.core.catalogue.catalog import FIRST_USER_OID
from rowcall.core.sqlfile.session_effects import (
    HARMLESS_EXTENSIONS,
    CatalogueObject,
    DependencyGraph,
    DependencyGraphChange,
)
from rowcall.core.text.naming import quote_qualified
from rowcall.service.database.session.marks import EVERYWHERE_MARK, RELATION_MARK
from rowcall.service.discovery.queries import GROUPS, OF_GROUPS, SOME_OF_THEM

_USERS = "left(n.nspname, 3) <> 'pg_' and n.nspname <> 'information_schema'"

_BODY = "case when p.prosqlbody is not null then pg_catalog.pg_get_function_sqlbody(p.oid) else p.prosrc end"

_FUNCTIONS = """
select p.oid::bigint, n.nspname, p.proname, p.prokind::text, l.lanname,
       case when l.lanname in ('sql', 'plpgsql') then {body} end,
       pg_catalog.pg_get_expr(p.proargdefaults, 0),
       p.{mark}::text,
       (select e.extname from pg_catalog.pg_depend d join pg_catalog.pg_extension e on e.oid = d.refobjid
        where d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
          and d.refclassid = 'pg_catalog.pg_extension'::regclass limit 1),
       array(select pg_catalog.format_type(t.type, null) from unnest(p.proargtypes) with ordinality t(type, place)
             order by t.place),
       p.provariadic <> 0,
       case when p.prokind = 'a' then
         (select array_remove(array[a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggmtransfn, a.aggminvtransfn,
                                    a.aggmfinalfn]::oid[], 0)::bigint[]
          from pg_catalog.pg_aggregate a where a.aggfnoid = p.oid) end
from {source} p
join pg_catalog.pg_namespace n on n.oid = p.pronamespace
join pg_catalog.pg_language l on l.oid = p.prolang
where p.oid >= 16384
"""

_RELATIONS = f"""
select c.oid::bigint, n.nspname, c.relname, c.relkind::text, {RELATION_MARK}
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'v', 'm', 'f', 'p') and {_USERS}
"""

_TEXTS = f"""
select c.oid::bigint, pg_catalog.pg_get_viewdef(c.oid)
from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('v', 'm') and {_USERS}
union all
select w.ev_class::bigint, pg_catalog.pg_get_ruledef(w.oid) from pg_catalog.pg_rewrite w
where w.rulename <> '_RETURN' and w.ev_class >= 16384
union all
select d.adrelid::bigint, pg_catalog.pg_get_expr(d.adbin, d.adrelid) from pg_catalog.pg_attrdef d
union all
select k.conrelid::bigint, pg_catalog.pg_get_constraintdef(k.oid) from pg_catalog.pg_constraint k
where k.contype in ('c', 'x') and k.conrelid >= 16384
union all
select y.polrelid::bigint, pg_catalog.concat_ws(' ; ', pg_catalog.pg_get_expr(y.polqual, y.polrelid),
                                                pg_catalog.pg_get_expr(y.polwithcheck, y.polrelid))
from pg_catalog.pg_policy y
union all
select i.indrelid::bigint, pg_catalog.pg_get_indexdef(i.indexrelid) from pg_catalog.pg_index i
where (i.indexprs is not null or i.indpred is not null) and i.indrelid >= 16384
union all
select t.tgrelid::bigint, pg_catalog.pg_get_triggerdef(t.oid) from pg_catalog.pg_trigger t
where t.tgqual is not null and not t.tgisinternal
"""

_LEADS = """
select t.tgrelid::bigint, 'trigger', t.tgfoid::bigint from pg_catalog.pg_trigger t where not t.tgisinternal
union all
select k.conrelid::bigint, 'referenced', k.confrelid::bigint from pg_catalog.pg_constraint k where k.contype = 'f'
union all
select k.confrelid::bigint, 'referenced', k.conrelid::bigint from pg_catalog.pg_constraint k where k.contype = 'f'
union all
select h.inhparent::bigint, 'part', h.inhrelid::bigint from pg_catalog.pg_inherits h
union all
select h.inhrelid::bigint, 'referenced', h.inhparent::bigint from pg_catalog.pg_inherits h
"""

_OF_EXTENSION = """
exists (select from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = {oid}
        and d.deptype = 'e')
"""

_EVERYWHERE = f"""
select distinct f::bigint from (
  select castfunc from pg_catalog.pg_cast where castfunc >= 16384
  union all select oprcode from pg_catalog.pg_operator where oprcode >= 16384
  union all select amproc from pg_catalog.pg_amproc where amproc >= 16384
  union all select rngcanonical from pg_catalog.pg_range where rngcanonical >= 16384
  union all select rngsubdiff from pg_catalog.pg_range where rngsubdiff >= 16384
  union all select typinput from pg_catalog.pg_type where typinput >= 16384
  union all select typoutput from pg_catalog.pg_type where typoutput >= 16384
) found(f) where not {_OF_EXTENSION.format(oid="f")}
"""

_DOMAIN_CHECKS = """
select pg_catalog.pg_get_constraintdef(k.oid) from pg_catalog.pg_constraint k where k.contypid <> 0
"""

_POLYMORPHIC = {
    **dict.fromkeys(("anyelement", "anynonarray", "anycompatible", "anycompatiblenonarray", '"any"'), "integer"),
    **dict.fromkeys(("anyarray", "anycompatiblearray"), "integer[]"),
    **dict.fromkeys(("anyrange", "anycompatiblerange"), "int4range"),
    **dict.fromkeys(("anymultirange", "anycompatiblemultirange"), "int4multirange"),
}
"""Concrete types for polymorphic ones, for a call that only has to identify the function."""
_RULE_HEAD = re.compile(r"\Acreate\s+(unique\s+)?(rule|index|trigger)\b", re.IGNORECASE)
_TRIGGER_TAIL = re.compile(r"\bEXECUTE\s+(FUNCTION|PROCEDURE)\b[^']*\Z", re.IGNORECASE)


async def read_dependency_graph(connection: AsyncConnection[Any]) -> DependencyGraph:
    """Read the dependency graph: all objects that a statement may use. Raises `psycopg.Error`."""
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        # So that names of types in mentions have the same meaning in every session. Without compilation of the queries,
        # which takes longer than they do.
        await cursor.execute(
            "select pg_catalog.set_config('search_path', 'pg_catalog', true), pg_catalog.set_config('jit', 'off', true)"
        )
        functions = await _rows(
            cursor, _FUNCTIONS.format(body=_body(connection), source="pg_catalog.pg_proc", mark="xmin")
        )
        relations = await _rows(cursor, _RELATIONS)
        texts: defaultdict[int, list[str]] = defaultdict(list)
        for oid, text in await _rows(cursor, _TEXTS):
            if text:
                texts[oid].append(_TRIGGER_TAIL.sub("", _RULE_HEAD.sub("", text)))
        leads: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
        for oid, how, other in await _rows(cursor, _LEADS):
            leads[how, oid].add(other)
        everywhere = [row[0] for row in await _rows(cursor, _EVERYWHERE)]
        checks = [row[0] for row in await _rows(cursor, _DOMAIN_CHECKS)]
        conforming = "pg_catalog.current_setting('standard_conforming_strings')"
        mark, strings = (await _rows(cursor, f"select {EVERYWHERE_MARK}, {conforming}"))[0]
    functions_by_oid = {row[0] for row in functions}
    if strings != "on":
        checks.append("execute")  # A backslash may be an escape, so strings may end elsewhere than the lexer assumes.
    return DependencyGraph(
        (_function(row) for row in functions),
        (
            _relation(
                row,
                texts[row[0]],
                leads["trigger", row[0]] & functions_by_oid,
                leads["part", row[0]],
                leads["referenced", row[0]] - {row[0]},
            )
            for row in relations
        ),
        everywhere,
        checks,
        mark,
    )


async def read_changed_functions(
    connection: AsyncConnection[Any], known: DependencyGraph, groups: frozenset[int]
) -> DependencyGraphChange | None:
    """Read the functions of these groups (`service.discovery.fingerprint`) again, and return the new dependency graph
    with the objects whose session effects may have changed. The caller guarantees that nothing but functions of these
    groups has changed since `known`, which is not modified.

    None: everything has to be read, because a function has another name or schema, and the text of others may contain
    the name. Raises `psycopg.Error`.
    """
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute("select pg_catalog.set_config('search_path', 'pg_catalog', true)")
        oids = [row[0] for row in await _rows(cursor, OF_GROUPS, {"groups": sorted(groups)})]
        sql = _FUNCTIONS.format(body=_body(connection), source=SOME_OF_THEM, mark="mark")
        rows = await _rows(cursor, sql, {"oids": oids})
    functions = {function.oid: function for function in map(_function, rows)}
    before = {oid: function for oid, function in known.functions.items() if oid % GROUPS in groups}
    changed = {oid: function for oid, function in functions.items() if before.get(oid) != function}
    if any(oid in before and before[oid].shown != function.shown for oid, function in changed.items()):
        return None
    return known.with_functions(changed, before.keys() - functions.keys())


def _body(connection: AsyncConnection[Any]) -> str:
    """Return the SQL for the source of a function. Version 14 of PostgreSQL and later ones also have parsed bodies."""
    return _BODY if connection.info.server_version >= 140000 else "p.prosrc"


async def _rows(cursor: AsyncCursor[TupleRow], sql: str, parameters: dict[str, Any] | None = None) -> list[TupleRow]:
    await cursor.execute(sql.encode(), parameters)
    return await cursor.fetchall()


def _function(row: TupleRow) -> CatalogueObject:
    """Return the function of a row of `_FUNCTIONS`. It is readable if its source is in `texts` (SQL, PL/pgSQL), if it
    is an aggregate, whose functions are listed, or if it is a C function of one of `HARMLESS_EXTENSIONS`."""
    oid, schema, name, kind, language, body, defaults, mark, extension, types, variadic, parts = row
    has_source = language in ("sql", "plpgsql")
    aggregate = kind == "a"
    readable = has_source or aggregate or (language == "c" and extension in HARMLESS_EXTENSIONS)
    arguments = [f"null::{_POLYMORPHIC.get(type_name, type_name)}" for type_name in types]
    if variadic and arguments:
        arguments[-1] = f"variadic {arguments[-1]}"
    return CatalogueObject(
        oid=oid,
        names=(name,),
        shown=f"{schema}.{name}",
        texts=tuple(text for text in (body, defaults) if text),
        mark=mark,
        mention=f"select {quote_qualified(schema, name)}({', '.join(arguments)})",
        functions=tuple(oid_of_part for oid_of_part in parts or () if oid_of_part >= FIRST_USER_OID),
        readable=readable,
        why="" if readable else f"its language is {language}",
    )


def _relation(
    row: TupleRow, texts: list[str], triggers: set[int], parts: set[int], referenced: set[int]
) -> CatalogueObject:
    """Return the relation of a row of `_RELATIONS`. texts: its definitions, from `_TEXTS`. triggers: oids of its
    trigger functions. parts: oids of its partitions and child tables. referenced: oids of the relations at the other
    end of its foreign keys, and of its parent tables."""
    oid, schema, name, kind, mark = row
    return CatalogueObject(
        oid=oid,
        names=(name,),
        shown=f"{schema}.{name}",
        texts=tuple(texts),
        mark=mark,
        mention=f"select from {quote_qualified(schema, name)}",
        relations=tuple(sorted(parts)),
        triggers=tuple(sorted(triggers)),
        referenced=tuple(sorted(referenced)),
        readable=kind != "f",
        why="it is a foreign table" if kind == "f" else "",
    )
