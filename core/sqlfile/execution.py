"""Execution plans: how a worker sends the statements of a file to PostgreSQL. `sqlfile.commands` makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rowcall.core.data.record import Record


@dataclass(frozen=True, slots=True)
class ExecutionPlan(Record):
    """How one statement is sent."""

    last: bool
    """A Sync is sent behind the statement, and its result awaited; this ends the transaction unless the file has begun
    one."""
    fresh: bool
    """The settings of the request (claims, headers) have to be set before the statement, because a transaction begins
    with it."""
    behind_commit: bool = False
    """A transaction of the file has ended before the statement, so that its changes remain if this statement fails."""
    alone: bool = False
    """The statement may have to be the only one of its transaction, so that the settings of the request are set for the
    session before the file."""


def as_single_transaction(plans: Sequence[ExecutionPlan]) -> tuple[ExecutionPlan, ...]:
    """Return the plans of a file, changed so that all statements are sent together, as one transaction.

    `fresh` does not change: if the file begins with a statement that has to be the first of its transaction, such as
    the choice of an isolation level, the settings of the request are set behind it.
    """
    return tuple(replace(plan, last=index == len(plans)) for index, plan in enumerate(plans, 1))
