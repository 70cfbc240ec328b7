"""Headers of a response of another service, as the JSON that a routine gets."""

from __future__ import annotations

import json

import pytest

from rowcall.core.outgoing.reply import headers_json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", "a"),
        ("a\\u0000", "a\\u0000"),
        ("\\\\u0000", "\\\\u0000"),
        ("a\0b", "ab"),
        ("\xc3\xa9", "é"),
        ("\xe9", "é"),
    ],
)
def test_a_header_value_is_converted_to_json(value: str, expected: str) -> None:
    assert json.loads(headers_json([("X-Value", value)])) == {"X-Value": expected}
