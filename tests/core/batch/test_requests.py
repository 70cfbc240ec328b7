"""Requests of a batch and their references, for values at the limits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rowcall.core.batch.requests import BatchError, BatchRequest, MissingResultError, Result, read_batch


def requests(*items: dict[str, Any]) -> tuple[BatchRequest, ...]:
    return read_batch(json.dumps(items).encode(), 10)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [300, 900, 5000])
def test_body_that_is_nested_too_deeply_is_refused(depth: int) -> None:
    body = b'[{"path": "/x", "method": "POST", "body": ' + b"[" * depth + b"]" * depth + b"}]"
    with pytest.raises(BatchError, match="nested too deeply"):
        read_batch(body, 10)


def test_result_that_is_nested_too_deeply_is_refused() -> None:
    _, second = requests({"path": "/a"}, {"path": "/b", "method": "POST", "body": {"of": "$1.body"}})
    with pytest.raises(MissingResultError, match="nested too deeply"):
        second.filled_body([Result(200, {}, nested(254))])


def test_index_of_any_length_is_missing() -> None:
    _, second = requests({"path": "/a"}, {"path": f"/b/$1.body.{'9' * 5000}"})
    with pytest.raises(MissingResultError):
        second.target([Result(200, {}, [1, 2])])
