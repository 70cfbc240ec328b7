"""Reads the facts from which `core.operations.audit` draws its findings about the database: roles, rights and policies,
for the objects of a schema snapshot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from psycopg import AsyncConnection

from rowcall.core.catalogue.catalog import RoutineKind
from rowcall.core.operations.audit import DatabaseFacts
from rowcall.core.tables.routines import TableOperation
from rowcall.service.discovery.audit import read_facts
from rowcall.service.discovery.installation import read_installation
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.snapshot.reading.start_checks import stored_features
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot


def audited_sources(snapshot: SchemaSnapshot) -> tuple[str | None, ...]:
    """Return the connections of the databases to audit, for `access_facts`: None for the main one, and those where
    routines or tables of other endpoints were found."""
    found = {item.catalogue_connection for item in snapshot.endpoints if item.catalogue_connection is not None}
    return (None, *sorted(found))


async def access_facts(
    connection: AsyncConnection[Any], snapshot: SchemaSnapshot, options: WorkerOptions, source: str | None
) -> DatabaseFacts:
    """Read roles, rights and policies for the endpoints of a snapshot whose routines are in one database. For the main
    database also those for PostgREST's interface, and the rights in the schema `rowcall` for the enabled capabilities.

    connection: to the database. source: one of `audited_sources`. Raises `psycopg.Error`.
    """
    tables = (
        endpoint.routine.source
        for endpoint in snapshot.endpoints
        if endpoint.catalogue_connection == source and endpoint.routine.kind in (RoutineKind.TABLE, RoutineKind.VIEW)
    )
    served = sorted({table.table.oid for table in tables if isinstance(table, TableOperation)})
    if source is not None:
        return replace(await read_facts(connection, served), source=source)
    interface = None if snapshot.postgrest is None else snapshot.postgrest.options
    anonymous, exposed = (None, ()) if interface is None else (interface.anonymous_role, interface.schemas)
    facts = await read_facts(connection, served, anonymous, exposed)
    installation = await read_installation(connection)
    return replace(facts, installation=installation, stored_features=tuple(stored_features(options)))
