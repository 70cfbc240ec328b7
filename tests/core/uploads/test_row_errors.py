"""Treatment of rows with errors: values of `on_error`."""

from __future__ import annotations

import pytest

from rowcall.core.uploads.row_errors import MOST_COLLECTED, ErrorHandling, OnError, error_handling


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Skip", ErrorHandling(OnError.SKIP)),
        ("collect 50", ErrorHandling(OnError.COLLECT, 50)),
        (f"collect {MOST_COLLECTED}", ErrorHandling(OnError.COLLECT, MOST_COLLECTED)),
        (f"collect {MOST_COLLECTED + 1}", None),
        ("collect 000000001999999", None),
        ("collect 0", None),
        ("skip 5", None),
    ],
)
def test_values(text: str, expected: ErrorHandling | None) -> None:
    assert error_handling(text) == expected
