"""Aliases of embeds within a statement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.postgrest.plan import LONGEST_IDENTIFIER, _Identifiers, read_plan
from rowcall.core.postgrest.request.query_string import parse_query
from tests.core.postgrest.test_statements_are_closed import SCHEMA

MANY = 5000


@pytest.mark.parametrize(
    "names",
    [
        ["part"] * MANY,
        ["x" * 70] * MANY,
        ["x" * 52 + str(number) for number in range(MANY)],
        ["x" * 53 + f"{number:04}" for number in range(MANY // 2)] * 2,
        ["part_1", *(f"part_1_{number}" for number in range(MANY // 2)), *["part"] * (MANY // 2)],
    ],
    ids=["same", "too long", "equal if shortened", "equal with numbers", "numbers that are taken"],
)
def test_embeds_have_different_aliases(names: list[str]) -> None:
    query = parse_query(f"select={','.join(f'{name}:part()' for name in names)}")
    children = read_plan(SCHEMA, ("api", "item"), query).root.children
    aliases = {child.join_alias for child in children}
    assert len(children) == len(aliases) == len(names)
    assert all(len(alias.encode()) <= LONGEST_IDENTIFIER for alias in aliases)


class _Lookups(set[str]):
    """Counts how often an element is looked up."""

    number = 0

    def __contains__(self, item: object) -> bool:
        self.number += 1
        return super().__contains__(item)


@pytest.mark.parametrize("count", [2, 100, MANY])
def test_numbers_that_are_taken_are_not_tried_again(count: int) -> None:
    identifiers = _Identifiers(())
    taken = identifiers._taken = _Lookups()
    for _ in range(count):
        identifiers.add("part", "_1")
    assert taken.number < 2 * count


stems = st.builds(
    lambda start, end: start + end, st.sampled_from(["", "é" * 27, "x" * 54]), st.text("aé_12", max_size=6)
)


@given(st.lists(stems, max_size=60), st.lists(stems, max_size=3))
def test_an_identifier_has_the_lowest_free_number(items: list[str], taken: list[str]) -> None:
    identifiers = _Identifiers(taken)
    used = set(taken)
    for stem in items:
        expected = _lowest_free(stem, used)
        used.add(expected)
        assert identifiers.add(stem, "_1") == expected


def _lowest_free(stem: str, taken: set[str]) -> str:
    """Return the identifier by its definition."""
    suffixes = ["_1", *(f"_1_{number}" for number in range(2, 100))]
    names = (stem.encode()[: LONGEST_IDENTIFIER - len(suffix)].decode(errors="ignore") + suffix for suffix in suffixes)
    return next(name for name in names if name not in taken)
