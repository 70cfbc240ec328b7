"""Comment lines that resemble annotations without being any, and annotations with superfluous words.

Nothing here changes the effect of a line. If a line would have protected the endpoint, the endpoint is left out:
without the protection, it would admit wrong callers or pass on plain values.
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
"""Names of annotations about access and about secrecy of the caller's values."""

_OPENING = "allow_anonymous"
"""The annotation that opens an endpoint. A line with more words may have been meant for some callers only."""
_SENTENCE = 5
"""A line with this number of words is prose, unless its first word can only be an annotation."""
_LONG = 6
_HASH_OF = " is hash of "
_KEYWORD_END = re.compile("[:=]")
_NO_SEPARATOR = re.compile(r"[\s\u200b-\u200d\u2060\ufeff]+")
"""White space and invisible characters. Only blanks separate words of an annotation."""
_MARGIN = re.compile(r"[*-]+\s+")
"""Decoration in front of the lines of a block comment."""


def is_access_word(word: str) -> bool:
    """Return whether a word, in any case, is that of an annotation about access."""
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
        "password_rules",
        "rate_limiter",
        "sse_scope",
        "validate",
    ]
)
"""Names of protective annotations with arguments: names of parameters or columns, or a text."""
PROTECTIVE = (
    _NAMES_THINGS
    | (ACCESS - {_OPENING, "login"})
    | {"cors", "refuse_impersonation", "role_from_claim", "user_context", "user_parameters", "verify_webhook"}
)
"""Names of annotations without which more callers are admitted or trusted, or values reach more recipients."""

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
    """A line of prose that was probably meant to be an annotation."""

    message: str
    guards: bool = False
    """The intended annotation restricts access: without it the endpoint would be open by accident."""
    exposes: bool = False
    """The intended annotation exposes the object."""


def near_miss(line: Line, names: frozenset[str] = frozenset()) -> NearMiss | None:
    """Return what a line of prose was probably meant to be; None: prose. names: those of parameters.

    If the line may contain a secret, the rest of the line behind its first word is hidden from messages.
    """
    if not line.words:
        return None
    annotation = BY_WORD.get(line.keyword)
    if annotation is not None:
        needs = not annotation.fits(len(line.words)) or _lacks_sign(line, annotation)
        if not needs or annotation.in_files or len(line.words) >= _SENTENCE:
            return None
        guards = protects(line, names)
        return NearMiss(f"this is no annotation: it is written `{annotation.syntax}`", guards)
    separated = _separated_wrongly(line, names)
    if separated is not None:
        return separated
    word = line.keyword.rstrip(":=")
    if not word.replace("_", "").replace("-", "").isascii() or not _can_be_meant(line):
        return None
    suggestion = nearest(word)
    if suggestion is None or (len(line.words) >= _SENTENCE and BY_WORD[suggestion].in_files):
        return None
    if BY_WORD[suggestion].secret:
        line.hide(line.words[0])
    message = f"{line.words[0]!r} is no annotation and is taken for prose; did you mean {suggestion!r}?"
    return NearMiss(message, _guards(line, word, suggestion, names), suggestion == "http" and _names_route(line))


def _separated_wrongly(line: Line, names: frozenset[str]) -> NearMiss | None:
    """Return what a line was probably meant to be whose first word would be that of an annotation if tabs and other
    white space were blanks, and if no star or hyphen stood in front of it; None: it is another line, or a sentence.

    With a star or hyphen in front, as in lists, only lines that would protect or expose something count. names: those
    of parameters.
    """
    text, decorated = _MARGIN.subn("", line.text, count=1) if _MARGIN.match(line.text) else (line.text, 0)
    meant = Line(_NO_SEPARATOR.sub(" ", text).strip())
    annotation = BY_WORD.get(meant.keyword)
    if annotation is None or annotation.in_files or not annotation.fits(len(meant.words)):
        return None
    guards = protects(meant, names)
    exposes = meant.keyword == "http" and _names_route(meant)
    if not (guards or exposes) and (decorated or len(meant.words) >= _SENTENCE):
        return None
    if annotation.secret:
        line.hide(meant.words[0])
    message = f"this is prose: write `{annotation.syntax}` with blanks between its words and nothing in front of it"
    return NearMiss(message, guards, exposes)


def _lacks_sign(line: Line, annotation: Annotation) -> bool:
    """Return whether the line lacks the `=` that its annotation needs, as `tsclient false` does. False for short forms
    such as `file`, which may be words of prose."""
    full = "_" in line.keyword or len(annotation.aliases) == 1
    return full and annotation.apply is None and annotation.assignable


def protects(line: Line, names: frozenset[str]) -> bool:
    """Return whether the first word of a line is a protective annotation and the line is not a sentence.

    names: those of parameters.
    """
    annotation = BY_WORD.get(_KEYWORD_END.split(line.keyword, maxsplit=1)[0])
    if annotation is None or annotation.name not in PROTECTIVE:
        return False
    return line.split_at("=") is not None or not _is_sentence(line, names)


