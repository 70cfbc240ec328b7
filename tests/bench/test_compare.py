"""Two responses are equal apart from the differences that the benchmark's README accepts."""

import pytest

from bench.compare import difference


@pytest.mark.parametrize(
    ("expected", "response"),
    [
        (b'[{"a":12.50}]', b'[{"a":"12.50"}]'),
        (b'[{"a":9007199254740993}]', b'[{"a":"9007199254740993"}]'),
        (b'["2024-02-29T10:00:00+00:00"]', b'["2024-02-29T10:00:00.000Z"]'),
        (b'["2024-02-29T10:00:00"]', b'["2024-02-29T10:00:00.000Z"]'),
        (b'["2024-02-29"]', b'["2024-02-29T00:00:00.000Z"]'),
        (b'{"a":1,"b":null}', b'{"b":null,"a":1.0}'),
    ],
)
def test_known_differences_of_peers_are_ignored(expected: bytes, response: bytes) -> None:
    assert difference(expected, response) is None


@pytest.mark.parametrize(
    ("expected", "response", "place"),
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
def test_any_other_difference_is_reported_with_its_path(expected: bytes, response: bytes, place: str) -> None:
    result = difference(expected, response)
    assert result is not None
    assert result.startswith(f"{place}: ")


def test_a_response_that_is_not_json_differs() -> None:
    assert "not JSON" in (difference(b"[]", b"<html>") or "")
