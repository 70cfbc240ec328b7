"""The path of the role in the claims of a token: JSON paths (RFC 9535), and the older form of PostgREST (`.a."b"[0]`).

Only parts that a role needs exist: names, indexes, wildcards and filters on one value with comparisons and `search()`.
The first match is the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_NAME = re.compile(r"[A-Za-z0-9_$@\u0080-\U0010ffff-]+")
_INDEX = re.compile(r"-?\d+")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_OPERATOR = re.compile(r"\^==|==\^|\*==|==|!=")
_SPACE = re.compile(r"\s*")
_ESCAPE = re.compile(r"\\(.)")

Select = Callable[[Any], Iterator[Any]]
"""Function from a JSON value to the values at one step of a path below it."""
Test = Callable[[Any], bool]
"""Function that returns whether a JSON value passes a filter."""


class ClaimPathError(ValueError):
    """The text is not a path to a claim."""


@dataclass(frozen=True, slots=True)
class ClaimPath:
    """A parsed path to a claim."""

    steps: tuple[Select, ...]

    def first(self, claims: Any) -> Any:
        """Return the first value at the path; None if there is none."""
        return next(self._all(claims), None)

    def _all(self, claims: Any) -> Iterator[Any]:
        values = iter((claims,))
        for step in self.steps:
            values = _each(values, step)
        return values


def _each(values: Iterator[Any], step: Select) -> Iterator[Any]:
    for value in values:
        yield from step(value)


def parse_claim_path(text: str) -> ClaimPath:
    """Parse the path to a claim, such as `$.app.role`. Raises `ClaimPathError`."""
    parser = _Parser(text)
    parser.accept("$")
    steps = []
    while not parser.at_end():
        steps.append(parser.step())
    return ClaimPath(tuple(steps))


class _Parser:
    """A parser of one path. Methods read at the current position and move it behind what they have read. Those that
    read a part of a path raise `ClaimPathError` if it is not there."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def at_end(self) -> bool:
        return self._place >= len(self._text)

    def accept(self, token: str) -> bool:
        """Return whether the token is next, and move behind it then."""
        if not self._text.startswith(token, self._place):
            return False
        self._place += len(token)
        return True

    def step(self) -> Select:
        """Read one step of a path. Raises `ClaimPathError`."""
        if self.accept("."):
            return self._member()
        if self.accept("["):
            return self._bracket()
        raise self._error()

    def _member(self) -> Select:
        """Read a step behind a dot."""
        if self.accept("*"):
            return _children
        quoted = self._match(_QUOTED)
        name = _unquoted(quoted) if quoted else self._required(_NAME)[0]
        return lambda value: _child(value, name)

    def _bracket(self) -> Select:
        """Read a step behind `[`, with its `]`."""
        self._match(_SPACE)
        if self.accept("?"):
            step = self._filter()
        elif self.accept("*"):
            step = _children
        elif quoted := self._match(_QUOTED):
            name = _unquoted(quoted)
            step = lambda value: _child(value, name)  # noqa: E731
        else:
            index = int(self._required(_INDEX)[0])
            step = lambda value: _element(value, index)  # noqa: E731
        self._match(_SPACE)
        if not self.accept("]"):
            raise self._error()
        return step

    def _filter(self) -> Select:
        """Read a filter behind `?`. It selects the children of a value that pass its test."""
        self._match(_SPACE)
        parenthesised = self.accept("(")
        test = self._alternatives()
        self._match(_SPACE)
        if parenthesised and not self.accept(")"):
            raise self._error()
        return lambda value: (item for item in _children(value) if test(item))

    def _alternatives(self) -> Test:
        """Read tests that `||` joins."""
        tests = [self._conjunction()]
        while self._operator("||"):
            tests.append(self._conjunction())
        return tests[0] if len(tests) == 1 else lambda value: any(test(value) for test in tests)

    def _conjunction(self) -> Test:
        """Read tests that `&&` joins."""
        tests = [self._comparison()]
        while self._operator("&&"):
            tests.append(self._comparison())
        return tests[0] if len(tests) == 1 else lambda value: all(test(value) for test in tests)

    def _operator(self, token: str) -> bool:
        """Return whether the token is next, behind blanks."""
        self._match(_SPACE)
        return self.accept(token)

    def _comparison(self) -> Test:
        """Read a comparison with a text in quotes, a call of `search()`, or a path alone, which tests whether there is
        a value."""
        self._match(_SPACE)
        if self.accept("search("):
            return self._search()
        path = self._relative()
        self._match(_SPACE)
        operator = self._match(_OPERATOR)
        if operator is None:
            return lambda value: any(True for _ in path._all(value))
        self._match(_SPACE)
        literal = _unquoted(self._required(_QUOTED))
        compare = _COMPARISONS[operator[0]]
        return lambda value: compare(path.first(value), literal)

    def _search(self) -> Test:
        """Read the arguments of `search()`: a path, and a regular expression in quotes."""
        path = self._relative()
        self._match(_SPACE)
        if not self.accept(","):
            raise self._error()
        self._match(_SPACE)
        try:
            pattern = re.compile(_unquoted(self._required(_QUOTED)))
        except re.error as error:
            raise ClaimPathError(f"the pattern of search() cannot be read: {error}") from None
        self._match(_SPACE)
        if not self.accept(")"):
            raise self._error()

        def test(value: Any) -> bool:
            text = path.first(value)
            return isinstance(text, str) and pattern.search(text) is not None

        return test

    def _relative(self) -> ClaimPath:
        """Read a path that begins with `@`, the value that is tested."""
        if not self.accept("@"):
            raise self._error()
        steps = []
        while self._text[self._place : self._place + 1] in (".", "["):
            steps.append(self.step())
        return ClaimPath(tuple(steps))

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the match of a pattern here; None: there is none, and the position stays."""
        match = pattern.match(self._text, self._place)
        if match is not None:
            self._place = match.end()
        return match

    def _required(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Return the match of a pattern here. Raises `ClaimPathError` if there is none."""
        match = self._match(pattern)
        if match is None:
            raise self._error()
        return match

    def _error(self) -> ClaimPathError:
        """Return the error for the current position."""
        return ClaimPathError(f"failed to parse role-claim-key value ({self._text}), at character {self._place + 1}")


def _unquoted(match: re.Match[str]) -> str:
    """Return the text within quotes. A backslash is left out, and the character behind it stands for itself; there are
    no other escapes."""
    text = match[1] if match[1] is not None else match[2]
    return _ESCAPE.sub(r"\1", text)


def _child(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, dict) and name in value:
        yield value[name]


def _element(value: Any, index: int) -> Iterator[Any]:
    if isinstance(value, list) and -len(value) <= index < len(value):
        yield value[index]


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


_COMPARISONS: dict[str, Callable[[Any, str], bool]] = {
    "==": lambda value, text: bool(value == text),
    "!=": lambda value, text: bool(value != text),
    "^==": lambda value, text: isinstance(value, str) and value.startswith(text),
    "==^": lambda value, text: isinstance(value, str) and value.endswith(text),
    "*==": lambda value, text: isinstance(value, str) and text in value,
}
