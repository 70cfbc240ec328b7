"""Selection of files by name and by tag (testing-2, testing-3)."""

from __future__ import annotations

import pytest

from rowcall.core.testing.selection import fits_name, fits_tags


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [("", True), ("water", True), ("WATER.test", True), ("beds/", True), ("beds/*", False), ("tests/beds/*", True),
     ("**/w?ter.test.sql", True), ("*.sql", True), ("fire", False)],
)  # fmt: skip
def test_a_filter_is_a_substring_or_a_pattern_of_the_path(wanted: str, fits: bool) -> None:
    assert fits_name("tests/beds/water.test.sql", wanted) is fits


@pytest.mark.parametrize(
    ("tags", "wanted", "unwanted", "fits"),
    [
        ((), (), (), True),
        ((), ("a",), (), False),
        (("a", "b"), ("b", "c"), (), True),
        (("a", "b"), ("a",), ("b",), False),
        (("a",), (), ("b",), True),
    ],
)
def test_an_excluded_file_is_skipped_even_if_included(
    tags: tuple[str, ...], wanted: tuple[str, ...], unwanted: tuple[str, ...], fits: bool
) -> None:
    assert fits_tags(tags, wanted, unwanted) is fits
