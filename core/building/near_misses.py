"""Comment lines that look like annotations and are none, or say more than their annotation takes.

Nothing here changes what a line does. A line that would have protected the endpoint leaves it out: served
without what was meant, it would be open to the wrong people, or pass on plain values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from rowcall.core.annotations import BY_WORD
from rowcall.core.annotations.declaration import Annotation, Line
from rowcall.core.annotations.edit_distance import edit_distance
from rowcall.core.annotations.rows.exposure import METHODS
from rowcall.core.annotations.sentences import FUNCTION_WORDS, reads_as_sentence

ACCESS = frozenset(
    {"authorize", "allow_anonymous", "login", "basic_auth", "internal", "disabled", "security_sensitive"}
)
"""Names of annotations about who is let in, and what of them is seen."""

_OPENING = "allow_anonymous"
"""With more words it may have been meant for some only."""
_SENTENCE = 5
"""A line of so many words is prose, unless its first word can be nothing else than an annotation."""
_LONG = 6
_HASH_OF = " is hash of "
_KEYWORD_END = re.compile("[:=]")


def is_access_word(word: str) -> bool:
    annotation = BY_WORD.get(word.lower())
    return annotation is not None and annotation.name in ACCESS


_NAMES_THINGS = frozenset(
    [
        "basic_auth_command",
        "basic_auth_realm",
        "check_command",
        "check_format",
        "check_image",
        "check_text",
        "decrypt",
        "encrypt",
        "excluded_mime_types",
        "included_mime_types",
        "parameter_hash",
        "rate_limiter",
        "sse_scope",
        "validate",
    ]
)
"""Names of annotations that protect and take words: names of parameters or columns, or a text."""
PROTECTIVE = (
    _NAMES_THINGS
    | (ACCESS - {_OPENING, "login"})
    | {"cors", "refuse_impersonation", "role_from_claim", "user_context", "user_parameters"}
)
"""Names of annotations without which more callers are let in or are believed more, or values reach further."""

_TAKES_WORDS = frozenset({"authorize", "basic_auth"})
_ENGLISH = frozenset(
    [
        "authored",
        "authorizes",
        "authorises",
        "authorizer",
        "author",
        "authority",
        "disables",
        "interval",
        "intervals",
        "internals",
        "external",
        "encrypts",
        "decrypts",
        "project",
        "projects",
        "projected",
        "protects",
        "protest",
        "protested",
        "validates",
        "validated",
        "validations",
        "real",
        "realms",
        "core",
        "cars",
        "corps",
        "cords",
    ]
)


@dataclass(frozen=True, slots=True)
class NearMiss:
    message: str
    guards: bool = False
    """What was meant lets in fewer: without it the endpoint would be open by accident."""
    exposes: bool = False
    """What was meant makes an endpoint of the object."""


def near_miss(line: Line, names: frozenset[str] = frozenset()) -> NearMiss | None:
    """For a line that is prose: what it was most likely meant to be. names: those of parameters."""
    if not line.words:
        return None
    annotation = BY_WORD.get(line.keyword)
    if annotation is not None:
        needs = not annotation.fits(len(line.words)) or _lacks_sign(line, annotation)
        if not needs or annotation.in_files or len(line.words) >= _SENTENCE:
            return None
        guards = protects(line, names)
        return NearMiss(f"this is no annotation: it is written `{annotation.syntax}`", guards)
    word = line.keyword.rstrip(":=")
    if not word.replace("_", "").replace("-", "").isascii() or not _can_be_meant(line):
        return None
    known = nearest(word)
    if known is None or (len(line.words) >= _SENTENCE and BY_WORD[known].in_files):
        return None
    if BY_WORD[known].secret:
        line.hide(line.words[0])
    message = f"{line.words[0]!r} is no annotation and is taken for prose; did you mean {known!r}?"
    return NearMiss(message, _guards(line, word, known, names), known == "http" and _names_route(line))


def _lacks_sign(line: Line, annotation: Annotation) -> bool:
    """`tsclient false`, only read as `tsclient = false`. A short form such as `file` may be a word of prose."""
    full = "_" in line.keyword or len(annotation.aliases) == 1
    return full and annotation.apply is None and annotation.assignable


def protects(line: Line, names: frozenset[str]) -> bool:
    """Return whether the first word of a line is an annotation that protects, and the line is no sentence.

    names: those of parameters.
    """
    annotation = BY_WORD.get(_KEYWORD_END.split(line.keyword, maxsplit=1)[0])
    if annotation is None or annotation.name not in PROTECTIVE:
        return False
    return line.split_at("=") is not None or not _is_sentence(line, names)


def misspelt_protection(key: str) -> str | None:
    """For the key of a custom parameter: the annotation that protects and that was most likely meant."""
    known = nearest(key.lower())
    # Settings of uploads may have the key of a configured handler in front: `fs_check_image = false`.
    if known is None or BY_WORD[known].name.startswith(("check_", "included_", "excluded_")):
        return None
    return known if _is_misspelt(key.lower(), known) else None


def _guards(line: Line, word: str, known: str, names: frozenset[str]) -> bool:
    """A sentence that begins with such a word stays prose: annotations are written small, without articles."""
    meant = BY_WORD[known].name
    if meant == "param":
        return _HASH_OF in line.text.lower()
    if not _is_misspelt(word, known):
        return False
    if meant in _NAMES_THINGS:
        return not _is_sentence(line, names)
    if line.words[0][0].isupper() or line.text.endswith("."):
        return False
    if meant not in _TAKES_WORDS:
        return len(line.words) == 1
    return not any(one.lower() in FUNCTION_WORDS or one.lower() in ("and", "or") for one in line.arguments)


def _is_sentence(line: Line, names: frozenset[str]) -> bool:
    """`using` belongs to the syntax of `validate`."""
    return reads_as_sentence(line, [word for word in line.arguments if word.lower() != "using"], names)


def _is_misspelt(word: str, known: str) -> bool:
    """Return whether a word is a misspelt annotation that protects, and no other word of English."""
    meant = BY_WORD[known].name
    if meant not in PROTECTIVE or meant == "cors" or word in _ENGLISH:
        return False
    return meant not in _NAMES_THINGS or "_" in word or edit_distance(word, known, 1) <= 1


def _names_route(line: Line) -> bool:
    return not line.arguments or line.arguments[0].upper() in METHODS or line.arguments[0].startswith("/")


def _can_be_meant(line: Line) -> bool:
    first = line.words[0]
    if len(line.words) < _SENTENCE or "_" in first or (first.isupper() and len(first) > 1):
        return True
    # No sentence begins with an `@`, and in none a placeholder is the second word (`parm :id is number default 5`).
    return line.text.startswith("@") or line.arguments[0].startswith((":", "$")) or _HASH_OF in line.text.lower()


@lru_cache(maxsize=4096)
def nearest(word: str) -> str | None:
    """Return the annotation word that `word` is most likely a misspelling of, or None."""
    if len(word) < 4 or len(word) > 40:
        return None
    allowed = 2 if len(word) >= _LONG else 1
    near = [(distance, known) for known in BY_WORD if (distance := edit_distance(word, known, allowed)) <= allowed]
    return min(near)[1] if near else None


def surplus(line: Line, annotation: Annotation) -> tuple[str, bool] | None:
    """For a line that was applied: which of its words mean nothing, and whether they were about who is let in."""
    if annotation.name == "http":
        return _surplus_of_http(line)
    if annotation.name in ("disabled", "enabled") or (annotation.assignable and "=" in line.text):
        return None
    if annotation.syntax in annotation.aliases and line.arguments and line.keyword in annotation.aliases:
        words = " ".join(line.arguments)
        return f"`{annotation.syntax}` takes no words; {words!r} means nothing", annotation.name == _OPENING
    return None


def _surplus_of_http(line: Line) -> tuple[str, bool] | None:
    words = line.arguments
    if len(words) > 2:
        told = " ".join(words[2:]) if words[0].upper() in METHODS else " ".join(words)
        guarded = any(is_access_word(word) for word in words)
        message = f"`HTTP [method] [path]` takes two words, so method and path are not used; {told!r} means nothing"
        return message, guarded
    if words and words[0].upper() not in METHODS and words[0].isalpha() and (len(words) == 2 or words[0].isupper()):
        guarded = is_access_word(words[0]) or is_access_word(words[-1])
        return f"{words[0]!r} is no method; there are {', '.join(METHODS)}", guarded
    if words and is_access_word(words[-1]):
        return f"{words[-1]!r} is taken for a path; an annotation has a line of its own", True
    return None
