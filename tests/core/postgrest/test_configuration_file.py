"""PostgREST's configuration file: each text can be written and is read back; anything else is refused with its line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.postgrest.configuration.file import ConfigurationFileError, parse_configuration_file

keys = st.from_regex(r"[a-z][a-z.-]{0,12}", fullmatch=True)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
comments = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=10).map("# {}".format)
ESCAPED = {'"': '\\"', "\\": "\\\\", "$": "$$", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _written(text: str) -> str:
    return '"' + "".join(ESCAPED.get(character, character) for character in text) + '"'


@given(st.lists(st.tuples(keys, texts, comments), max_size=6))
def test_texts_survive_a_round_trip(entries: list[tuple[str, str, str]]) -> None:
    lines = [f"{comment}\n  {key} = {_written(text)} {comment}\r\n" for key, text, comment in entries]
    assert parse_configuration_file("a.conf", "".join(lines), {}) == {key: text for key, text, _ in entries}


@given(st.text('ab=-."\\$(){}#\n 1', max_size=40))
def test_other_files_are_refused_with_their_line(text: str) -> None:
    try:
        values = parse_configuration_file("a.conf", text, {"a": "b"})
    except ConfigurationFileError as error:
        line = re.match(r"a\.conf:(\d+): .", str(error))
        assert line is not None
        assert 1 <= int(line[1]) <= text.count("\n") + 1
    else:
        assert all(key in text for key in values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("db-uri", "a.conf:1: expected = behind db-uri"),
        ("\ndb-uri = ", 'a.conf:2: db-uri has no value; write db-uri = "" for an empty one'),
        ("db-uri = host", 'a.conf:1: the value of db-uri needs quotes: db-uri = "…"'),
        ('db-uri = "host', "a.conf:1: the value of db-uri has no closing quote"),
        ('db-uri = "$(MISSING)"', "a.conf:1: the environment variable MISSING is not set"),
        ('a = 1 "b"', "a.conf:1: unexpected text behind the value of a"),
        ('a = "\\x"', "a.conf:1: the value of a has the unknown escape \\x"),
    ],
)
def test_syntax_errors_have_the_expected_message(text: str, message: str) -> None:
    with pytest.raises(ConfigurationFileError, match=f"^{re.escape(message)}$"):
        parse_configuration_file("a.conf", text, {})


def test_variables_numbers_and_flags() -> None:
    text = 'a = "x$(HOME_OF)y$$" # comment\nb = 10\nc=true\na-b.c = "1\\\n2"'
    values = parse_configuration_file("a.conf", text, {"HOME_OF": "$$"})
    assert values == {"a": "x$$y$", "b": "10", "c": "true", "a-b.c": "12"}
