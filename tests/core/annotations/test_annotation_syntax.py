"""The parser accepts the syntax that `--annotations` prints: every line of it is the annotation (command-8)."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rowcall.core.annotations import BY_WORD, CATALOGUE
from rowcall.core.annotations.declaration import Annotation, Draft
from rowcall.core.building.comments import read_comment
from rowcall.core.sqlfile.reading import read_file
from tests.harness.effort import examples
from tests.harness.syntax import lines

FRAMING = ("connection", "content-length", "content-type", "content_type", "keep-alive", "te", "trailer", "upgrade")


def read(comment: str) -> Draft:
    draft = Draft(
        name="f()",
        method="GET",
        tags=frozenset({"function", "stable"}),
        parameters=frozenset({"_id", "_text"}),
    )
    read_comment(comment, draft)
    return draft


def spellings(annotation: Annotation) -> st.SearchStrategy[str]:
    """Return the line with and without `@`, in lower and upper case if its first word permits it."""
    word = annotation.syntax.split(" ")[0]
    changes = [str, lambda line: f"@{line}"]
    if word.lower() in BY_WORD:
        changes.append(lambda line: line.replace(word, word.upper(), 1))
    return st.builds(lambda line, change: change(line), lines(annotation.syntax), st.sampled_from(changes))


OF_COMMENTS = [one for one in CATALOGUE if not one.in_files]
OF_FILES = [one for one in CATALOGUE if one.in_files]


@pytest.mark.parametrize("annotation", OF_FILES, ids=lambda annotation: annotation.name)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_a_line_of_the_syntax_has_an_effect_in_a_file(annotation: Annotation, data: st.DataObject) -> None:
    line = data.draw(spellings(annotation))
    notes = read_file(f"-- {line}\nselect 1;\nselect 2;").notes
    assert line in notes.claimed or [item.line for item in notes.statements[0].returns_lines] == [line]
    assert read(line).used == {}


@pytest.mark.parametrize("annotation", OF_COMMENTS, ids=lambda annotation: annotation.name)
@settings(max_examples=examples(20))
@given(data=st.data())
def test_a_line_of_the_syntax_is_the_annotation(annotation: Annotation, data: st.DataObject) -> None:
    line = data.draw(spellings(annotation))
    draft = read(line)
    complaints = [item.message for item in draft.diagnostics if "name and password are missing" not in item.message]
    # A line may also use another annotation's capability: `param … is upload metadata`.
    assert (annotation.name in draft.used, complaints) == (True, [])


ONE_MEANING = [item for item in CATALOGUE if item.apply and not item.assign_word and item.name != "mcp"]
"""Annotations whose words all have one meaning."""


@pytest.mark.parametrize("annotation", ONE_MEANING, ids=lambda annotation: annotation.name)
@settings(max_examples=examples(10))
@given(data=st.data())
def test_every_alias_has_the_same_effect(annotation: Annotation, data: st.DataObject) -> None:
    line = data.draw(lines(annotation.syntax))
    word, _, rest = line.partition(" ")
    expected = read(line)
    for alias in annotation.aliases:
        draft = read(f"{alias} {rest}".strip())
        assert (draft.changes, draft.exposed, draft.path, draft.enabled, draft.muted) == (
            expected.changes,
            expected.exposed,
            expected.path,
            expected.enabled,
            expected.muted,
        ), f"{alias} is not {word}"


NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,9}", fullmatch=True).filter(lambda name: name.lower() not in BY_WORD)
TEXTS = st.text(st.characters(exclude_categories=["C"], exclude_characters="\\\x85\u2028\u2029"), min_size=1).map(
    str.strip
)


@given(NAMES, TEXTS)
def test_a_custom_parameter_is_parsed_as_written(key: str, value: str) -> None:
    assert read(f"{key} = {value}").custom == {key: value}


@given(NAMES.filter(lambda name: name.lower() not in FRAMING), TEXTS)
def test_a_header_is_parsed_as_written(name: str, value: str) -> None:
    assert read(f"{name}: {value}").headers == [(name, value)]


@given(st.text())
def test_an_escaped_text_is_unescaped(text: str) -> None:
    escaped = "".join(f"\\u{ord(item):04X}" if ord(item) < 0x10000 else item for item in text)
    assert read(f"separator = {escaped}").changes.get("separator", "") == text


@given(st.lists(st.sampled_from(OF_COMMENTS), max_size=8).flatmap(lambda some: st.tuples(*map(spellings, some))))
def test_lines_do_not_affect_each_other(chosen: tuple[str, ...]) -> None:
    """No line changes the meaning of another one, except for `for` blocks that mute."""
    alone = {name for line in chosen for name in read(line).used}
    assert set(read("\n".join(chosen)).used) == alone


@given(st.text(), st.sampled_from(OF_COMMENTS).flatmap(spellings))
@example("", "validate _id using required")
def test_parsing_is_deterministic(comment: str, line: str) -> None:
    first, second = read(f"{comment}\n{line}"), read(f"{comment}\n{line}")
    assert first == second
