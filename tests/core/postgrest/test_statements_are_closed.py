"""No text of a client becomes SQL: values are parameters, and names are quoted identifiers."""

from __future__ import annotations

import re
from urllib.parse import quote_plus

from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.plan import read_plan
from rowcall.core.postgrest.relationships import relationships
from rowcall.core.postgrest.request.query_string import parse_query
from rowcall.core.postgrest.schema import Column, ForeignKey, Relation, Schema
from rowcall.core.postgrest.sql.reads import read_statement
from rowcall.core.text.naming import quote_identifier

COLUMNS = (Column("id", "integer", "integer"), Column("name", "text", "text"), Column("doc", "jsonb", "jsonb"))
RELATIONS = {
    ("api", "item"): Relation("api", "item", COLUMNS, ("id",)),
    ("api", "part"): Relation("api", "part", (*COLUMNS, Column("item_id", "integer", "integer")), ("id",)),
}
KEYS = [ForeignKey("part_item", ("api", "part"), ("item_id",), ("api", "item"), ("id",))]
SCHEMA = Schema(RELATIONS, relationships(RELATIONS, KEYS, exposed=("api",)))
MARK = "Zq"
"""Begins each text of the client; no SQL of the service contains it."""
hostile = st.text("\0';\"\\()[]{}-/*,.:>$%\n ax\u00e9", max_size=10).map(lambda text: MARK + text)
operators = st.sampled_from(
    ["eq", "neq", "gt", "like", "ilike", "match", "cs", "cd", "ov", "sl", "adj", "fts", "wfts", "isdistinct", "in"]
)


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


queries = st.one_of(
    st.builds(lambda op, v: f"name={op}.{quote_plus(v)}", operators, hostile),
    st.builds(lambda v: f"name=in.({quote_plus(_quoted(v))})", hostile),
    st.builds(lambda v: f"name=eq(any).{quote_plus(v)}", hostile),
    st.builds(lambda v: f"or=(name.eq.{quote_plus(_quoted(v))},id.gt.1)", hostile),
    st.builds(lambda v: f"doc->>{quote_plus(_quoted(v))}=eq.1", hostile),
    st.builds(lambda v: f"select=doc->{quote_plus(_quoted(v))}", hostile),
    st.builds(lambda v: f"order=doc->>{quote_plus(_quoted(v))}.desc", hostile),
    st.builds(lambda v: f"select={quote_plus(_quoted(v))}:id,part(name)&part.name=eq.{quote_plus(v)}", hostile),
    st.builds(lambda v: f"{quote_plus(_quoted(v))}=eq.1", hostile),
    st.builds(
        lambda path, end, v: f"{path}{quote_plus(_quoted(v))}{end}=(id.eq.1,id.eq.2)",
        st.sampled_from(["", "not.", "part."]),
        st.sampled_from(["!.or", "->a.and", "x.or", ".or", "-.and"]),
        hostile,
    ),
    st.builds(lambda v: f"{quote_plus(v)}.or=(id.eq.1,id.eq.2)", hostile),
    st.builds(lambda v: f"select=id::{quote_plus(v)}", hostile),
    st.builds(lambda start, v: f"select=id::{start}{quote_plus(v)}", st.sampled_from(["$1 ", "$$", "$", "1"]), hostile),
    st.builds(lambda v: f"select=part!{quote_plus(_quoted(v))}(id)", hostile),
    st.builds(lambda v: quote_plus(v), hostile),
)


@given(st.lists(queries, min_size=1, max_size=4))
def test_client_texts_in_statements_are_parameters_or_quoted(parts: list[str]) -> None:
    try:
        query = parse_query("&".join(parts))
        statement = read_statement(SCHEMA, read_plan(SCHEMA, ("api", "item"), query, aggregates=True))
    except ApiError:
        return
    rest = statement.sql
    for name in sorted(_names(query), key=len, reverse=True):
        rest = rest.replace(quote_identifier(name), "")
    for cast in _casts(query):
        # `$$` would begin a text, and `$1` would be a parameter.
        assert all(re.fullmatch(r"[A-Za-z_\x80-\U0010ffff][\w$]*", word) for word in cast.split()), cast
        rest = rest.replace(f" AS {' '.join(cast.split())})", "")
    # Words of SQL are in upper case, into which a text could have been converted.
    assert MARK.lower() not in rest.lower(), statement.sql
    assert "\0" not in statement.sql


def _names(query: object) -> set[str]:
    """Return all texts in the tree of a query that can be names."""
    found: set[str] = set()
    pending: list[object] = [query]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, tuple):
            pending.extend(value)
        elif hasattr(value, "__dataclass_fields__"):
            pending.extend(getattr(value, name) for name in value.__dataclass_fields__)
    return {name for name in found if MARK in name}


def _casts(query: object) -> set[str]:
    return {item.cast for item in query.select if getattr(item, "cast", None)}  # type: ignore[attr-defined]
