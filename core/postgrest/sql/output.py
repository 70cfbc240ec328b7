"""The body of a response as an SQL expression, and the columns that every main statement returns.

Source: PostgREST's documentation, Resource Representation.

The main statement is `WITH … SELECT <result columns> FROM (SELECT * FROM pgrst_source) _postgrest_t`. Its one row is
the same for reads, writes and calls, so that one place reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rowcall.core.postgrest.schema import MediaHandler
from rowcall.core.text.naming import quote_qualified

SOURCE = "pgrst_source"
ROW = "_postgrest_t"
SCALAR = "pgrst_scalar"
"""The column of the source with the result of a function that returns a scalar."""

COLUMNS = ("total", "rows", "body", "headers", "status", "inserted", "keys")
"""Texts of the result row.

total: number of rows regardless of the range, NULL if not counted. rows: number of rows in the body. headers, status:
settings `response.headers` and `response.status`, NULL if unset. inserted: number of rows that an upsert inserted.
keys: a JSON array of pairs of name and value, the primary key of the only written row, for `Location`; NULL otherwise.
"""


class Statement(NamedTuple):
    """SQL and its parameters as texts of unknown type; None is NULL."""

    sql: str
    parameters: tuple[str | None, ...]


class Parameters:
    """Collects the values of a statement."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[str | None] = []

    def add(self, value: str | None) -> str:
        """Add a value, and return its placeholder `$n`."""
        self.values.append(value)
        return f"${len(self.values)}"


@dataclass(frozen=True, slots=True)
class Output:
    r"""How rows become the body of the response.

    kind: `json` (array), `object` (the first row), `csv`, `geojson`, `none` (empty), `handler` (aggregate of a media
    type), or `value` (the value of the first row, as text). scalar: rows are the values of the column `SCALAR`.
    stripped: members that are null are left out of the JSON. handler: for `handler`, the function that aggregates the
    rows. binary: the body is a bytea; the SQL returns it in hexadecimal form (`\x…`), which the caller decodes.
    """

    kind: str = "json"
    scalar: bool = False
    stripped: bool = False
    handler: MediaHandler | None = None
    binary: bool = False


JSON_ROWS = Output()
NO_BODY = Output("none")

_CSV = (
    f"(SELECT COALESCE(string_agg(a.k, ','), '') FROM (SELECT json_object_keys(r)::text AS k FROM "
    f"(SELECT row_to_json(hh.*) AS r FROM {SOURCE} AS hh LIMIT 1) s) a) || E'\\n' || "
    f"COALESCE(string_agg(substring({ROW}::text, 2, length({ROW}::text) - 2), E'\\n'), '')"
)
_GEOJSON = (
    "json_build_object('type', 'FeatureCollection', 'features', "
    f"COALESCE(json_agg(ST_AsGeoJSON({ROW})::json), '[]'))::text"
)


def body(output: Output) -> str:
    """Return the SQL aggregate over the rows named `ROW` whose result is the body, as text."""
    row = f"{ROW}.{SCALAR}" if output.scalar else ROW
    match output.kind:
        case "none":
            return "''::text"
        case "json":
            return f"COALESCE({_strip_nulls(f'json_agg({row})', output)}, '[]')::text"
        case "object":
            return f"COALESCE({_strip_nulls(f'json_agg({row})->0', output)}, 'null')::text"
        case "csv":
            return _CSV
        case "geojson":
            return _GEOJSON
        case "value":
            return _text(f"(array_agg({row}))[1]", output)
        case "handler" if output.handler is not None:
            return _text(f"{quote_qualified(*output.handler.function)}({row})", output)
    raise ValueError(f"unknown kind of output: {output.kind!r}")


def _text(value: str, output: Output) -> str:
    """Return the SQL of the text of a value; of a bytea in hexadecimal form, whatever `bytea_output` the role has."""
    return rf"E'\\x' || encode({value}, 'hex')" if output.binary else f"{value}::text"


def _strip_nulls(text: str, output: Output) -> str:
    """Return the SQL of a JSON value, without null members if the output is stripped."""
    return f"json_strip_nulls({text})" if output.stripped else text


def result_columns(
    output: Output, *, total: str = "NULL", rows: str = "count(*)", inserted: str = "NULL", keys: str = "NULL"
) -> str:
    """Return the output list of the SELECT that ends the statement of a request, in the order of `COLUMNS`: counts,
    body, and the status and headers that SQL has set.

    All parameters are SQL expressions. total: number of all rows. rows: number of returned rows. inserted: number of
    inserted rows, or NULL. keys: primary key of the only written row as JSON, or NULL.
    """
    return ", ".join(
        (
            f"({total})::text AS total",
            f"({rows})::text AS rows",
            f"{body(output)} AS body",
            "nullif(current_setting('response.headers', true), '') AS headers",
            "nullif(current_setting('response.status', true), '') AS status",
            f"({inserted})::text AS inserted",
            f"({keys})::text AS keys",
        )
    )
