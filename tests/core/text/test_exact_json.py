"""JSON that is written again as it was read."""

from __future__ import annotations

import orjson
import pytest

from rowcall.core.text import exact_json


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (rb'{"a":1.50,"b":-0}', '{"a":1.50,"b":-0}'),
        (rb'["\ud83d\ude00"]', '["😀"]'),
        (rb'{"a":"\ud83d\ude00","b":1e400}', '{"a":"😀","b":1e400}'),
        (rb'["\\ud83d",1e400]', r'["\\ud83d",1e400]'),
    ],
)
def test_numbers_and_characters_survive(text: bytes, written: str) -> None:
    assert orjson.dumps(exact_json.parse(text)).decode() == written


@pytest.mark.parametrize("text", [rb'["\ud83d"]', rb'[1e400,"\ude00"]', rb'[1e400,"\ud83d\ude00"', b'["\xed\xa0\xbd"]'])
def test_what_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        exact_json.parse(text)


@pytest.mark.parametrize(("before", "behind"), [("[", "]"), ('{"a":', "}")])
def test_no_value_is_nested_too_deeply_to_be_written(before: str, behind: str) -> None:
    def nested(levels: int) -> bytes:
        return (before * levels + "1" + behind * levels).encode()

    limit = exact_json.MOST_LEVELS
    assert orjson.dumps([[exact_json.parse(nested(limit))]]) == b"[[%s]]" % nested(limit)
    assert exact_json.parse(b"[%s]" % b",".join([b'"[{[{"'] * limit + [b"[{}]"] * limit))
    for levels in (limit + 1, 500, 5000):
        with pytest.raises(ValueError, match="nested too deeply"):
            exact_json.parse(nested(levels))
