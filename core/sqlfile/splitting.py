"""Splits a file into statements and comments (sql-files-9 to sql-files-12).

Statements end where psql ends them: at a semicolon outside of parentheses and of the body of a `BEGIN ATOMIC` function.
Comments within a statement are replaced by blanks of the same length, so that offsets in the statement's text are
offsets in the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rowcall.core.text.sql_lexer import Kind, Token, tokens

_BEYOND_BREAKS = re.compile(r"[^\r\n]")
_WORDS_IN_QUOTES = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """`$1` or `:name` in a statement. start, end: offsets in the statement's text; `end` is behind the last
    character."""

    start: int
    end: int
    name: str
    """As written: `$1`, or a name without its colon."""

    @property
    def positional(self) -> bool:
        return self.name.startswith("$")


@dataclass(frozen=True, slots=True)
class RawStatement:
    """One statement as written in the file, without its semicolon and its comments."""

    text: str
    start: int
    """Offset in the file."""
    placeholders: tuple[Placeholder, ...]
    words: tuple[str, ...]
    """Keywords and names in lower case, in order."""
    quoted_words: frozenset[str]
    """Words inside double quotes, in lower case."""
    called: frozenset[str]
    """Names before an opening parenthesis, in lower case. They include all called functions."""
    do_block: bool = False
    """The statement contains a `DO` with a dollar-quoted body."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment of a file."""

    text: str
    """The text without `--`, `/*` and `*/`."""
    start: int
    """Offset of the text in the file."""
    statement: int
    """Index of the statement to which the comment belongs. Behind the last statement, it is the number of
    statements."""
    header: bool
    """The comment is before the end of the first statement."""


@dataclass(frozen=True, slots=True)
class Split:
    """The statements and comments of a file, in order."""

    statements: tuple[RawStatement, ...]
    comments: tuple[Comment, ...]


def split(text: str) -> Split:
    """Split the text of a file. Raises no errors: a construct that is not closed reaches to the end of the file."""
    splitter = _Splitter(text)
    for token in tokens(text):
        splitter.take(token)
    splitter.end_statement(len(text))
    return Split(tuple(splitter.statements), tuple(splitter.comments))


class _Splitter:
    """Collects statements and comments from the tokens of a file."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.statements: list[RawStatement] = []
        self.comments: list[Comment] = []
        self._tokens: list[Token] = []
        """Tokens of the current statement, including comments; empty before its first token that is no comment."""
        self._depth = 0
        self._body = _AtomicBody()
        self._closed_at = -1
        """Offset of the last semicolon that ended a statement."""

    def take(self, token: Token) -> None:
        kind = token.kind
        if kind is Kind.SEMICOLON and self._depth == 0 and self._body.depth == 0:
            self.end_statement(token.start)
            self._closed_at = token.start
        elif kind in (Kind.LINE_COMMENT, Kind.BLOCK_COMMENT):
            self.comments.append(self._comment(token))
            if self._tokens:
                self._tokens.append(token)
        elif kind is not Kind.SPACE:
            self._tokens.append(token)
            self._follow(token)

    def _follow(self, token: Token) -> None:
        if token.kind is Kind.WORD:
            self._body.word(self._text[token.start : token.end].lower(), in_parentheses=self._depth > 0)
        elif token.kind is Kind.OTHER and token.end - token.start == 1:
            character = self._text[token.start]
            if character == "(":
                self._depth += 1
            elif character == ")" and self._depth > 0:
                self._depth -= 1

    def _comment(self, token: Token) -> Comment:
        text = self._text[token.start : token.end]
        inner = text[2:]
        if token.kind is Kind.BLOCK_COMMENT:
            inner = inner.removesuffix("*/")
        closed = self._closed_at
        # A comment on the line of a semicolon belongs to the statement that the semicolon ended.
        behind = not self._tokens and closed >= 0 and not _breaks(self._text, closed, token.start)
        about = len(self.statements) - (1 if behind and self.statements else 0)
        return Comment(inner, token.start + 2, about, header=closed < 0 or not self.statements)

    def end_statement(self, end: int) -> None:
        while self._tokens and self._tokens[-1].kind in (Kind.LINE_COMMENT, Kind.BLOCK_COMMENT):
            self._tokens.pop()
        if self._tokens:
            self.statements.append(self._statement())
        self._tokens = []
        self._depth = 0
        self._body = _AtomicBody()

    def _statement(self) -> RawStatement:
        start, end = self._tokens[0].start, self._tokens[-1].end
        # A token that is neither word nor quote includes the blanks behind it.
        end -= end - start - len(self._text[start:end].rstrip(" \t\n\r\f\v"))
        pieces: list[str] = []
        placeholders: list[Placeholder] = []
        words: list[str] = []
        quoted: set[str] = set()
        position = start
        called: set[str] = set()
        do_block = False
        before = ""
        name = ""
        for token in self._tokens:
            text = self._text[token.start : token.end]
            if token.kind in (Kind.LINE_COMMENT, Kind.BLOCK_COMMENT):
                pieces += [self._text[position : token.start], _BEYOND_BREAKS.sub(" ", text)]
                position = token.end
                continue
            if name and text == "(":
                called.add(name)
            name = text.strip('"').lower() if token.kind in (Kind.WORD, Kind.QUOTED_NAME) else ""
            if token.kind is Kind.WORD:
                words.append(text.lower())
            elif token.kind is Kind.QUOTED_NAME:
                quoted.update(_WORDS_IN_QUOTES.findall(text.lower()))
            elif token.kind is Kind.POSITIONAL:
                placeholders.append(Placeholder(token.start - start, token.end - start, text))
            elif token.kind is Kind.NAMED:
                placeholders.append(Placeholder(token.start - start, token.end - start, text[1:]))
            do_block = do_block or (token.kind is Kind.DOLLAR_STRING and before == "do")
            before = words[-1] if token.kind is Kind.WORD else ""
        pieces.append(self._text[position:end])
        return RawStatement(
            "".join(pieces), start, tuple(placeholders), tuple(words), frozenset(quoted), frozenset(called), do_block
        )


class _AtomicBody:
    """Tracks whether a token is within `BEGIN … END` of a CREATE FUNCTION or PROCEDURE statement, as psql does."""

    _BEGINNINGS = (("create", "function"), ("create", "procedure"))

    def __init__(self) -> None:
        self.depth = 0
        self._first: list[str] = []

    def word(self, word: str, *, in_parentheses: bool) -> None:
        if len(self._first) < 4:
            self._first.append(word)
        if in_parentheses or not self._makes_routine():
            return
        if word == "begin" or (word == "case" and self.depth > 0):
            self.depth += 1
        elif word == "end" and self.depth > 0:
            self.depth -= 1

    def _makes_routine(self) -> bool:
        words = self._first
        if words[1:3] == ["or", "replace"]:
            words = [words[0], *words[3:]]
        return tuple(words[:2]) in self._BEGINNINGS


def _breaks(text: str, start: int, end: int) -> bool:
    return any(text.find(mark, start, end) >= 0 for mark in "\r\n")


def comment_lines(comments: tuple[Comment, ...]) -> Iterator[tuple[str, Comment]]:
    """Yield each line of the comments that is not blank, trimmed, with the comment that contains it."""
    for comment in comments:
        for line in re.split(r"[\r\n]+", comment.text):
            if stripped := line.strip():
                yield stripped, comment
