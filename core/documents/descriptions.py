"""What is told about the endpoints, to people, programs and models: one value of everything that is switched on."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.codegen.options import ClientCodeOptions, DartOptions, PythonOptions
from rowcall.core.documents.http_files import HttpFileOptions
from rowcall.core.documents.mcp import McpOptions
from rowcall.core.documents.openapi import OpenApi
from rowcall.core.documents.tool_schemas import ToolSchemaOptions


@dataclass(frozen=True, slots=True)
class Descriptions:
    """None: not wanted."""

    typescript: ClientCodeOptions | None = None
    """Or JavaScript."""
    dart: DartOptions | None = None
    python: PythonOptions | None = None
    openapi: OpenApi | None = None
    http_files: HttpFileOptions | None = None
    mcp: McpOptions | None = None
    tool_schemas: ToolSchemaOptions | None = None
    safe_numbers: bool = False
    """All of them tell bigint and numeric as texts."""
    resolve_nested: bool = True
    """Composites within composites are objects."""
