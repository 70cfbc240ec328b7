"""Generates clients and descriptions of the endpoints: at startup, when they have changed, and for
`rowcall --generate`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

import orjson
import psycopg

from rowcall.core.catalogue.catalog import RoutineKind
from rowcall.core.codegen.comments import Definition, Definitions
from rowcall.core.codegen.selection import NoPlaceError, TypesOf
from rowcall.core.documents.http_files import http_files
from rowcall.core.documents.openapi import document
from rowcall.core.documents.wire_types import as_wire_types
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.mcp.resources import RESOURCES, resource_contents
from rowcall.core.mcp.tool_schemas import ToolNameError, tool_documents
from rowcall.core.mcp.tools import tool_entries
from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.service.codegen.documents import RequestFiles, write_documents
from rowcall.service.codegen.writing import ClientFiles, clients_of
from rowcall.service.database.connector import Connector
from rowcall.service.options.capabilities.description_options import Descriptions

log = logging.getLogger("rowcall")

_DEFINITIONS = """
select p.oid, case when %s and p.prokind in ('f', 'p') then pg_get_functiondef(p.oid) else '' end,
       array(select pg_get_function_arg_default(p.oid, n) from generate_series(1, array_length(
           coalesce(p.proallargtypes, p.proargtypes::oid[]), 1)) n
           where p.proargmodes is null or p.proargmodes[n] in ('i', 'b', 'v') order by n)
from pg_proc p where p.oid = any(%s)"""


SourceConnector = Callable[[str | None], Connector]
"""Returns the connector of the database where routines were found, by `Endpoint.catalogue_connection`."""


class Describer:
    """Writes the enabled clients and documents, in the supervisor or a command. catalogue, for all methods: of
    PostgREST's interface; None: it is not served."""

    def __init__(self, descriptions: Descriptions, connector: Connector, source_connector: SourceConnector) -> None:
        """connector: of the main database. source_connector: returns those of the databases from which routines are
        read."""
        self._descriptions = descriptions
        clients = tuple(clients_of(descriptions.typescript, descriptions.dart, descriptions.python))
        self._clients = tuple(map(ClientFiles, clients))
        self._client_forms = {client.options.comment for client in clients}
        self._connector = connector
        self._source_connector = source_connector
        requests = descriptions.http_files
        self._request_files = None if requests is None or not requests.write else RequestFiles(requests)

    async def write(
        self, endpoints: Sequence[Endpoint], types_of: TypesOf, catalogue: PostgRestCatalogue | None
    ) -> bool:
        """Write all clients and documents; return whether all succeeded. If definitions of routines are needed and the
        database cannot be read, nothing is written. Errors are logged and do not stop the service.

        catalogue: of PostgREST's interface. Raises `StartupError` if the names of two tools are equal.
        """
        endpoints, types_of = self._with_wire_types(endpoints, types_of)
        definitions = await self._definitions(endpoints, self._comment_forms())
        if definitions is None:
            return False
        done = True
        for client in self._clients:
            done &= await client.write(endpoints, types_of, definitions)
        if self._request_files is not None:
            done &= await asyncio.to_thread(self._request_files.write, endpoints, definitions)
        done &= await asyncio.to_thread(write_documents, endpoints, types_of, self._descriptions, catalogue)
        return done

    async def write_interface(self, catalogue: PostgRestCatalogue | None) -> bool:
        """Write the types of PostgREST's interface; return whether this succeeded. If no file is configured or the
        interface is not served, do nothing and return True."""
        path = self._descriptions.database_types
        if path is None or catalogue is None:
            return True
        from rowcall.service.codegen.database_types import write_database_types

        return await write_database_types(self._connector, catalogue, Path(path))

    async def served_requests(self, endpoints: Sequence[Endpoint], types_of: TypesOf) -> tuple[tuple[str, str], ...]:
        """Return names and texts of the `.http` files that workers serve, without definitions of routines if the
        database cannot be read."""
        options = self._descriptions.http_files
        if options is None or not options.serve:
            return ()
        endpoints, _ = self._with_wire_types(endpoints, types_of)
        definitions = await self._definitions(endpoints, {options.comment})
        return tuple(http_files(endpoints, definitions or {}, options))

    async def texts(
        self, endpoints: Sequence[Endpoint], types_of: TypesOf, catalogue: PostgRestCatalogue | None
    ) -> tuple[tuple[str, str], ...]:
        """Return names and texts of everything that is generated, without definitions of routines if the database
        cannot be read. Clients and tool definitions that cannot be generated are left out."""
        endpoints, types_of = self._with_wire_types(endpoints, types_of)
        definitions = await self._definitions(endpoints, self._comment_forms())
        return await asyncio.to_thread(
            lambda: tuple(_render_outputs(endpoints, types_of, self._descriptions, definitions or {}, catalogue))
        )

    def _with_wire_types(self, endpoints: Sequence[Endpoint], types_of: TypesOf) -> tuple[Sequence[Endpoint], TypesOf]:
        """Return endpoints and types as clients see them in JSON: after the options `safe_numbers` and `resolve_nested`
        (`as_wire_types`)."""
        safe, resolve = self._descriptions.safe_numbers, self._descriptions.resolve_nested
        return as_wire_types(endpoints, types_of, safe_numbers=safe, resolve_nested=resolve)

    async def _definitions(self, endpoints: Sequence[Endpoint], forms: set[str]) -> Definitions | None:
        """Return the definitions as `_read_definitions` does. None: the database cannot be read, which is logged."""
        try:
            return await _read_definitions(self._source_connector, endpoints, forms)
        except (OSError, psycopg.Error) as error:
            log.error("clients and descriptions cannot be written: %s", str(error).strip())
            return None

    def _comment_forms(self) -> set[str]:
        """Return the comment forms, `None`, `Simple` or `Full`, that the enabled clients and `.http` files use."""
        requests = self._descriptions.http_files
        result = {requests.comment} if requests is not None else set()
        return self._client_forms | result


