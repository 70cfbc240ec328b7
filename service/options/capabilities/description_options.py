"""Options of all generated descriptions and clients that are switched on, as one value."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.codegen.options import ClientCodeOptions, DartOptions, PythonOptions
from rowcall.core.documents.options import HttpFileOptions, OpenApi
from rowcall.core.mcp.options import McpOptions, ToolSchemaOptions


@dataclass(frozen=True, slots=True)
class Descriptions:
    """Options of each description and client; None: it is switched off."""

    typescript: ClientCodeOptions | None = None
    """Also for JavaScript."""
    dart: DartOptions | None = None
    python: PythonOptions | None = None
    openapi: OpenApi | None = None
    http_files: HttpFileOptions | None = None
    mcp: McpOptions | None = None
    tool_schemas: ToolSchemaOptions | None = None
    database_types: str | None = None
    """File with the types of PostgREST's interface."""
    safe_numbers: bool = False
    """Describe bigint and numeric as strings in all descriptions and clients."""
    resolve_nested: bool = True
    """Describe composites within composites as objects."""
