"""Waiting requests get the problem of the computing one, with everything that it has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rowcall.core.errors.problems import Problem, UnavailableError
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.shared_state.single_flight import copy_problem, problem_of, problem_text, release_unused_lease


@pytest.mark.parametrize(
    "copy", [copy_problem, lambda problem: problem_of(problem_text(problem))], ids=["here", "elsewhere"]
)
def test_a_problem_is_copied_completely(copy: Callable[[Problem], Problem]) -> None:
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


class _Lease:
    """Records the problem for waiting requests."""

    problem: Problem | None = None

    def give_up(self, problem: Problem | None) -> None:
        self.problem = problem


@pytest.mark.parametrize("error", [Problem(500, "the routine returned no row"), RuntimeError()])
def test_waiting_requests_do_not_log_the_failure_of_the_first(error: Exception) -> None:
    context = RequestContext(None, None)
    context.lease = lease = _Lease()
    release_unused_lease(context, error)
    assert lease.problem is not None
    assert lease.problem.logged
    assert not getattr(error, "logged", False), "the request itself logs it"


def test_a_copy_has_the_class_of_the_problem() -> None:
    assert isinstance(copy_problem(UnavailableError(503)), UnavailableError)
