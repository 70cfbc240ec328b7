"""Whether a comment line whose first word is an annotation is prose: `Encrypt the values at rest.`

Annotations that protect an endpoint and name something that does not exist leave the endpoint out. A sentence that
happens to begin with the same word must not do that.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from rowcall.core.annotations.declaration import Line
from rowcall.core.annotations.edit_distance import is_similar

LONG_SENTENCE = 5
"""A line with this number of words is prose if none of its words is a known name."""

_FUNCTION_WORDS = """
    a an the this that these those its their his her our your to of in at for by with without from on is are be
    was were as if when where while before after not no using via it they them which who so than then must
    should will can may only into has have because against
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words that are unlikely as names. `all` is missing, because `encrypt all` is not prose."""

_CONJUNCTIONS = frozenset({"and", "or"})
"""Words that may stand between names."""
_ENDS = (".", "!", "?", ";", ":")
_NAME = re.compile(r"[:$]?[\w$]+(?:[.-][\w$]+)*")


def unknown_words(words: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the words that are not names, compared without regard to case. Conjunctions are ignored."""
    known_words = {name.casefold() for name in names} | _CONJUNCTIONS
    return [word for word in words if word.casefold() not in known_words]


def reads_as_sentence(line: Line, words: Sequence[str], names: Collection[str]) -> bool:
    """Return whether a line with unknown names is prose.

    words: words of the line where names are expected. names: all valid names in this place.
    """
    if line.text.startswith("@") or "_" in line.keyword:
        return False
    unknown = unknown_words(words, names)
    if line.text.endswith(_ENDS) or any(word.lower() in FUNCTION_WORDS or not _is_name(word) for word in unknown):
        return True
    folded_names = {name.casefold() for name in names}
    if any(word.casefold() in folded_names for word in words) or any(
        _is_like_a_name(word, folded_names) for word in unknown
    ):
        return False
    return line.words[0].istitle() or len(line.words) >= LONG_SENTENCE


def _is_name(word: str) -> bool:
    """Return whether the word has the form of a name, unlike `password's`, `(AES-256)` or `-`."""
    return _NAME.fullmatch(word) is not None


def _is_like_a_name(word: str, known: Collection[str]) -> bool:
    """Return whether the word has the form of an identifier or may be a misspelt name."""
    if "_" in word or word[0] in "$:":
        return True
    return any(is_similar(word.casefold(), name.strip("_")) for name in known)
