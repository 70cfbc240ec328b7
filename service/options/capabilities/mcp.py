"""Read `Service:McpOptions`: the server of the Model Context Protocol and tool schemas (documents-9, documents-10,
mcp-1 to mcp-9)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from rowcall.core.auth.options import AuthOptions
from rowcall.core.config import Settings
from rowcall.core.documents.mcp import McpOptions
from rowcall.core.documents.openapi import OpenApi
from rowcall.core.documents.tool_schemas import Place, ToolSchemaOptions
from rowcall.core.documents.tools import ToolOptions
from rowcall.core.endpoint.access import ANYONE, Access
from rowcall.service.options.capabilities.documents import document_options
from rowcall.service.options.server.browsers import as_browsers_write
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_P = "Service:McpOptions:"
_A = _P + "Authorization:"
_T = _P + "ToolSchemas:"


def offers_tools(settings: Settings) -> bool:
    """Return whether annotations can make endpoints tools: the server or tool schemas are enabled."""
    return settings.flag(_P + "Enabled") or settings.flag(_T + "Enabled")


def mcp_options(settings: Settings, database: str, auth: AuthOptions, urls: Sequence[str] = ()) -> McpOptions | None:
    if not settings.flag(_P + "Enabled"):
        return None
    closed = settings.flag(_A + "RequireAuthorization")
    if closed and not auth.schemes:
        log.warning("%sRequireAuthorization is true, but there is no scheme in Auth: no tool can be called", _A)
    return settings.read(
        McpOptions,
        name=_name(settings, database),
        tools=_tools(settings, auth),
        origins=frozenset(_origins(settings)),
        access=Access() if closed else ANYONE,
        catalogue=document_options(settings, database, urls) if settings.flag(_P + "Resources") else None,
    )


def _origins(settings: Settings) -> Iterator[str]:
    key = _P + "AllowedOrigins"
    for text in settings.texts(key) or ():
        try:
            yield from as_browsers_write((text.strip(),), key)
        except StartupError as error:
            log.warning("%s; the entry is ignored", error)


def tool_schema_options(
    settings: Settings, database: str, auth: AuthOptions, openapi: OpenApi | None, mcp: McpOptions | None
) -> ToolSchemaOptions | None:
    """Return the options of `ToolSchemas`, which do not need the server (documents-9, documents-10); None: they are
    off.
    """
    if not settings.flag(_T + "Enabled"):
        return None
    return ToolSchemaOptions(
        openai=_place(settings, "OpenAi"),
        anthropic=_place(settings, "Anthropic"),
        llms=_place(settings, "LlmsTxt"),
        title=_name(settings, database),
        instructions=settings.text_or_none(_P + "Instructions") or None,
        openapi_path=None if openapi is None else openapi.path,
        mcp_path=None if mcp is None else mcp.path,
        overwrite=settings.flag(_T + "FileOverwrite"),
        tools=_tools(settings, auth),
    )


def _place(settings: Settings, document: str) -> Place:
    file = settings.text_or_none(f"{_T}{document}FileName")
    return Place(file or None, _path(settings.text_or_none(f"{_T}{document}UrlPath")))


def _name(settings: Settings, database: str) -> str:
    return settings.text_or_none(_P + "ServerName") or database or "rowcall"


def _tools(settings: Settings, auth: AuthOptions) -> ToolOptions:
    return ToolOptions(
        settings.text_or_none(_P + "ToolDescriptionSuffix") or None,
        auth.mapping,
        settings.flag("Service:CamelCaseNames"),
    )


def _path(text: str | None) -> str | None:
    text = (text or "").strip()
    return f"/{text.lstrip('/')}" if text else None
