"""Statements of the service itself that run in front of calls: one object for each text, as each is prepared once."""

from __future__ import annotations

import itertools
from functools import cache

from rowcall.ext.driver.execution import Statement

numbers = itertools.count(1)
"""Source of `Statement.id`, which is unique in the process."""
MOST_ARGUMENTS = 100
"""Most arguments of a function in PostgreSQL (its FUNC_MAX_ARGS)."""


@cache
def statement_for(sql: str, values: int) -> Statement:
    """Return the statement for this text, the same object for each call. values: the number of its `$n`."""
    return Statement(next(numbers), sql.encode(), values)


@cache
def settings_statement(count: int, *, local: bool = True) -> Statement:
    """Return a statement that sets `count` settings, with names and values as parameters (driver-8). local: for the
    transaction only; otherwise for the session.

    Each result of set_config would be a column to describe and to send. Counting the NULLs among them evaluates all of
    them, and returns one small number.
    """
    calls = [f"pg_catalog.set_config(${number}, ${number + 1}, {local})" for number in range(1, 2 * count, 2)]
    counts = (
        f"pg_catalog.num_nulls({', '.join(calls[first : first + MOST_ARGUMENTS])})"
        for first in range(0, count, MOST_ARGUMENTS)
    )
    return statement_for(f"select {', '.join(counts)}", 2 * count)
