"""Read `Service:SqlFileSource`: endpoints from SQL files."""

from __future__ import annotations

from dataclasses import replace

from rowcall.core.building.service import ServiceOptions
from rowcall.core.config import Settings
from rowcall.core.config.sections.sqlfiles import SqlFileOptions
from rowcall.core.config.sections.watch import WatchOptions
from rowcall.service.options.capabilities.mcp import offers_tools

_SECTION = "Service:SqlFileSource"
_TOOL_WORDS = frozenset({"mcp", "mcp_name", "mcp_description", "mcp_desc"})


def sql_file_options(settings: Settings) -> SqlFileOptions | None:
    """Return the options, or None if no files are served. A section without the key `Enabled` counts as enabled."""
    has_switch = settings.is_set(SqlFileOptions, "enabled")
    if not (settings.is_enabled(SqlFileOptions) if has_switch else settings.contains(SqlFileOptions)):
        return None
    options = settings.read(
        SqlFileOptions,
        wrapped=settings.read(ServiceOptions).wrap_in_transaction,
        keywords=_TOOL_WORDS if offers_tools(settings) else frozenset(),
    )
    if not options.pattern:
        return None
    return replace(options, strict=options.strict and not settings.is_enabled(WatchOptions))
