"""Parser combinators whose error messages are those of Parsec, the library that PostgREST parses with.

A parser moves through a text and returns an `Outcome`. Errors are merged as Parsec does: the one that is further on in
the text wins, and the expectations of errors at the same place are joined. The parsers here are slow; they only word
the errors of texts that `grammar` has refused.

Source: D. Leijen, Parsec: Direct Style Monadic Parser Combinators for the Real World; the library parsec 3.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

_SYSTEM, _UNEXPECTED, _EXPECTED = range(3)
Messages = tuple[tuple[int, str], ...]


class Error(NamedTuple):
    """Messages about a place of the text. Without messages, it is an unknown error."""

    place: int
    messages: Messages = ()


class Outcome(NamedTuple):
    """The result of a parser at a place of a text.

    end: place behind what was read; None: the parser failed. consumed: the parser read something. error: of the
    failure, or of what else could have followed.
    """

    consumed: bool
    end: int | None
    error: Error


Parser = Callable[[str, int], Outcome]


def merge_errors(first: Error, second: Error) -> Error:
    """Return the error of two that is further on in the text; at the same place, both. An error without messages yields
    to one with messages."""
    if not second.messages and first.messages:
        return first
    if not first.messages and second.messages:
        return second
    if first.place != second.place:
        return max(first, second, key=lambda error: error.place)
    return Error(first.place, first.messages + second.messages)


def _character_at(text: str, place: int) -> tuple[int, str]:
    """Return the message that names the character at a place; an empty text is the end of input."""
    return _SYSTEM, show_text(text[place]) if place < len(text) else ""


def characters(pattern: str, *expected: str, required: bool = True) -> Parser:
    """Return the parser of repeated characters, given as a regular expression. expected: names of the characters.
    required: False: no character is needed."""
    compiled = re.compile(pattern, re.DOTALL)

    def parse(text: str, place: int) -> Outcome:
        match = compiled.match(text, place)
        end = place if match is None else match.end()
        messages = (*((_EXPECTED, name) for name in expected), _character_at(text, end))
        failed = end == place and required
        return Outcome(end > place, None if failed else end, Error(end, messages))

    return parse


def character_of(pattern: str, expected: str | None = None) -> Parser:
    """Return the parser of one character of a class, given as a regular expression. expected: its name; None: errors do
    not name it."""
    compiled = re.compile(pattern, re.DOTALL)
    expectation = () if expected is None else ((_EXPECTED, expected),)

    def parse(text: str, place: int) -> Outcome:
        if compiled.match(text, place) is None:
            return Outcome(False, None, Error(place, (*expectation, _character_at(text, place))))
        return Outcome(True, place + 1, Error(place + 1))

    return parse


def character(expected: str) -> Parser:
    return character_of(re.escape(expected), show_text(expected))


def string(expected: str) -> Parser:
    """Return the parser of exactly this text. If it fails, the error is at the place where the text should begin, and
    names the first wrong character."""
    expectation = (_EXPECTED, show_text(expected))

    def parse(text: str, place: int) -> Outcome:
        if text.startswith(expected, place):
            return Outcome(True, place + len(expected), Error(place + len(expected)))
        wrong = place
        while wrong < len(text) and text[wrong] == expected[wrong - place]:
            wrong += 1
        return Outcome(wrong > place, None, Error(place, (expectation, _character_at(text, wrong))))

    return parse


def in_any_case(expected: str) -> Parser:
    """Return the parser of a word whose letters may be in upper case. expected: in lower case."""
    return sequence(*(either(character(item), character(item.upper())) for item in expected))


def empty(_text: str, place: int) -> Outcome:
    """Read nothing."""
    return Outcome(False, place, Error(place))


def sequence(*parsers: Parser) -> Parser:
    """Return the parser that applies others one after another, until one fails."""

    def parse(text: str, place: int) -> Outcome:
        result = Outcome(False, place, Error(place))
        for parser in parsers:
            if result.end is None:
                break
            following = parser(text, result.end)
            if following.consumed:
                result = following
            else:
                result = Outcome(result.consumed, following.end, merge_errors(result.error, following.error))
        return result

    return parse


def either(*parsers: Parser) -> Parser:
    """Return the parser that tries others in turn, until one succeeds or has consumed something."""

    def parse(text: str, place: int) -> Outcome:
        error = Error(place)
        for parser in parsers:
            result = parser(text, place)
            if result.consumed:
                return result
            error = merge_errors(error, result.error)
            if result.end is not None:
                return Outcome(False, result.end, error)
        return Outcome(False, None, error)

    return parse


def attempt(parser: Parser) -> Parser:
    """Return the parser that has consumed nothing if it fails."""

    def parse(text: str, place: int) -> Outcome:
        result = parser(text, place)
        return result if result.end is not None else Outcome(False, None, result.error)

    return parse


def optional(parser: Parser) -> Parser:
    """Return the parser that reads what `parser` reads, or nothing if `parser` fails without consuming anything."""
    return either(parser, empty)


def many(parser: Parser) -> Parser:
    """Return the parser that repeats another one until it fails. It fails itself if the last repetition has consumed
    something. parser: has to consume something whenever it succeeds; otherwise the repetition does not end."""

    def parse(text: str, place: int) -> Outcome:
        consumed = False
        while True:
            result = parser(text, place)
            if result.end is None:
                return Outcome(True, None, result.error) if result.consumed else Outcome(consumed, place, result.error)
            consumed, place = True, result.end

    return parse


def separated_by(parser: Parser, separator: Parser) -> Parser:
    """Return the parser of one or more parts with a separator between each two. parser: of a part."""
    return sequence(parser, many(sequence(separator, parser)))


def look_ahead(parser: Parser) -> Parser:
    """Return the parser that reads nothing, and succeeds if another one does."""

    def parse(text: str, place: int) -> Outcome:
        result = parser(text, place)
        return result if result.end is None else Outcome(False, place, Error(place))

    return parse


def not_ahead(pattern: str) -> Parser:
    """Return the parser that reads nothing, and fails if a character of a class follows, given as a regular
    expression."""
    compiled = re.compile(pattern, re.DOTALL)

    def parse(text: str, place: int) -> Outcome:
        if compiled.match(text, place) is None:
            return Outcome(False, place, Error(place))
        return Outcome(False, None, Error(place + 1, ((_UNEXPECTED, _shown_character(text[place])),)))

    return parse


def end(text: str, place: int) -> Outcome:
    """Read the end of the text."""
    if place >= len(text):
        return Outcome(False, place, Error(place))
    return Outcome(
        False, None, Error(place, ((_EXPECTED, "end of input"), (_UNEXPECTED, _shown_character(text[place]))))
    )


def label(parser: Parser, name: str) -> Parser:
    """Return the parser whose errors say that `name` is expected, in place of what the parser expects. If the parser
    has consumed something, its own errors stay."""

    def parse(text: str, place: int) -> Outcome:
        result = parser(text, place)
        if result.consumed or (result.end is not None and not result.error.messages):
            return result
        others = tuple(message for message in result.error.messages if message[0] != _EXPECTED)
        return result._replace(error=Error(result.error.place, ((_EXPECTED, name), *others)))

    return parse


def format_error(error: Error) -> str:
    """Return the text of an error: what is unexpected and what was expected."""
    unexpected = [text for kind, text in error.messages if kind == _UNEXPECTED]
    system = [text for kind, text in error.messages if kind == _SYSTEM]
    expected = [*dict.fromkeys(text for kind, text in error.messages if kind == _EXPECTED)]
    parts: list[str] = []
    if unexpected:
        parts.append(f"unexpected {_join_with_or([*dict.fromkeys(unexpected)])}")
    elif system:
        parts.append(f"unexpected {system[0] or 'end of input'}")
    if expected:
        parts.append(f"expecting {_join_with_or(expected)}")
    return " ".join(parts) or "unknown parse error"


def _join_with_or(names: list[str]) -> str:
    """Return names separated by commas, the last one by `or`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escape_character(character: str) -> str:
    """Return a character as Haskell escapes it."""
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if " " <= character <= "~" else f"\\{ord(character)}"


def show_text(text: str) -> str:
    """Return a text in double quotes, as Haskell shows it."""
    return '"' + "".join('\\"' if item == '"' else _escape_character(item) for item in text) + '"'


def _shown_character(character: str) -> str:
    return "'\\''" if character == "'" else f"'{_escape_character(character)}'"
