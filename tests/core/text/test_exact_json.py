"""Numbers and nesting of JSON that is parsed to be written again."""

from __future__ import annotations

import orjson
import pytest

from rowcall.core.text.exact_json import LEVELS, parse, parse_with_number_texts


def nested(levels: int) -> bytes:
    return b'{"a":[' * (levels // 2) + b"]}" * (levels // 2)


@pytest.mark.parametrize(
    "text", ["1.50", "12345678901234567890123", "-0", "[1,true,null]", '{"a":1e400}', '"[[[["', "9223372036854775807"]
)
def test_parsed_json_is_written_unchanged(text: str) -> None:
    assert orjson.dumps(parse(text.encode())).decode() == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (rb'["\ud83d\ude00"]', '["😀"]'),
        (rb'{"a":"\ud83d\ude00","b":1e400}', '{"a":"😀","b":1e400}'),
        (rb'["\\ud83d",1e400]', r'["\\ud83d",1e400]'),
    ],
)
def test_characters_and_large_numbers_are_preserved(text: bytes, written: str) -> None:
    assert orjson.dumps(parse(text)).decode() == written


def test_numbers_are_read_as_their_texts() -> None:
    assert parse_with_number_texts(rb'{"a":1e400,"b":[-0,1.50],"c":"\ud83d\ude00"}') == {
        "a": "1e400",
        "b": ["-0", "1.50"],
        "c": "\N{GRINNING FACE}",
    }


@pytest.mark.parametrize("text", [r'["\ud800"]', r'{"\ud800":1}', "NaN", "[1", "[" * 100_000])
def test_invalid_json_is_refused_without_its_numbers(text: str) -> None:
    with pytest.raises(ValueError):
        parse_with_number_texts(text.encode())


@pytest.mark.parametrize(
    "text", [r'[1e400,"\ude00"]', r'[1e400,"\ud83d\ude00"', "NaN", "Infinity", '"\\ud800"', "", "[1"]
)
def test_invalid_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text.encode())


def test_json_nested_too_deeply_to_be_written_is_refused() -> None:
    value = parse(nested(LEVELS))
    assert orjson.dumps({"within": [value]}) == b'{"within":[' + nested(LEVELS) + b"]}"
    for levels in (LEVELS + 2, 254, 300, 900, 5_000, 500_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            parse(nested(levels))


def test_many_sibling_values_do_not_count_as_nesting() -> None:
    text = b"[" + b",".join([b"{}"] * 1000) + b"]"
    assert orjson.dumps(parse(text)) == text
