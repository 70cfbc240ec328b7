"""Headers of a response of another service, as the JSON that a routine gets."""

from __future__ import annotations

import json

import pytest

from rowcall.core.outgoing.reply import decode_body, headers_json


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


@pytest.mark.parametrize("charset", ["koi8-u", "KOI8_R", "cp1251", "Windows-1251", "iso-8859-5"])
def test_a_body_is_decoded_by_its_character_set(charset: str) -> None:
    assert decode_body("да".encode(charset), f'text/plain; charset="{charset}"') == "да"


@pytest.mark.parametrize("charset", ["punycode", "idna", "undefined", "hex", "aliases", "base64", "no-such-one"])
def test_a_body_of_an_unknown_character_set_is_utf_8(charset: str) -> None:
    assert decode_body("да-1".encode(), f"text/plain; charset={charset}") == "да-1"
