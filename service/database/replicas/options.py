"""Options of the replicas of the main database for one worker."""

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
    """Options of the replicas. Times in seconds."""

    servers: tuple[ReplicaServer, ...]
    only_annotated: bool = False
    """Only endpoints whose comment says so read from replicas."""
    longest_lag: float | None = 10.0
    """A replica with a longer lag is not read from. None: any lag is accepted."""
    wait: float = 0.1
    """Longest wait for a replica to replay what the client has written; then the primary is read."""
    check: float = 0.5
    """Interval between two checks of each server."""
    cookie: str | None = "rowcall-position"
    header: str | None = "read-after"
    """In lower case."""
    lifetime: float = 60.0
    """Lifetime of the cookie."""
