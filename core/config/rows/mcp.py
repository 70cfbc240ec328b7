"""Keys of endpoints as tools of language models (Model Context Protocol)."""

from rowcall.core.sections.keys import Key, flag, section, text, texts

_P = "Service:McpOptions:"
_AUTH = _P + "Authorization:"
_TOOLS = _P + "ToolSchemas:"

ROWS: tuple[Key, ...] = (
    section("Service:McpOptions", "Annotated routines as tools of language models (Model Context Protocol)."),
    flag(_P + "Enabled", False, "Offer the MCP server."),
    text(_P + "UrlPath", "/mcp", "Path of the JSON-RPC endpoint."),
    text(_P + "ServerName", None, "Announced name of the server. null: name of the database."),
    text(_P + "ServerVersion", "1.0.0", "Announced version of the server."),
    text(_P + "Instructions", None, "Announced instructions."),
    text(_P + "ToolDescriptionSuffix", None, "Text that is appended to each tool's description."),
    text(_P + "RateLimiterPolicy", None, "Rate limit of the path."),
    texts(_P + "AllowedOrigins", (), "Origins whose pages may call."),
    flag(
        _P + "Resources",
        False,
        "Offer resources: the list of endpoints, and their OpenAPI document.",
    ),
    section(_P + "Authorization", "Access to tools."),
    flag(_AUTH + "RequireAuthorization", False, "Only signed-in callers."),
    texts(_AUTH + "AuthorizationServers", (), "Authorization servers that are announced."),
    texts(_AUTH + "ScopesSupported", (), "Scopes that are announced."),
    text(_AUTH + "Audience", None, "Required audience of tokens."),
    text(_AUTH + "ProtectedResourceMetadataPath", None, "Path of the metadata. null: derived from UrlPath."),
    flag(_AUTH + "FilterToolsByRole", False, "Hide tools that the caller may not use."),
    section(_P + "ToolSchemas", "Descriptions of tools as files; they do not need McpOptions:Enabled."),
    flag(_TOOLS + "Enabled", False, "Create the descriptions."),
    flag(_TOOLS + "FileOverwrite", True, "Write over files that exist."),
    text(
        _TOOLS + "OpenAiFileName",
        "rowcall_tools_openai.json",
        "File in the format of OpenAI; null: none.",
        nullable=True,
    ),
    text(_TOOLS + "OpenAiUrlPath", "/tools/openai.json", "Path of the same; null: none.", nullable=True),
    text(
        _TOOLS + "AnthropicFileName",
        "rowcall_tools_anthropic.json",
        "File in the format of Anthropic; null: none.",
        nullable=True,
    ),
    text(_TOOLS + "AnthropicUrlPath", "/tools/anthropic.json", "Path of the same; null: none.", nullable=True),
    text(_TOOLS + "LlmsTxtFileName", "llms.txt", "File llms.txt; null: none.", nullable=True),
    text(_TOOLS + "LlmsTxtUrlPath", "/llms.txt", "Path of the same; null: none.", nullable=True),
)
