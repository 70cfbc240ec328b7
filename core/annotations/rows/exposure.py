"""Annotations that decide whether an endpoint exists, and where: http, path, tags, disabled, enabled, internal."""

from __future__ import annotations

import re

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line, flag
from rowcall.core.annotations.rows.uploads import keep_path
from rowcall.core.catalogue.source import Transport
from rowcall.core.tables.operations import OPERATIONS
from rowcall.core.text.ascii_case import ascii_lower

METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE", "QUERY")


def is_route(line: Line) -> bool:
    """Return whether the line is a method and a path and nothing else, as in `GET /beds`."""
    return len(line.words) == 2 and line.words[0].upper() in METHODS and line.words[1].startswith("/")


_UNROUTABLE = re.compile(r"[?#\\\x00-\x20\x7f]")
_BRACES = re.compile(r"\{[^{}/]*\}")


def _http(draft: Draft, line: Line) -> None:
    """`HTTP [method] [path]`; with more words than that the line only exposes (comments-12)."""
    draft.exposed = True
    words = line.arguments
    if draft.block:
        draft.misses_method = False
    if not words or len(words) > 2:
        return
    method = words[0].upper()
    if method in METHODS:
        _set_method(draft, method)
        draft.set(transport=Transport.QUERY if method == "GET" else Transport.BODY)
    if len(words) == 2 or method not in METHODS:
        draft.path = _path_text(words[-1])


def _set_method(draft: Draft, method: str) -> None:
    """Outside of a `for` block it is said to every operation of a table: those that have another one do not exist, or
    reading its comment as `HTTP GET` would publish its writes."""
    if draft.methods and not draft.block:
        draft.misses_method = method not in draft.methods
        if draft.misses_method:
            return
    elif method == "GET" and draft.writes:
        raise BadValueError(f"this writes, and GET only reads; the method stays {draft.method}")
    draft.method = method


def _path(draft: Draft, line: Line) -> None:
    if not line.arguments:
        raise BadValueError("a path is missing")
    draft.path = _path_text(line.arguments[0])


def _path_text(word: str) -> str:
    """The template as it is routed: lower case, one leading slash, never an absolute URL."""
    if "://" in word:
        raise BadValueError("an absolute URL cannot be a path; the path stays as it was")
    path = "/" + ascii_lower(word).lstrip("/")
    whole = [segment for segment in path.split("/") if segment]
    optional = [index for index, segment in enumerate(whole) if segment.endswith("?}")]
    if optional and optional != [len(whole) - 1]:
        raise BadValueError("only the last segment can be optional; the path stays as it was")
    if any("{" in segment or "}" in segment for segment in whole if not _BRACES.fullmatch(segment)):
        raise BadValueError("a {parameter} has to fill its whole segment; the path stays as it was")
    if _UNROUTABLE.search(_BRACES.sub("", path)):
        raise BadValueError("a path cannot contain blanks, '?', '#' or '\\'; the path stays as it was")
    return path


_ROUTINE_TAGS = ("function", "procedure", "volatile", "stable", "immutable", "other")
_TABLE_TAGS = tuple(dict.fromkeys(tag for one in OPERATIONS for tag in sorted(one.tags)))


def _fits(draft: Draft, line: Line) -> bool:
    """Whether the object has one of the tags. A word that is none fits nothing, and somebody counts on it."""
    known = _TABLE_TAGS if draft.methods else _ROUTINE_TAGS
    unknown = ", ".join(repr(word) for word in line.arguments if word.lower() not in known)
    if not line.arguments:
        draft.warn(line, "no tag follows, and the block fits nothing")
    elif unknown and draft.tags:
        kind = "tables" if draft.methods else "routines"
        draft.warn(line, f"{unknown} fits nothing; the tags of {kind} are {', '.join(known)}")
    elif not draft.tags:
        draft.warn(line, "a file has no tags, and the line fits nothing; write the word alone")
    return any(word.lower() in draft.tags for word in line.arguments)


def open_block(draft: Draft, line: Line) -> None:
    """Start a block that counts only for objects with one of the tags; it ends the block before."""
    draft.block = True
    draft.muted = not _fits(draft, line)


def _disabled(draft: Draft, line: Line) -> None:
    if not line.arguments or _fits(draft, line):
        draft.enabled = False


def _enabled(draft: Draft, line: Line) -> None:
    if not line.arguments or _fits(draft, line):
        draft.enabled = True


TAGS = Annotation(
    name="tags",
    aliases=("for", "tags", "tag"),
    syntax="for <tag>, ...",
    description="The lines up to the next such line count only for objects with one of these tags: "
    "function, procedure, volatile, stable, immutable, other.",
    apply=open_block,
)

ANNOTATIONS = (
    TAGS,
    Annotation(
        name="disabled",
        aliases=("disabled",),
        syntax="disabled [<tag>, ...]",
        description="No endpoint is made; with tags only where a tag fits.",
        apply=_disabled,
    ),
    Annotation(
        name="enabled",
        aliases=("enabled",),
        syntax="enabled [<tag>, ...]",
        description="Takes an earlier `disabled` back; with tags only where a tag fits.",
        apply=_enabled,
    ),
    Annotation(
        name="internal",
        aliases=("internal", "internal_only"),
        syntax="internal",
        description="Callable by other endpoints of the service, with no route of its own.",
        apply=flag("internal"),
    ),
    Annotation(
        name="http",
        aliases=("http",),
        syntax="HTTP [GET|POST|PUT|PATCH|DELETE|QUERY] [<path>]",
        description="Exposes the object, with this method and path instead of the automatic ones.",
        apply=_http,
    ),
    Annotation(
        name="path",
        aliases=("path",),
        syntax="path <path>",
        description="Sets the path. Does not expose the object by itself. `path = <folder>` is something else: the "
        "setting `file_system_path` of uploads.",
        apply=_path,
        assign_word=keep_path,
    ),
)
