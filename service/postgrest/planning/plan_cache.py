"""Plans of requests, kept for requests that differ from these only in their values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from rowcall.core.postgrest.sql.output import Statement
from rowcall.service.postgrest.bounded_mapping import BoundedMapping
from rowcall.service.postgrest.request import ApiRequest

Plan = TypeVar("Plan")
Key = tuple[object, ...]

BYTES_PER_CHARACTER = 10
"""Memory that a plan takes for each character of its query string and statement, as measured."""


class PlanCache(BoundedMapping[Key, Plan]):
    """Plans with one schema snapshot, by all on which they depend."""

    __slots__ = ()

    def remember(
        self, request: ApiRequest, key: Key, plan: Plan, statement: Statement, names: Iterable[str] = ()
    ) -> None:
        """Store the plan of a request under a new key, unless the key cannot occur again or the plan is too large.

        statement: of the plan. names: texts within the key that are not its members.
        """
        negotiation = request.negotiation
        if negotiation.remembered:
            texts = (*names, *(part for part in key if isinstance(part, str)))
            characters = len(statement.sql) + sum(map(len, texts))
            self.store(key, plan, BYTES_PER_CHARACTER * characters + negotiation.size)
