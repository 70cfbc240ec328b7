"""Ends of statements, comments, and the statement to which a comment belongs (sql-files-9 to sql-files-12)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.sqlfile.splitting import split
from rowcall.core.text.sql_lexer import Kind, tokens


def texts(sql: str) -> list[str]:
    return [statement.text for statement in split(sql).statements]


def about(sql: str) -> list[tuple[str, int]]:
    return [(comment.text.strip(), comment.statement) for comment in split(sql).comments]


@pytest.mark.parametrize(
    "statement",
    [
        "select 1",
        "select ';', 'it''s; --no comment', 'a/*b'",
        'select "a;b", "it\'s", "q""--"',
        r"select E'\';', e'\\', 'plain\'",
        "select E'a'\n  'b\\';c'",
        "select $$ ; ' -- $$, $tag$ $$ ; $other$ $tag$",
        "select U&'d\\0061t;a', B'01', X'1f', N'x;'",
        "select a$b$c from (select 1 as a$b$c) x",
        "create rule r as on insert to t do also (delete from a; delete from b)",
        "create function f() returns int begin atomic select 1; select case when true then 2 end; end",
        "create or replace procedure p() begin atomic insert into t values (1); end",
        "select 1 +--comment\n1".replace("--comment", "         "),
    ],
)
def test_a_semicolon_inside_does_not_end_a_statement(statement: str) -> None:
    assert texts(f"{statement};\nselect 2") == [statement, "select 2"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("", []),
        (" ;; ;\n", []),
        ("-- only\n/* comments */", []),
        (";select 1;;select 2", ["select 1", "select 2"]),
        ("select 1 -- last\n", ["select 1"]),
        ("/* a /* nested; */ b */ select 1; /* tail */", ["select 1"]),
        ("begin; select 1; end; select 2", ["begin", "select 1", "end", "select 2"]),
        ("select case when true then 1 end; select 2", ["select case when true then 1 end", "select 2"]),
        ("select 1)); select 2", ["select 1))", "select 2"]),
    ],
)
def test_statements_are_trimmed_and_blank_ones_dropped(sql: str, expected: list[str]) -> None:
    assert texts(sql) == expected


def test_comments_are_replaced_by_blanks_to_preserve_offsets() -> None:
    sql = "select a--x\n,/*y\nz*/b;"
    (statement,) = split(sql).statements
    assert statement.text == "select a   \n,   \n   b"
    assert len(statement.text) == len(sql) - 1


@pytest.mark.parametrize("text", ["'", '"', "$$", "$a$ $b$", "/*", "/* /* */", "E'\\", "(", "select 'a; select 2"])
def test_unclosed_tokens_extend_to_the_end(text: str) -> None:
    assert len(split(f"{text}; select 2").statements) <= 1


def test_line_ends_of_every_kind_end_a_comment() -> None:
    assert texts("select 1 --a\r\n, 2; --b\rselect 3") == ["select 1    \r\n, 2", "select 3"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("-- a\nselect 1; select 2", [("a", 0)]),
        ("select /* a */ 1; select 2", [("a", 0)]),
        ("select 1; -- a\nselect 2", [("a", 0)]),
        ("select 1; /* a */\n-- b\nselect 2;", [("a", 0), ("b", 1)]),
        ("select 1;\n-- a\nselect 2", [("a", 1)]),
        ("select 1; select /* a */ 2", [("a", 1)]),
        ("select 1;; -- a\nselect 2", [("a", 0)]),
        ("; -- a\nselect 2", [("a", 0)]),
        ("select 1;\n-- a", [("a", 1)]),
        ("select 1; -- a", [("a", 0)]),
        ("select 1; /* a\n */ -- b\nselect 2", [("a", 0), ("b", 1)]),
    ],
)
def test_a_comment_belongs_to_the_statement_beside_it(sql: str, expected: list[tuple[str, int]]) -> None:
    assert about(sql) == expected


def test_the_header_ends_with_the_first_statement() -> None:
    comments = split("-- a\n; -- b\nselect 1 -- c\n; -- d").comments
    assert [comment.header for comment in comments] == [True, True, True, False]


def test_a_do_block_with_a_dollar_quoted_body_is_detected() -> None:
    sql = "do $$ begin end $$; do 'begin end'; select do; do language sql $$ $$"
    assert [statement.do_block for statement in split(sql).statements] == [True, False, False, False]


@given(st.text(alphabet="'\"$;:-/*\\\n aEb1()", max_size=60))
def test_tokens_cover_any_text_and_splitting_never_fails(text: str) -> None:
    values = list(tokens(text))
    assert "".join(text[token.start : token.end] for token in values) == text
    assert all(token.end > token.start for token in values)
    for statement in split(text).statements:
        assert statement.text.strip() == statement.text != ""
        assert len(statement.text) <= len(text)


@given(st.text(alphabet="'\"$;:-/*\n aE1", max_size=40))
def test_splitting_is_idempotent(text: str) -> None:
    for statement in split(text).statements:
        (again,) = split(statement.text).statements
        assert again.text == statement.text
        assert again.placeholders == statement.placeholders


def test_kinds_are_distinguished() -> None:
    kinds = [token.kind for token in tokens("a$1 $1 :b::c:=")]
    assert kinds == [Kind.WORD, Kind.SPACE, Kind.POSITIONAL, Kind.SPACE, Kind.NAMED, Kind.OTHER, Kind.WORD, Kind.OTHER]
