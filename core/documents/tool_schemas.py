"""Tool definitions for the function-calling interfaces of language models, and llms.txt (documents-9, documents-10).

Tools in, texts out. Tools are sorted by name, so that equal tools give equal texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from rowcall.core.documents.tools import ToolEntry, ToolOptions
from rowcall.core.sections.declaration import flag, section, text
from rowcall.core.text.lines import lines_of

_JSON = "application/json"
_MARKDOWN = "text/markdown; charset=utf-8"
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST = 64


class ToolNameError(ValueError):
    """The names of two tools are equal after the characters that function-calling interfaces refuse were replaced."""


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


@dataclass(frozen=True, slots=True)
class ToolDocument:
    """A document, and its destinations."""

    place: Place
    content_type: str
    text: str


def tool_documents(entries: Mapping[str, ToolEntry], options: ToolSchemaOptions) -> Iterator[ToolDocument]:
    """Yield the documents for OpenAI and Anthropic, and llms.txt. entries: the tools by name. Raises `ToolNameError` as
    `plain_names` does."""
    tools = [entries[name] for name in sorted(entries)]
    names = plain_names([item.name for item in tools])
    yield ToolDocument(options.openai, _JSON, _json([_openai(names[item.name], item) for item in tools]))
    yield ToolDocument(options.anthropic, _JSON, _json([_anthropic(names[item.name], item) for item in tools]))
    yield ToolDocument(options.llms, _MARKDOWN, llms_txt(tools, options))


def plain_names(names: Sequence[str]) -> dict[str, str]:
    """Return name of a tool → its name for function-calling interfaces: other characters than ASCII letters, digits,
    `_` and `-` become `_`, and it is cut to 64 characters.

    Raises `ToolNameError` if two of the resulting names are equal.
    """
    value: dict[str, str] = {}
    for name in names:
        plain = _FORBIDDEN.sub("_", name)[:_LONGEST]
        if plain in value:
            raise ToolNameError(
                f"the tools {value[plain]} and {name} would both be called {plain}; mcp_name renames one"
            )
        value[plain] = name
    return {name: plain for plain, name in value.items()}


def _openai(name: str, tool: ToolEntry) -> dict[str, Any]:
    described = {"name": name, "description": tool.described["description"]}
    return {"type": "function", "function": {**described, "parameters": tool.described["inputSchema"]}}


def _anthropic(name: str, tool: ToolEntry) -> dict[str, Any]:
    described = {"name": name, "description": tool.described["description"]}
    return {**described, "input_schema": tool.described["inputSchema"]}


def _json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def llms_txt(tools: Sequence[ToolEntry], options: ToolSchemaOptions) -> str:
    """Return the text of llms.txt: the tools in Markdown, in the given order, and the paths of the served
    descriptions."""
    blocks = [f"# {options.title}", "\n".join(_introduction(tools, options)), "## Endpoints"]
    blocks += ("\n".join(_lines(item)) for item in tools)
    if served := [*_format_paths(options)]:
        blocks.append("\n".join(["## Machine-readable", *served]))
    return "\n".join(line.rstrip() for line in "\n\n".join(blocks).split("\n")) + "\n"


def _introduction(tools: Sequence[ToolEntry], options: ToolSchemaOptions) -> Iterator[str]:
    if options.instructions:
        yield from (f"> {line}" for line in lines_of(options.instructions.strip()))
    else:
        yield f"> HTTP API over a PostgreSQL database with {len(tools)} endpoint{'' if len(tools) == 1 else 's'}."


def _lines(tool: ToolEntry) -> Iterator[str]:
    endpoint, schema = tool.endpoint, tool.described["inputSchema"]
    yield f"### {tool.name}"
    yield f"- Method: {endpoint.method} {endpoint.path}"
    yield f"- Description: {' '.join(tool.described['description'].split())}"
    if not schema["properties"]:
        yield "- Parameters: none"
        return
    yield "- Parameters:"
    required = schema.get("required", ())
    for name, item in schema["properties"].items():
        yield f"  - `{name}` ({_type_word(item)}, {'required' if name in required else 'default available'})"


def _type_word(schema: Mapping[str, Any]) -> str:
    return str(schema.get("type", "any JSON value"))


def _format_paths(options: ToolSchemaOptions) -> Iterator[str]:
    for name, path in (
        ("OpenAPI", options.openapi_path),
        ("MCP endpoint", options.mcp_path),
        ("OpenAI tools", options.openai.path),
        ("Anthropic tools", options.anthropic.path),
    ):
        if path is not None:
            yield f"- {name}: {path}"
