"""How the statements of a file travel to the server, decided by `sqlfile.commands`: all that a worker has to know."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.data.record import Record


@dataclass(frozen=True, slots=True)
class ExecutionPlan(Record):
    """How a statement travels."""

    last: bool
    """The transaction ends behind it unless the file has begun one, and its success is waited for."""
    fresh: bool
    """What a request says to its transaction has to be said in front of this one."""
    behind_commit: bool = False
    """A transaction of the file has ended before it, so what was done there stays whatever becomes of this one."""


def one_plan(count: int) -> tuple[ExecutionPlan, ...]:
    """All statements are sent together, as one transaction."""
    return tuple(ExecutionPlan(last=index == count - 1, fresh=index == 0) for index in range(count))
