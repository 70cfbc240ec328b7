"""Which lines that begin with an annotation are prose."""

from __future__ import annotations

import pytest

from rowcall.core.annotations.declaration import Line
from rowcall.core.annotations.edit_distance import edit_distance, is_similar
from rowcall.core.annotations.sentences import reads_as_sentence

NAMES = ("_password", "password", "_card_no", "cardNo", "note")


@pytest.mark.parametrize(
    "text",
    [
        "Encrypt the values at rest",
        "Encrypted values are stored in the vault.",
        "Encrypts, then stores",
        "encrypted at rest",
        "Encrypt everything (AES-256)",
        "Encrypt customers' data",
        "Protected route",
        "Protected by row level security",
        "protect users from themselves",
        "Decrypt the password before it is compared.",
        "Decrypt on read",
        "Validate input",
        "validate email addresses with care",
        "encrypt several secrets coming along here",
    ],
)
def test_prose_reads_as_sentence(text: str) -> None:
    line = Line(text)
    assert reads_as_sentence(line, line.arguments, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "encrypt pasword",
        "Encrypt pasword",
        "ENCRYPT secret",
        "encrypt secret",
        "encrypt all",
        "encrypt password and pin",
        "encrypt password, secret, token, key, code",
        "encrypt _a _b _c _d _e",
        "Encrypt _secret",
        "encrypt $2",
        "@encrypt a b c d e f",
        "decrypt cardno2",
    ],
)
def test_misspelt_names_do_not_read_as_sentence(text: str) -> None:
    line = Line(text)
    assert not reads_as_sentence(line, line.arguments, NAMES)


@pytest.mark.parametrize(
    ("word", "other", "distance"),
    [("", "", 0), ("ab", "ba", 1), ("abc", "abd", 1), ("abc", "ab", 1), ("a", "abcde", 3)],
)
def test_the_edit_distance_is_computed(word: str, other: str, distance: int) -> None:
    assert edit_distance(word, other, 2) == distance
    assert edit_distance(other, word, 2) == distance


def test_short_words_are_similar_to_no_other() -> None:
    assert not is_similar("pin", "bin")
    assert is_similar("note", "noet")
    assert not is_similar("note", "node2")
