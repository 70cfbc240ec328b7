"""On which connection a routine was found, and on which its endpoint runs.

A place is the key of a connection: its case-folded name, or `MAIN`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.database.connector import Connector
from rowcall.service.options.connections import ConnectionPlan
from rowcall.service.options.worker import WorkerOptions

MAIN = ""
"""Place of the main connection."""


class Places:
    """The connections of one service as places. Names of connections may be in any case."""

    def __init__(self, options: WorkerOptions, plan: ConnectionPlan) -> None:
        self._options = options
        self._plan = plan
        self.sources = [self.key(name) for name in plan.sources]
        """Where routines are read."""

    def key(self, name: str) -> str:
        """Return the place of the connection with this name."""
        folded = name.casefold()
        return MAIN if folded in self._plan.main_names else folded

    def of(self, endpoint: Endpoint) -> str | None:
        """Return the place where the endpoint runs; None: the place depends on the tenant of each request."""
        tenant = endpoint.options.tenant
        if tenant is not None and tenant.connection:
            return None
        return self._of_connection(endpoint.options.connection)

    def _all_of(self, endpoint: Endpoint) -> Sequence[str]:
        """Return the places where the endpoint may run. If that depends on the tenant, the place where it was described
        is among them.
        """
        tenant = endpoint.options.tenant
        here = self._of_connection(endpoint.options.connection)
        if tenant is None or not tenant.connection:
            return (here,)
        spelled = (access.name for access in self._options.others.values())
        return (here, *(self.key(name) for name in tenant.connections(spelled).values() if self.key(name) != here))

    def usable(self, name: str) -> str | None:
        """Return the place of the connection with this name; None if endpoints cannot run on it."""
        key = self.key(name)
        return key if key == MAIN or (self._plan.routable and key in self._options.others) else None

    def exists(self, place: str) -> bool:
        """Return whether the place is one of this service."""
        return place == MAIN or place in self._options.others

    @property
    def home(self) -> str:
        """Where files are described, and where routines of endpoints without a `catalogue_connection` were found: the
        connection for metadata, or the main one if routines have several sources."""
        return MAIN if self._plan.runs_at_home else self.sources[0]

    def source_connector(self, name: str | None) -> Connector:
        """Return the connector of the database where routines were found. name: `Endpoint.catalogue_connection`."""
        return self.connector(self.home if name is None else self.key(name))

    def default_connection(self, place: str) -> str | None:
        """Return the connection on which routines that were found at this place run by default; None: the main one."""
        return None if place == MAIN or not self._plan.runs_at_home else self._options.others[place].name

    def group(self, endpoints: Sequence[Endpoint]) -> dict[str, Sequence[Endpoint]]:
        """Return the endpoints by the place where they run. Those of several tenants are at several places."""
        options = {id(endpoint.options): endpoint.options for endpoint in endpoints}.values()
        names = {item.connection for item in options}
        if len(names) == 1 and not any(item.tenant is not None and item.tenant.connection for item in options):
            # The usual case.
            return {self._of_connection(*names): endpoints}
        places: dict[str, list[Endpoint]] = {}
        for endpoint in endpoints:
            for place in self._all_of(endpoint):
                places.setdefault(place, []).append(endpoint)
        return {**places}

    def connector(self, place: str) -> Connector:
        """Return the connector of a place."""
        return Connector(self._options.target if place == MAIN else self._options.others[place].target)

    def _of_connection(self, connection: str | None) -> str:
        """Return the place of a connection; None: the main one."""
        return MAIN if connection is None else self.key(connection)
