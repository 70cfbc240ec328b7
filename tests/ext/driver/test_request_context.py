"""Steps of a request and what is called at its end: a failing one leaves no request without a response."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from rowcall.ext.driver.request_context import PendingWork, RequestContext, StepRunner

EARLY = """
from rowcall.ext.driver.request_context import RequestContext, PendingWork, StepRunner
reported = []
def step(context):
    PendingWork(context).{call}
runner = StepRunner(lambda context, awaitable: None, lambda context, error: reported.append(error))
runner.start(RequestContext(None, None), (step,))
print(type(reported[0]).__name__)
"""

TWICE = """
from rowcall.ext.driver.request_context import RequestContext, PendingWork, StepRunner
waiting = []
def step(context):
    waiting.append(PendingWork(context))
    return waiting[0]
runner = StepRunner(lambda context, awaitable: None, lambda context, error: None)
runner.start(RequestContext(None, None), (step,))
waiting[0].advance()
try:
    waiting[0].{call}
except Exception as error:
    print(type(error).__name__)
"""


class Reports:
    """The reported errors in order."""

    def __init__(self) -> None:
        self.reported: list[str] = []
        self.runner = StepRunner(lambda _context, _awaitable: None, self.fail)

    def fail(self, _context: RequestContext, error: BaseException) -> None:
        self.reported.append(f"failed: {error}")

    def ending(self, name: str, *, broken: bool = False) -> Callable[[RequestContext, Exception | None], None]:
        def end(_context: RequestContext, error: Exception | None) -> None:
            self.reported.append(f"{name}: {error}")
            if broken:
                raise RuntimeError(f"{name} broke")

        return end

    def step(self, error: Exception | None) -> Callable[[RequestContext], None]:
        def run(context: RequestContext) -> None:
            context.at_end(self.ending("one", broken=True))
            context.at_end(self.ending("two", broken=True))
            context.at_end(self.ending("three"))
            if error is not None:
                raise error

        return run


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (None, ["one: None", "two: None", "three: None"]),
        (ValueError("bad"), ["one: bad", "two: bad", "three: bad", "failed: bad"]),
    ],
)
def test_an_ending_that_raises_does_not_prevent_other_endings_and_the_error_response(
    error: Exception | None, reported: list[str]
) -> None:
    mine = Reports()
    with pytest.raises(RuntimeError, match="one broke"):
        mine.runner.start(RequestContext(None, None), (mine.step(error),))
    assert mine.reported == reported
    assert mine.runner.running == 0


def test_entered_steps_run_before_the_remaining_steps() -> None:
    ran: list[str] = []

    def named(name: str, then: Callable[[RequestContext], None] | None = None) -> Callable[[RequestContext], None]:
        def run(context: RequestContext) -> None:
            ran.append(name)
            if then is not None:
                then(context)

        return run

    inner = (named("inner one", lambda context: context.enter((named("innermost"),))), named("inner two"))
    left = (named("left", lambda context: context.leave()), named("not reached"))
    runner = Reports().runner
    runner.start(RequestContext(None, None), (named("one", lambda context: context.enter(inner)), named("two")))
    assert ran == ["one", "inner one", "innermost", "inner two", "two"]
    ran.clear()
    runner.start(RequestContext(None, None), (named("one", lambda context: context.enter(left)), named("two")))
    assert ran == ["one", "left", "two"]
    ran.clear()
    other = (named("other", lambda context: context.follow((named("instead"),))), named("not reached"))
    runner.start(RequestContext(None, None), (named("one", lambda context: context.enter(other)), named("not reached")))
    assert ran == ["one", "other", "instead"]


def test_leaving_without_entered_steps_is_an_error() -> None:
    mine = Reports()
    mine.runner.start(RequestContext(None, None), (lambda context: context.leave(),))
    assert mine.reported == ["failed: no steps have been entered"]


@pytest.mark.slow
@pytest.mark.parametrize("program", [EARLY, TWICE])
@pytest.mark.parametrize("call", ["advance()", "fail(ValueError())", "wait_for(None)"])
def test_pending_work_cannot_end_twice_or_before_its_step(program: str, call: str) -> None:
    """Runs in a separate process, because this mistake once ended the process."""
    ended = subprocess.run(
        [sys.executable, "-c", program.format(call=call)], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "RuntimeError\n"), ended.stderr


def test_finished_pending_work_is_not_awaited() -> None:
    waiting: list[PendingWork] = []

    def step(context: RequestContext) -> PendingWork:
        waiting.append(PendingWork(context))
        return waiting[0]

    mine = Reports()
    mine.runner.start(RequestContext(None, None), (step,))
    assert not waiting[0].done()
    waiting[0].advance()
    assert waiting[0].done()
    assert mine.reported == []
