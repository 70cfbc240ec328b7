"""Sources of endpoints whose SQL is not the call of a function or procedure: an operation on a table, or a file.

For all other code, such an object is a `core.catalogue.catalog.Routine`. Only the SQL of a call, and defaults for
method, path and tags, come from its `source`. A `ResultQuery` is a query that a request adds around the SQL of any
endpoint.
"""

from __future__ import annotations

import enum
from typing import Any, Protocol


class Transport(enum.Enum):
    """Where the values of a request are (binding-1, binding-2)."""

    QUERY = "query_string"
    BODY = "body_json"


class Source(Protocol):
    """The SQL and the defaults of an endpoint that calls no function or procedure.

    A frozen value that is sent to the workers with its endpoint (`core.data.record`).
    """

    @property
    def identity(self) -> str:
        """Name for messages: `shop.orders (select)`, `sql/orders.sql`."""

    @property
    def method(self) -> str:
        """HTTP method, unless an annotation sets another one."""

    @property
    def transport(self) -> Transport:
        """Where the values of a request are, unless an annotation sets another place."""

    @property
    def path(self) -> str:
        """Path as routed, with the prefix, unless an annotation sets another one."""

    @property
    def tags(self) -> frozenset[str]:
        """The words that `for`, `enabled` and `disabled` match. Without tags, `for` lines are prose."""

    @property
    def methods(self) -> frozenset[str]:
        """Methods that a line `HTTP <method>` outside of a `for` block may set. With another method the operation is
        not exposed, because the line applies to all operations of the object. Empty: any method."""

    @property
    def writes(self) -> bool:
        """Whether the source is known to write, so that it can never be a GET endpoint."""

    @property
    def compared(self) -> frozenset[str]:
        """Database names of the parameters that select rows, as far as known."""

    @property
    def claimed(self) -> frozenset[str]:
        """Lines of the comment that only the source applies."""

    def sql(self, endpoint: Any, present: int) -> str:
        """Return the statement for a request that supplies the parameters in `present`, whose n-th one is `$n`.

        present: bit mask, with bit i for parameter i of the endpoint. endpoint: the `core.endpoint.endpoint.Endpoint`
        of the source; its module may not be imported here.

        Raises:
            core.endpoint.call.UncallableError: there is no statement for these values (execution-3).
        """


class ResultQuery(Protocol):
    """A query over the result of an endpoint. Its values follow those of the parameters of that endpoint."""

    @property
    def inner(self) -> Any:
        """The endpoint without the query (`core.endpoint.endpoint.Endpoint`, whose module may not be imported here)."""

    @property
    def page_size(self) -> int | None:
        """Maximum number of rows of a page, behind which the cursor of the next page is written; None: the result is
        not paged."""

    @property
    def counted(self) -> bool:
        """Whether the number of all rows is written behind a page."""

    @property
    def without_positions(self) -> ResultQuery:
        """The same query for formats that contain only rows: without cursor and number of rows."""

    def wrap_statement(self, sql: str, first: int) -> str:
        """Return the statement that applies the query to the result of `sql`. sql: of the endpoint. first: number of
        values that `sql` takes; the values of the query follow them."""
