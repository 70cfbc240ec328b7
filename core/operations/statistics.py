"""Reports on the database: the SQL of the four reports, and their output as JSON and HTML (operations-6 to
operations-8).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape

import orjson

from rowcall.core.formats.table_formats import STYLE

Row = Sequence[object]

LAST_INDEX_SCAN = 160_000
"""First server version with the time of the last index scan."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report: its name and its query."""

    name: str
    sql: str
    """The query. `{schemas}` is replaced by the filter on schemas, whose only parameter is the pattern, and
    `{last_scan}` by the column of the last index scan."""
    filtered: bool = True
    """Whether the report can be filtered by schema."""

    def statement(self, version: int, *, filtered: bool) -> str:
        """Return the SQL. version: server version as libpq counts it, such as 170004. filtered: include the filter on
        schemas, with a parameter `%s` for the pattern; ignored by a report that cannot be filtered."""
        last_scan = "s.last_idx_scan" if version >= LAST_INDEX_SCAN else "null::timestamptz"
        schemas = "s.schemaname similar to %s" if filtered and self.filtered else "true"
        return self.sql.replace("{schemas}", schemas).replace("{last_scan}", last_scan)


def _verbose(interval: str) -> str:
    """Return SQL that formats an interval without the leading `@` of verbose intervals. interval: an SQL expression."""
    return rf"regexp_replace(({interval})::text, '^@ ', '')"


_NOW = "clock_timestamp()"

ROUTINES = Report(
    "routines",
    f"""
select s.funcid as oid, s.schemaname as schema, s.funcname as name,
       case p.prokind when 'p' then 'procedure' when 'a' then 'aggregate' when 'w' then 'window' else 'function' end
           || ' ' || s.funcid::regprocedure::text as signature,
       s.calls,
       {_verbose("justify_interval(make_interval(secs => s.total_time / 1000))")} as total_time,
       {_verbose("justify_interval(make_interval(secs => s.self_time / 1000))")} as self_time
from pg_stat_user_functions s join pg_proc p on p.oid = s.funcid
where {{schemas}} order by 2, 3, 4""",
)

TABLES = Report(
    "tables",
    """
select s.schemaname as schema, s.relname as name, s.n_live_tup as live_tuples, s.n_dead_tup as dead_tuples,
       round(100.0 * s.n_dead_tup / nullif(s.n_live_tup + s.n_dead_tup, 0), 2) as dead_tuple_percent,
       pg_size_pretty(pg_total_relation_size(s.relid)) as total_size,
       pg_size_pretty(pg_relation_size(s.relid)) as table_size,
       pg_size_pretty(pg_indexes_size(s.relid)) as index_size,
       s.seq_scan as sequential_scans, s.idx_scan as index_scans,
       round(100.0 * s.idx_scan / nullif(s.seq_scan + s.idx_scan, 0), 2) as index_scan_percent,
       s.n_tup_ins as inserts_count, s.n_tup_upd as updates_count, s.n_tup_del as deletes_count,
       s.last_vacuum, s.last_autovacuum, s.last_analyze, s.last_autoanalyze,
       s.vacuum_count + s.autovacuum_count as total_vacuums, s.analyze_count + s.autoanalyze_count as total_analyzes
from pg_stat_user_tables s where {schemas} order by 1, 2""",
)

INDEXES = Report(
    "indexes",
    """
select s.schemaname as schema, s.relname as table, s.indexrelname as index, i.indisunique as is_unique,
       i.indisprimary as is_primary, s.idx_scan as scans, {last_scan} as last_scan, s.idx_tup_fetch as tuples_fetched,
       pg_get_indexdef(s.indexrelid) as definition
from pg_stat_user_indexes s join pg_index i on i.indexrelid = s.indexrelid
where {schemas} order by 1, 2, 3""",
)

ACTIVITY = Report(
    "activity",
    f"""
select s.pid, s.usename as user, s.application_name as app, host(s.client_addr) as client_ip, s.datname as database,
       s.state, s.wait_event_type, s.wait_event,
       {_verbose(f"{_NOW} - s.state_change")} as state_duration,
       {_verbose(f"{_NOW} - s.backend_start")} as connection_age,
       {_verbose(f"{_NOW} - s.xact_start")} as transaction_duration,
       case s.state when 'active' then {_verbose(f"{_NOW} - s.query_start")}
                    when 'idle' then 'finished ' || {_verbose(f"{_NOW} - s.state_change")} || ' ago'
                    else s.state end as query_duration,
       left(s.query, 100) as query_preview, s.query
from pg_stat_activity s where s.pid <> pg_backend_pid() order by state_duration desc nulls last""",
    filtered=False,
)


def as_json(columns: Sequence[str], rows: Iterable[Row]) -> bytes:
    """Return rows as a JSON array of objects. columns: names in snake case, which become keys in camel case.

    Numbers have the precision of PostgreSQL; timestamps are in UTC, such as `2025-03-01T10:20:30.1234560Z`.
    """
    names = [orjson.dumps(_camel_case(column)) for column in columns]
    objects = (
        b"{" + b",".join(name + b":" + _json(value) for name, value in zip(names, row, strict=True)) + b"}"
        for row in rows
    )
    return b"[" + b",".join(objects) + b"]"


def as_html(columns: Sequence[str], rows: Iterable[Row]) -> bytes:
    """Return rows as an HTML table with style, not a complete document; it can be pasted into a spreadsheet. A cell of
    None is empty. columns: headings."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = [STYLE, "<table>", f"<tr>{head}</tr>"]
    lines += (f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row)}</tr>" for row in rows)
    return "\n".join((*lines, "</table>", "")).encode()


def _camel_case(column: str) -> str:
    first, *others = column.split("_")
    return first + "".join(word.capitalize() for word in others)


def _json(value: object) -> bytes:
    match value:
        case datetime.datetime():
            return orjson.dumps(_timestamp(value))
        case Decimal():
            return format(value, "f").encode()
        case _:
            return orjson.dumps(value)


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case datetime.datetime():
            return _timestamp(value)
        case _:
            return escape(str(value), quote=False).replace('"', "&quot;")


def _timestamp(value: datetime.datetime) -> str:
    """Return a timestamp in UTC with seven decimals: `2025-03-01T10:20:30.1234560Z`. value: with a time zone."""
    return value.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")
