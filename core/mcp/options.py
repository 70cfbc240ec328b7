"""Options of the MCP server and of the tool definitions."""

from __future__ import annotations

from dataclasses import dataclass, field

from rowcall.core.auth.options import LoginOptions
from rowcall.core.documents.options import OpenApiOptions
from rowcall.core.endpoint.access import ANYONE, Access
from rowcall.core.sections.declaration import flag, part, section, subsection, text, texts
from rowcall.core.sections.values import as_set, or_empty, strip_or_empty

ACTIONS = ("list", "insert", "update", "delete")


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """Options of tools. claims: sign-in options, which contain the names of the parameters that the service injects;
    these parameters are no arguments of tools."""

    suffix: str | None = None
    """Text that is appended to each description."""
    claims: LoginOptions = field(default_factory=LoginOptions)
    camel: bool = True
    """Fields of composites are in camelCase."""


@dataclass(frozen=True, slots=True)
class Place:
    """Destinations of one document. file: its path on disk; None: it is not written. path: its URL path; None: it is
    not served."""

    file: str | None
    path: str | None


@section("Service:McpOptions:ToolSchemas", "Descriptions of tools as files; they do not need McpOptions:Enabled.")
class ToolSchemaKeys:
    enabled: bool = flag("Enabled", False, "Create the descriptions.")
    overwrite: bool = flag("FileOverwrite", True, "Write over files that exist.")
    openai_file: str | None = text(
        "OpenAiFileName", "rowcall_tools_openai.json", "File in the format of OpenAI; null: none.", nullable=True
    )
    openai_path: str | None = text(
        "OpenAiUrlPath", "/tools/openai.json", "Path of the same; null: none.", nullable=True
    )
    anthropic_file: str | None = text(
        "AnthropicFileName",
        "rowcall_tools_anthropic.json",
        "File in the format of Anthropic; null: none.",
        nullable=True,
    )
    anthropic_path: str | None = text(
        "AnthropicUrlPath", "/tools/anthropic.json", "Path of the same; null: none.", nullable=True
    )
    llms_file: str | None = text("LlmsTxtFileName", "llms.txt", "File llms.txt; null: none.", nullable=True)
    llms_path: str | None = text("LlmsTxtUrlPath", "/llms.txt", "Path of the same; null: none.", nullable=True)


@dataclass(frozen=True, slots=True)
class ToolSchemaOptions:
    """Options of the tool definitions and of llms.txt. instructions: introduction of llms.txt; None: a general one.
    overwrite: replace existing files."""

    openai: Place
    anthropic: Place
    llms: Place
    title: str
    """Heading of llms.txt: the name of the MCP server."""
    instructions: str | None = None
    openapi_path: str | None = None
    """Path of the OpenAPI document, for llms.txt; None: it is not served."""
    mcp_path: str | None = None
    """Path of the MCP server, for llms.txt; None: it is not served."""
    overwrite: bool = True
    tools: ToolOptions = field(default_factory=ToolOptions)


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
