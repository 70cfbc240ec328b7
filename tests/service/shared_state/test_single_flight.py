"""Waiting requests get the problem of the computing one, with everything that it has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rowcall.core.errors.problems import Problem, UnavailableError
from rowcall.service.shared_state.single_flight import copied, problem_of, problem_text


@pytest.mark.parametrize("copy", [copied, lambda problem: problem_of(problem_text(problem))], ids=["here", "elsewhere"])
def test_a_problem_is_copied_as_a_whole(copy: Callable[[Problem], Problem]) -> None:
    problem = Problem(
        409,
        "taken",
        title="Conflict of names",
        type_url="https://example.com/taken",
        headers=(("retry-after", "1"),),
        others={"hint": "choose another", "errors": [{"name": "a"}]},
        code="name_taken",
    )
    problem.logged = True
    for original in (problem, Problem(404)):
        result = copy(original)
        assert result is not original
        assert vars(result) == vars(original)


def test_a_copy_has_the_class_of_the_problem() -> None:
    assert isinstance(copied(UnavailableError(503)), UnavailableError)
