"""Annotations that decide whether an endpoint exists, and at which path: http, path, tags, disabled, enabled,
internal."""

from __future__ import annotations

import re

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line, flag
from rowcall.core.annotations.rows.uploads import assign_folder
from rowcall.core.catalogue.source import Transport
from rowcall.core.tables.operations import OPERATIONS
from rowcall.core.text.ascii_case import ascii_lower

METHODS = ("GET", "PUT", "POST", "PATCH", "DELETE", "QUERY")


def is_route(line: Line) -> bool:
    """Return whether the line consists of a method and a path, as in `GET /beds`."""
    return len(line.words) == 2 and line.words[0].upper() in METHODS and line.words[1].startswith("/")


_UNROUTABLE = re.compile(r"[?#\\\x00-\x20\x7f]")
_BRACES = re.compile(r"\{[^{}/]*\}")


def _http(draft: Draft, line: Line) -> None:
    """Apply `HTTP [method] [path]`. The method also decides where values are: those of GET in the query string, others
    in the body. Of two words, a first one that is no method is ignored; a single word that is no method is the path.

    A line with more words exposes the object and has no other effect (comments-12). Raises `BadValueError` for a path
    that cannot be routed, and as `_set_method` does; the object is exposed all the same.
    """
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
    """Set the method of the endpoint.

    Outside of a `for` block, the line applies to all operations of a table. Operations that cannot have the method are
    not exposed; otherwise `HTTP GET` on a table would publish its writes. Inside of a block, GET on an operation that
    writes raises `BadValueError`.
    """
    if draft.methods and not draft.block:
        draft.misses_method = method not in draft.methods
        if draft.misses_method:
            return
    elif method == "GET" and draft.writes:
        raise BadValueError(f"this writes, and GET only reads; the method stays {draft.method}")
    draft.method = method


def _path(draft: Draft, line: Line) -> None:
    """Set the path to the first word of the line. Further words are ignored. Raises `BadValueError` if the path is
    missing or cannot be routed."""
    if not line.arguments:
        raise BadValueError("a path is missing")
    draft.path = _path_text(line.arguments[0])


def _path_text(word: str) -> str:
    """Return the path template as it is routed: in lower case, with one leading slash.

    word: as written, with or without a leading slash. Raises `BadValueError` if the path is an absolute URL or cannot
    be routed.
    """
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
_TABLE_TAGS = tuple(dict.fromkeys(tag for operation in OPERATIONS for tag in sorted(operation.tags)))


def _fits(draft: Draft, line: Line) -> bool:
    """Return whether the object has one of the tags of a `for`, `enabled` or `disabled` line. Warn of a line without
    tags, of tags that match no object, and of tags in a file, which has none."""
    known_tags = _TABLE_TAGS if draft.methods else _ROUTINE_TAGS
    unknown = ", ".join(repr(word) for word in line.arguments if word.lower() not in known_tags)
    if not line.arguments:
        draft.warn(line, "the line has no tag, so the block applies to no object")
    elif unknown and draft.tags:
        kind = "tables" if draft.methods else "routines"
        draft.warn(line, f"{unknown} matches no object; the tags of {kind} are {', '.join(known_tags)}")
    elif not draft.tags:
        draft.warn(line, "a file has no tags, so the line has no effect; write the word alone")
    return any(word.lower() in draft.tags for word in line.arguments)


def open_block(draft: Draft, line: Line) -> None:
    """Begin a block that applies only to objects with one of the tags. It ends the previous block."""
    draft.block = True
    draft.muted = not _fits(draft, line)


def _disable_endpoint(draft: Draft, line: Line) -> None:
    if not line.arguments or _fits(draft, line):
        draft.enabled = False


def _enable_endpoint(draft: Draft, line: Line) -> None:
    if not line.arguments or _fits(draft, line):
        draft.enabled = True


TAGS = Annotation(
    name="tags",
    aliases=("for", "tags", "tag"),
    syntax="for <tag>, ...",
    description="The lines up to the next such line apply only to objects with one of these tags: function, "
    "procedure, volatile, stable, immutable, other.",
    apply=open_block,
)

ANNOTATIONS = (
    TAGS,
    Annotation(
        name="disabled",
        aliases=("disabled",),
        syntax="disabled [<tag>, ...]",
        description="The object is not exposed as an endpoint; with tags, only if it has one of them.",
        apply=_disable_endpoint,
    ),
    Annotation(
        name="enabled",
        aliases=("enabled",),
        syntax="enabled [<tag>, ...]",
        description="Cancels an earlier `disabled`; with tags, only if the object has one of them.",
        apply=_enable_endpoint,
    ),
    Annotation(
        name="internal",
        aliases=("internal", "internal_only"),
        syntax="internal",
        description="Other endpoints of the service can call it; it has no route for clients.",
        apply=flag("internal"),
    ),
    Annotation(
        name="http",
        aliases=("http",),
        syntax="HTTP [GET|POST|PUT|PATCH|DELETE|QUERY] [<path>]",
        description="Exposes the object as an endpoint, with this method and path instead of the default ones.",
        apply=_http,
    ),
    Annotation(
        name="path",
        aliases=("path",),
        syntax="path <path>",
        description="Sets the path. Does not expose the object by itself. `path = <folder>` has another meaning: the "
        "setting `file_system_path` of uploads.",
        apply=_path,
        assign_word=assign_folder,
    ),
)
