"""The introduction of the MCP server, and its responses to callers without rights (mcp-1 to mcp-7, mcp-9)."""

from __future__ import annotations

from typing import Any

from rowcall.core.mcp.json_rpc import PROTOCOL
from rowcall.core.mcp.options import McpOptions


def introduction(options: McpOptions) -> dict[str, Any]:
    """Return the `result` of `initialize`: protocol version, capabilities, name and version of the server, and
    instructions if there are any."""
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
