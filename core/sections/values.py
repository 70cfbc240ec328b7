"""Conversions of values that several sections need. They raise ValueError; the message follows the path of the key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token, as the name of a header must be (RFC 9110, 5.1)."""
MEGABYTE = 1_048_576
_BETWEEN = re.compile(r"[\s,]+")


def or_empty(text: str | None) -> str:
    return text or ""


def strip_or_empty(text: str | None) -> str:
    return (text or "").strip()


def stripped_or_none(text: str | None) -> str | None:
    return strip_or_empty(text) or None


def or_nothing(texts: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the texts; an empty tuple for None."""
    return texts or ()


def as_set(texts: Iterable[str] | None) -> frozenset[str]:
    return frozenset(texts or ())


def lower_case_texts(texts: Iterable[str] | None) -> frozenset[str]:
    """Return the texts in lower case without white space around them, and without empty ones."""
    return frozenset(text.strip().lower() for text in texts or () if text.strip())


def without_empty(texts: Mapping[str, str | None]) -> dict[str, str]:
    """Return the entries that are neither null nor empty."""
    return {name: text for name, text in texts.items() if text}


def bytes_of_megabytes(number: int) -> int:
    return number * MEGABYTE


def at_least(least: float) -> Callable[[float], float]:
    """Return a conversion of a number that returns `least` for smaller ones."""
    return lambda seconds: max(least, seconds)


def none_for_zero(number: float | None) -> float | None:
    """Return None for 0 and None, else the number."""
    return number or None


def path_like(example: str) -> Callable[[str | None], str | None]:
    """Return a conversion that returns None and fixed paths unchanged, and raises ValueError for other texts. A fixed
    path begins with a slash and has no parameters, query string, fragment or blanks.

    example: a path for the message.
    """

    def check(text: str | None) -> str | None:
        if text is not None and (not text.startswith("/") or any(letter in text for letter in "{}?# ")):
            raise ValueError(f"{text!r} is no path such as {example}")
        return text

    return check


def header_name(text: str | None) -> str | None:
    """Return the name of a header, or None for None. Raises ValueError if it is not valid."""
    if text is not None and not HEADER_NAME.fullmatch(text):
        raise ValueError(f"{text!r} is not the name of a header")
    return text


def words(text: str) -> list[str]:
    """Return the words of a text, which are separated by white space or commas."""
    return [word for word in _BETWEEN.split(text) if word]
