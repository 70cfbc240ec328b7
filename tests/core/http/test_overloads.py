"""Selection of the overload that a request calls (routing-16 to routing-19)."""

from __future__ import annotations

from rowcall.core.http.overloads import Candidate, choose


def candidate(*required: str, optional: tuple[str, ...] = ()) -> Candidate:
    names = frozenset((*required, *optional))
    return Candidate(names, frozenset(required), len(names))


# f(a) and f(a, b, c default) on POST /f/{a}
SHORT = Candidate(frozenset("a"), frozenset(), 1)
LONG = Candidate(frozenset("abc"), frozenset("b"), 3)


def test_a_candidate_with_the_exact_number_of_values_is_selected() -> None:
    assert choose([LONG, SHORT], [], 1) == 1
    assert choose([LONG, SHORT], ["b", "c"], 1) == 0


def test_defaults_of_the_primary_replace_missing_values() -> None:
    assert choose([LONG, SHORT], ["b"], 1) == 0


def test_a_candidate_with_the_keys_is_selected_in_any_order_of_discovery() -> None:
    assert choose([SHORT, LONG], ["b"], 1) == 1


def test_candidates_with_equal_numbers_are_distinguished_by_names() -> None:
    assert choose([candidate("a", "b"), candidate("a", "c")], ["a", "c"], 0) == 1


def test_keys_that_the_service_reads_itself_are_not_counted() -> None:
    short = Candidate.of([], lambda key: key == "format")
    assert choose([candidate("a"), short], ["format"], 0) == 1
    assert choose([short, candidate("a")], ["a", "format"], 0) == 0
    assert choose([short, candidate("format")], ["format"], 0) == 0


def test_of_equal_candidates_the_primary_is_selected() -> None:
    assert choose([candidate("a"), candidate("a")], ["a"], 0) == 0


def test_the_primary_is_selected_if_no_candidate_fits() -> None:
    assert choose([LONG, SHORT], ["x", "y", "z"], 1) == 0


def test_an_exact_number_with_unknown_keys_precedes_the_primary() -> None:
    assert choose([candidate("a", "b"), candidate("a")], ["x"], 0) == 1
