"""Query strings of PostgREST's interface: classification, grammar and syntax errors.

Source: PostgREST's documentation, URL Grammar.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.request import grammar
from rowcall.core.postgrest.request.query_string import is_operation, parse_query
from rowcall.core.postgrest.request.syntax_errors import PARSERS
from rowcall.core.postgrest.request.tree import (
    Condition,
    Field,
    Group,
    JsonStep,
    Operation,
    Range,
    SelectColumn,
    SelectEmbed,
)


def _filter(query: str) -> tuple[tuple[str, ...], Condition]:
    return parse_query(query).filters[0]


@pytest.mark.parametrize(
    ("query", "field", "operation"),
    [
        ("id=eq.1", Field("id"), Operation("eq", "1")),
        ("id=not.eq.1", Field("id"), Operation("eq", "1", negated=True)),
        ("id=eq.%22x%22", Field("id"), Operation("eq", '"x"')),
        ("label=eq.a+b%2Bc", Field("label"), Operation("eq", "a b+c")),
        ("Just%20A%20Name=eq.1", Field("Just A Name"), Operation("eq", "1")),
        ('"a.b"=eq.x', Field("a.b"), Operation("eq", "x")),
        ('"order"=eq.3', Field("order"), Operation("eq", "3")),
        ("order_no=eq.3", Field("order_no"), Operation("eq", "3")),
        ('id=in.("Doe, J",x)', Field("id"), Operation("in", ("Doe, J", "x"))),
        ('id=in.("a" ,x)', Field("id"), Operation("in", ('"a" ', "x"))),
        ('id=in.("a\\"b")', Field("id"), Operation("in", ('a"b',))),
        ("id=in.(a,,b)", Field("id"), Operation("in", ("a", "", "b"))),
        ("id=in.()", Field("id"), Operation("in", ())),
        ("id=in.(  )", Field("id"), Operation("in", ())),
        ("id=is.NULL", Field("id"), Operation("is", "null")),
        ("id=is.not_null", Field("id"), Operation("is", "not_null")),
        ("id=isdistinct.5", Field("id"), Operation("isdistinct", "5")),
        ("t=fts(english).a", Field("t"), Operation("fts", "a", configuration="english")),
        ("id=eq(any).{1,2}", Field("id"), Operation("eq", "{1,2}", quantifier="any")),
        ("id=not.like(all).{a*}", Field("id"), Operation("like", "{a*}", negated=True, quantifier="all")),
        ("a->b->>c=eq.1", Field("a", (JsonStep("b", False, False), JsonStep("c", False, True))), Operation("eq", "1")),
        ("a->0=eq.1", Field("a", (JsonStep("0", True, False),)), Operation("eq", "1")),
        ("a->0xy=eq.1", Field("a", (JsonStep("0xy", False, False),)), Operation("eq", "1")),
        ("a->-1->>x=eq.1", Field("a", (JsonStep("-1", True, False), JsonStep("x", False, True))), Operation("eq", "1")),
        ('"select"=eq.x', Field("select"), Operation("eq", "x")),
        ('" a "=eq.1', Field(" a "), Operation("eq", "1")),
        ("%20a%20=eq.1", Field("a"), Operation("eq", "1")),
        ('"a\\"b\\\\c"=eq.1', Field('a"b\\c'), Operation("eq", "1")),
        ("a=like.%22b*%22", Field("a"), Operation("like", '"b*"')),
        ("id=in.(%22Doe%2C%20J%22%2Cx)", Field("id"), Operation("in", ("Doe, J", "x"))),
        ("id=in.(%20a%20,b )", Field("id"), Operation("in", ("a ", "b "))),
        ('id=in.(a"b,c\\d)', Field("id"), Operation("in", ('a"b', "c\\d"))),
    ],
)
def test_filters_are_parsed(query: str, field: Field, operation: Operation) -> None:
    assert _filter(query) == ((), Condition(field, operation))


def test_filter_of_an_embed() -> None:
    assert _filter("voyage.crew.duty=eq.x") == (("voyage", "crew"), Condition(Field("duty"), Operation("eq", "x")))


@pytest.mark.parametrize(
    ("query", "path", "negated", "operator"),
    [
        ("or=(a.eq.1)", (), False, "or"),
        ("not.or=(a.eq.1)", (), True, "or"),
        ("x.and=(a.eq.1)", ("x",), False, "and"),
        ("x.not.and=(a.eq.1)", ("x",), True, "and"),
        ("x.y.or=(a.eq.1)", ("x", "y"), False, "or"),
    ],
)
def test_keys_of_logic_trees(query: str, path: tuple[str, ...], negated: bool, operator: str) -> None:
    group = Group(operator, (Condition(Field("a"), Operation("eq", "1")),), negated)
    assert parse_query(query).logic == ((path, group),)


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ('(label.eq."a,b",c.eq."(c)")', (("label", "a,b"), ("c", "(c)"))),
        ("(tags.eq.{a,b})", (("tags", "{a,b}"),)),
        ("( a.eq.1 , b.eq.2)", (("a", "1 "), ("b", "2"))),
        ("(android.eq.1,order_no.eq.2)", (("android", "1"), ("order_no", "2"))),
        ("(id.eq.1))", (("id", "1"),)),
        ('(a.eq."b",c.eq.d"e)', (("a", "b"), ("c", 'd"e'))),
    ],
)
def test_values_of_logic_trees(text: str, members: tuple[tuple[str, str], ...]) -> None:
    expected = tuple(Condition(Field(name), Operation("eq", value)) for name, value in members)
    assert parse_query(f"and={text}").logic[0][1] == Group("and", expected)


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", (SelectColumn(Field("*")),)),
        ("*", (SelectColumn(Field("*")),)),
        ("a, b", (SelectColumn(Field("a")), SelectColumn(Field("b")))),
        ("x:a::int", (SelectColumn(Field("a"), "x", "int"),)),
        ('"a.b","(x)"', (SelectColumn(Field("a.b")), SelectColumn(Field("(x)")))),
        ("count()", (SelectColumn(Field(""), aggregate="count"),)),
        ("count", (SelectColumn(Field("count")),)),
        ("n:a::int.sum()::text", (SelectColumn(Field("a"), "n", "int", "sum", "text"),)),
        ("r()", (SelectEmbed("r", ()),)),
        ("x:r!h!inner(a)", (SelectEmbed("r", (SelectColumn(Field("a")),), "x", "h", True),)),
        ("r!inner!h(a)", (SelectEmbed("r", (SelectColumn(Field("a")),), None, "h", True),)),
        ("r!left(a)", (SelectEmbed("r", (SelectColumn(Field("a")),)),)),
        ('r!"lefthand"(a)', (SelectEmbed("r", (SelectColumn(Field("a")),), None, "lefthand"),)),
        ("a,r(count)'", (SelectColumn(Field("a")), SelectEmbed("r", (SelectColumn(Field("count")),)))),
        ("...r(a)", (SelectEmbed("r", (SelectColumn(Field("a")),), spread=True),)),
    ],
)
def test_select(text: str, items: tuple[object, ...]) -> None:
    assert parse_query(f"select={text}").select == items


@pytest.mark.parametrize(
    ("path", "name"), [("specs->a->2", "a"), ("specs->0", "specs"), ("specs->a->>b", "b"), ("specs", "specs")]
)
def test_key_of_a_json_path(path: str, name: str) -> None:
    item = parse_query(f"select={path}").select[0]
    assert isinstance(item, SelectColumn)
    assert item.output_name == name


@pytest.mark.parametrize(
    ("query", "message", "details"),
    [
        (
            "tonnage=90",
            '"failed to parse filter (90)" (line 1, column 1)',
            'unexpected "9" expecting "not" or operator (eq, gt, ...)',
        ),
        ("id=eq().3", '"failed to parse filter (eq().3)" (line 1, column 4)', None),
        ("id=is.maybe", '"failed to parse filter (is.maybe)" (line 1, column 4)', None),
        ("or=()", '"failed to parse logic tree (())" (line 1, column 4)', None),
        (
            "select=label!x",
            '"failed to parse select parameter (label!x)" (line 1, column 6)',
            'unexpected \'!\' expecting letter, digit, "-", "->>", "->", "::", ".", ")", "," or end of input',
        ),
        ("select=a,b!", '"failed to parse select parameter (a,b!)" (line 1, column 4)', None),
        ("select=a,,b", None, 'unexpected "," expecting "...", field name (* or [a..z0..9_$]), "*" or "count()"'),
        ("select=count(a)", '"failed to parse select parameter (count(a))" (line 1, column 6)', None),
        (
            "select=r(a",
            None,
            'unexpected end of input expecting letter, digit, "-", "->>", "->", "::", ".", ")" or ","',
        ),
        ("select=r!lefthand(a)", None, None),
        ("select=d->>-78xy", None, 'unexpected \'x\' expecting digit, "->", "::", ".", "," or end of input'),
        (
            "select=d->>--3",
            '"failed to parse select parameter (d->>--3)" (line 1, column 6)',
            'unexpected "-" expecting digit',
        ),
        (
            "select=d->",
            None,
            'unexpected end of input expecting "-", digit or any non reserved character different from: .,>()',
        ),
        (
            "a-=eq.1",
            '"failed to parse tree path (a-)" (line 1, column 3)',
            "unexpected end of input expecting letter or digit",
        ),
        (
            "id=eq",
            '"failed to parse filter (eq)" (line 1, column 3)',
            "unexpected end of input expecting operator (eq, gt, ...)",
        ),
        ("id=in.5", '"failed to parse filter (in.5)" (line 1, column 4)', 'unexpected "5" expecting "("'),
        ("x.order=id.up", '"failed to parse order (id.up)" (line 1, column 4)', None),
        ("on_conflict=", '"failed to parse on_conflict parameter ()" (line 1, column 1)', None),
        (
            "id=%C3%A9",
            '"failed to parse filter (\xe9)" (line 1, column 1)',
            'unexpected "\\233" expecting "not" or operator (eq, gt, ...)',
        ),
        ("id=is.%0A", None, 'unexpected "\\n" expecting isVal: (null, not_null, true, false, unknown)'),
        ("or=(a.eq.1,%0A%09", '"failed to parse logic tree ((a.eq.1,\n\t)" (line 1, column 11)', None),
        ("order=a%0A%09!", '"failed to parse order (a\n\t!)" (line 1, column 2)', None),
        ("order=%22%0A%09%22!", '"failed to parse order ("\n\t"!)" (line 2, column 10)', None),
        ("select=*!x", '"failed to parse select parameter (*!x)" (line 1, column 2)', None),
        ("select=label::", '"failed to parse select parameter (label::)" (line 1, column 8)', None),
        ("select=rel->x(*)", '"failed to parse select parameter (rel->x(*))" (line 1, column 7)', None),
        ("select=alias:...rel(*)", '"failed to parse select parameter (alias:...rel(*))" (line 1, column 7)', None),
        ("order=id.asc.nullslasttt", None, None),
        ("order=id.ascending", None, None),
        ("columns=", '"failed to parse columns parameter ()" (line 1, column 1)', None),
        ("or=(not.a.eq.1)", None, None),
        ("id=EQ.1", None, None),
        *((f"id={word}(any).1", None, None) for word in ("neq", "in", "is", "isdistinct", "cs", "cd", "ov")),
        ("x!.or=(a.eq.1)", '"failed to parse logic tree ((a.eq.1))" (line 1, column 2)', None),
        ('") or ("->a.or=(a.eq.1)', '"failed to parse logic tree ((a.eq.1))" (line 1, column 1)', None),
        ("x-.or=(a.eq.1)", '"failed to parse logic path (x-.or)" (line 1, column 3)', None),
        ("select=id::$1", None, 'unexpected "$" expecting letter or digit'),
        ("select=id::$$,label::$$", '"failed to parse select parameter (id::$$,label::$$)" (line 1, column 5)', None),
        ("select=id::text $1", '"failed to parse select parameter (id::text $1)" (line 1, column 10)', None),
        ("select=id::2", None, None),
        ("select=%22a%00%22", None, 'unexpected "\\0" expecting "\\\\" or "\\""'),
        ("%22a%5C%00%22=eq.1", None, None),
        ("order=%22%00%22", None, None),
        ("columns=%22%00%22", None, None),
        ("on_conflict=%22%00%22", None, None),
        ("or=(%22%00%22.eq.1,a.eq.1)", None, None),
        ("select=%22%00%22:id", None, None),
        ("select=rel!%22%00%22(id)", None, None),
    ],
)
def test_syntax_errors(query: str, message: str | None, details: str | None) -> None:
    with pytest.raises(ApiError) as caught:
        parse_query(query)
    assert (caught.value.status, caught.value.code) == (400, "PGRST100")
    assert message is None or caught.value.message == message
    assert details is None or caught.value.details == details


def test_repeated_parameters() -> None:
    query = parse_query("select=a&select=b&order=a&order=b&limit=1&limit=2&a=eq.1&a=eq.2")
    assert query.select == (SelectColumn(Field("a")),)
    assert [term.field.name for term in query.order[0][1]] == ["a"]
    assert query.ranges == (((), Range(0, 2)),)
    assert len(query.filters) == 2
    query = parse_query("columns=a&columns=b&on_conflict=a&on_conflict=b&r.order=a&r.order=b&offset=1&offset=2")
    assert (query.columns, query.on_conflict) == (("a",), ("a",))
    assert [(path, [term.field.name for term in terms]) for path, terms in query.order] == [(("r",), ["a"])]
    assert query.ranges == (((), Range(2, None)),)
    assert len(parse_query("or=(a.eq.1)&or=(b.eq.1)&and=(c.eq.1)").logic) == 3


def test_ranges() -> None:
    query = parse_query("limit=x&offset=-5&voyage.limit=2&voyage.offset=1")
    assert query.ranges == ((("voyage",), Range(1, 2)), ((), Range(0, None)))
    for text in ("limit=-1", "limit=2&offset=-3"):
        with pytest.raises(ApiError) as caught:
            parse_query(text)
        assert (caught.value.status, caught.value.code) == (416, "PGRST103")


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("offset=-3", Range(0, None)),
        ("offset=-3&limit=10", Range(0, 7)),
        ("offset=-3&limit=3", Range(0, 0)),
        ("offset=-3&limit=0", Range(0, 0)),
        (f"limit={10**20}&offset={10**30}", Range(10**30, 10**20)),
        (f"limit=1{'0' * 5000}", None),
    ],
)
def test_boundary_values_of_limit_and_offset(query: str, rows: Range | None) -> None:
    assert dict(parse_query(query).ranges).get(()) == rows


def test_canonical_parameters_are_sorted_and_encoded() -> None:
    assert parse_query("select=id&limit=2&a=eq.b%20c").canonical == "a=eq.b%20c&limit=2&select=id"
    assert parse_query("id=gt.1&a=eq.2&id=lt.5,6&x").canonical == "a=eq.2&id=gt.1,lt.5%2C6&x="


def test_semicolons_separate_and_parts_without_value_are_left_out() -> None:
    assert len(parse_query("a=eq.1;b=eq.2&c").filters) == 2


@pytest.mark.parametrize(
    ("value", "operation"),
    [
        ("in.3", True),
        ("not.x", True),
        ("eq(x).3", False),
        ("3", False),
        ("eq.3", True),
        ("not.in.(a)", True),
        ("is.x", True),
        ("fts(english).x", True),
        ("equal", False),
    ],
)
def test_arguments_and_operations(value: str, operation: bool) -> None:
    assert is_operation(value) is operation


def test_arguments_of_a_function() -> None:
    query = parse_query("id=5&id=gt.2&days=2", function_arguments=True)
    assert query.arguments == (("id", "5"), ("days", "2"))
    assert [condition.field.name for _, condition in query.filters] == ["id"]


def _refusal(query: str) -> ApiError | None:
    try:
        parse_query(query)
    except ApiError as error:
        return error
    return None


@given(st.text(alphabet="ab.(),:!\"'\\->*{}[]=& ;%0123456789selctordniq", max_size=60))
def test_any_text_is_parsed_or_refused_with_a_place(text: str) -> None:
    refusals = [_refusal(f"{key}={text}") for key in ("select", "order", "or", "id", "columns")]
    assert all(error is None or error.status == 416 or "(line 1, column " in error.message for error in refusals)


@pytest.mark.parametrize(
    ("query", "details", "place", "column"),
    [
        ("or=(id.in.1,2,id.eq.3)", 'unexpected "1" expecting "("', "logic tree ((id.in.1,2,id.eq.3)", 10),
        ("or=)(", 'unexpected ")" expecting "("', "logic tree ()(", 3),
        ("and=(ord(id.eq.1),id.eq.2)", 'unexpected "d" expecting "("', "logic tree ((ord(id.eq.1),id.eq.2)", 7),
        (
            "or=(id.eq.1,not.xor(id.eq.2))",
            'unexpected "x" expecting logic operator (and, or)',
            "logic tree ((id.eq.1,not.xor(id.eq.2))",
            16,
        ),
        ("order=id.ac", 'unexpected "c" expecting "asc", "desc", "nullsfirst" or "nullslast"', "order (id.ac", 4),
        ("order=id.descc", "unexpected 'c' expecting delimiter (.), \",\" or end of input", "order (id.descc", 8),
        ("order=id.asc.nlsfst", 'unexpected "l" expecting "nullsfirst" or "nullslast"', "order (id.asc.nlsfst", 8),
        ("order=id.asc.nullslasttt", "unexpected 't' expecting \",\" or end of input", "order (id.asc.nullslasttt", 17),
    ],
)
def test_details_of_syntax_errors(query: str, details: str, place: str, column: int) -> None:
    with pytest.raises(ApiError) as caught:
        parse_query(query)
    message = f'"failed to parse {place})" (line 1, column {column})'
    assert (caught.value.details, caught.value.message) == (details, message)


_PARTS = (
    "a,b1,count,count(),(,),.,::,->,->>,-,*,!,inner,left,...,:,sum(),eq.,not.,in.,is.,null,and,or,isdistinct.,"  # noqa: SIM905 (one list is easier to read than forty lines)
    'fts,(any),(all),(english),like,1,-1,{,},asc,desc,.nullsfirst,int,",\\,$,\0'.split(",")
)
_TEXTS = st.lists(st.sampled_from([*_PARTS, ","]), max_size=9).map("".join)
_GRAMMARS: dict[str, Callable[[str], object]] = {
    "select parameter": grammar.select,
    "columns parameter": lambda text: grammar.names("columns parameter", text),
    "filter": grammar.operation,
    "tree path": grammar.key_path,
    "logic tree": lambda text: grammar.logic("and", False, text.removeprefix("and")),
    "order": grammar.order,
}


@pytest.mark.parametrize("what", _GRAMMARS)
@given(_TEXTS)
def test_the_parser_for_error_messages_refuses_the_same_texts(what: str, text: str) -> None:
    text = f"and({text})" if what == "logic tree" else text
    is_refused = _is_refused(_GRAMMARS[what], text)
    outcome = PARSERS[what](text, 0)
    # A list of columns whose first one cannot be read is empty there.
    assert (outcome.end is None) is is_refused or (what == "select parameter" and outcome.end == 0)


def _is_refused(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ApiError:
        return True
    return False


def test_many_levels_are_refused_with_a_place() -> None:
    with pytest.raises(ApiError) as caught:
        parse_query(f"or={'(and' * 90}(")
    assert caught.value.message.endswith("(line 1, column 364)")
    assert _refusal(f"select={'a(' * 200}") is not None
