"""What is remembered of an endpoint's statements."""

from __future__ import annotations

from rowcall.service.database.call import MOST_STATEMENTS, Call
from rowcall.service.database.pools.pool_assignment import PoolAssignment


def test_the_number_of_cached_statements_per_call_is_limited() -> None:
    call = Call("GET /x", lambda mask: (f"select {mask}", 0), None, PoolAssignment(0.003), volatile=False)
    first = call.statement(1)
    assert call.statement(1) is first
    for mask in range(1, MOST_STATEMENTS + 50):
        call.checked.add(mask)
        call.generic.add(mask)
        call.statement(mask)
    assert len(call.statements) == MOST_STATEMENTS
    assert max(len(call.checked), len(call.generic)) <= MOST_STATEMENTS
    assert call.statement(1) is not first
    assert call.statement(MOST_STATEMENTS) is call.statement(MOST_STATEMENTS)
