"""Keys of endpoints as tools of language models (Model Context Protocol)."""

from rowcall.core.config.keys import Key, flag, section, text, texts

_P = "Service:McpOptions:"
_AUTH = _P + "Authorization:"
_TOOLS = _P + "ToolSchemas:"

ROWS: tuple[Key, ...] = (
    section("Service:McpOptions", "Annotated routines as tools of language models (Model Context Protocol)."),
    flag(_P + "Enabled", False, "Offer them."),
    text(_P + "UrlPath", "/mcp", "Path of the JSON-RPC endpoint."),
    text(_P + "ServerName", None, "Name that is announced. null is the database's."),
    text(_P + "ServerVersion", "1.0.0", "Version that is announced."),
    text(_P + "Instructions", None, "Instructions that are announced."),
    text(_P + "ToolDescriptionSuffix", None, "Text behind each tool's description."),
    text(_P + "RateLimiterPolicy", None, "Rate limit of the path."),
    texts(_P + "AllowedOrigins", (), "Origins that may call."),
    flag(
        _P + "Resources",
        False,
        "Offer the catalogue as resources: which endpoints there are, and the OpenAPI document of them.",
    ),
    section(_P + "Authorization", "Who may use tools."),
    flag(_AUTH + "RequireAuthorization", False, "Only signed-in callers."),
    texts(_AUTH + "AuthorizationServers", (), "Authorization servers that are announced."),
    texts(_AUTH + "ScopesSupported", (), "Scopes that are announced."),
    text(_AUTH + "Audience", None, "Audience a token must have."),
    text(_AUTH + "ProtectedResourceMetadataPath", None, "Path of the metadata. null works it out."),
    flag(_AUTH + "FilterToolsByRole", False, "Hide tools that the caller may not use."),
    section(_P + "ToolSchemas", "Descriptions of the tools as files; they do not need Enabled above."),
    flag(_TOOLS + "Enabled", False, "Make them."),
    flag(_TOOLS + "FileOverwrite", True, "Write over files that exist."),
    text(_TOOLS + "OpenAiFileName", "rowcall_tools_openai.json", "File in OpenAI's form; null: none.", nullable=True),
    text(_TOOLS + "OpenAiUrlPath", "/tools/openai.json", "Path of the same; null: none.", nullable=True),
    text(
        _TOOLS + "AnthropicFileName",
        "rowcall_tools_anthropic.json",
        "File in Anthropic's form; null: none.",
        nullable=True,
    ),
    text(_TOOLS + "AnthropicUrlPath", "/tools/anthropic.json", "Path of the same; null: none.", nullable=True),
    text(_TOOLS + "LlmsTxtFileName", "llms.txt", "File llms.txt; null: none.", nullable=True),
    text(_TOOLS + "LlmsTxtUrlPath", "/llms.txt", "Path of the same; null: none.", nullable=True),
)
