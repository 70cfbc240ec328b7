"""The file format of PostgREST's configuration: lines `key = value` → texts by key.

A value is a text in double quotes with escapes, a number, or true or false. `#` begins a comment. In texts, `$(NAME)`
stands for a variable of the environment and `$$` for `$`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_BARE = re.compile(r"[^\s#\"]+")
_VARIABLE = re.compile(r"\$(?:\$|\(([A-Za-z_][A-Za-z0-9_]*)\))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


class ConfigurationFileError(ValueError):
    """A line that cannot be read. The message has file, line and remedy. name: of the file. line: from 1."""

    def __init__(self, name: str, line: int, message: str) -> None:
        super().__init__(f"{name}:{line}: {message}")


def parse_configuration_file(name: str, text: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return key → text of a configuration file. If a key is set twice, the last text counts.

    name: of the file, for messages. environment: variables to which values may refer. Raises `ConfigurationFileError`.
    """
    return dict(_Parser(name, text, environment).entries())


class _Parser:
    """A parser of one file. Methods read at the current position and move it behind what they have read. They raise
    `ConfigurationFileError`."""

    def __init__(self, name: str, text: str, environment: Mapping[str, str]) -> None:
        self._name = name
        self._text = text
        self._environment = environment
        self._place = 0

    def entries(self) -> Iterator[tuple[str, str]]:
        """Yield key and text of each line, in order."""
        while self._skip(across_lines=True):
            key = self._match(_KEY)
            if key is None:
                raise self._error('expected a line such as db-uri = "postgresql://user@host/db"')
            if not self._skip() or self._text[self._place] != "=":
                raise self._error(f"expected = behind {key}")
            self._place += 1
            if not self._skip():
                raise self._error(f'{key} has no value; write {key} = "" for an empty one')
            yield key, self._value(key)
            if self._skip() and self._text[self._place] != "\n":
                raise self._error(f"unexpected text behind the value of {key}")

    def _skip(self, *, across_lines: bool = False) -> bool:
        """Skip blanks and comments. Return whether a character follows them.

        across_lines: skip line ends, too; otherwise, a line end is a character that follows.
        """
        blanks = " \t\r\n" if across_lines else " \t\r"
        text = self._text
        while self._place < len(text):
            character = text[self._place]
            if character == "#":
                end = text.find("\n", self._place)
                self._place = len(text) if end < 0 else end
                if not across_lines:
                    return self._place < len(text)
            elif character in blanks:
                self._place += 1
            else:
                return True
        return False

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        """Return the text that matches the pattern here; None: no match, and the position stays."""
        match = pattern.match(self._text, self._place)
        if match is None:
            return None
        self._place = match.end()
        return match.group()

    def _value(self, key: str) -> str:
        """Read the value of a key."""
        if self._text[self._place] == "\n":
            raise self._error(f'{key} has no value; write {key} = "" for an empty one')
        if self._text[self._place] == '"':
            return self._interpolate(self._read_quoted_text(key))
        bare = self._match(_BARE) or ""
        if bare.lower() in ("true", "false", "on", "off", "yes", "no") or re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", bare):
            return bare
        raise self._error(f'the value of {key} needs quotes: {key} = "…"')

    def _read_quoted_text(self, key: str) -> str:
        """Read a text in quotes with its escapes. A backslash at the end of a line joins it with the next line."""
        parts: list[str] = []
        place = self._place + 1
        text = self._text
        while place < len(text) and text[place] != '"':
            if text[place] == "\\":
                following = text[place + 1 : place + 2]
                if following not in _ESCAPES and following != "\n":
                    raise self._error(f"the value of {key} has the unknown escape \\{following}")
                parts.append(_ESCAPES.get(following, ""))
                place += 2
            else:
                parts.append(text[place])
                place += 1
        if place >= len(text):
            raise self._error(f"the value of {key} has no closing quote")
        self._place = place + 1
        return "".join(parts)

    def _interpolate(self, text: str) -> str:
        """Return a text with variables of the environment in place of `$(NAME)`, and `$` in place of `$$`. Raises
        `ConfigurationFileError` if a variable is not set."""
        return _VARIABLE.sub(self._variable, text)

    def _variable(self, match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return "$"
        if name not in self._environment:
            raise self._error(f"the environment variable {name} is not set")
        return self._environment[name]

    def _error(self, message: str) -> ConfigurationFileError:
        """Return the error for the current line."""
        return ConfigurationFileError(self._name, self._text.count("\n", 0, self._place) + 1, message)
