"""The path of the role in the claims of a token: JSON paths (RFC 9535), and the older form of PostgREST (`.a."b"[0]`).

Of functions, only `search()` exists. A slice of a text is a part of it, as in the older form. The first match is the
result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rowcall.core.postgrest.claim_path.steps import (
    COMPARISONS,
    Select,
    child,
    children,
    descendants,
    element,
    slice_step,
)

_NAME = re.compile(r"[A-Za-z0-9_$@\u0080-\U0010ffff-]+")
_SLICE = re.compile(r"(-?\d+)?\s*:\s*(-?\d+)?\s*(?::\s*(-?\d+)?)?")
_INDEX = re.compile(r"-?\d+")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_OPERATOR = re.compile(r"\^==|==\^|\*==|==|!=|<=|>=|<|>")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_WORD = re.compile(r"(true|false|null)\b")
_SPACE = re.compile(r"\s*")
_ESCAPE = re.compile(r"\\(.)")
_WORDS = {"true": True, "false": False, "null": None}
_ABSENT = object()
"""The value of a path without a match."""

Test = Callable[[Any, Any], bool]
"""Function that returns whether a JSON value, in the claims that contain it, passes a filter."""
Operand = Callable[[Any, Any], Any]
"""Function from a JSON value, and the claims that contain it, to a value that is compared, or `_ABSENT`."""


class ClaimPathError(ValueError):
    """The text is not a path to a claim."""


@dataclass(frozen=True, slots=True)
class ClaimPath:
    """A parsed path to a claim."""

    steps: tuple[Select, ...]

    def first(self, claims: Any) -> Any:
        """Return the first value at the path; None if there is none."""
        return next(self.values(claims, claims), None)

    def values(self, value: Any, claims: Any) -> Iterator[Any]:
        """Return the values at the path. value: JSON value at which the path begins. claims: all claims, which `$` in a
        filter means."""
        values = iter((value,))
        for step in self.steps:
            values = _each(values, step, claims)
        return values


def _each(values: Iterator[Any], step: Select, claims: Any) -> Iterator[Any]:
    for value in values:
        yield from step(value, claims)


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
        if self.accept(".."):
            below = self._bracket() if self.accept("[") else self._member()
            return lambda value, claims: _each(descendants(value), below, claims)
        if self.accept("."):
            return self._member()
        if self.accept("["):
            return self._bracket()
        raise self._error()

    def _member(self) -> Select:
        """Read a step behind a dot."""
        if self.accept("*"):
            return children
        quoted = self._match(_QUOTED)
        return child(_unquote(quoted) if quoted else self._require_match(_NAME)[0])

    def _bracket(self) -> Select:
        """Read the selectors behind `[`, with its `]`."""
        selectors = [self._selector()]
        while self._operator(","):
            selectors.append(self._selector())
        if not self._operator("]"):
            raise self._error()
        if len(selectors) == 1:
            return selectors[0]
        return lambda value, claims: (item for selector in selectors for item in selector(value, claims))

    def _selector(self) -> Select:
        """Read one of the selectors between brackets."""
        if self._operator("?"):
            test = self._alternatives()
            return lambda value, claims: (item for item in children(value, claims) if test(item, claims))
        if self.accept("*"):
            return children
        if quoted := self._match(_QUOTED):
            return child(_unquote(quoted))
        if bounds := self._match(_SLICE):
            start, end, step = (None if bound is None else int(bound) for bound in bounds.groups())
            return slice_step(slice(start, end, step))
        return element(int(self._require_match(_INDEX)[0]))

    def _alternatives(self) -> Test:
        """Read tests that `||` joins."""
        tests = [self._conjunction()]
        while self._operator("||"):
            tests.append(self._conjunction())
        return tests[0] if len(tests) == 1 else lambda value, claims: any(test(value, claims) for test in tests)

    def _conjunction(self) -> Test:
        """Read tests that `&&` joins."""
        tests = [self._test()]
        while self._operator("&&"):
            tests.append(self._test())
        return tests[0] if len(tests) == 1 else lambda value, claims: all(test(value, claims) for test in tests)

    def _operator(self, token: str) -> bool:
        """Return whether the token is next, behind blanks, and move behind it then."""
        self._match(_SPACE)
        return self.accept(token)

    def _test(self) -> Test:
        """Read a test: one behind `!`, several in parentheses, a call of `search()`, a comparison, or a path alone,
        which tests whether there is a value.
        """
        if self._operator("!"):
            test = self._test()
            return lambda value, claims: not test(value, claims)
        if self.accept("("):
            test = self._alternatives()
            if not self._operator(")"):
                raise self._error()
            return test
        if self.accept("search("):
            return self._search()
        left = self._operand()
        self._match(_SPACE)
        operator = self._match(_OPERATOR)
        if operator is None:
            return lambda value, claims: left(value, claims) is not _ABSENT
        right = self._operand()
        compare = COMPARISONS[operator[0]]
        return lambda value, claims: compare(left(value, claims), right(value, claims))

    def _operand(self) -> Operand:
        """Read a path that begins with `@`, the value that is tested, or with `$`, the claims; or a text in quotes, a
        number, `true`, `false` or `null`.
        """
        self._match(_SPACE)
        if self.accept("@"):
            path = self._relative()
            return lambda value, claims: next(path.values(value, claims), _ABSENT)
        if self.accept("$"):
            path = self._relative()
            return lambda value, claims: next(path.values(claims, claims), _ABSENT)
        literal = self._literal()
        return lambda value, claims: literal

    def _literal(self) -> Any:
        """Read a text in quotes, a number, `true`, `false` or `null`."""
        if quoted := self._match(_QUOTED):
            return _unquote(quoted)
        if word := self._match(_WORD):
            return _WORDS[word[0]]
        return float(self._require_match(_NUMBER)[0])

    def _search(self) -> Test:
        """Read the arguments of `search()`: an operand, which usually is a path, and a regular expression in quotes.
        Raises `ClaimPathError`, also for an invalid regular expression."""
        searched = self._operand()
        if not self._operator(","):
            raise self._error()
        self._match(_SPACE)
        try:
            pattern = re.compile(_unquote(self._require_match(_QUOTED)))
        except re.error as error:
            raise ClaimPathError(f"the pattern of search() cannot be read: {error}") from None
        if not self._operator(")"):
            raise self._error()

        def test(value: Any, claims: Any) -> bool:
            text = searched(value, claims)
            return isinstance(text, str) and pattern.search(text) is not None

        return test

    def _relative(self) -> ClaimPath:
        """Read the steps of a path within a filter."""
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

    def _require_match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Return the match of a pattern here. Raises `ClaimPathError` if there is none."""
        match = self._match(pattern)
        if match is None:
            raise self._error()
        return match

    def _error(self) -> ClaimPathError:
        """Return the error for the current position."""
        return ClaimPathError(f"failed to parse role-claim-key value ({self._text}), at character {self._place + 1}")


def _unquote(match: re.Match[str]) -> str:
    """Return the text within quotes. A backslash is left out, and the character behind it stands for itself; there are
    no other escapes."""
    text = match[1] if match[1] is not None else match[2]
    return _ESCAPE.sub(r"\1", text)
