"""How one worker uses the replicas of its main database."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.database.options import DatabaseOptions


@dataclass(frozen=True, slots=True)
class ReplicaServer:
    """One host. name: for the log."""

    name: str
    target: ConnectionTarget
    database: DatabaseOptions


@dataclass(frozen=True, slots=True)
class ReplicaOptions:
    """Times in seconds."""

    servers: tuple[ReplicaServer, ...]
    only_annotated: bool = False
    """Nothing is read there unless its comment says so."""
    longest_lag: float | None = 10.0
    """A replica that is further behind is not read from. None: any will do."""
    wait: float = 0.1
    """For a replica to reach what the client has written; then the primary is read."""
    check: float = 0.5
    """Between two looks at each server."""
    cookie: str | None = "rowcall-position"
    header: str | None = "read-after"
    """In lower case."""
    lifetime: float = 60.0
    """Of the cookie."""
