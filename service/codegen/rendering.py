"""Generates all clients and descriptions in memory, for the audit; writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from rowcall.core.codegen.comments import Definitions
from rowcall.core.codegen.selection import NoPlaceError, TypesOf
from rowcall.core.documents.descriptions import Descriptions
from rowcall.core.documents.http_files import http_files
from rowcall.core.documents.openapi import document
from rowcall.core.documents.resources import RESOURCES, resource_contents
from rowcall.core.documents.tool_schemas import ToolNameError, tool_documents
from rowcall.core.documents.tools import tool_entries
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.codegen.writing import clients_of


def rendered(
    endpoints: Sequence[Endpoint], types_of: TypesOf, descriptions: Descriptions, definitions: Definitions
) -> Iterator[tuple[str, str]]:
    """Yield names and texts of the documents and clients that are switched on."""
    for client in clients_of(descriptions.typescript, descriptions.dart, descriptions.python):
        try:
            outputs = tuple(client.files(endpoints, types_of, definitions, now=""))
        except NoPlaceError:
            # The startup reports this error and writes nothing.
            continue
        yield from ((item.path, item.text) for item in outputs if item.text is not None)
    if descriptions.openapi is not None:
        name = descriptions.openapi.path or descriptions.openapi.file or "OpenAPI"
        yield name, orjson.dumps(document(endpoints, types_of, descriptions.openapi.options)).decode()
    if descriptions.http_files is not None:
        yield from http_files(endpoints, definitions, descriptions.http_files)
    if (mcp := descriptions.mcp) is not None:
        tools = [item.described for item in tool_entries(endpoints, types_of, mcp.tools).values()]
        yield f"{mcp.path} tools/list", orjson.dumps(tools).decode()
        if (catalogue := mcp.catalogue) is not None:
            for uri in (resource["uri"] for resource in RESOURCES):
                yield uri, orjson.dumps(resource_contents(uri, endpoints, types_of, catalogue)).decode()
    if descriptions.tool_schemas is not None:
        entries = tool_entries(endpoints, types_of, descriptions.tool_schemas.tools)
        try:
            documents = tuple(tool_documents(entries, descriptions.tool_schemas))
        except ToolNameError:
            # The startup reports this error and ends.
            return
        yield from ((item.place.path or item.place.file or item.content_type, item.text) for item in documents)
