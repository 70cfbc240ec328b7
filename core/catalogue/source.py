"""What runs behind an endpoint whose SQL is no call of a function or procedure: an operation on a table, a file.

To everything else such an object is a `core.catalogue.catalog.Routine` like any other; only where the call would be
written, and where method, path and tags would be derived from a function, its `source` is asked instead.
"""

from __future__ import annotations

import enum
from typing import Any, Protocol


class Transport(enum.Enum):
    """Where request values travel (binding-1, binding-2)."""

    QUERY = "query_string"
    BODY = "body_json"


class Source(Protocol):
    """A frozen value that travels to the workers with its endpoint (`core.data.record`)."""

    @property
    def identity(self) -> str:
        """For messages: `shop.orders (select)`, `sql/orders.sql`."""

    @property
    def method(self) -> str:
        """Unless an annotation says otherwise; so are `transport` and `path`."""

    @property
    def transport(self) -> Transport:
        """Where request values travel."""

    @property
    def path(self) -> str:
        """As routed, prefix included."""

    @property
    def tags(self) -> frozenset[str]:
        """What `for`, `enabled` and `disabled` match. Without any, `for` lines are prose."""

    @property
    def methods(self) -> frozenset[str]:
        """Methods that a line `HTTP <method>` outside of a `for` block may give it: with another one it does not
        exist, as such a line is about every operation of its object. Empty: any will do."""

    @property
    def writes(self) -> bool:
        """Known to change something, whatever else it does: it never answers GET."""

    @property
    def compared(self) -> frozenset[str]:
        """Database names of the parameters that say which rows are meant, as far as it is known."""

    @property
    def claimed(self) -> frozenset[str]:
        """Lines of the comment that mean something to the source, and to nothing else."""

    def sql(self, endpoint: Any, present: int) -> str:
        """The statement for a request that supplies the parameters in `present`, whose n-th one is `$n`.

        endpoint: the `core.endpoint.endpoint.Endpoint` that was made of it; what the catalogue is made into stands
        above it.

        Raises:
            core.endpoint.call.UncallableError: these values make no statement (execution-3).
        """
