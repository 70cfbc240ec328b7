"""Calls of functions as SQL: each function runs exactly once.

Source: PostgREST's documentation, Functions as RPC.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rowcall.core.postgrest.plan import Plan
from rowcall.core.postgrest.request.payload import Payload, PayloadKind
from rowcall.core.postgrest.schema import Argument, Column, Function, Relation, Schema
from rowcall.core.postgrest.sql.output import ROW, SCALAR, SOURCE, Output, Parameters, Statement, result_columns
from rowcall.core.postgrest.sql.reads import Renderer, count_query
from rowcall.core.text.naming import quote_identifier, quote_qualified

CALL = "pgrst_call"
PAYLOAD = "pgrst_payload"
_WITHOUT_LENGTH = {
    "bit": "bit varying",
    "bit[]": "bit varying[]",
    "character": "character varying",
    "character[]": "character varying[]",
}
"""Types whose default length is 1 → types that accept any length."""
_FROM_TEXT = frozenset(
    (
        *("bigint", "boolean", "character", "character varying", "date", "double precision", "integer", "numeric"),
        *("real", "smallint", "text", "timestamp with time zone", "timestamp without time zone", "uuid"),
    )
)
"""Types for which `json_to_record` calls the input function with the text of a string, number or boolean."""


def argument_type(argument: Argument) -> str:
    """Return the SQL type to which the text of an argument is cast: the declared type, except that `bit` and
    `character` become types of any length, because a cast to them retains one character only."""
    return _WITHOUT_LENGTH.get(argument.type, argument.type)


def call_statement(
    schema: Schema,
    function: Function,
    plan: Plan,
    arguments: Sequence[tuple[str, str]],
    payload: Payload | None,
    *,
    output: Output,
    count: bool = False,
) -> Statement:
    """Return the SQL statement that calls a function once and selects the requested part of its result.

    plan: what the request selects from the result. arguments: name and text of each argument of a GET, in order.
    payload: body of a POST; None: the arguments are those of a GET. output: how rows become the body of the response.
    count: the statement also counts all rows of the result, regardless of the range; without SETOF, the count is 1.
    """
    parameters = Parameters()
    called = _call(function, arguments, payload, parameters)
    renderer = Renderer(schema, parameters, declared=_declared_rows(function))
    level = renderer.level(plan.root, source=CALL)
    total, counted = "NULL", ""
    if count and not function.returns_set:
        total = "1"
    elif count:
        counted = f", pgrst_count AS ({count_query(renderer, plan.root, None, CALL)})"
        total = "SELECT count(*) FROM pgrst_count"
    # PostgreSQL leaves out a stable function whose result is not used, unless its CTE is materialized.
    materialized = "MATERIALIZED " if output.kind == "none" and is_scalar(function) else ""
    sql = (
        f"WITH {CALL} AS {materialized}({called}), {SOURCE} AS ({level}){counted} "
        f"SELECT {result_columns(output, total=total)} FROM (SELECT * FROM {SOURCE}) {ROW}"
    )
    return Statement(sql, tuple(parameters.values))


def _declared_rows(function: Function) -> Relation:
    """Return a relation with the columns that a function declares by OUT parameters or TABLE."""
    outputs = enumerate(function.outputs, 1)
    columns = tuple(Column(item.name or f"column{place}", item.type, item.type) for place, item in outputs)
    return Relation(*function.result, columns)


def is_scalar(function: Function) -> bool:
    """Return whether a function returns a value, or a set of values, without a column name.

    This includes records without declared columns, because their names are only known when the function runs.
    """
    return not function.returns_composite


def _call(
    function: Function, arguments: Sequence[tuple[str, str]], payload: Payload | None, parameters: Parameters
) -> str:
    """Return the SELECT that calls the function once, and add the values of its `$n` to `parameters`. arguments,
    payload: as in `call_statement`."""
    if payload is None:
        return _select_call(function, _from_texts(function, arguments, parameters))
    if len(function.arguments) == 1 and not function.arguments[0].name:
        return _select_call(function, f"{parameters.add(payload.text)}::{function.arguments[0].type}")
    if payload.kind is PayloadKind.FORM:
        return _select_call(function, _from_texts(function, payload.fields, parameters))
    used = [item for item in function.arguments if item.name in payload.keys]
    if not used:
        return _select_call(function, "")
    if payload.texts is not None and all(item.type in _FROM_TEXT and not item.variadic for item in used):
        # Half the work of PostgreSQL for a small function, and its arguments are known when the call is planned.
        fields = tuple(zip(payload.keys, payload.texts, strict=True))
        return _select_call(function, _from_texts(function, fields, parameters))
    columns = ", ".join(f"{quote_identifier(item.name)} {argument_type(item)}" for item in used)
    reader = "json_to_recordset" if payload.is_array else "json_to_record"
    body = f"SELECT * FROM {reader}({parameters.add(payload.text)}::json) AS _({columns}) LIMIT 1"
    names = (_named_argument(item, f"{PAYLOAD}.{quote_identifier(item.name)}") for item in used)
    return f"SELECT {CALL}.* FROM ({body}) {PAYLOAD}, LATERAL ({_select_call(function, ', '.join(names))}) {CALL}"


def _select_call(function: Function, arguments: str) -> str:
    """Return the SELECT whose rows are the result of a call. arguments: of the call, as SQL."""
    call = f"{quote_qualified(function.schema, function.name)}({arguments})"
    return f"SELECT {call} AS {SCALAR}" if is_scalar(function) else f"SELECT * FROM {call}"


def _from_texts(function: Function, fields: Sequence[tuple[str, str | None]], parameters: Parameters) -> str:
    """Return the arguments of the call as SQL, and add their texts to `parameters`. Arguments without a text are left
    out, so that their defaults apply. If a name is repeated, its last text is used.

    fields: names and texts; None is NULL. A variadic argument gets all texts with its name as an array; none of them
    may be None.
    """
    parts: list[str] = []
    for argument in function.arguments:
        values = [value for name, value in fields if name == argument.name]
        if not values:
            continue
        text = _array(map(str, values)) if argument.variadic else values[-1]
        parts.append(_named_argument(argument, f"{parameters.add(text)}::{argument_type(argument)}"))
    return ", ".join(parts)


def _named_argument(argument: Argument, value: str) -> str:
    """Return the SQL of an argument in named notation, such as `"x" := $1::integer`, with VARIADIC if it is variadic.
    value: SQL of the value."""
    word = "VARIADIC " if argument.variadic else ""
    return f"{word}{quote_identifier(argument.name)} := {value}"


def _array(elements: Iterable[str]) -> str:
    """Return texts as the value of an array parameter, such as `{"a","b"}`; it is not SQL."""
    return "{" + ",".join('"' + item.replace("\\", "\\\\").replace('"', '\\"') + '"' for item in elements) + "}"