def misspelt_protection(key: str) -> str | None:
    """Return the word of the protective annotation of which the key of a custom parameter is a misspelling. None: there
    is none, or it is that of a setting of uploads (`check_…`, `included_…`, `excluded_…`)."""
    suggestion = nearest(key.lower())
    # Settings of uploads may have the key of a configured handler as prefix: `fs_check_image = false`.
    if suggestion is None or BY_WORD[suggestion].name.startswith(("check_", "included_", "excluded_")):
        return None
    return suggestion if _is_misspelt(key.lower(), suggestion) else None


def _guards(line: Line, word: str, known: str, names: frozenset[str]) -> bool:
    """Return whether a misspelt line was meant to protect the endpoint, and is not a sentence.

    Annotations that name parameters, columns or rules: `_is_sentence` decides. Others: a line is a sentence if it
    begins with a capital letter, ends with a period or has a word such as `the` or `and`, or has any argument if the
    annotation takes none. A misspelt `param` protects if the line has `is hash of`.

    word: the first word of the line. known: the annotation word that it may mean. names: those of parameters.
    """
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
    return not any(word.lower() in FUNCTION_WORDS or word.lower() in ("and", "or") for word in line.arguments)


def _is_sentence(line: Line, names: frozenset[str]) -> bool:
    """Return whether the line is a sentence. The word `using` does not count, because it is part of the syntax of
    `validate`. names: those of parameters."""
    return reads_as_sentence(line, [word for word in line.arguments if word.lower() != "using"], names)


def _is_misspelt(word: str, known: str) -> bool:
    """Return whether the word is a misspelling of `known`, a word of a protective annotation other than `cors`, and not
    another English word."""
    meant = BY_WORD[known].name
    if meant not in PROTECTIVE or meant == "cors" or word in _ENGLISH:
        return False
    return meant not in _NAMES_THINGS or "_" in word or edit_distance(word, known, 1) <= 1


def _names_route(line: Line) -> bool:
    """Return whether the second word of the line is a method or a path, or the line has only one word."""
    return not line.arguments or line.arguments[0].upper() in METHODS or line.arguments[0].startswith("/")


def _can_be_meant(line: Line) -> bool:
    """Return whether a line whose first word resembles an annotation may be meant as one, and is not just a
    sentence."""
    first = line.words[0]
    if len(line.words) < _SENTENCE or "_" in first or (first.isupper() and len(first) > 1):
        return True
    # A sentence begins without `@`, and its second word is not a placeholder (`parm :id is number default 5`).
    return line.text.startswith("@") or line.arguments[0].startswith((":", "$")) or _HASH_OF in line.text.lower()


@lru_cache(maxsize=4096)
def nearest(word: str) -> str | None:
    """Return the annotation word that `word` is most likely a misspelling of; None: there is none. word: in lower
    case."""
    if len(word) < 4 or len(word) > 40:
        return None
    allowed = 2 if len(word) >= _LONG else 1
    near = [
        (distance, candidate)
        for candidate in BY_WORD
        if (distance := edit_distance(word, candidate, allowed)) <= allowed
    ]
    return min(near)[1] if near else None


def surplus(line: Line, annotation: Annotation) -> tuple[str, bool] | None:
    """Return a message about superfluous words of an applied line, and whether they concern access; None: the line has
    no superfluous words."""
    if annotation.name == "http":
        return _surplus_of_http(line)
    if annotation.name in ("disabled", "enabled") or (annotation.assignable and "=" in line.text):
        return None
    if annotation.syntax in annotation.aliases and line.arguments and line.keyword in annotation.aliases:
        words = " ".join(line.arguments)
        return f"`{annotation.syntax}` takes no words; {words!r} is ignored", annotation.name == _OPENING
    return None


def _surplus_of_http(line: Line) -> tuple[str, bool] | None:
    """Return the same as `surplus` for a line `HTTP …`; also a message about a word in the place of the method that is
    none, and about an annotation for access in the place of the path."""
    words = line.arguments
    if len(words) > 2:
        unused = " ".join(words[2:]) if words[0].upper() in METHODS else " ".join(words)
        guarded = any(is_access_word(word) for word in words)
        message = f"`HTTP [method] [path]` takes two words, so method and path are not used; {unused!r} is ignored"
        return message, guarded
    if words and words[0].upper() not in METHODS and words[0].isalpha() and (len(words) == 2 or words[0].isupper()):
        guarded = is_access_word(words[0]) or is_access_word(words[-1])
        return f"{words[0]!r} is no method; there are {', '.join(METHODS)}", guarded
    if words and is_access_word(words[-1]):
        return f"{words[-1]!r} is taken for a path; an annotation has a line of its own", True
    return None
