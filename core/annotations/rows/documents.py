"""Annotations about descriptions of the service: mcp, openapi (mcp-1, documents-5).

They also apply in muted blocks, because the plugins of the established system see every line.
"""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line
from rowcall.core.endpoint.capabilities import Document, Tool


def _mcp(draft: Draft, line: Line) -> None:
    """Make the endpoint a tool, and set its text, name or description, as the keyword says. Raises `BadValueError` if
    name or description is missing, or a name has several words."""
    match line.keyword:
        case "mcp":
            draft.change_fields("tool", Tool(), enabled=True, text=line.rest or None)
        case "mcp_name":
            draft.change_fields("tool", Tool(), enabled=True, name=_only(line))
        case _:
            draft.change_fields("tool", Tool(), enabled=True, description=_text(line))


def _only(line: Line) -> str:
    """Return the only argument of a line. Raises `BadValueError`."""
    if len(line.arguments) != 1:
        raise BadValueError("exactly one name is expected")
    return line.arguments[0]


def _text(line: Line) -> str:
    """Return the text behind the keyword. Raises `BadValueError` if it is missing."""
    if not line.rest:
        raise BadValueError("a text is missing")
    return line.rest


def _openapi(draft: Draft, line: Line) -> None:
    """Hide the endpoint, set its tags, or add an example, as the first argument says; without arguments, hide it.
    Raises `BadValueError` for another form."""
    command = line.arguments[0].lower() if line.arguments else "hide"
    if command in ("hide", "hidden", "ignore"):
        draft.change_fields("document", Document(), hidden=True)
    elif command in ("tag", "tags") and len(line.arguments) > 1:
        draft.change_fields("document", Document(), tags=line.arguments[1:])
    elif command == "example":
        name, separator, text = line.text_after(2).partition("=")
        if not separator or len(name.split()) != 1 or not text.strip():
            raise BadValueError("expected: openapi example <parameter> = <value>")
        document: Document = draft.get("document", Document())
        draft.change_fields("document", Document(), examples=(*document.examples, (name.strip().lower(), text.strip())))
    else:
        raise BadValueError("expected: openapi, openapi hide, openapi tag <tag>, openapi example <parameter> = <value>")


ANNOTATIONS = (
    Annotation(
        name="mcp",
        aliases=("mcp", "mcp_name", "mcp_description", "mcp_desc"),
        syntax="mcp [<description>] | mcp_name <name> | mcp_description <description>",
        description="Offers the endpoint as a tool of the MCP server, under the name of the routine or another name, "
        "with this description or the prose of the comment.",
        apply=_mcp,
        everywhere=True,
    ),
    Annotation(
        name="openapi",
        aliases=("openapi",),
        syntax="openapi [hide|hidden|ignore | tag|tags <tag>, ... | example <parameter> = <value>]",
        description="Leaves the endpoint out of the OpenAPI document, puts it under these tags, or shows a value for "
        "a parameter there and in files of example requests.",
        apply=_openapi,
        everywhere=True,
    ),
)
