"""Two answers are equal but for what the benchmark's README excuses."""

import pytest

from bench.compare import difference


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        (b'[{"a":12.50}]', b'[{"a":"12.50"}]'),
        (b'[{"a":9007199254740993}]', b'[{"a":"9007199254740993"}]'),
        (b'["2024-02-29T10:00:00+00:00"]', b'["2024-02-29T10:00:00.000Z"]'),
        (b'["2024-02-29T10:00:00"]', b'["2024-02-29T10:00:00.000Z"]'),
        (b'["2024-02-29"]', b'["2024-02-29T00:00:00.000Z"]'),
        (b'{"a":1,"b":null}', b'{"b":null,"a":1.0}'),
    ],
)
def test_habits_of_peers_are_no_difference(expected: bytes, answer: bytes) -> None:
    assert difference(expected, answer) is None


@pytest.mark.parametrize(
    ("expected", "answer", "place"),
    [
        (b'[{"a":1}]', b'[{"a":2}]', "$[0].a"),
        (b'[{"a":[1,2]}]', b'[{"a":[1,3]}]', "$[0].a[1]"),
        (b'[{"a":true}]', b'[{"a":1}]', "$[0].a"),
        (b"[1,2]", b"[1]", "$"),
        (b'{"a":1}', b'{"b":1}', "$"),
        (b'["x"]', b'["y"]', "$[0]"),
        (b'["2024-02-29T10:00:00+02:00"]', b'["2024-02-29T10:00:00Z"]', "$[0]"),
        (b"[null]", b'[""]', "$[0]"),
    ],
)
def test_any_other_difference_is_named_by_its_place(expected: bytes, answer: bytes, place: str) -> None:
    result = difference(expected, answer)
    assert result is not None
    assert result.startswith(f"{place}: ")


def test_an_answer_that_is_not_json_differs() -> None:
    assert "not JSON" in (difference(b"[]", b"<html>") or "")
