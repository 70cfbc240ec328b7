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
"""A line of so many words is prose if none of its words names anything."""

_FUNCTION_WORDS = """
    a an the this that these those its their his her our your to of in at for by with without from on is are be
    was were as if when where while before after not no using via it they them which who so than then must
    should will can may only into has have because against
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words that no list of names has, unless something is called like that. `all` is missing: `encrypt all` is meant."""

_CONJUNCTIONS = frozenset({"and", "or"})
"""May also stand between names."""
_ENDS = (".", "!", "?", ";", ":")
_NAME = re.compile(r"[:$]?[\w$]+(?:[.-][\w$]+)*")


def unknown_words(words: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the words that are no name, compared without regard to case; conjunctions are ignored."""
    known = {name.casefold() for name in names} | _CONJUNCTIONS
    return [word for word in words if word.casefold() not in known]


def reads_as_sentence(line: Line, words: Sequence[str], names: Collection[str]) -> bool:
    """Return whether a line with unknown names is prose.

    words: those of the line that stand where names are expected. names: everything that could be named there.
    """
    if line.text.startswith("@") or "_" in line.keyword:
        return False
    unknown = unknown_words(words, names)
    if line.text.endswith(_ENDS) or any(word.lower() in FUNCTION_WORDS or not _is_name(word) for word in unknown):
        return True
    known = {name.casefold() for name in names}
    if any(word.casefold() in known for word in words) or any(_is_like_a_name(word, known) for word in unknown):
        return False
    return line.words[0].istitle() or len(line.words) >= LONG_SENTENCE


def _is_name(word: str) -> bool:
    """Return whether the form is that of a name: not `password's`, `(AES-256)` or `-`."""
    return _NAME.fullmatch(word) is not None


def _is_like_a_name(word: str, known: Collection[str]) -> bool:
    """Return whether the word has the form of an identifier, or may be a misspelt name."""
    if "_" in word or word[0] in "$:":
        return True
    return any(is_similar(word.casefold(), name.strip("_")) for name in known)
