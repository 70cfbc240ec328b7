"""Header lines that contain values of a request never break the header section."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.building.endpoint_builder import build_endpoint
from rowcall.core.endpoint.header_lines import HeaderLines, header_lines
from tests.core.routines import EVERYTHING, catalog, endpoint, parameter, routine

LINES = 'Content-Type: text/{_a}\nX-A: <{_a}>\nContent-Disposition: attachment; filename={_a}; x="{_a}"'
SENDABLE = re.compile(r"[\x20-\x7e]*")


def lines(comment: str) -> HeaderLines:
    return header_lines(endpoint(parameter("_a", 25), comment=comment))


@given(st.text(max_size=40))
def test_every_value_gives_fields_of_printable_ascii(value: str) -> None:
    section = lines(LINES).fill(lambda _: value)
    assert [name for name, _ in section.fields][:2] == ["x-a", "content-disposition"]
    for text in (section.content_type or "", *(text for _, text in section.fields)):
        assert SENDABLE.fullmatch(text)
        assert text == text.strip()


@given(st.text(max_size=40))
def test_no_value_ends_its_file_name(value: str) -> None:
    (_, disposition) = lines('Content-Disposition: attachment; filename="{_a}"').fill(lambda _: value).fields[0]
    assert re.fullmatch(r"""attachment; filename="[^"]*"(; filename\*=UTF-8''[^;"]*)?""", disposition)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"], exclude_characters='";\\'), max_size=80))
def test_a_non_ascii_file_name_can_be_parsed(name: str) -> None:
    name = "é" + name
    (_, disposition) = lines('Content-Disposition: attachment; filename="{_a}"').fill(lambda _: name).fields[0]
    assert unquote(disposition.partition("UTF-8''")[2]) == name


def test_fields_without_placeholders_are_fixed() -> None:
    assert lines("X-A: b\nContent-Type: x").is_fixed
    assert not lines("X-A: {_a}").is_fixed
    assert not lines("Content-Type: {_a}").is_fixed


@pytest.mark.parametrize("line", ["X-A: {_b}", "Content-Type: {_b}"])
def test_an_unknown_placeholder_is_a_diagnostic(line: str) -> None:
    made = routine(parameter("_a", 25), comment=line)
    messages = [diagnostic.message for diagnostic in build_endpoint(made, catalog(made), EVERYTHING).diagnostics]
    assert messages == ["{_b} names no parameter and is left unchanged"]
