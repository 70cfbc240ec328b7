"""Collect the options of all descriptions of endpoints: client code, OpenAPI, HTTP files, MCP and tool schemas."""

from __future__ import annotations

from collections.abc import Sequence

from rowcall.core.auth.options import AuthOptions
from rowcall.core.building.service import RoutineOptions, ServiceOptions
from rowcall.core.config import Settings
from rowcall.service.options.capabilities.client_code import client_code_options, dart_options, python_options
from rowcall.service.options.capabilities.description_options import Descriptions
from rowcall.service.options.capabilities.documents import http_file_options, open_api
from rowcall.service.options.capabilities.mcp import mcp_options, tool_schema_options
from rowcall.service.sockets.listeners import tcp_urls


def descriptions(settings: Settings, database: str, auth: AuthOptions, urls: Sequence[str]) -> Descriptions:
    """Return the enabled descriptions. database: its name. urls: addresses of the listeners. Raises `ConfigError` and
    `StartupError`.
    """
    reachable = tcp_urls(urls)
    openapi = open_api(settings, database, reachable)
    mcp = mcp_options(settings, database, auth, reachable)
    return Descriptions(
        typescript=client_code_options(settings, urls),
        dart=dart_options(settings, urls),
        python=python_options(settings, urls),
        openapi=openapi,
        http_files=http_file_options(settings, database, reachable),
        mcp=mcp,
        tool_schemas=tool_schema_options(settings, database, auth, openapi, mcp),
        database_types=(settings.flag("PostgRest:Enabled") and settings.text_or_none("PostgRest:DatabaseTypesFile"))
        or None,
        safe_numbers=settings.read(ServiceOptions).safe_numbers,
        resolve_nested=settings.read(RoutineOptions).resolve_nested,
    )
