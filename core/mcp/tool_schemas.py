"""Tool definitions for the function-calling interfaces of language models, and llms.txt (documents-9, documents-10).

Tools in, texts out. Tools are sorted by name, so that equal tools give equal texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from rowcall.core.mcp.options import Place, ToolSchemaOptions
from rowcall.core.mcp.tools import ToolEntry
from rowcall.core.text.lines import lines_of

_JSON = "application/json"
_MARKDOWN = "text/markdown; charset=utf-8"
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST = 64


class ToolNameError(ValueError):
    """The names of two tools are equal after the characters that function-calling interfaces refuse were replaced."""


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
    """Return name of a tool → its name for function-calling interfaces: characters other than ASCII letters, digits,
    `_` and `-` are replaced by `_`, and the name is cut to 64 characters.

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
