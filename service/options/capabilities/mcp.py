"""Read `Service:McpOptions`: the server of the Model Context Protocol and tool schemas (documents-9, documents-10,
mcp-1 to mcp-9)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rowcall.core.auth.options import AuthOptions
from rowcall.core.building.service import ServiceOptions
from rowcall.core.config import Settings
from rowcall.core.documents.options import OpenApi
from rowcall.core.mcp.options import McpOptions, Place, ToolOptions, ToolSchemaKeys, ToolSchemaOptions
from rowcall.service.options.capabilities.documents import document_options
from rowcall.service.options.server.browsers import serialized_origins
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_P = "Service:McpOptions:"
_A = _P + "Authorization:"


def offers_tools(settings: Settings) -> bool:
    """Return whether annotations can make endpoints tools: the server or tool schemas are enabled."""
    return settings.is_enabled(McpOptions) or settings.is_enabled(ToolSchemaKeys)


def mcp_options(settings: Settings, database: str, auth: AuthOptions, urls: Sequence[str] = ()) -> McpOptions | None:
    """Return the options of the server; None: it is off. database: its name. urls: addresses of the listeners. Raises
    as `document_options`."""
    options = settings.read_enabled(McpOptions, tools=_tools(settings, auth))
    if options is None:
        return None
    if options.closed and not auth.schemes:
        log.warning("%sRequireAuthorization is true, but there is no scheme in Auth: no tool can be called", _A)
    return replace(
        options,
        name=options.name or database or "rowcall",
        origins=frozenset(_origins(options.origins)),
        catalogue=document_options(settings, database, urls) if options.resources else None,
    )


def _origins(texts: Iterable[str]) -> Iterator[str]:
    key = _P + "AllowedOrigins"
    for text in sorted(texts):
        try:
            yield from serialized_origins((text.strip(),), key)
        except StartupError as error:
            log.warning("%s; the entry is ignored", error)


def tool_schema_options(
    settings: Settings, database: str, auth: AuthOptions, openapi: OpenApi | None, mcp: McpOptions | None
) -> ToolSchemaOptions | None:
    """Return the options of `ToolSchemas`, which do not need the server (documents-9, documents-10); None: they are
    off. database: its name. openapi, mcp: to whose paths `llms.txt` refers, if they are enabled.
    """
    keys = settings.read_enabled(ToolSchemaKeys)
    if keys is None:
        return None
    options = settings.read(McpOptions)
    return ToolSchemaOptions(
        openai=Place(keys.openai_file, _path(keys.openai_path)),
        anthropic=Place(keys.anthropic_file, _path(keys.anthropic_path)),
        llms=Place(keys.llms_file, _path(keys.llms_path)),
        title=options.name or database or "rowcall",
        instructions=options.instructions,
        openapi_path=None if openapi is None else openapi.path,
        mcp_path=None if mcp is None else mcp.path,
        overwrite=keys.overwrite,
        tools=_tools(settings, auth),
    )


def _tools(settings: Settings, auth: AuthOptions) -> ToolOptions:
    suffix, camel = settings.read(McpOptions).suffix, settings.read(ServiceOptions).camel_case_names
    return ToolOptions(suffix, auth.login, camel)


def _path(text: str | None) -> str | None:
    text = (text or "").strip()
    return f"/{text.lstrip('/')}" if text else None
