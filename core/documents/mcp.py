"""Options of the MCP server, its introduction, and its answers to callers without rights (mcp-1 to mcp-7, mcp-9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rowcall.core.documents.json_rpc import PROTOCOL
from rowcall.core.documents.openapi import OpenApiOptions
from rowcall.core.documents.tools import ToolOptions
from rowcall.core.endpoint.access import ANYONE, Access


@dataclass(frozen=True, slots=True)
class McpOptions:
    path: str = "/mcp"
    name: str = "rowcall"
    version: str = "1.0.0"
    instructions: str | None = None
    tools: ToolOptions = field(default_factory=ToolOptions)
    rate_limiter: str | None = None
    origins: frozenset[str] = frozenset()
    """Allowed values of the `Origin` header, in lower case."""
    access: Access = ANYONE
    servers: tuple[str, ...] = ()
    """Authorization servers that issue the tokens."""
    scopes: tuple[str, ...] = ()
    audience: str | None = None
    metadata_path: str | None = None
    """None: the default of RFC 9728, derived from `path`."""
    by_role: bool = False
    """List only the tools that the caller may use."""

    catalogue: OpenApiOptions | None = None
    """Options of the OpenAPI document that is offered as a resource; None: the endpoints are not offered as
    resources."""

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
    """Return the value of `WWW-Authenticate` for status 401 or 403. base: `https://host` as the caller addressed it."""
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


def resource_metadata(options: McpOptions, base: str) -> dict[str, Any]:
    """Return the protected resource metadata (RFC 9728)."""
    result: dict[str, Any] = {
        "resource": options.audience or f"{base}{options.path}",
        "authorization_servers": list(options.servers),
        "bearer_methods_supported": ["header"],
    }
    return {**result, "scopes_supported": list(options.scopes)} if options.scopes else result
