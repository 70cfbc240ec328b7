"""Options of the replicas of the main database for one worker."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.config.sections.connections import ReplicaKeys
from rowcall.service.database.connector import ConnectionTarget
from rowcall.service.database.options import DatabaseOptions


@dataclass(frozen=True, slots=True)
class ReplicaServer:
    """One replica server. name: for the log. target: how to connect to it. database: options of its pools."""

    name: str
    target: ConnectionTarget
    database: DatabaseOptions


@dataclass(frozen=True, slots=True)
class ReplicaOptions(ReplicaKeys):
    """Options of the replicas, with their servers."""

    servers: tuple[ReplicaServer, ...] = ()
