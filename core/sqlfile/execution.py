"""How the statements of a file travel to the server, decided by `sqlfile.commands`: all that a worker has to know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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


def one_plan(plans: Sequence[ExecutionPlan]) -> tuple[ExecutionPlan, ...]:
    """All statements are sent together, as one transaction. What a request says still comes behind what has to be the
    first of its transaction, such as the choice of an isolation level.
    """
    return tuple(replace(plan, last=index == len(plans)) for index, plan in enumerate(plans, 1))
