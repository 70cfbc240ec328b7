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


async def access_facts(
    connection: AsyncConnection[Any], snapshot: SchemaSnapshot, options: WorkerOptions
) -> DatabaseFacts:
    """Read roles, rights and policies for the endpoints and PostgREST's interface of a snapshot, and the rights in the
    schema `rowcall` for the enabled capabilities. connection: to the main database. Raises `psycopg.Error`."""
    sources = (
        endpoint.routine.source
        for endpoint in snapshot.endpoints
        if endpoint.routine.kind in (RoutineKind.TABLE, RoutineKind.VIEW)
    )
    served = sorted({source.table.oid for source in sources if isinstance(source, TableOperation)})
    interface = None if snapshot.postgrest is None else snapshot.postgrest.options
    anonymous, exposed = (None, ()) if interface is None else (interface.anonymous_role, interface.schemas)
    facts = await read_facts(connection, served, anonymous, exposed)
    installation = await read_installation(connection)
    return replace(facts, installation=installation, stored_features=tuple(stored_features(options)))
