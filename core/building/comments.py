"""Reading of comments: text → lines → annotations that are applied to a draft (comments-1 to comments-6).

Every text is a valid comment: a line that is not an annotation is prose, and an invalid annotation gives a diagnostic.
`read_comment` raises no errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rowcall.core.annotations import BY_PHRASE, BY_WORD
from rowcall.core.annotations.declaration import FALSE_WORDS, HIDDEN, TRUE_WORDS, Annotation, BadValueError, Draft, Line
from rowcall.core.annotations.rows.exposure import TAGS, is_route, open_block
from rowcall.core.annotations.rows.parameters import CUSTOM, unescape_or_warn
from rowcall.core.annotations.rows.response import HEADER, set_header
from rowcall.core.building.near_misses import (
    ACCESS,
    PROTECTIVE,
    misspelt_protection,
    near_miss,
    nearest,
    protects,
    surplus,
)

_LINE_ENDS = re.compile(r"[\r\n]+")
_HEADER_NAME = re.compile(r"[A-Za-z0-9_-]+")


def read_comment(text: str, draft: Draft) -> None:
    """Apply all lines in order. The draft records the applied lines, the prose and the diagnostics."""
    lines = [Line(stripped) for raw in _LINE_ENDS.split(text) if (stripped := raw.strip())]
    for line in lines:
        _read_line(line, draft)
    if not draft.exposed and not draft.of_extension:
        # Only files have no tags. Their comments are at several places, so that any line may be meant as a route.
        _warn_of_routes(draft, lines[:1] if draft.tags else lines)


def _warn_of_routes(draft: Draft, lines: Sequence[Line]) -> None:
    """Warn of lines such as `GET /beds`: without `HTTP` in front they are prose. The draft records that the object was
    meant to be exposed (`meant_http`)."""
    for line in filter(is_route, lines):
        draft.warn(line, f"without HTTP in front this is prose; write `HTTP {line.text.removeprefix('@')}`")
        draft.meant_http = True


def _read_line(line: Line, draft: Draft) -> None:
    """Apply one line to the draft: as a block, an annotation or prose. An error of an annotation becomes a diagnostic.

    The endpoint is left out if the annotation with the error should protect it, or if a line has surplus words about
    access. A line that the source of the endpoint applies (`Draft.claimed`) is only recorded.
    """
    if line.text in draft.claimed:
        draft.applied.append(line.shown)
        return
    annotation = None
    try:
        annotation = _apply(line, draft)
    except BadValueError as error:
        draft.warn(line, str(error))
        draft.refused |= protects(line, draft.parameter_words)
        return
    if annotation is None:
        _read_prose(line, draft)
        return
    if (more := surplus(line, annotation)) is not None:
        message, guarded = more
        if annotation.name == "http" and not guarded:
            message = f"{message}; served is {draft.method} {draft.path or 'at the default path'}"
        draft.warn(line, message)
        draft.refused |= guarded
    draft.applied.append(line.shown)
    draft.used[annotation.name] = line.shown


def _read_prose(line: Line, draft: Draft) -> None:
    """Add the line to the prose that documents publish, or warn of it if it may be a misspelt annotation. If that
    annotation would protect the endpoint, the endpoint is left out; in the comment of an extension, only such lines
    cause a warning.

    A line that has the form of an annotation is not published, and lines of a muted block are ignored.
    """
    if draft.muted:
        # The block applies to other objects, whose annotations are not recognized here.
        return
    meant = near_miss(line, draft.parameter_words)
    if meant is not None and draft.of_extension and not meant.guards:
        draft.prose.append(line.text)
    elif meant is not None:
        draft.warn(line, meant.message)
        draft.refused |= meant.guards
        draft.meant_http |= meant.exposes
    else:
        (draft.withheld if _resembles_annotation(line) else draft.prose).append(line.text)


def _resembles_annotation(line: Line) -> bool:
    """Return whether a line without effect has the form of an annotation: `@word`, or a word of an annotation with an
    underscore, such as `proxy_out`."""
    word = line.keyword.rstrip(":=")
    return line.text.startswith("@") or ("_" in word and word in BY_WORD)


def _apply(line: Line, draft: Draft) -> Annotation | None:
    """Apply the line and return its annotation, or None for prose. Raises `BadValueError`.

    The order of these tests is part of the grammar: `for` block, `key = value`, `Name: value`, keyword. In a muted
    block, only the first and the last are made.
    """
    if draft.tags and line.keyword in TAGS.aliases:
        open_block(draft, line)
        return TAGS
    if draft.muted:
        return _apply_keyword(line, draft)
    return _apply_assignment(line, draft) or _apply_header(line, draft) or _apply_keyword(line, draft)


def _apply_assignment(line: Line, draft: Draft) -> Annotation | None:
    """Apply a line `key = value` and return its annotation; `CUSTOM` if the key is a parameter or not an annotation of
    this form. None: the line has another form. Raises `BadValueError`.

    Warn of a custom parameter whose key is an annotation without this form, or a misspelt protective annotation. If
    that annotation would have protected the endpoint, the endpoint is left out.
    """
    sides = line.split_at("=")
    if sides is None:
        return None
    key, value = sides
    if key in draft.parameters:
        draft.expressions[key] = value
        return CUSTOM
    annotation = BY_WORD.get(key.lower())
    if annotation is None or not annotation.assignable:
        draft.custom[key] = unescape_or_warn(draft, line, value)
        if annotation is not None and not annotation.in_files:
            plain = key if value.lower() in TRUE_WORDS or not value else f"{key} {value}"
            remedy = "take the line away" if value.lower() in FALSE_WORDS else f"write `{plain}`"
            draft.warn(line, f"{key} = … is a custom parameter and no annotation; {remedy}")
            draft.refused |= annotation.name in PROTECTIVE and value.lower() not in FALSE_WORDS
        elif annotation is None and (meant := misspelt_protection(key)) is not None:
            draft.warn(line, f"{key} = … is a custom parameter and no annotation; did you mean {meant!r}?")
            draft.refused = True
        return CUSTOM
    _hide(line, annotation, key)
    decoded = unescape_or_warn(draft, line, value)
    if annotation.assign_word is not None:
        annotation.assign_word(draft, key.lower(), decoded)
    elif annotation.assign is not None:
        annotation.assign(draft, decoded)
    return annotation


_HEADERS_TOO = frozenset({"connection", "etag", "vary"})
"""Annotations with the name of an HTTP header. Followed by a colon, the word means the header."""


def _apply_header(line: Line, draft: Draft) -> Annotation | None:
    """Apply a line `Name: value` and return its annotation; None: the line has another form. Raises `BadValueError`,
    also if the name is that of an annotation and not in `_HEADERS_TOO`; the endpoint is left out then if the annotation
    is about access."""
    sides = line.split_at(":")
    if sides is None or _names_with_colon(line) or not _HEADER_NAME.fullmatch(sides[0]):
        return None
    annotation = BY_WORD.get(sides[0].lower())
    if annotation is not None and sides[0].lower() not in _HEADERS_TOO:
        draft.refused |= annotation.name in ACCESS
        draft.meant_http |= annotation.name == "http"
        _hide(line, annotation, sides[0])
        sign = " =" if annotation.apply is None and annotation.assignable else ""
        suggestion = f"{sides[0]}{sign} {HIDDEN if annotation.secret else sides[1]}".strip()
        raise BadValueError(
            f"a header cannot have the name of an annotation and is left out; did you mean `{suggestion}`?"
        )
    set_header(draft, *sides)
    return HEADER


def _names_with_colon(line: Line) -> bool:
    """Return whether the colon of the line begins the name of a parameter, as in `param :id is number`, so that the
    line is no header. The annotation may be misspelt; otherwise `parm :id …` would be sent as a header."""
    annotation = BY_WORD.get(line.keyword) or BY_WORD.get(nearest(line.keyword) or "")
    if annotation is None or not annotation.colon_names or not line.arguments:
        return False
    return line.arguments[0].startswith(":") and line.arguments[0] != ":"


def _apply_keyword(line: Line, draft: Draft) -> Annotation | None:
    """Apply a line that begins with the word of an annotation, and return the annotation; None: the line is prose.
    Raises `BadValueError`."""
    annotation = BY_WORD.get(line.keyword) or BY_PHRASE.get(" ".join(line.words[:2]).lower())
    if annotation is None or annotation.apply is None or annotation is TAGS:
        return None
    if draft.muted and not annotation.everywhere:
        return None
    if not annotation.fits(len(line.words)):
        return None
    _hide(line, annotation, line.words[0])
    annotation.apply(draft, line)
    return annotation


def _hide(line: Line, annotation: Annotation, word: str) -> None:
    """If the arguments of the annotation are secret, show only `word` of the line."""
    if annotation.secret and line.text.removeprefix("@") != word:
        line.hide(word)