async def _read_definitions(
    source_connector: SourceConnector, endpoints: Iterable[Endpoint], forms: Set[str]
) -> Definitions:
    """Return the definitions of routines, each from the database where it was found. forms: the forms of the comments,
    `None`, `Simple` or `Full`; only `Full` needs the sources. Raises `psycopg.Error` and `OSError`."""
    if forms <= {"None"}:
        return {}
    called = (RoutineKind.FUNCTION, RoutineKind.PROCEDURE)
    oids: dict[str | None, set[int]] = {}
    for item in endpoints:
        if item.routine.kind in called:
            oids.setdefault(item.catalogue_connection, set()).add(item.routine.oid)
    definitions: dict[tuple[str | None, int], Definition] = {}
    for name, of_database in oids.items():
        connection = await source_connector(name).open_plain()
        try:
            cursor = await connection.execute(_DEFINITIONS, ("Full" in forms, list(of_database)))
            rows: list[Any] = await cursor.fetchall()
        finally:
            await connection.close()
        definitions |= {(name, oid): Definition(str(text or ""), tuple(defaults)) for oid, text, defaults in rows}
    return definitions


def _render_outputs(
    endpoints: Sequence[Endpoint],
    types_of: TypesOf,
    descriptions: Descriptions,
    definitions: Definitions,
    catalogue: PostgRestCatalogue | None,
) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the documents and clients that are switched on; those with errors are left out.
    definitions: of routines. catalogue: of PostgREST's interface; None: it is not served.
    """
    for client in clients_of(descriptions.typescript, descriptions.dart, descriptions.python):
        try:
            outputs = tuple(client.files(endpoints, types_of, definitions, now=""))
        except NoPlaceError:
            # The startup reports this error and writes nothing.
            continue
        yield from ((item.path, item.text) for item in outputs if item.text is not None)
    if descriptions.openapi is not None:
        name = descriptions.openapi.path or descriptions.openapi.file or "OpenAPI"
        yield name, orjson.dumps(document(endpoints, types_of, descriptions.openapi.options, catalogue)).decode()
    if descriptions.http_files is not None:
        yield from http_files(endpoints, definitions, descriptions.http_files)
    if (mcp := descriptions.mcp) is not None:
        tools = [item.described for item in tool_entries(endpoints, types_of, mcp.tools).values()]
        yield f"{mcp.path} tools/list", orjson.dumps(tools).decode()
        if (described := mcp.catalogue) is not None:
            for uri in (resource["uri"] for resource in RESOURCES):
                yield uri, orjson.dumps(resource_contents(uri, endpoints, types_of, described, catalogue)).decode()
    if descriptions.tool_schemas is not None:
        entries = tool_entries(endpoints, types_of, descriptions.tool_schemas.tools)
        try:
            documents = tuple(tool_documents(entries, descriptions.tool_schemas))
        except ToolNameError:
            # The startup reports this error and ends.
            return
        yield from ((item.place.path or item.place.file or item.content_type, item.text) for item in documents)
