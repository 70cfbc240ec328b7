"""Read `Service:SqlFileSource`: endpoints from SQL files."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rowcall.core.building.endpoint_builder import CommentsMode, EndpointDefaults
from rowcall.core.config import Settings
from rowcall.core.config.tree import find
from rowcall.core.text.globs import base_folder
from rowcall.service.options.capabilities.mcp import offers_tools

_SECTION = "Service:SqlFileSource"
_TOOL_WORDS = frozenset({"mcp", "mcp_name", "mcp_description", "mcp_desc"})


@dataclass(frozen=True, slots=True)
class SqlFileOptions:
    pattern: str
    skip: str
    comments_mode: CommentsMode
    whole: bool
    """Comments anywhere in a file are read (`CommentScope=All`)."""
    strict: bool
    """A broken file prevents the start."""
    prefix: str
    unnamed: bool
    nested: bool
    hide: bool
    """Statements without a result are left out of the response."""
    wrapped: bool = False
    """The statements of a file run in one transaction."""
    keywords: frozenset[str] = frozenset()
    """Annotations besides `http` that make a file an endpoint."""

    @property
    def folder(self) -> str:
        return base_folder(self.pattern)

    def defaults(self, defaults: EndpointDefaults) -> EndpointDefaults:
        """Return the endpoint defaults for SQL files, derived from those for routines."""
        return replace(defaults, comments_mode=self.comments_mode, nested=self.nested)


def sql_file_options(settings: Settings) -> SqlFileOptions | None:
    """Return the options, or None if no files are served. A section without the key `Enabled` counts as enabled."""
    pattern = (settings.text_or_none(f"{_SECTION}:FilePattern") or "").strip()
    has_switch = find(settings.root, f"{_SECTION}:Enabled") is not None
    present = find(settings.root, _SECTION) is not None
    enabled = settings.flag(f"{_SECTION}:Enabled") if has_switch else present
    if not enabled or not pattern:
        return None
    mode = settings.choice(f"{_SECTION}:CommentsMode")
    return SqlFileOptions(
        pattern=pattern.replace("\\", "/"),
        skip=settings.text_or_none(f"{_SECTION}:SkipPattern") or "",
        comments_mode=CommentsMode("OnlyAnnotated" if mode == "OnlyWithHttpTag" else mode),
        whole=settings.choice(f"{_SECTION}:CommentScope") == "All",
        strict=settings.choice(f"{_SECTION}:ErrorMode") == "Exit" and not settings.flag("Watch:Enabled"),
        prefix=settings.text_or_none(f"{_SECTION}:ResultPrefix") or "",
        unnamed=settings.flag(f"{_SECTION}:UnnamedSingleColumnSet"),
        nested=settings.flag(f"{_SECTION}:NestedJsonForCompositeTypes"),
        hide=settings.flag(f"{_SECTION}:SkipNonQueryCommands"),
        wrapped=settings.flag("Service:WrapInTransaction"),
        keywords=_TOOL_WORDS if offers_tools(settings) else frozenset(),
    )
