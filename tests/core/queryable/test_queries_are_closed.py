"""No text of a client becomes SQL: values are parameters, and columns are those of the result."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.errors.binding_error import BindingError
from rowcall.core.postgrest.request.tree import OrderTerm
from rowcall.core.queryable.language import language_of
from rowcall.core.queryable.request import Position, read_request
from rowcall.core.queryable.statement import Query
from tests.core.routines import column, endpoint

RESULT = (column("id"), column("item_name", 25), column("doc", 3802))
COMMENT = "HTTP GET /items\nqueryable select filter order page 10 by id"
ENDPOINT = endpoint(name="items", comment=COMMENT, columns=RESULT, returns_set=True, returns=2249)
LANGUAGE = language_of(ENDPOINT)
MARK = "Zq"
"""Begins each text of the client; no SQL of the service contains it."""
INNER = 'select "id", "item_name", "doc" from "items"()'

hostile = st.text("';\"\\()[]{}-/*,.:>$%\n ax\u00e9\0", max_size=10).map(lambda text: MARK + text.replace("\0", ""))
quoted = hostile.map(lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"')
operators = st.sampled_from(["eq", "neq", "gt", "like", "match", "cs", "fts", "wfts(english)", "isdistinct", "not.eq"])
pairs = st.one_of(
    st.tuples(st.sampled_from(["id", "itemName", "item_name", "doc"]), st.builds("{}.{}".format, operators, hostile)),
    st.tuples(st.just("itemName"), st.builds("in.({},{})".format, quoted, hostile)),
    st.tuples(st.sampled_from(["or", "and", "not.or"]), st.builds("(itemName.eq.{},id.gt.1)".format, quoted)),
    st.tuples(st.builds("doc->>{}".format, quoted), st.just("eq.1")),
    st.tuples(st.just("select"), st.builds("id,{}:itemName,doc->{}".format, quoted, quoted)),
    st.tuples(st.just("select"), st.builds("id::{}".format, hostile)),
    st.tuples(st.just("order"), st.builds("doc->>{}.desc,itemName".format, quoted)),
    st.tuples(st.sampled_from(["limit", "offset"]), st.sampled_from(["0", "3", "99999"])),
    st.tuples(st.sampled_from(["after", "before"]), hostile),
    st.tuples(hostile, st.just("eq.1")),
)


def opened(_key: str, cursor: str, order: tuple[OrderTerm, ...]) -> Position:
    return Position(tuple(None if index % 2 else cursor for index, _ in enumerate(order)))


@given(st.lists(pairs, max_size=5), st.booleans(), st.booleans())
def test_client_texts_in_queries_are_parameters(parts: list[tuple[str, str]], counted: bool, positioned: bool) -> None:
    assert LANGUAGE is not None
    try:
        request = read_request(LANGUAGE, parts, opened, counted=counted)
    except BindingError:
        return
    query = Query(LANGUAGE, request, positioned)
    rendered = query.render(INNER, 3)
    names = sorted((item.output_name for item in request.columns or ()), key=len, reverse=True)
    rest = rendered.sql
    for name in names:
        # The only texts of the client in the statement, and only where other formats need them: aliases, quoted.
        rest = rest if positioned else rest.replace('"' + name.replace('"', '""') + '"', "")
    assert MARK not in rest, rendered.sql
    used = {int(number) for number in re.findall(r"\$(\d+)", rendered.sql)}
    assert used == set(range(4, 4 + len(rendered.values)))
    assert len(rendered.labels) == len(rendered.values)
    assert query.render(INNER, 3) == rendered
