"""Treatment of rows with errors: values of `on_error`."""

from __future__ import annotations

import pytest

from rowcall.core.uploads.row_errors import ErrorHandling, OnError, error_handling


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Skip", ErrorHandling(OnError.SKIP)),
        ("collect 50", ErrorHandling(OnError.COLLECT, 50)),
        ("collect 050", ErrorHandling(OnError.COLLECT, 50)),
        ("Collect 10000", ErrorHandling(OnError.COLLECT, 10_000)),
        ("collect 10001", None),
        ("collect 000000001999999", None),
        ("collect 000000001" + "1" * 5000, None),
        ("collect 0", None),
        ("skip 5", None),
    ],
)
def test_values_of_the_error_setting_are_parsed(text: str, expected: ErrorHandling | None) -> None:
    assert error_handling(text) == expected
