"""Options of the MCP server, its introduction, and its answers to callers without rights (mcp-1 to mcp-7, mcp-9)."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from rowcall.core.documents.json_rpc import PROTOCOL
from rowcall.core.documents.openapi import OpenApiOptions
from rowcall.core.documents.postgrest.table_tools import ACTIONS
from rowcall.core.documents.tool_schemas import ToolSchemaKeys
from rowcall.core.documents.tools import ToolOptions
from rowcall.core.endpoint.access import ANYONE, Access
from rowcall.core.sections.declaration import flag, part, section, subsection, text, texts
from rowcall.core.sections.values import as_set, or_empty, strip_or_empty


def _path(text: str | None) -> str | None:
    path = strip_or_empty(text)
    return f"/{path.lstrip('/')}" if path else None


def _required_path(text: str) -> str:
    return f"/{text.strip().lstrip('/')}"


def _action(text: str) -> str:
    action = text.strip().lower()
    if action not in ACTIONS:
        raise ValueError(f"{text!r} is none of {', '.join(ACTIONS)}")
    return action


@section("Service:McpOptions", "Annotated routines as tools of language models (Model Context Protocol).")
class McpOptions:
    """Options of the MCP server."""

    enabled: bool = flag("Enabled", False, "Offer the MCP server.")
    path: str = text("UrlPath", "/mcp", "Path of the JSON-RPC endpoint.", convert=_required_path)
    name: str = text("ServerName", None, "Announced name of the server. null: name of the database.", convert=or_empty)
    version: str = text("ServerVersion", "1.0.0", "Announced version of the server.", convert=str.strip)
    instructions: str | None = text("Instructions", None, "Announced instructions.")
    suffix: str | None = text("ToolDescriptionSuffix", None, "Text that is appended to each tool's description.")
    tables: tuple[str, ...] = texts(
        "PostgRestTables", (), "Tables of PostgREST's interface that are tools: patterns of `schema.table`."
    )
    table_actions: tuple[str, ...] = texts(
        "PostgRestActions", ACTIONS, "Tools of each of these tables: list, insert, update, delete.", each=_action
    )
    rate_limiter: str | None = text("RateLimiterPolicy", None, "Rate limit of the path.")
    origins: frozenset[str] = texts("AllowedOrigins", (), "Origins whose pages may call.", convert=as_set)
    resources: bool = flag("Resources", False, "Offer resources: the list of endpoints, and their OpenAPI document.")
    authorization = subsection("Authorization", "Access to tools.")
    closed: bool = flag("Authorization:RequireAuthorization", False, "Only signed-in callers.")
    servers: tuple[str, ...] = texts(
        "Authorization:AuthorizationServers", (), "Authorization servers that are announced."
    )
    scopes: tuple[str, ...] = texts("Authorization:ScopesSupported", (), "Scopes that are announced.")
    audience: str | None = text("Authorization:Audience", None, "Required audience of tokens.")
    metadata_path: str | None = text(
        "Authorization:ProtectedResourceMetadataPath",
        None,
        "Path of the metadata. null: derived from UrlPath.",
        convert=_path,
    )
    by_role: bool = flag("Authorization:FilterToolsByRole", False, "Hide tools that the caller may not use.")
    tool_schemas = part(ToolSchemaKeys)
    tools: ToolOptions = field(default_factory=ToolOptions)
    catalogue: OpenApiOptions | None = None
    """Options of the OpenAPI document that is offered as a resource; None: no resources are offered."""

    @property
    def access(self) -> Access:
        return Access() if self.closed else ANYONE

    @property
    def metadata(self) -> str:
        """Path of the protected resource metadata (RFC 9728)."""
        return self.metadata_path or f"/.well-known/oauth-protected-resource{self.path}"


def introduction(options: McpOptions) -> dict[str, Any]:
    """Return the `result` of `initialize`."""
    result: dict[str, Any] = {
        "protocolVersion": PROTOCOL,
        "capabilities": {"tools": {}, **({"resources": {}} if options.catalogue is not None else {})},
        "serverInfo": {"name": options.name, "version": options.version},
    }
    return {**result, "instructions": options.instructions} if options.instructions else result


def challenge(options: McpOptions, status: int, base: str) -> str:
    """Return the value of the header `WWW-Authenticate`. status: 401 or 403. base: scheme and host that the caller
    used, such as `https://api.example.com`."""
    parts = ['error="insufficient_scope"'] if status == 403 else []
    if options.scopes:
        parts.append(f'scope="{" ".join(options.scopes)}"')
    if options.servers:
        parts.append(f'resource_metadata="{base}{options.metadata}"')
    return f"Bearer {', '.join(parts)}" if parts else "Bearer"


REFUSALS = {
    401: {
        "error": "invalid_token",
        "error_description": "This tool requires authentication. Provide a valid bearer token.",
    },
    403: {
        "error": "insufficient_scope",
        "error_description": "This tool requires a role your token does not have.",
    },
}
"""401 or 403 → the JSON object in the body of the response."""


def resource_metadata(options: McpOptions, base: str) -> dict[str, Any]:
    """Return the protected resource metadata (RFC 9728), as members of a JSON object. base: as in `challenge`."""
    result: dict[str, Any] = {
        "resource": options.audience or f"{base}{options.path}",
        "authorization_servers": list(options.servers),
        "bearer_methods_supported": ["header"],
    }
    return {**result, "scopes_supported": list(options.scopes)} if options.scopes else result
