"""Relations of PostgREST's interface as MCP tools: tool objects, the requests of tool calls, and their results. No I/O.

A call is a request to the interface with the credentials of its caller: the role of its token decides what it may do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson

from rowcall.core.documents.options import Nulls
from rowcall.core.documents.postgrest.columns import column_schema, is_needed, is_written
from rowcall.core.documents.schemas import Schema
from rowcall.core.errors.problems import Problem
from rowcall.core.mcp.options import ACTIONS
from rowcall.core.mcp.tools import ToolRequest, content
from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.core.postgrest.schema import Relation
from rowcall.core.text import exact_json
from rowcall.core.text.globs import matches

_METHODS = {"list": "GET", "insert": "POST", "update": "PATCH", "delete": "DELETE"}
_SENTENCES = {
    "list": "List rows of {0}.",
    "insert": "Insert rows into {0}.",
    "update": "Update the rows of {0} that match the filters.",
    "delete": "Delete the rows of {0} that match the filters.",
}
_PAGE = {"limit": 100, "offset": 0}
"""Arguments of a list that are numbers, with their defaults."""
_NO_TOOL_NAME = re.compile(r"[^A-Za-z0-9_-]")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset({"select", "order", "limit", "offset", "columns", "on_conflict", "and", "or", "not"})
_FILTER = (
    "an operator and a value: eq.5, neq.5, gt.5, gte.5, lt.5, lte.5, like.*a*, ilike.*a*, in.(1,2), is.null, "
    "cs.{a}, fts.word; not. before it negates"
)
_SELECT = "Columns, separated by commas, and rows of related tables: title,artist(name). Default: all columns."
_RETURNED = "Columns of the written rows to return, separated by commas; * for all. Default: only the number of rows."


@dataclass(frozen=True, slots=True)
class TableTool:
    """A tool that does one thing with one relation.

    action: one of `ACTIONS`. path: URL path of the relation. profile: name and value of the header that selects its
    schema; None: the relation is in the default schema.
    """

    relation: Relation
    action: str
    described: Mapping[str, Any]
    """Its entry in `tools/list`."""
    path: str
    profile: tuple[str, str] | None

    @property
    def name(self) -> str:
        return str(self.described["name"])


def table_tools(
    catalogue: PostgRestCatalogue | None, tables: Sequence[str], actions: Collection[str], taken: Collection[str]
) -> tuple[dict[str, TableTool], list[str]]:
    """Return the tools by name, and warnings about patterns without a relation and tools whose name is in use.

    catalogue: None: the interface is disabled, so that there are no tools, and a warning if `tables` has patterns.
    tables: patterns of `schema.relation`. actions: those of `ACTIONS` for which there are tools. taken: names of the
    tools of endpoints, which win.
    """
    tools: dict[str, TableTool] = {}
    if catalogue is None:
        return tools, ["there is no interface of PostgREST; PostgRest:Enabled serves it"] if tables else []
    relations = _relations(catalogue)
    warnings = [
        f"{pattern} matches no table of PostgRest:Schemas; a pattern is schema.table"
        for pattern in tables
        if not any(matches(f"{item.schema}.{item.name}", pattern) for item in relations)
    ]
    for relation in relations:
        if not any(matches(f"{relation.schema}.{relation.name}", pattern) for pattern in tables):
            continue
        for tool in _tools(catalogue, relation, actions):
            if tool.name in tools or tool.name in taken:
                warnings.append(
                    f"{relation.schema}.{relation.name}: there is a tool {tool.name} already, so it has none"
                )
            else:
                tools[tool.name] = tool
    return tools, warnings


def _relations(catalogue: PostgRestCatalogue) -> list[Relation]:
    places = {schema: place for place, schema in enumerate(catalogue.options.schemas)}
    exposed = (item for item in catalogue.schema.relations.values() if item.schema in places)
    return sorted(exposed, key=lambda item: (places[item.schema], item.name))


def _tools(catalogue: PostgRestCatalogue, relation: Relation, actions: Collection[str]) -> Iterator[TableTool]:
    possible = {
        "list": True,
        "insert": relation.insertable,
        "update": relation.updatable,
        "delete": relation.deletable,
    }
    default = relation.schema == catalogue.options.schemas[0]
    shown = relation.name if default else f"{relation.schema}_{relation.name}"
    for action in ACTIONS:
        if action in actions and possible[action]:
            header = "accept-profile" if action == "list" else "content-profile"
            yield TableTool(
                relation,
                action,
                _describe_tool(relation, action, _NO_TOOL_NAME.sub("_", f"{action}_{shown}")),
                f"{catalogue.options.path.rstrip('/')}/{quote(relation.name, safe='')}",
                None if default else (header, relation.schema),
            )


def _describe_tool(relation: Relation, action: str, name: str) -> dict[str, Any]:
    text = _SENTENCES[action].format(relation.name)
    hints = {"readOnlyHint": action == "list"}
    if action in ("update", "delete"):
        hints["destructiveHint"] = True
    return {
        "name": name,
        "description": text if relation.comment is None else f"{text} {relation.comment}",
        "inputSchema": _input(relation, action),
        "outputSchema": _OUTPUT if action == "list" else _WRITTEN,
        "annotations": hints,
    }


_ROWS: Schema = {"type": "array", "items": {"type": "object"}}
_OUTPUT: Schema = {"type": "object", "properties": {"items": _ROWS}, "required": ["items"]}
_WRITTEN: Schema = {
    "type": "object",
    "properties": {"count": {"type": "integer", "description": "Rows that were written"}, "items": _ROWS},
    "required": ["count"],
}


def _input(relation: Relation, action: str) -> Schema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    if action != "insert":
        properties["where"] = _filters(relation, needed=action != "list")
    if action == "list":
        properties["select"] = {"type": "string", "description": _SELECT}
        properties["order"] = {"type": "string", "description": "Columns with .asc or .desc: price.desc,title"}
        for name, default in _PAGE.items():
            properties[name] = {"type": "integer", "minimum": 0, "default": default}
    else:
        properties["select"] = {"type": "string", "description": _RETURNED}
        required += () if action == "insert" else ("where",)
    if action == "insert":
        properties["rows"] = {"type": "array", "minItems": 1, "items": _row(relation, whole=True)}
        required.append("rows")
    if action == "update":
        properties["values"] = _row(relation, whole=False)
        required.append("values")
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _filters(relation: Relation, *, needed: bool) -> Schema:
    some: Schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
    schema: Schema = {
        "type": "object",
        "description": f"Filters by column. Each is {_FILTER}. All have to be true; several of a column are an array.",
        "properties": {column.name: some for column in relation.columns},
        "additionalProperties": False,
    }
    return {**schema, "minProperties": 1} if needed else schema


def _row(relation: Relation, *, whole: bool) -> Schema:
    columns = [column for column in relation.columns if is_written(column)]
    schema: Schema = {
        "type": "object",
        "properties": {column.name: column_schema(column, Nulls.TYPE) for column in columns},
        "additionalProperties": False,
    }
    needed = [column.name for column in columns if is_needed(column)]
    if whole and needed:
        schema["required"] = needed
    return schema if whole else {**schema, "minProperties": 1}


# --- a call ------------------------------------------------------------------------------------------------------


def table_request(tool: TableTool, arguments: Mapping[str, Any]) -> ToolRequest:
    """Return the request to the interface for a call of a tool.

    arguments: of the call, as `exact_json` parses them. Raises `Problem` 400 if they do not have the form of the tool's
    input schema, or name an unknown column in a filter. `select` and `order` are passed on as texts; the interface
    checks them, and names and values of written columns.
    """
    known = tool.described["inputSchema"]["properties"]
    for name in arguments:
        if name not in known:
            raise Problem(400, f"{tool.name} has no argument {name[:100]}; it has {', '.join(known)}")
    pairs = list(_filter_pairs(tool, arguments.get("where")))
    if not pairs and tool.action in ("update", "delete"):
        raise Problem(400, f"{tool.name} needs a filter in where, such as {_example(tool)}")
    headers = [] if tool.profile is None else [tool.profile]
    select = arguments.get("select")
    if select:
        pairs.append(("select", str(select)))
    if tool.action == "list":
        pairs += [(name, str(_whole(arguments, name, default))) for name, default in _PAGE.items()]
        if arguments.get("order"):
            pairs.append(("order", str(arguments["order"])))
        return _request(tool, pairs, headers, b"")
    preferences = ["count=exact", "return=representation" if select else "return=minimal"]
    body = b""
    if tool.action == "insert":
        rows = _rows(tool, arguments.get("rows"))
        # Rows may have different columns: those that a row does not have get their defaults.
        preferences.append("missing=default")
        columns = dict.fromkeys(name for row in rows for name in row)
        if columns:
            pairs.append(("columns", ",".join(_quote_name(name, always=True) for name in columns)))
        body = orjson.dumps(rows)
    elif tool.action == "update":
        values = arguments.get("values")
        if not isinstance(values, dict) or not values:
            raise Problem(400, f"{tool.name} needs values: an object with at least one column")
        body = orjson.dumps(values)
    headers.append(("prefer", ", ".join(preferences)))
    return _request(tool, pairs, headers, body)


def _request(
    tool: TableTool, pairs: Iterable[tuple[str, str]], headers: list[tuple[str, str]], body: bytes
) -> ToolRequest:
    query = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs)
    if body:
        headers.append(("content-type", "application/json"))
    return ToolRequest(_METHODS[tool.action], f"{tool.path}?{query}" if query else tool.path, tuple(headers), body)


def _filter_pairs(tool: TableTool, where: object) -> Iterator[tuple[str, str]]:
    if where is None:
        return
    if not isinstance(where, dict):
        raise Problem(400, f"where has to be an object of filters by column, such as {_example(tool)}")
    for name, filters in where.items():
        if tool.relation.column(name) is None:
            raise Problem(400, f"{tool.relation.name} has no column {name[:100]}")
        for item in filters if isinstance(filters, list) else (filters,):
            if not isinstance(item, str):
                raise Problem(400, f"the filter of {name} is {_FILTER}")
            yield _quote_name(name), item


def _whole(arguments: Mapping[str, Any], name: str, default: int) -> int:
    number = arguments.get(name)
    if number is None:
        return default
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise Problem(400, f"{name} has to be a whole number")
    return number


def _example(tool: TableTool) -> str:
    return orjson.dumps({next((column.name for column in tool.relation.columns), "id"): "eq.1"}).decode()


def _rows(tool: TableTool, rows: object) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise Problem(400, f"{tool.name} needs rows: an array of objects")
    return rows


def _quote_name(name: str, *, always: bool = False) -> str:
    """Return a name for the query language of PostgREST, in double quotes if it begins with a digit, has other
    characters than ASCII letters, digits and `_`, or is a reserved word. always: quote every name."""
    if not always and _PLAIN_NAME.fullmatch(name) and name not in _RESERVED:
        return name
    text = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def table_result(status: int, content_range: str | None, body: bytes, tool: TableTool) -> dict[str, Any]:
    """Return the `result` of a `tools/call` from the interface's response. For a status other than 2xx, the result has
    `isError` and the body as its text. It has `isError` also if the body cannot be read (`exact_json.parse`).

    content_range: value of the header Content-Range, whose total is the number of written rows. None, or without a
    total: the rows in the body are counted.
    """
    if not 200 <= status < 300:
        return content(body.decode(errors="replace"), failed=True)
    try:
        items = exact_json.parse(body) if body else None
    except ValueError as error:
        return content(f"the response of {tool.name} cannot be read: {error}", failed=True)
    structured: dict[str, Any] = {} if items is None else {"items": items}
    if tool.action != "list":
        total = (content_range or "").rpartition("/")[2]
        structured = {"count": int(total) if total.isdecimal() else len(items or ()), **structured}
    return {**content(orjson.dumps(structured).decode(), failed=False), "structuredContent": structured}
