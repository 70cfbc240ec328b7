"""Names that are proposed for unknown ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.plan import SIMILAR, find_relation, similar
from rowcall.core.postgrest.schema import Relation, Schema


@pytest.mark.parametrize(
    ("name", "names", "proposed"),
    [
        ("vesel", ["voyage", "vessel"], "vessel"),
        ("VESSEL", ["vessel"], "vessel"),
        ("vasel", ["vessel"], None),
        ("sayhell", ["sayhello", "sayhellos"], "sayhello"),
        ("", ["a"], None),
        ("(a, b)", ["(a, b, c)", "(a)"], None),
        ("x" * 100, ["x" * 99 + "y"], "x" * 99 + "y"),
    ],
)
def test_the_most_similar_name(name: str, names: list[str], proposed: str | None) -> None:
    assert similar(name, names) == proposed


@pytest.mark.parametrize(("count", "proposed"), [(499, True), (500, False)])
def test_no_similar_name_is_proposed_in_large_schemas(count: int, proposed: bool) -> None:
    names = [f"table{number}" for number in range(count)]
    with pytest.raises(ApiError) as caught:
        find_relation(Schema({("api", name): Relation("api", name, ()) for name in names}, {}), ("api", "tabl1"))
    assert (caught.value.hint is not None) is proposed


@given(st.text("abAB", max_size=12), st.text("abAB", max_size=12))
def test_similarity_is_that_of_the_edit_distance(first: str, second: str) -> None:
    longest = max(len(first), len(second)) or 1
    near = 1 - _distance(first.lower(), second.lower()) / longest >= SIMILAR
    assert similar(first, [second]) == (second if near else None)


def _distance(first: str, second: str) -> int:
    """Return the Levenshtein distance by its definition."""
    row = list(range(len(second) + 1))
    for place, character in enumerate(first, 1):
        former, row = row, [place]
        for column, other in enumerate(second, 1):
            row.append(min(former[column] + 1, row[-1] + 1, former[column - 1] + (character != other)))
    return row[-1]
