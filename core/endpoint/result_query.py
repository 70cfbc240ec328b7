"""What an endpoint runs around the SQL of its routine, if the request has changed its result (`queryable`)."""

from __future__ import annotations

from typing import Any, Protocol


class ResultQuery(Protocol):
    """A query over the result of a routine. Its values follow the parameters of the endpoint that has no query."""

    @property
    def inner(self) -> Any:
        """The `core.endpoint.endpoint.Endpoint` without the query; its module may not be imported here."""

    @property
    def page_size(self) -> int | None:
        """Most rows of the response, if their positions are written behind them; None: only rows are written."""

    @property
    def counted(self) -> bool:
        """Whether the number of all rows is written behind a page."""

    @property
    def without_positions(self) -> ResultQuery:
        """The query for formats that contain only rows."""

    def around(self, sql: str, first: int) -> str:
        """Return the statement. sql: of the routine. first: number of values that it takes; those of the query
        follow."""
