"""Decides whether a call may run with a forced generic plan (driver-4).

Re-planning an inlined function on every call costs two thirds of the request. A generic plan avoids that, but the
setting that forces it also affects other statements that the call runs, which can be 200 times slower with it. So it is
used only for calls whose generic plan reads no relation and runs no function that could contain a query.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

_REFUSED_NODES = frozenset({"ModifyTable", "Foreign Scan", "Custom Scan", "LockRows"})
_CALLED = re.compile(r'("(?:[^"]|"")+"|[\w$]+)\s*\(')
_CAST = re.compile(r'::\s*(?:[\w$]+\.)?("(?:[^"]|"")+"|[\w$]+)')
_OPERATOR = re.compile(r"[-+*/<>=~!@#%^&|`?]+")

_USER_NAMES = """
select
  (select coalesce(array_agg(distinct p.proname::text), '{}') from pg_proc p join pg_language l on l.oid = p.prolang
    where p.oid >= 16384 and (l.lanname not in ('c', 'internal') or p.prokind = 'a')),
  (select coalesce(array_agg(distinct t.typname::text), '{}') from pg_type t where t.oid >= 16384 and t.typtype = 'd'),
  (select coalesce(array_agg(distinct o.oprname::text), '{}') from pg_operator o join pg_proc p on p.oid = o.oprcode
    join pg_language l on l.oid = p.prolang where p.oid >= 16384 and l.lanname not in ('c', 'internal'))
"""


@dataclass(frozen=True, slots=True)
class UserNames:
    """Names of user-defined functions, domains and operators that may run queries, to find them in plans. The names
    have no schema, because EXPLAIN shows it only where the name alone is ambiguous.
    """

    functions: frozenset[str]
    domains: frozenset[str]
    operators: frozenset[str]


async def read_user_names(connection: psycopg.AsyncConnection[Any]) -> UserNames:
    """Read the names of user-defined objects that may run queries. Raises `psycopg.Error`."""
    row = await (await connection.execute(_USER_NAMES)).fetchone()
    assert row is not None  # noqa: S101 (a select without FROM has one row)
    return UserNames(frozenset(row[0]), frozenset(row[1]), frozenset(row[2]))


async def generic_plan(connection: psycopg.AsyncConnection[Any], statement: str, parameters: int) -> Any:
    """Return the generic plan of `statement` as EXPLAIN's JSON, without executing it. parameters: their number. Raises
    `psycopg.Error`.
    """
    if connection.info.server_version >= 160000:
        # As a simple query: in the extended protocol, $1 would have to be bound.
        result = await connection.execute(sql.SQL("explain (generic_plan, verbose, format json) ") + sql.SQL(statement))
        row = await result.fetchone()
    else:
        nulls = ", ".join(["null"] * parameters)
        async with connection.transaction(force_rollback=True):
            await connection.execute(sql.SQL("prepare rowcall_plan as ") + sql.SQL(statement))
            await connection.execute("set local plan_cache_mode = force_generic_plan")
            call = f"execute rowcall_plan({nulls})" if parameters else "execute rowcall_plan"
            result = await connection.execute(f"explain (verbose, format json) {call}".encode())
            row = await result.fetchone()
            await connection.execute("deallocate rowcall_plan")
    assert row is not None  # noqa: S101 (EXPLAIN in JSON is one row)
    return row[0] if not isinstance(row[0], str) else json.loads(row[0])


def is_eligible(plan: Any, names: UserNames) -> bool:
    """Return whether the whole plan satisfies points 1 and 2 of driver-4: it reads no relation, and runs nothing that
    may query.

    plan: as `generic_plan` returns it, or a part of it.
    """
    if isinstance(plan, list):
        return all(is_eligible(part, names) for part in plan)
    if not isinstance(plan, dict):
        return not isinstance(plan, str) or _mentions_nothing(plan, names)
    if "Relation Name" in plan or "Index Name" in plan or plan.get("Node Type") in _REFUSED_NODES:
        return False
    if _unquote(str(plan.get("Function Name", ""))) in names.functions:
        return False
    return all(is_eligible(value, names) for value in plan.values())


def _mentions_nothing(text: str, names: UserNames) -> bool:
    """Return whether an expression of a plan uses none of these functions, domains and operators."""
    if any(_unquote(name) in names.functions for name in _CALLED.findall(text)):
        return False
    if any(_unquote(name) in names.domains for name in _CAST.findall(text)):
        return False
    return not any(symbol in names.operators for symbol in _OPERATOR.findall(text))


def _unquote(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
