"""Defaults of comments, read like values of requests (comments-25)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rowcall.core.binding.invalid_values import InvalidValueError
from rowcall.core.binding.written_values import default_text, without_invalid_defaults
from rowcall.core.endpoint.endpoint import EndpointParameter
from tests.harness.parameters import parameter


def with_default(type_name: str, default: str | None) -> EndpointParameter:
    return replace(parameter("p", type_name), defaulted=True, default=default)


@pytest.mark.parametrize(
    ("type_name", "default", "text"),
    [
        ("integer", " 7", "7"),
        ("integer", None, None),
        ("integer", "", None),
        ("numeric", "1,000.5", "1000.5"),
        ("text", "", ""),
        ("text", "null", "null"),
        ("jsonb", '{"a":1}', '{"a":1}'),
        ("inet", "", ""),
        ("boolean", "TRUE", "true"),
        ("boolean", "on", "on"),
        ("date", "Today", "Today"),
        ("timestamp with time zone", "2026-03-01T10:00:00", "2026-03-01 10:00:00+00"),
        ("integer[]", "1", "{1}"),
        ("integer[]", "{1,2}", "{1,2}"),
        ("integer[]", "[0:1]={1,2}", "[0:1]={1,2}"),
        ("integer[]", "[1, null]", "{1,NULL}"),
        ("text[]", "a,b", '{"a,b"}'),
        ("text[]", "", '{""}'),
        ("pair", '{"n": 1}', '("1",)'),
        ("pair", "(1,)", "(1,)"),
        ("pair[]", '[{"n": null}]', '{"(,)"}'),
    ],
)
def test_defaults_are_read_like_values(type_name: str, default: str | None, text: str | None) -> None:
    assert default_text(with_default(type_name, default), timestamps_utc=True) == text


@pytest.mark.parametrize(
    ("type_name", "default"),
    [("integer", "ten"), ("boolean", "maybe"), ("date", "whenever"), ("integer[]", "x"), ("integer[]", '["x"]'),
     ("text[]", "[a"), ("pair", "{n: 1}"), ("pair", '{"m": 1}')],
)  # fmt: skip
def test_invalid_defaults_are_removed(type_name: str, default: str) -> None:
    invalid = with_default(type_name, default)
    with pytest.raises(InvalidValueError):
        default_text(invalid, timestamps_utc=True)
    valid = with_default("text", "x")
    (first, second), removed = without_invalid_defaults((invalid, valid), timestamps_utc=True)
    assert (first.defaulted, first.default, second) == (False, None, valid)
    assert [item for item, _ in removed] == [invalid]
