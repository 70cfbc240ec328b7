"""Lists of cores."""

import pytest

from rowcall.core.config.cpu_list import parse_cpu_groups


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("3", [{3}]),
        ("0-3,6", [{0, 1, 2, 3, 6}]),
        (" 0 , 2 ", [{0, 2}]),
        ("0-7:2", [{0, 2, 4, 6}]),
        ("0-1;2-3", [{0, 1}, {2, 3}]),
    ],
)
def test_cores_are_listed_like_the_kernel_does(text: str, groups: list[set[int]]) -> None:
    assert list(parse_cpu_groups(text)) == groups


@pytest.mark.parametrize("text", ["", "x", "1-", "-1", "3-1", "0-3:0", "1;;2", "1,,2", "999999"])
def test_an_invalid_list_is_reported_with_its_invalid_part(text: str) -> None:
    with pytest.raises(ValueError, match=r"is neither a core|is an empty range"):
        parse_cpu_groups(text)
