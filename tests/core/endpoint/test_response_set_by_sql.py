"""Headers of a response that SQL sets."""

from __future__ import annotations

import pytest

from rowcall.core.endpoint.response_set_by_sql import ResponseSettingError, headers_set_by_sql


def test_a_header_value_that_is_nested_too_deeply_is_refused() -> None:
    text = '{"x-deep":{"a":' + 600 * "[" + 600 * "]" + "}}"
    with pytest.raises(ResponseSettingError, match="nested too deeply"):
        headers_set_by_sql(text)
