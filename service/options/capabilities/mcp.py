"""`McpOptions` → the server of the Model Context Protocol, where it is on (reference 03, 12)."""

from __future__ import annotations

import logging

from rowcall.core.auth.options import AuthOptions
from rowcall.core.config import Settings
from rowcall.core.documents.mcp import McpOptions
from rowcall.core.documents.tools import ToolOptions

log = logging.getLogger("rowcall")

_P = "Service:McpOptions:"
_A = _P + "Authorization:"


def mcp_options(settings: Settings, database: str, auth: AuthOptions) -> McpOptions | None:
    if not settings.flag(_P + "Enabled"):
        return None
    closed = settings.flag(_A + "RequireAuthorization")
    if closed and not auth.schemes:
        log.warning("%sRequireAuthorization is true, but there is no scheme in Auth: nobody can call a tool", _A)
    return McpOptions(
        path=_path(settings.text_or_none(_P + "UrlPath")) or "/mcp",
        name=settings.text_or_none(_P + "ServerName") or database or "rowcall",
        version=(settings.text_or_none(_P + "ServerVersion") or "").strip() or "1.0.0",
        instructions=settings.text_or_none(_P + "Instructions") or None,
        tools=ToolOptions(settings.text_or_none(_P + "ToolDescriptionSuffix") or None, auth.mapping),
        rate_limiter=settings.text_or_none(_P + "RateLimiterPolicy") or None,
        origins=frozenset(origin.lower().rstrip("/") for origin in settings.texts(_P + "AllowedOrigins") or ()),
        closed=closed,
        servers=tuple(settings.texts(_A + "AuthorizationServers") or ()),
        scopes=tuple(settings.texts(_A + "ScopesSupported") or ()),
        audience=settings.text_or_none(_A + "Audience") or None,
        metadata_path=_path(settings.text_or_none(_A + "ProtectedResourceMetadataPath")),
        by_role=settings.flag(_A + "FilterToolsByRole"),
    )


def _path(text: str | None) -> str | None:
    text = (text or "").strip()
    return f"/{text.lstrip('/')}" if text else None
